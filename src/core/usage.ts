/**
 * What a call consumed, in one shape for all vendors. A field is absent if the vendor did not report it; zero is a reported
 * value. Totals include their parts: `inputTokens` counts cached and cache-written tokens too, and `outputTokens` counts
 * reasoning. Vendors that report the parts separately (Anthropic) and together (OpenAI) therefore give equal usage.
 */
export interface Usage {
  /** All input tokens: fresh, read from a cache, and written to one. */
  readonly inputTokens?: number
  /** The part of `inputTokens` that was read from the vendor's prompt cache. */
  readonly cachedInputTokens?: number
  /** The part of `inputTokens` that was written to the vendor's prompt cache. */
  readonly cacheWriteTokens?: number
  /** The part of `cacheWriteTokens` that is cached for an hour instead of minutes. */
  readonly cacheWrite1hTokens?: number
  /** All output tokens: visible and reasoning. */
  readonly outputTokens?: number
  /** The part of `outputTokens` spent on reasoning. */
  readonly reasoningTokens?: number
  /** The part of `inputTokens` that images took. */
  readonly inputImageTokens?: number
  /** The part of `inputTokens` that audio took. */
  readonly inputAudioTokens?: number
  /** The part of `outputTokens` that images took. */
  readonly outputImageTokens?: number
  /** Pictures made. */
  readonly images?: number
  /** Seconds of video made; may have a fraction. */
  readonly videoSeconds?: number
  /** Characters (code points) spoken. */
  readonly characters?: number
  /** Web searches by the vendor. */
  readonly webSearches?: number
  /** Seconds of audio read, for models that count sound by its length; may have a fraction. */
  readonly audioSeconds?: number
  /** What vendors of reranking count: one query with a number of documents. */
  readonly searchUnits?: number
  /** What hooks charge for their own work. */
  readonly hookUnits?: number
  /** Work of other models within the call, such as an advisor's. It is in none of the counts above. */
  readonly otherModels?: readonly ModelUsage[]
  /**
   * Tier of service that the vendor reports, such as `priority`; `default` if it served a request for another tier at
   * the ordinary one. If omitted, the tier is the requested one.
   */
  readonly serviceTier?: string
}

/** Name of the ordinary tier of service, whatever its vendor calls it. */
export const ORDINARY_TIER = 'default'

/** What another model than the called one consumed within a call. */
export interface ModelUsage {
  /** The vendor's own id of the model. */
  readonly model: string
  readonly usage: UsageCounts
}

/** A count of {@link Usage}. */
export type UsageField = Exclude<keyof Usage, 'otherModels' | 'serviceTier'>

/** The counts of {@link Usage}. */
export type UsageCounts = Omit<Usage, 'otherModels' | 'serviceTier'>

/** What a vendor bills, or may bill, and no account is charged for. */
export interface UnbilledUsage {
  readonly usage: Usage
  /** False: the vendor reported it. */
  readonly isEstimated: boolean
}

/** A report of which any count is above zero; undefined: there is none. */
export function usedOf(reported: Usage | undefined): Usage | undefined {
  const isUsed = Object.values(reported ?? {}).some((count) => typeof count === 'number' && count > 0)
  return isUsed ? reported : undefined
}

/** The sum of two calls. */
export function addUsage(one: Usage, other: Usage): Usage {
  const sum: { -readonly [Name in keyof Usage]?: Usage[Name] } = { ...one }
  for (const field in other) {
    if (field === 'otherModels' || field === 'serviceTier') continue
    const name = field as UsageField
    sum[name] = (sum[name] ?? 0) + (other[name] ?? 0)
  }
  if (other.otherModels !== undefined) sum.otherModels = [...(one.otherModels ?? []), ...other.otherModels]
  return sum
}

/** Usage with what hooks charge for their own work. */
export function withHookUnits(usage: Usage, hookUnits: number): Usage {
  return hookUnits === 0 ? usage : { ...usage, hookUnits }
}
