import type { CatalogModel } from '../catalog/model.ts'
import type { VendorCall } from '../endpoints/operation.ts'
import { stickyKey } from '../routing/sticky-key.ts'
import type { Candidate, Parsed, Reserved } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** May prompts of a model be marked for its vendor's cache? They are held for as if all of them were written to it. */
export function mayMarkPrompt(
  { marksPrompts }: PipelineContext,
  { endpoint }: Pick<Parsed, 'endpoint'>,
  { promptCaching }: CatalogModel,
): boolean {
  const isOn = promptCaching === undefined ? marksPrompts : promptCaching === 'auto'
  return isOn && endpoint.isSticky === true && endpoint.isFree !== true
}

/**
 * What a vendor is told about marking a prompt; undefined: it is not marked. To write a prompt costs more than to send it, so it pays
 * only where the next call of the conversation reaches the same key: the model has only one, or the call names its conversation.
 */
export function promptCachingOf(
  context: PipelineContext,
  call: Reserved,
  { model, vendor }: Candidate,
): VendorCall<unknown>['promptCaching'] {
  if (!mayMarkPrompt(context, call, model)) return undefined
  const { principal, body, request, chain, estimate } = call
  const routes = chain.find(({ id }) => id === model.id)?.routes?.length ?? 1
  const hasOneKey = routes === 1 && vendor.apiKeys.length === 1
  if (!hasOneKey && stickyKey(principal.accountId, body, (name) => request.header(name)) === undefined) return undefined
  return { promptTokens: estimate.inputTokens ?? 0 }
}
