import { isJsonObject } from '../../core/json.ts'
import type { ModelUsage, Usage } from '../../core/usage.ts'
import { usageAtTier } from './service-tier.ts'

/** Usage as Anthropic counts it: `input_tokens` excludes tokens read from or written to the cache. */
interface MessagesUsage extends MessagesCounts {
  readonly webSearches: number | undefined
  readonly serviceTier: unknown
  /** Samplings of the call, or `undefined` for one with the counts above. */
  readonly iterations: readonly Iteration[] | undefined
}

/** Tokens of one sampling, or of a whole call. */
interface MessagesCounts {
  readonly inputTokens: number | undefined
  readonly cacheWriteTokens: number | undefined
  /** Part of `cacheWriteTokens` with a lifetime of an hour. The last event of a stream does not repeat it. */
  readonly cacheWrite1hTokens: number | undefined
  readonly cacheReadTokens: number | undefined
  readonly outputTokens: number | undefined
  readonly thinkingTokens: number | undefined
}

/** One sampling of a call. */
interface Iteration {
  /** Whether the counts of the call exclude the sampling, as for summaries of the conversation. */
  readonly isExtra: boolean
  /** The vendor's model id, or `undefined` for the called model. */
  readonly model: string | undefined
  readonly counts: MessagesCounts
}

/** Reads a `usage` object. Absent, null and non-numeric counts stay undefined; zero is kept. */
export function readMessagesUsage(value: unknown): MessagesUsage {
  const usage = isJsonObject(value) ? value : {}
  const tools = usage['server_tool_use']
  return {
    ...readCounts(usage),
    // The vendor sends null if none of its own tools was used (Anthropic, API reference, "Usage").
    webSearches: tools === null ? 0 : isJsonObject(tools) ? count(tools['web_search_requests']) : undefined,
    serviceTier: usage['service_tier'] ?? undefined,
    iterations: readIterations(usage['iterations']),
  }
}

function readCounts(usage: Readonly<Record<string, unknown>>): MessagesCounts {
  const details = isJsonObject(usage['output_tokens_details']) ? usage['output_tokens_details'] : {}
  const written = isJsonObject(usage['cache_creation']) ? usage['cache_creation'] : {}
  return {
    inputTokens: count(usage['input_tokens']),
    cacheWriteTokens: count(usage['cache_creation_input_tokens']),
    cacheWrite1hTokens: count(written['ephemeral_1h_input_tokens']),
    cacheReadTokens: count(usage['cache_read_input_tokens']),
    outputTokens: count(usage['output_tokens']),
    thinkingTokens: count(details['thinking_tokens']),
  }
}

/**
 * Reads `usage.iterations` (Anthropic, "Compaction" and "Advisor tool"). The counts of the call exclude summaries, and the usage of
 * an advisor, which is billed at the advisor's price.
 */
function readIterations(value: unknown): readonly Iteration[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined
  return value.filter(isJsonObject).map((iteration) => {
    const { type, model } = iteration
    const ofAnother = type !== 'message' && type !== 'compaction' && typeof model === 'string' && model !== ''
    return {
      isExtra: type !== undefined && type !== 'message',
      model: ofAnother ? model : undefined,
      counts: readCounts(iteration),
    }
  })
}

/**
 * Joins the counts of two events of a stream. Later counts are cumulative, so they replace earlier ones and are never added
 * (Anthropic, "Streaming messages").
 */
export function latestUsage(earlier: MessagesUsage, later: MessagesUsage): MessagesUsage {
  return {
    inputTokens: later.inputTokens ?? earlier.inputTokens,
    cacheWriteTokens: later.cacheWriteTokens ?? earlier.cacheWriteTokens,
    cacheWrite1hTokens: later.cacheWrite1hTokens ?? hourPart(earlier, later.cacheWriteTokens),
    cacheReadTokens: later.cacheReadTokens ?? earlier.cacheReadTokens,
    outputTokens: later.outputTokens ?? earlier.outputTokens,
    thinkingTokens: later.thinkingTokens ?? earlier.thinkingTokens,
    webSearches: later.webSearches ?? earlier.webSearches,
    serviceTier: later.serviceTier ?? earlier.serviceTier,
    iterations: later.iterations ?? earlier.iterations,
  }
}

