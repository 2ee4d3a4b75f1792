import { Buffer } from 'node:buffer'
import { isJsonObject, numbersAt, objectOf } from '../../core/json.ts'
import type { ModelUsage, Usage } from '../../core/usage.ts'
import type { CacheTime } from '../../endpoints/cache-marks.ts'
import { responseUsage } from '../../endpoints/responses/response-object.ts'
import { type ResponsesRequest, responsesCacheTime } from '../../endpoints/responses/responses-request.ts'
import { IMAGE_TOOL, imageToolUsage } from '../../endpoints/responses/responses-surcharges.ts'
import type { VendorCall } from '../vendor.ts'
import { addCacheWrites, addUnincludedCounts, isSameUsage, type MutableUsage } from './openai-chat-answer.ts'
import { openaiImageUsage } from './openai-images.ts'
import { usageAtTier, withoutPurchasePrice } from './vendor-cost.ts'

/** Members of `usage` with token counts. */
const COUNTS = {
  inputTokens: 'input_tokens',
  cachedInputTokens: 'input_tokens_details.cached_tokens',
  outputTokens: 'output_tokens',
  reasoningTokens: 'output_tokens_details.reasoning_tokens',
} as const

/**
 * Reads the usage of a response. `input_tokens` includes tokens read from or written to a cache. Searches are those that the vendor
 * reports as charged: next to the usage at OpenAI, inside it at Perplexity. Returns `undefined` without a report.
 * @param askedTier Service tier that the request names, if any.
 * @param request Request that names the image models of its tools. If omitted, no image model is counted.
 * @param imagesSeen Number of images in the events of a stream. Default 0.
 */
export function responsesUsage(
  response: Record<string, unknown>,
  askedTier?: unknown,
  request?: ResponsesRequest,
  imagesSeen = 0,
): Usage | undefined {
  const { usage: counts, tool_usage: tools } = response
  if (!isJsonObject(counts)) return undefined
  const usage: MutableUsage = numbersAt(counts, COUNTS)
  addCacheWrites(usage, objectOf(counts['input_tokens_details']))
  addUnincludedCounts(usage, counts['total_tokens'])
  const searches = reportedSearches(tools, counts['tool_calls_details']) ?? searchesIn(response['output'])
  if (searches > 0 || maySearch(response['tools'])) usage.webSearches = searches
  const images = request === undefined ? undefined : madeImages(response, request, imagesSeen)
  if (images !== undefined) usage.otherModels = [images]
  return usageAtTier(usage, response['service_tier'], askedTier)
}

/**
 * Reads what an image model used within a response, which `usage` does not include. Images without a report are charged as they
 * were held for. Returns `undefined` if no image was made.
 */
function madeImages(
  response: Record<string, unknown>,
  request: ResponsesRequest,
  imagesSeen = 0,
): ModelUsage | undefined {
  const { tool_usage: tools, output, usage: counts } = response
  const hasImages = imagesSeen > 0 || tools !== undefined || (Array.isArray(output) && output.some(isImageCall))
  if (!hasImages) return undefined
  const listed = Array.isArray(output) ? output.filter((item) => isJsonObject(item) && isMadeImage(item)).length : 0
  const made = Math.max(listed, imagesSeen)
  const tokens = openaiImageUsage(isJsonObject(tools) ? tools['image_gen'] : undefined)
  if (made === 0 && (tokens.outputTokens ?? 0) === 0) return undefined
  const inputTokens = isJsonObject(counts) && typeof counts['input_tokens'] === 'number' ? counts['input_tokens'] : 0
  const most = imageToolUsage(request, made, inputTokens)
  return most && tokens.outputTokens !== undefined ? { ...most, usage: { ...tokens, images: made } } : most
}

/** Returns the images of a response that reports no usage at all, or `undefined` if it has none. */
export function unreportedImages(response: Record<string, unknown>, request: ResponsesRequest): Usage | undefined {
  const images = madeImages(response, request)
  return images && { otherModels: [images] }
}

/** Type of the items and the prefix of the events of the image tool. */
export const IMAGE_CALL = `${IMAGE_TOOL}_call`

function isImageCall(item: unknown): boolean {
  return isJsonObject(item) && item['type'] === IMAGE_CALL
}

export function isMadeImage({ type, result }: Record<string, unknown>): boolean {
  return type === IMAGE_CALL && typeof result === 'string'
}

/** Returns the lifetime of a call's cache writes, if only the marks of the prompt state it. */
export function markedCacheTime(
  { model, request }: VendorCall<ResponsesRequest>,
  { cachesAsMarked }: { readonly cachesAsMarked?: ((upstream: string) => boolean) | undefined },
): CacheTime {
  return cachesAsMarked?.(model.upstream) === true ? responsesCacheTime(request) : 'none'
}

/** A report of no search matters only if a search was possible. */
function maySearch(tools: unknown): boolean {
  return (
    Array.isArray(tools) && tools.some((tool) => isJsonObject(tool) && String(tool['type']).startsWith('web_search'))
  )
}

function reportedSearches(tools: unknown, toolCalls: unknown): number | undefined {
  const told = [memberOf(tools, 'web_search', 'num_requests'), memberOf(toolCalls, 'search_web', 'invocation')]
  return told.find((count) => typeof count === 'number')
}

function memberOf(value: unknown, name: string, member: string): unknown {
  const found = isJsonObject(value) ? value[name] : undefined
  return isJsonObject(found) ? found[member] : undefined
}

function searchesIn(output: unknown): number {
  if (!Array.isArray(output)) return 0
  return output.filter((item) => {
    if (!isJsonObject(item) || item['type'] !== 'web_search_call') return false
    return !isJsonObject(item['action']) || item['action']['type'] === 'search'
  }).length
}

/**
 * Returns the vendor's usage for the caller: with the charged counts, and without the operator's cost if the caller is billed.
 * Returns `undefined` if no change is needed.
 */
export function mendedUsage(
  wire: unknown,
  reported: Usage | undefined,
  billed: Usage | undefined,
  isBilled: boolean | undefined,
): unknown {
  const shown = isBilled === true ? withoutPurchasePrice(wire) : wire
  if (billed === undefined) return shown === wire ? undefined : shown
  const isSaid =
    isJsonObject(wire) &&
    wire['input_tokens'] === reported?.inputTokens &&
    wire['output_tokens'] === reported?.outputTokens
  if (isSaid && reported !== undefined && isSameUsage(reported, billed)) return shown === wire ? undefined : shown
  return { ...objectOf(shown), ...responseUsage(billed) }
}

/** Returns the bytes of generated text in the items of an answer. */
export function outputTextBytes(items: readonly unknown[]): number {
  let byteLength = 0
  for (const item of items) if (isJsonObject(item)) byteLength += itemTextBytes(item)
  return byteLength
}

/** Returns the bytes of generated text in one item. */
export function itemTextBytes({
  content,
  summary,
  name,
  arguments: json,
  input,
  code,
}: Record<string, unknown>): number {
  let byteLength = 0
  for (const text of [name, json, input, code]) if (typeof text === 'string') byteLength += Buffer.byteLength(text)
  for (const parts of [content, summary]) {
    if (!Array.isArray(parts)) continue
    for (const part of parts) {
      const text: unknown = isJsonObject(part) ? (part['text'] ?? part['refusal']) : undefined
      if (typeof text === 'string') byteLength += Buffer.byteLength(text)
    }
  }
  return byteLength
}
