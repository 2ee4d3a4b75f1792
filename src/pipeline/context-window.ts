import type { CatalogModel } from '../catalog/model.ts'
import type { Selection } from '../routing/selection.ts'
import type { Reserved } from './call-record.ts'
import { OVERSIZED } from './error-classification.ts'
import { contextTokensOf } from './media-estimate.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'

/** The estimate is an upper one, so a model is skipped only if its window is exceeded by this factor. */
const CERTAINLY_BEYOND = 1.3

/** HTTP status with which vendors reject a request that is too large. */
const REFUSED_STATUS = 400

/**
 * Sends a request that certainly exceeds the context window of the requested model to the first fallback with a large enough
 * window, without a call that would fail. Models whose rows have no `contextTokens` are called.
 */
export function passOverSmallModels(context: PipelineContext, call: Reserved, selection: Selection): void {
  const { chain, requestId } = call
  const asked = chain[0]!
  const { contextTokens } = asked.limits
  if (contextTokens === undefined) return
  const estimatedTokens = tokensOf(context, call, asked)
  if (estimatedTokens === undefined || estimatedTokens <= contextTokens * CERTAINLY_BEYOND) return
  const small = new Set<string>()
  let fallback: string | undefined
  for (const model of chain) {
    if (holds(context, call, model)) fallback ??= model.id
    else small.add(model.id)
  }
  if (fallback === undefined || !selection.passOver(small, REFUSED_STATUS)) return
  const facts = { requestId, model: asked.id, reason: OVERSIZED, estimatedTokens, contextTokens, fallback } as const
  emit(context, { type: 'model-skipped', ...facts })
  context.logger.info('a request is larger than the context window of its model', facts)
}

/** Returns the ids of the models that are too small: the model that rejected the request, and those with no larger window. */
export function noLargerModels(context: PipelineContext, { chain }: Reserved, refusedBy: string): ReadonlySet<string> {
  const refused = chain.find(({ id }) => id === refusedBy)
  const window = refused && contextTokensOf(context, refused)
  const isNoLarger = (model: CatalogModel): boolean => {
    const other = window === undefined ? undefined : contextTokensOf(context, model)
    return window !== undefined && other !== undefined && other <= window
  }
  return new Set([refusedBy, ...chain.filter(isNoLarger).map(({ id }) => id)])
}

function holds(context: PipelineContext, call: Reserved, model: CatalogModel): boolean {
  const window = contextTokensOf(context, model)
  return window !== undefined && (tokensOf(context, call, model) ?? 0) <= window
}

/**
 * Returns the tokens of a request's text and its requested output, or undefined if its endpoint generates no text. Images, audio
 * and documents are ignored, because their estimates may be many times too high.
 */
function tokensOf(
  { estimateTokens }: PipelineContext,
  { endpoint, body, textBytes }: Reserved,
  { id }: CatalogModel,
): number | undefined {
  const { outputBound } = endpoint
  if (outputBound === undefined) return undefined
  return estimateTokens(textBytes, { endpoint: endpoint.id, model: id }) + (outputBound.of(body) ?? 0)
}
