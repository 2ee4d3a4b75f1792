import type { CatalogModel } from '../catalog/model.ts'
import { plausibleUsage, type UsageBounds } from '../catalog/prices/plausible-usage.ts'
import { addUsage, type ModelUsage, type Usage, type UsageField } from '../core/usage.ts'
import { estimateGeneratedTokens, estimateTokens } from '../endpoints/token-estimate.ts'
import { asBuffer } from '../wire/join-chunks.ts'
import { editMembers } from '../wire/json-edits.ts'
import type { Parsed, Reserved } from './call-record.ts'
import { contextTokensOf, mediaTokens } from './media-estimate.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { mayMarkPrompt } from './prompt-caching.ts'

/**
 * Returns the upper estimate of a request's usage at a model. If it sets no bound, its output is the model's longest answer or
 * `defaultMaxOutputTokens`, whichever is less.
 */
export function estimateFor(context: PipelineContext, parsed: Parsed, model: CatalogModel): Usage {
  const { endpoint, textBytes } = parsed
  const assumed = assumedOutputTokens(context, parsed, model)
  const body = assumed === undefined ? parsed.body : withMember(parsed, assumed)
  const denseTokens = denseTokensAt(context, parsed, model)
  const textTokens = context.estimateTokens(textBytes, { endpoint: endpoint.id, model: model.id, denseTokens })
  const { total, parts } = mediaTokens(context, parsed.media, model)
  const usage = asLowered(context, parsed, model, endpoint.estimate(body, textTokens + total, model))
  if (usage.cacheWriteTokens === undefined && mayMarkPrompt(context, parsed, model))
    return { ...parts, ...usage, cacheWriteTokens: usage.inputTokens ?? 0 }
  return total === 0 ? usage : { ...parts, ...usage }
}

/** A call that generates text reads at most the context of its model. */
function denseTokensAt(context: PipelineContext, { endpoint, textBytes, denseTokens }: Parsed, model: CatalogModel) {
  if (denseTokens === 0 || endpoint.outputBound === undefined) return denseTokens
  const window = contextTokensOf(context, model) ?? Number.POSITIVE_INFINITY
  return Math.min(denseTokens, Math.max(0, window - estimateTokens(textBytes)))
}

/** Returns the usual tokens of a prompt. The upper estimate of dense text is several times as high. */
export function usualInputTokens(
  { inputTokens = 0 }: Usage,
  { textBytes = 0, denseTokens = 0 }: Partial<Pick<Parsed, 'textBytes' | 'denseTokens'>>,
): number {
  return Math.max(inputTokens - denseTokens, Math.min(inputTokens, estimateTokens(textBytes)))
}

/** Returns the estimate of a request whose output bound is lowered for each vendor of the model. */
function asLowered({ vendors }: PipelineContext, { endpoint, body }: Parsed, model: CatalogModel, usage: Usage): Usage {
  const asked = endpoint.mostOutputTokens === undefined ? undefined : endpoint.outputBound?.of(body)
  if (asked === undefined || asked === 0 || usage.outputTokens === undefined) return usage
  let most = 0
  for (const { vendor: id, upstream = model.upstream } of model.routes ?? [model]) {
    const vendor = vendors.get(id)
    if (vendor === undefined) continue
    const asCalled = upstream === model.upstream ? model : { ...model, upstream }
    most = Math.max(most, endpoint.mostOutputTokens?.(vendor, asCalled) ?? asked)
    if (most >= asked) return usage
  }
  // A request may ask for several answers, and each has the bound.
  return most === 0 ? usage : { ...usage, outputTokens: Math.round((usage.outputTokens / asked) * most) }
}

/** Returns the tokens of one answer that are reserved because a request sets no bound; `undefined` if it sets one, or can set none. */
export function assumedOutputTokens(
  { outputBounds }: PipelineContext,
  { endpoint, body }: Parsed,
  { limits }: CatalogModel,
): number | undefined {
  const { outputBound } = endpoint
  if (outputBound === undefined || outputBound.of(body) !== undefined) return undefined
  const { defaultMaxOutputTokens } = outputBounds
  return Math.min(limits.maxOutputTokens ?? defaultMaxOutputTokens, defaultMaxOutputTokens)
}

/** Returns the checked request with a bound of its output. */
function withMember({ endpoint, body }: Parsed, tokens: number): Parsed['body'] {
  const { outputBound } = endpoint
  return outputBound === undefined ? body : { ...body, [outputBound.member]: tokens }
}

