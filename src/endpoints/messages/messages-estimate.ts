import { Buffer } from 'node:buffer'
import { SAMPLINGS_WITH_TOOLS } from '../../catalog/prices/plausible-usage.ts'
import type { BillingFields } from '../../catalog/prices/prices.ts'
import { isJsonObject } from '../../core/json.ts'
import { ORDINARY_TIER, type Usage } from '../../core/usage.ts'
import type { CacheTime } from '../cache-marks.ts'
import type { InnerModel } from '../endpoint.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS, estimateTokens } from '../token-estimate.ts'
import { type MessagesRequest, requestTools, toolPaths } from './messages-request.ts'

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

/** Returns the advisor models of a Messages request, each billed at its own price (Anthropic, "Advisor tool"). */
export function advisorsOf(request: MessagesRequest): readonly InnerModel[] {
  const advisors: InnerModel[] = []
  const pathOf = toolPaths(request)
  for (const [place, tool] of requestTools(request).entries())
    if (isServerTool(tool, 'advisor_')) advisors.push({ model: modelOf(tool), param: `${pathOf(place)}.model` })
  return advisors
}

/** Assumed uses of a tool without a limit. */
const ASSUMED_USES = 3
/** Assumed length of advice without a limit, in tokens: about twice the vendor's usual length, thoughts included. */
const ASSUMED_ADVICE_TOKENS = 4_096

/** Returns how often each advisor may be called, and its output tokens per call. */
function adviceBounds(request: MessagesRequest): readonly { model: string; uses: number; tokens: number }[] {
  return requestTools(request)
    .filter((tool) => isServerTool(tool, 'advisor_'))
    .map((tool) => ({
      model: modelOf(tool),
      uses: positive(tool['max_uses']) ?? ASSUMED_USES,
      tokens: positive(tool['max_tokens']) ?? ASSUMED_ADVICE_TOKENS,
    }))
}

/** Any other value becomes the id of an unknown model. */
function modelOf({ model }: Readonly<Record<string, unknown>>): string {
  return typeof model === 'string' ? model : String(JSON.stringify(model))
}

/** Returns the input tokens above which the vendor documents to summarise a conversation, or `undefined` without summaries. */
function compactionTrigger({ context_management: management }: MessagesRequest): number | undefined {
  if (!isJsonObject(management) || !Array.isArray(management['edits'])) return undefined
  for (const edit of management['edits']) {
    if (!isJsonObject(edit) || typeof edit['type'] !== 'string' || !edit['type'].startsWith('compact_')) continue
    const { trigger } = edit
    return (isJsonObject(trigger) ? positive(trigger['value']) : undefined) ?? DEFAULT_COMPACTION_TRIGGER
  }
  return undefined
}

const DEFAULT_COMPACTION_TRIGGER = 150_000

function positive(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined
}

/** Price fields of requests that the vendor charges more for than the token prices of its ordinary price list. */
export const MESSAGES_SURCHARGES = ['service_tier', 'speed', 'inference_geo', 'web_search', 'code_execution'] as const

const NO_FIELDS: BillingFields = {}

/** Values of `speed` at the ordinary price. */
const ORDINARY_SPEEDS: ReadonlySet<unknown> = new Set([undefined, null, 'standard'])
const ORDINARY_REGIONS: ReadonlySet<unknown> = new Set([undefined, null, 'global', 'not_available'])

/**
 * Returns the surcharges of a Messages request: the vendor charges for searches and container time, and more per token
 * for speed and for a region (Anthropic, Messages reference and "Pricing").
 */
export function messagesSurcharges(request: Readonly<Record<string, unknown>>): BillingFields {
  const { service_tier, speed, inference_geo } = request
  const tools = requestTools(request)
  const isFast = !ORDINARY_SPEEDS.has(speed)
  const isRegional = !ORDINARY_REGIONS.has(inference_geo)
  const searches = hasServerTool(tools, 'web_search_')
  const runsCode = hasServerTool(tools, 'code_execution_')
  const isTierOpen = service_tier !== 'standard_only'
  if (isTierOpen && !isFast && !isRegional && !searches && !runsCode) return NO_FIELDS
  return {
    ...(isTierOpen ? {} : { service_tier: ORDINARY_TIER }),
    ...(isFast ? { speed: String(speed) } : {}),
    ...(isRegional ? { inference_geo: String(inference_geo) } : {}),
    ...(searches ? { web_search: 'true' } : {}),
    ...(runsCode ? { code_execution: 'true' } : {}),
  }
}

/** Number of searches that the hold covers if a request sets no limit. */
const UNBOUNDED_SEARCHES = 10

/** Returns the number of searches that the hold covers: the tools' limits. `undefined` if the request cannot search. */
export function messagesSearches(request: Readonly<Record<string, unknown>>): number | undefined {
  const tools = requestTools(request)
  if (!hasServerTool(tools, 'web_search_')) return undefined
  let searches = 0
  for (const tool of tools) {
    if (!isServerTool(tool, 'web_search_')) continue
    const { max_uses: allowed } = tool
    searches += Number.isSafeInteger(allowed) && (allowed as number) > 0 ? (allowed as number) : UNBOUNDED_SEARCHES
  }
  return searches
}

/** Tools that let the model read and write again within the call. */
const SERVER_TOOLS = [
  'web_search_',
  'web_fetch_',
  'code_execution_',
  'tool_search_',
  'mcp_toolset',
  'advisor_',
] as const

/** Returns an upper bound of the samplings of a request: one after each tool round at the vendor or on other servers. */
export function messagesSamplings(request: Readonly<Record<string, unknown>>): number {
  const tools = requestTools(request)
  return SERVER_TOOLS.some((prefix) => hasServerTool(tools, prefix))
    ? Math.max(SAMPLINGS_WITH_TOOLS, (messagesSearches(request) ?? 0) + 1)
    : 1
}

/** Returns the path at which a request sets a price field, or `undefined` if it is the member of the same name. */
export function messagesFieldParam(field: string, request: Readonly<Record<string, unknown>>): string | undefined {
  if (field !== 'web_search' && field !== 'code_execution') return undefined
  const place = requestTools(request).findIndex((tool) => isServerTool(tool, `${field}_`))
  return place === -1 ? undefined : `${toolPaths(request)(place)}.type`
}

function hasServerTool(tools: readonly unknown[], prefix: string): boolean {
  return tools.some((tool) => isServerTool(tool, prefix))
}

/** Whether a tool runs at the vendor. Such tools have a dated type: `web_search_20250305`. */
export function isServerTool(tool: unknown, prefix: string): tool is Record<string, unknown> {
  return isJsonObject(tool) && typeof tool['type'] === 'string' && tool['type'].startsWith(prefix)
}
