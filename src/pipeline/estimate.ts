// See docs/decisions/0004-holds.md.

import type { CatalogModel } from '../catalog/model.ts'
import { plausibleUsage, type UsageBounds } from '../catalog/prices/plausible-usage.ts'
import { GatewayError } from '../core/errors.ts'
import { isJsonObject, nonEmptyText } from '../core/json.ts'
import { addUsage, type ModelUsage, type Usage, type UsageField } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { type MediaFacts, type MediaInput, type MediaKind, mediaFacts, textBeside } from '../endpoints/media-input.ts'
import type { VendorCall } from '../endpoints/operation.ts'
import {
  denseTokensIn,
  ESTIMATED_BYTES_PER_TOKEN,
  estimateGeneratedTokens,
  estimateTokens,
} from '../endpoints/token-estimate.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { asBuffer } from '../wire/chunks.ts'
import { editMembers } from '../wire/json-edits.ts'
import type { Candidate, Parsed, ParsedRequest, Reserved } from './call-record.ts'
import type { AttemptFailure } from './error-classification.ts'
import type { PipelineContext } from './pipeline-context.ts'

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

/** Input that a request passes to the model. */
export type RequestInput = Pick<ParsedRequest, 'textBytes' | 'denseTokens' | 'media'>

/** Maximum number of media in one request. The header of each is read; models accept a few thousand images at most. */
const MAX_MEDIA = 5_000

/**
 * Measures a checked request: its text without its media, and the facts in the headers of the media.
 * @throws GatewayError `invalid_request` for more media than {@link MAX_MEDIA}.
 */
export function measureInput(endpoint: Endpoint, { body, bytes }: Pick<ParsedRequest, 'body' | 'bytes'>): RequestInput {
  const inputs = endpoint.media?.(body) ?? NO_INPUTS
  if (inputs.length > MAX_MEDIA) {
    const most = MAX_MEDIA.toLocaleString('en-US')
    const message = `The request has more than ${most} images, recordings, videos and documents.`
    throw new GatewayError('invalid_request', { message })
  }
  const media = inputs.length === 0 ? NO_MEDIA : inputs.map(mediaFacts)
  if (endpoint.textBytes === undefined) {
    const text = textBeside(inputs, body) ?? bytes ?? NO_TEXT
    return { textBytes: text.byteLength, denseTokens: denseTokensIn(text), media }
  }
  const textBytes = endpoint.textBytes(body)
  // The model may read parts of the request several times. A much longer body consists of files.
  const isText = media.length === 0 && bytes !== undefined && bytes.byteLength <= textBytes * MAX_SYNTAX_FACTOR
  return {
    textBytes,
    denseTokens: isText ? Math.ceil((denseTokensIn(bytes) * textBytes) / bytes.byteLength) : 0,
    media,
  }
}

const NO_TEXT = new Uint8Array()
/** Maximum number of JSON bytes per byte of text in it. */
const MAX_SYNTAX_FACTOR = 4
const NO_INPUTS: readonly MediaInput[] = []
const NO_MEDIA: readonly MediaFacts[] = []

/** Maximum tokens of the media of a request. */
export interface MediaTokens {
  readonly total: number
  /** Parts that may have their own price. Omitted if there are none. */
  readonly parts: { readonly inputImageTokens?: number; readonly inputAudioTokens?: number }
}

const NO_TOKENS: MediaTokens = { total: 0, parts: {} }

/**
 * Returns the tokens of a request's media at a model by the rules of its vendors, using the most expensive one if there are
 * several. No call reads more than the context of its model.
 */
function mediaTokens(context: PipelineContext, media: readonly MediaFacts[], model: CatalogModel): MediaTokens {
  if (media.length === 0) return NO_TOKENS
  const routes = model.routes ?? [model]
  const window = contextTokensOf(context, model) ?? ASSUMED_CONTEXT_TOKENS
  const sums = new Map<MediaKind, number>()
  let total = 0
  for (const input of media) {
    const tokens = Math.min(window - total, tokensOf(context, input, { routes, model, window }))
    total += tokens
    sums.set(input.kind, (sums.get(input.kind) ?? 0) + tokens)
  }
  const [image, audio] = [sums.get('image'), sums.get('audio')]
  return {
    total,
    parts: {
      ...(image === undefined ? {} : { inputImageTokens: image }),
      ...(audio === undefined ? {} : { inputAudioTokens: audio }),
    },
  }
}

/** Facts of a route that the counting needs. */
interface CountedRoute {
  readonly vendor: string
  readonly upstream?: string | undefined
}

/** Context size if neither the model's row nor its vendor specifies one. */
const ASSUMED_CONTEXT_TOKENS = 200_000