/** Returns a request with a bound of its output, in its body and its bytes. Without bytes if they cannot be edited reliably. */
export function withOutputBound(parsed: Parsed, tokens: number): Pick<Parsed, 'body' | 'bytes'> {
  const { endpoint, bytes } = parsed
  const body = withMember(parsed, tokens)
  if (bytes === undefined || endpoint.outputBound === undefined) return { body, bytes }
  const text = asBuffer(bytes)
  return { body, bytes: editMembers(text, new Map([[endpoint.outputBound.member, String(tokens)]]))?.apply(text) }
}

type Measured = Pick<Reserved, 'estimate' | 'bytesPerToken' | 'usualReasoningTokens' | 'tokensPerSecond'> &
  Partial<Pick<Reserved, 'textBytes' | 'denseTokens'>>

/** Known facts of an answer without a usage report. */
export interface UnreportedOutput {
  /** Bytes of text that the vendor generated. */
  readonly outputBytes: number
  /** Whether the model used output tokens that its text does not show. */
  readonly isUnseen: boolean
  /** Whether the caller, or the time limit of a whole answer, ended it. Default false. */
  readonly isStopped?: boolean
  /** Time from the request until its caller's disconnect stopped it, in milliseconds. If omitted, unseen output counts as reserved. */
  readonly stoppedAfterMs?: number
}

/**
 * Estimates the usage of an answer without a vendor's report: the prompt, and the text it sent, within the estimate. The same
 * rule applies to whole answers, streams, and streams that were cut or abandoned. Output that is neither visible nor reported is
 * charged at the model's usual reasoning, or as reserved if that is not known. If the caller disconnected, the model counts as
 * writing at its measured speed while the call ran. Images, speech and searches are charged as reserved, because the vendor
 * produces them anyway.
 */
export function estimatedUsage(
  call: Measured,
  { outputBytes, isUnseen, isStopped = false, stoppedAfterMs }: UnreportedOutput,
): Usage {
  const { estimate, bytesPerToken, usualReasoningTokens, tokensPerSecond } = call
  const inputTokens = usualInputTokens(estimate, call)
  if (isSetByRequest(estimate))
    return inputTokens === (estimate.inputTokens ?? 0) ? estimate : { ...estimate, inputTokens }
  const { inputAudioTokens, inputImageTokens, audioSeconds, outputTokens: heldFor } = estimate
  const webSearches = isUnseen && isStopped ? searchesWithin(estimate.webSearches, stoppedAfterMs) : undefined
  const textTokens = estimateGeneratedTokens(outputBytes, bytesPerToken)
  const writtenTokens = stoppedAfterMs === undefined ? undefined : Math.ceil((stoppedAfterMs / 1_000) * tokensPerSecond)
  const reasonedTokens = usualReasoningTokens === undefined ? undefined : textTokens + usualReasoningTokens
  const stopped = writtenTokens === undefined ? undefined : Math.max(textTokens, writtenTokens)
  const unseen = isStopped ? stopped : reasonedTokens
  const generated = isUnseen ? (unseen ?? heldFor) : textTokens
  const outputTokens = Math.min(generated ?? textTokens, heldFor ?? textTokens)
  const hasMedia = inputImageTokens !== undefined || inputAudioTokens !== undefined || audioSeconds !== undefined
  if (!hasMedia && webSearches === undefined) return { inputTokens, outputTokens }
  return {
    inputTokens,
    ...(webSearches === undefined ? {} : { webSearches }),
    ...(audioSeconds === undefined ? {} : { audioSeconds }),
    ...(inputImageTokens === undefined ? {} : { inputImageTokens }),
    ...(inputAudioTokens === undefined ? {} : { inputAudioTokens }),
    outputTokens,
  }
}

/**
 * Returns the part of the hold for the images that were seen; with several image models, that of the first one, as in a report.
 */
export function innerImagesUsage({ otherModels }: Usage, seen = 0): ModelUsage | undefined {
  const held = otherModels?.find(({ usage }) => usage.images !== undefined)
  if (held === undefined || seen === 0) return undefined
  return { model: held.model, usage: usagePart(held.usage, Math.min(1, seen / Math.max(held.usage.images ?? 0, 1))) }
}

/** Limits the searches of a model in this time to one per second. */
function searchesWithin(held: number | undefined, elapsedMs = Number.POSITIVE_INFINITY): number | undefined {
  return held === undefined ? undefined : Math.min(held, Math.ceil(elapsedMs / 1_000))
}

/** Whether a call generates tokens whose number only its end contains. Images, speech and searches are known from the request. */
export function generatesTokens(estimate: Usage): boolean {
  return !isSetByRequest(estimate) && (estimate.outputTokens ?? 0) > 0
}

/**
 * Returns the usage to charge for an answer that was cut: the vendor's report so far, with at least the output seen. Vendors
 * report usage in parts during a stream, and the last part of a cut stream is missing. Some report zeros until then, but no text
 * has zero tokens.
 * @param seen Usage to charge without a report.
 */
