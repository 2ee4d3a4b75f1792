import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { CacheTime } from '../cache-marks.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS, estimateTokens } from '../token-estimate.ts'
import { adviceBounds, compactionTrigger } from './inner-samplings.ts'
import type { MessagesRequest } from './messages-request.ts'
import { messagesSearches } from './messages-surcharges.ts'
import { requestTools } from './request-tools.ts'

/**
 * Returns an upper estimate of a message's usage. If any part of a prompt is cached, all of it may be written to the cache. All
 * searches that the request allows are counted. A conversation that the vendor summarises is read and written twice.
 */
export function messagesEstimate(request: MessagesRequest, promptTokens: number): Usage {
  const trigger = compactionTrigger(request)
  const readings = trigger !== undefined && promptTokens >= trigger ? 2 : 1
  const inputTokens = readings * promptTokens
  const outputTokens = readings * (request.max_tokens ?? DEFAULT_MAX_OUTPUT_TOKENS)
  const time = messagesCacheTime(request)
  const webSearches = messagesSearches(request)
  // An advisor reads the conversation and the model's output so far.
  const otherModels = adviceBounds(request).map(({ model, uses, tokens }) => ({
    model,
    usage: { inputTokens: uses * (inputTokens + outputTokens), outputTokens: uses * tokens },
  }))
  return {
    inputTokens,
    outputTokens,
    ...(time === 'none' ? {} : { cacheWriteTokens: inputTokens }),
    ...(time === 'hour' ? { cacheWrite1hTokens: inputTokens } : {}),
    ...(webSearches === undefined ? {} : { webSearches }),
    ...(otherModels.length === 0 ? {} : { otherModels }),
  }
}

/** Returns the longest time that the marks of a request ask for, which applies to the whole prompt. */
export function messagesCacheTime(request: MessagesRequest): CacheTime {
  let longest = timeOf(request)
  for (const blocks of [requestTools(request), request.system, request.messages])
    longest = longer(longest, timeWithin(blocks))
  return longest
}

/** Searches messages and tool results, which both contain blocks. */
function timeWithin(blocks: unknown): CacheTime {
  let longest: CacheTime = 'none'
  if (!Array.isArray(blocks)) return longest
  for (const block of blocks) {
    if (!isJsonObject(block)) continue
    longest = longer(longest, longer(timeOf(block), timeWithin(block['content'])))
    if (longest === 'hour') break
  }
  return longest
}

function timeOf(block: Readonly<Record<string, unknown>>): CacheTime {
  const control = block['cache_control']
  if (!isJsonObject(control)) return 'none'
  const { ttl } = control
  return ttl === undefined || ttl === null || ttl === '5m' ? 'minutes' : 'hour'
}

function longer(left: CacheTime, right: CacheTime): CacheTime {
  if (left === 'hour' || right === 'hour') return 'hour'
  return left === 'none' ? right : left
}

/** Assumed tokens of an image or file given as bytes. The real number differs between vendors. */
export const ESTIMATED_TOKENS_PER_FILE = 1600

/**
 * Returns an upper estimate of a request's tokens, for vendors that do not count. The text of system prompt, messages
 * and tools counts by the gateway's usual rule; each image or file counts a fixed number. At least 1.
 */
export function estimateMessageTokens({ system, messages, tools }: MessagesRequest): number {
  let files = 0
  const text = JSON.stringify({ system, messages, tools }, (name, value: unknown) => {
    if (name === 'cache_control') return undefined
    if (name !== 'source' || !isBase64Source(value)) return value
    files += 1
    return undefined
  })
  return estimateTokens(Buffer.byteLength(text)) + files * ESTIMATED_TOKENS_PER_FILE
}

function isBase64Source(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (value as { type?: unknown }).type === 'base64'
}