/** Returns the maximum input tokens of a model from its row, or from the widest of its vendors; `undefined` if none is known. */
export function contextTokensOf({ vendors }: PipelineContext, model: CatalogModel): number | undefined {
  const { limits, upstream, routes = [model] } = model
  if (limits.contextTokens !== undefined) return limits.contextTokens
  const known = (routes as readonly CountedRoute[]).flatMap(
    (route) => vendors.get(route.vendor)?.media?.contextTokens(route.upstream ?? upstream) ?? [],
  )
  return known.length === 0 ? undefined : Math.max(...known)
}

interface Counting {
  readonly routes: readonly CountedRoute[]
  readonly model: CatalogModel
  readonly window: number
}

function tokensOf(context: PipelineContext, input: MediaFacts, { routes, model, window }: Counting): number {
  if (input.byteLength === undefined) {
    const { models, ...bounds } = context.unknownInputTokens
    const stated = models?.[model.id]?.[input.kind] ?? bounds[input.kind]
    if (stated !== undefined) return Math.min(stated, input.maxTokens ?? stated)
  }
  let most = 0
  for (const { vendor: id, upstream = model.upstream } of routes) {
    const tokens = tokensAt(context.vendors.get(id), input, upstream) ?? generalTokens(input) ?? window
    most = Math.max(most, tokens)
  }
  return Math.ceil(Math.min(most, input.maxTokens ?? most))
}

function tokensAt(vendor: Vendor | undefined, input: MediaFacts, upstream: string): number | undefined {
  return vendor?.media?.tokens(input, upstream)
}

// Upper bounds over the published models of many vendors: a token per 28 × 28 pixels and 16,384 per image, 50 per second of
// audio, and an image plus dense text per page.
const PIXELS_PER_TOKEN_SIDE = 28
const MIN_IMAGE_TOKENS = 1_600
const MAX_IMAGE_TOKENS = 16_384
const TOKENS_PER_SECOND = 50
const TOKENS_PER_PAGE = 4_600

/** Applies to vendors without a rule of their own. Undefined for an input of unknown size, or of a kind without a size. */
function generalTokens({ kind, byteLength, width, height, seconds, pages }: MediaFacts): number | undefined {
  if (kind === 'image') {
    if (width === undefined || height === undefined) return MAX_IMAGE_TOKENS
    const patches = Math.ceil(width / PIXELS_PER_TOKEN_SIDE) * Math.ceil(height / PIXELS_PER_TOKEN_SIDE)
    return Math.min(MAX_IMAGE_TOKENS, Math.max(MIN_IMAGE_TOKENS, patches))
  }
  if (seconds !== undefined) return seconds * TOKENS_PER_SECOND
  if (pages !== undefined) return pages * TOKENS_PER_PAGE
  // The model reads other files as text.
  return kind === 'document' && byteLength !== undefined ? byteLength / ESTIMATED_BYTES_PER_TOKEN : undefined
}

/** Text of an event that replaces a vendor's text that may quote a prompt. */
export const TEXT_LEFT_OUT = "The vendor's text is left out, because it may quote the prompt."

/** Maximum length of a request that is searched, in characters. If it is longer, the vendor's text is dropped. */
const MAX_SEARCHED = 4 * 1024 * 1024
/** Minimum length of a part of a longer text that counts as a quote, in letters and digits. */
const QUOTE_LENGTH = 12
/** Minimum length of a whole text of a request that counts as a quote. */
const MIN_TEXT_LENGTH = 4
const SHORT_TEXT_COST = 32

/** Members whose values are names that operators need to read. */
const NAMES: ReadonlySet<string> = new Set(['model', 'type', 'role'])

/** Returns the part of a failure that the operator may read. Pass `undefined` if the body was released and cannot be searched. */
export function toldWithoutQuotes(
  { report, operatorProblem }: AttemptFailure,
  request: object | undefined,
): { readonly message: string | undefined; readonly problem: string } {
  const problem = operatorProblem?.message ?? ''
  if (report.isVendorText !== true) return { message: report.message, problem }
  const cut = (text: string) => (request === undefined ? undefined : withoutQuotes(text, request))
  const message = report.message === undefined ? undefined : cut(report.message)
  // The report is the beginning of the same text.
  return { message, problem: problem === '' ? problem : (message ?? TEXT_LEFT_OUT) }
}

/**
 * Returns a vendor's text in which each quote of the request is replaced by `[redacted]`, whatever its case, blanks and escapes.
 * Returns `undefined` if the request is too large to be searched.
 */
export function withoutQuotes(text: string, request: object): string | undefined {
  const quotes = new QuoteFinder(text)
  const pending: (string | object)[] = [request]
  let left = MAX_SEARCHED
  for (let value = pending.pop(); value !== undefined && left > 0; value = pending.pop()) {
    if (typeof value === 'string') {
      left -= Math.max(value.length, SHORT_TEXT_COST)
      if (left > 0) quotes.search(value)
      continue
    }
    const members: Iterable<[string | number, unknown]> = Array.isArray(value) ? value.entries() : Object.entries(value)
    for (const [name, member] of members) {
      left -= 1
      if (left <= 0) break
      if (typeof member === 'string' ? !NAMES.has(String(name)) : isTree(member))
        pending.push(member as string | object)
    }
  }
  return left > 0 ? quotes.redacted() : undefined
}