export function cutUsage(reported: Usage, seen: Usage): Usage {
  if (isSetByRequest(seen)) return { ...seen, ...reported }
  const isUncounted = reported.inputTokens === 0 && seen.audioSeconds === undefined
  return {
    ...reported,
    inputTokens: (isUncounted ? undefined : reported.inputTokens) ?? seen.inputTokens ?? 0,
    ...(seen.audioSeconds === undefined ? {} : { audioSeconds: reported.audioSeconds ?? seen.audioSeconds }),
    ...(seen.webSearches === undefined ? {} : { webSearches: Math.max(reported.webSearches ?? 0, seen.webSearches) }),
    outputTokens: Math.max(reported.outputTokens ?? 0, seen.outputTokens ?? 0),
  }
}

/** Returns the greater of each count. */
export function mostUsage(one: Usage, other: Usage): Usage {
  const most: { -readonly [Name in keyof Usage]?: Usage[Name] } = { ...one }
  for (const field in other) {
    const name = field as UsageField
    most[name] = Math.max(one[name] ?? 0, other[name] ?? 0)
  }
  return most
}

/** Returns a share of each count, rounded up. */
export function usagePart(usage: Usage, share: number): Usage {
  const part: { -readonly [Field in UsageField]?: number } = {}
  for (const field in usage) {
    const name = field as UsageField
    part[name] = Math.ceil((usage[name] ?? 0) * share)
  }
  return part
}

/**
 * Returns the usage to charge for abandoned images: the received ones as reported, and the rest as reserved, because the vendor
 * generates them anyway.
 */
export function abandonedPictures(estimate: Usage, reported: Usage): Usage {
  const wanted = estimate.images ?? 0
  const left = wanted - (reported.images ?? 0)
  if (left <= 0) return reported
  return addUsage(reported, usagePart(estimate, left / wanted))
}

/** Whether everything that the vendor can charge is known from the request, as for images, speech and searches. */
export function isSetByRequest({ images, characters, searchUnits }: Usage): boolean {
  return images !== undefined || characters !== undefined || searchUnits !== undefined
}

/** Returns the bounds by which a report of a call at a model is checked. */
export function reportBounds(
  { endpoint, body, estimate }: Pick<Reserved, 'endpoint' | 'body' | 'estimate'>,
  { limits }: Pick<CatalogModel, 'limits'>,
): UsageBounds {
  return { hold: estimate, limits, samplings: endpoint.samplings && (() => endpoint.samplings?.(body) ?? 1) }
}

/** Usage that can be charged, and the faults of the report. */
export interface ChargeableUsage {
  readonly usage: Usage
  /** Names of the counts that were estimated because they were missing or malformed, and of those that were reduced. */
  readonly replaced: readonly string[]
}

/**
 * Makes a vendor's report chargeable: malformed counts are replaced, and missing ones are taken from `estimated`. The caller
 * reads the same usage.
 */
export function chargeableUsage(reported: Usage, bounds: UsageBounds, estimated: Usage): ChargeableUsage {
  const { usage, implausible } = plausibleUsage(reported, bounds)
  const missing = missingFields(usage, estimated)
  if (missing.length === 0) return { usage, replaced: implausible }
  const filled = withFields(usage, estimated, missing)
  // Vendors that read audio report the unit that they sell, tokens or seconds. The other count is not missing.
  const tellsSound = usage.audioSeconds !== undefined || usage.inputTokens !== undefined
  if (estimated.audioSeconds !== undefined && tellsSound) return { usage: filled, replaced: implausible }
  return { usage: filled, replaced: [...implausible, ...missing] }
}

/**
 * Returns the reserved fields that a vendor's report lacks. A report without a count, or with an invalid count, must not make a
 * call free.
 */
function missingFields(reported: Usage, estimated: Usage): readonly UsageField[] {
  let missing: UsageField[] | undefined
  for (const field in estimated) {
    const name = field as UsageField
    if (reported[name] !== undefined || estimated[name] === 0) continue
    // A vendor that reports a prompt's total, and no part of it, sells all tokens at one price.
    if (PARTS.has(name) && reported.inputTokens !== undefined && !isSetByRequest(estimated)) continue
    missing ??= []
    missing.push(name)
  }
  return missing ?? NONE
}

function withFields(reported: Usage, estimated: Usage, names: readonly UsageField[]): Usage {
  return { ...reported, ...Object.fromEntries(names.map((name) => [name, estimated[name]])) }
}

const NONE: readonly UsageField[] = []
const PARTS: ReadonlySet<UsageField> = new Set(['inputImageTokens', 'inputAudioTokens'])