/** Keeps the hour part of cache writes if a later event reports only the total. */
function hourPart(earlier: MessagesUsage, total: number | undefined): number | undefined {
  const { cacheWriteTokens, cacheWrite1hTokens } = earlier
  const isHourAlone =
    cacheWrite1hTokens !== undefined && cacheWrite1hTokens > 0 && cacheWrite1hTokens === cacheWriteTokens
  return isHourAlone ? (total ?? cacheWrite1hTokens) : cacheWrite1hTokens
}

/**
 * Converts Anthropic's counts to totals that include their parts (Anthropic, "Prompt caching": total input is the sum of fresh,
 * cache-written and cache-read tokens), over all samplings of the call. Returns `undefined` if the vendor reported no count.
 */
export function normalisedUsage(counts: MessagesUsage): Usage | undefined {
  const { webSearches, serviceTier, iterations } = counts
  const totals = totalsOf(iterations === undefined ? counts : allSamplings(counts, iterations))
  if (totals === undefined) return undefined
  const otherModels = iterations === undefined ? [] : otherModelsOf(iterations)
  const usage = {
    ...totals,
    ...(webSearches === undefined ? {} : { webSearches }),
    ...(otherModels.length === 0 ? {} : { otherModels }),
  }
  return usageAtTier(usage, serviceTier)
}

function totalsOf(counts: MessagesCounts): Usage | undefined {
  const { inputTokens, cacheWriteTokens, cacheWrite1hTokens, cacheReadTokens, outputTokens, thinkingTokens } = counts
  const hasInput = inputTokens !== undefined || cacheWriteTokens !== undefined || cacheReadTokens !== undefined
  if (!hasInput && outputTokens === undefined) return undefined
  return {
    ...(hasInput ? { inputTokens: (inputTokens ?? 0) + (cacheWriteTokens ?? 0) + (cacheReadTokens ?? 0) } : {}),
    ...(cacheReadTokens === undefined ? {} : { cachedInputTokens: cacheReadTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteTokens }),
    ...(cacheWrite1hTokens === undefined ? {} : { cacheWrite1hTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(thinkingTokens === undefined ? {} : { reasoningTokens: thinkingTokens }),
  }
}

const COUNTS = [
  'inputTokens',
  'cacheWriteTokens',
  'cacheWrite1hTokens',
  'cacheReadTokens',
  'outputTokens',
  'thinkingTokens',
] as const satisfies (keyof MessagesCounts)[]

/**
 * Adds up what the called model consumed. The vendor reports some counts for the first sampling only and others as a sum, so the
 * larger value was billed. Summaries are in neither.
 */
function allSamplings(counts: MessagesCounts, iterations: readonly Iteration[]): MessagesCounts {
  const own = iterations.filter(({ model }) => model === undefined)
  const listed = own.filter(({ isExtra }) => !isExtra)
  const extra = own.filter(({ isExtra }) => isExtra)
  const totals: { -readonly [Name in keyof MessagesCounts]: number | undefined } = { ...counts }
  for (const name of COUNTS) {
    const most = Math.max(counts[name] ?? 0, sumOf(listed, name))
    const added = sumOf(extra, name)
    if (counts[name] !== undefined || most + added > 0) totals[name] = most + added
  }
  return totals
}

function sumOf(iterations: readonly Iteration[], name: keyof MessagesCounts): number {
  return iterations.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0)
}

function otherModelsOf(iterations: readonly Iteration[]): ModelUsage[] {
  return iterations.flatMap(({ model, counts }) => {
    const usage = totalsOf(counts)
    return model === undefined || usage === undefined ? [] : [{ model, usage }]
  })
}

/** Reads a `usage` object of a whole answer. */
export function usageFrom(value: unknown): Usage | undefined {
  return normalisedUsage(readMessagesUsage(value))
}

// Implausible numbers are kept. Settlement checks them.
function count(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
