import type { CatalogModel } from '../catalog/model.ts'
import { GatewayError } from '../core/errors.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { type MediaFacts, type MediaInput, type MediaKind, mediaFacts, textBeside } from '../endpoints/media-input.ts'
import { denseTokensIn, ESTIMATED_BYTES_PER_TOKEN } from '../endpoints/token-estimate.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { ParsedRequest } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

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
export function mediaTokens(context: PipelineContext, media: readonly MediaFacts[], model: CatalogModel): MediaTokens {
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
const FEWEST_IMAGE_TOKENS = 1_600
const MOST_IMAGE_TOKENS = 16_384
const TOKENS_PER_SECOND = 50
const TOKENS_PER_PAGE = 4_600

/** Applies to vendors without a rule of their own. Undefined for an input of unknown size, or of a kind without a size. */
function generalTokens({ kind, byteLength, width, height, seconds, pages }: MediaFacts): number | undefined {
  if (kind === 'image') {
    if (width === undefined || height === undefined) return MOST_IMAGE_TOKENS
    const patches = Math.ceil(width / PIXELS_PER_TOKEN_SIDE) * Math.ceil(height / PIXELS_PER_TOKEN_SIDE)
    return Math.min(MOST_IMAGE_TOKENS, Math.max(FEWEST_IMAGE_TOKENS, patches))
  }
  if (seconds !== undefined) return seconds * TOKENS_PER_SECOND
  if (pages !== undefined) return pages * TOKENS_PER_PAGE
  // The model reads other files as text.
  return kind === 'document' && byteLength !== undefined ? byteLength / ESTIMATED_BYTES_PER_TOKEN : undefined
}
