import type { CatalogModel } from '../catalog/model.ts'
import type { VendorCall } from '../endpoints/operation.ts'
import { stickyKey } from '../routing/sticky-key.ts'
import type { Candidate, Parsed, Reserved } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

type Called = Pick<Candidate, 'model' | 'vendor'>

/** Whether prompts of a model may be marked for its vendor's cache. Their holds assume that all of them are written to it. */
export function mayMarkPrompt(
  { marksPrompts }: PipelineContext,
  { endpoint }: Pick<Parsed, 'endpoint'>,
  { promptCaching }: CatalogModel,
): boolean {
  const isOn = promptCaching === undefined ? marksPrompts : promptCaching === 'auto'
  return isOn && endpoint.isSticky === true && endpoint.isFree !== true
}

/**
 * Returns the vendor's options for marking a prompt, or `undefined` if it is not marked. Writing a prompt costs more than sending it, so
 * it pays off only if the next call of the conversation reaches the same key: the model has only one, or the call names its conversation.
 */
export function promptCachingOf(
  context: PipelineContext,
  call: Reserved,
  { model, vendor }: Called,
): VendorCall<unknown>['promptCaching'] {
  if (!mayMarkPrompt(context, call, model) || lacksWritePrice(context, call, { model, vendor })) return undefined
  const { principal, body, request, chain, estimate } = call
  const routes = chain.find(({ id }) => id === model.id)?.routes?.length ?? 1
  const hasOneKey = routes === 1 && vendor.apiKeys.length === 1
  if (!hasOneKey && stickyKey(principal.accountId, body, (name) => request.header(name)) === undefined) return undefined
  return { promptTokens: estimate.inputTokens ?? 0 }
}

/** Vendors bill more for tokens that they write to a cache, which a list without that price does not charge. */
function lacksWritePrice({ warnings }: PipelineContext, { hold }: Reserved, { model, vendor }: Called): boolean {
  const prices = hold?.rates.find((rate) => rate.model === model.id)?.numerators
  if (prices?.input_token === undefined || prices.cache_write_token !== undefined) return false
  const id = JSON.stringify(model.id)
  const message = `Prompts of the model ${id} are not marked for its vendor's cache, because the model has no price of the meter cache_write_token. Add a price row { model: ${id}, meter: "cache_write_token", amount: "…" }.`
  if (vendor.messages !== undefined) warnings.warn({ code: 'cache-writes-unpriced', message })
  return true
}