/** Whether the value can contain texts. Bytes of a file cannot. */
function isTree(value: unknown): boolean {
  return Array.isArray(value) || (isJsonObject(value) && !ArrayBuffer.isView(value))
}

const FACTOR = 0x01000193
/** Weight of the character that leaves the window. */
const LEAVING = Array.from({ length: QUOTE_LENGTH }).reduce<number>((power) => Math.imul(power, FACTOR), 1)

/** Finds quotes by a rolling hash over letters and digits, so that each text is read once. */
class QuoteFinder {
  readonly #text: string
  readonly #hidden: Uint8Array
  /** First and last place of each window of the text, by its hash. */
  readonly #windows = new Map<number, [begin: number, end: number][]>()

  constructor(text: string) {
    this.#text = text
    this.#hidden = new Uint8Array(text.length)
    const places: number[] = []
    eachWindow(
      text,
      (hash) => {
        const ends = this.#windows.get(hash)
        const window: [number, number] = [places.at(-QUOTE_LENGTH)!, places.at(-1)!]
        if (ends === undefined) this.#windows.set(hash, [window])
        else ends.push(window)
      },
      places,
    )
  }

  search(quoted: string): void {
    const trimmed = quoted.trim()
    if (trimmed.length >= MIN_TEXT_LENGTH && trimmed.length <= 2 * QUOTE_LENGTH)
      for (let at = this.#text.indexOf(trimmed); at !== -1; at = this.#text.indexOf(trimmed, at + trimmed.length))
        this.#hidden.fill(1, at, at + trimmed.length)
    eachWindow(quoted, (hash) => {
      for (const [begin, end] of this.#windows.get(hash) ?? []) this.#hidden.fill(1, begin, end + 1)
    })
  }

  redacted(): string {
    let shown = ''
    for (let at = 0; at < this.#text.length; at++) {
      if (this.#hidden[at] === 0) shown += this.#text[at]
      else if (this.#hidden[at - 1] !== 1) shown += '[redacted]'
    }
    return shown
  }
}

/** Calls `found` with the hash of each window of letters and digits, and adds their positions in the text to `places`. */
function eachWindow(text: string, found: (hash: number) => void, places?: number[]): void {
  const window = new Uint16Array(QUOTE_LENGTH)
  let hash = 0
  let count = 0
  for (let at = 0; at < text.length; at++) {
    let code = text.charCodeAt(at)
    // The letter after a backslash belongs to an escape.
    if (code === 92) at += 1
    if (code >= 65 && code <= 90) code += 32
    const isLetter = (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code > 127
    if (!isLetter) continue
    const place = count % QUOTE_LENGTH
    hash = (Math.imul(hash, FACTOR) + code - Math.imul(window[place]!, LEAVING)) | 0
    window[place] = code
    places?.push(at)
    count += 1
    if (count >= QUOTE_LENGTH) found(hash)
  }
}

type Called = Pick<Candidate, 'model' | 'vendor'>

/** Whether prompts of a model may be marked for its vendor's cache. Their holds assume that all of them are written to it. */
function mayMarkPrompt(
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

/** Headers that keep the requests of a session together; opencode and OpenRouter's SDK send the last three. */
const SESSION_HEADERS = ['x-session-id', 'x-session-affinity', 'session-id', 'session_id'] as const
/** Longer values are truncated, because the key is hashed for every request. */
const MAX_LENGTH = 256

/**
 * Returns the key that keeps a chat where its prompt is cached: `prompt_cache_key`, otherwise the session (the member
 * `session_id`, or one of {@link SESSION_HEADERS}), otherwise the end user (`user`, or `metadata.user_id`). Undefined without any
 * of them. Keys are scoped to their account.
 */
export function stickyKey(
  accountId: string,
  body: { readonly model: string },
  header: (name: string) => string | undefined,
): string | undefined {
  const { prompt_cache_key, session_id, user, metadata } = body as {
    prompt_cache_key?: unknown
    session_id?: unknown
    user?: unknown
    metadata?: { user_id?: unknown } | null
  }
  const session = nonEmptyText(session_id) ?? SESSION_HEADERS.map((name) => nonEmptyText(header(name))).find(Boolean)
  const name = nonEmptyText(prompt_cache_key) ?? session ?? nonEmptyText(user) ?? nonEmptyText(metadata?.user_id)
  return name === undefined ? undefined : `${accountId} ${name.slice(0, MAX_LENGTH)}`
}
