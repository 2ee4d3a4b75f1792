/**
 * Consumption of a call, in one shape for all vendors. A field is absent if the vendor did not report it; zero is a reported
 * value. Totals include their parts: `inputTokens` also counts cached and cache-written tokens, and `outputTokens` also counts
 * reasoning. So usage is comparable between vendors that report the parts separately (Anthropic) and together (OpenAI).
 */
export interface Usage {
  /** All input tokens: fresh, read from a cache, and written to one. */
  readonly inputTokens?: number
  /** Part of `inputTokens` that was read from the vendor's prompt cache. */
  readonly cachedInputTokens?: number
  /** Part of `inputTokens` that was written to the vendor's prompt cache. */
  readonly cacheWriteTokens?: number
  /** Part of `cacheWriteTokens` that is cached for an hour instead of minutes. */
  readonly cacheWrite1hTokens?: number
  /** All output tokens: visible and reasoning. */
  readonly outputTokens?: number
  /** Part of `outputTokens` spent on reasoning. */
  readonly reasoningTokens?: number
  /** Part of `inputTokens` spent on images. */
  readonly inputImageTokens?: number
  /** Part of `inputTokens` spent on audio. */
  readonly inputAudioTokens?: number
  /** Part of `outputTokens` spent on images. */
  readonly outputImageTokens?: number
  /** Number of generated images. */
  readonly images?: number
  /** Seconds of generated video; may have a fraction. */
  readonly videoSeconds?: number
  /** Characters (code points) of synthesized speech. */
  readonly characters?: number
  /** Number of web searches by the vendor. */
  readonly webSearches?: number
  /** Seconds of input audio, for models that bill audio by its length; may have a fraction. */
  readonly audioSeconds?: number
  /** Billing unit of a search: one query with a number of documents. */
  readonly searchUnits?: number
  /** Units that hooks charge for their own work. */
  readonly hookUnits?: number
  /** Usage of other models within the call, such as an advisor. The counts above do not include it. */
  readonly otherModels?: readonly ModelUsage[]
  /**
   * Service tier that the vendor reports, such as `priority`; `default` if a request for another tier was served at the ordinary
   * one. If omitted, the tier is the requested one.
   */
  readonly serviceTier?: string
}

/** Name of the ordinary service tier, whatever its vendor calls it. */
export const ORDINARY_TIER = 'default'

/** Usage of a model other than the called one within a call. */
export interface ModelUsage {
  /** The vendor's own id of the model. */
  readonly model: string
  readonly usage: UsageCounts
}

/** A count of {@link Usage}. */
export type UsageField = Exclude<keyof Usage, 'otherModels' | 'serviceTier'>

/** Facts of a meter, by which a count of {@link Usage} is priced, stored and shown. */
interface UsageMeter {
  /** Name in prices and metrics. The names of tokens end with `_token`. */
  readonly meter: string
  /** Column of the SQL stores. Columns store whole numbers: of a count that may have a fraction, thousandths. */
  readonly column: string
  /** Count that includes it. */
  readonly total?: 'inputTokens' | 'outputTokens'
  /** Whether the count may have a fraction. Default false. */
  readonly isFractional?: true
  /** Whether models may be sold by this meter alone; its prices may then have a minimum. Default false. */
  readonly isSoldByUnit?: true
}

/** Meters by their count. Totals come before their parts. See `docs/adding-a-meter.md`. */
export const USAGE_METERS = {
  inputTokens: { meter: 'input_token', column: 'input_tokens' },
  outputTokens: { meter: 'output_token', column: 'output_tokens' },
  cachedInputTokens: { meter: 'cached_input_token', column: 'cached_input_tokens', total: 'inputTokens' },
  cacheWriteTokens: { meter: 'cache_write_token', column: 'cache_write_tokens', total: 'inputTokens' },
  cacheWrite1hTokens: { meter: 'cache_write_1h_token', column: 'cache_write_1h_tokens', total: 'inputTokens' },
  reasoningTokens: { meter: 'reasoning_token', column: 'reasoning_tokens', total: 'outputTokens' },
  images: { meter: 'image', column: 'images', isSoldByUnit: true },
  inputImageTokens: { meter: 'input_image_token', column: 'input_image_tokens', total: 'inputTokens' },
  inputAudioTokens: { meter: 'input_audio_token', column: 'input_audio_tokens', total: 'inputTokens' },
  outputImageTokens: { meter: 'output_image_token', column: 'output_image_tokens', total: 'outputTokens' },
  videoSeconds: { meter: 'video_second', column: 'video_milliseconds', isFractional: true, isSoldByUnit: true },
  characters: { meter: 'character', column: 'characters', isSoldByUnit: true },
  webSearches: { meter: 'web_search', column: 'web_searches' },
  audioSeconds: { meter: 'audio_second', column: 'audio_milliseconds', isFractional: true, isSoldByUnit: true },
  searchUnits: { meter: 'search_unit', column: 'search_units', isSoldByUnit: true },
  hookUnits: { meter: 'hook_unit', column: 'hook_units' },
} as const satisfies Readonly<Record<UsageField, UsageMeter>>

/** Counts with the facts of their meters, in the order of {@link USAGE_METERS}. */
export const METERS_BY_FIELD: readonly (readonly [field: UsageField, facts: UsageMeter])[] = Object.entries(
  USAGE_METERS,
) as [UsageField, UsageMeter][]

/** The counts of {@link Usage}. */
export type UsageCounts = Omit<Usage, 'otherModels' | 'serviceTier'>

/** Usage that a vendor bills, or may bill, and that no account is charged for. */
export interface UnbilledUsage {
  readonly usage: Usage
  /** Whether the usage is estimated. `false` if the vendor reported it. */
  readonly isEstimated: boolean
}

/** Returns a report if any of its counts is above zero, otherwise `undefined`. */
export function usedOf(reported: Usage | undefined): Usage | undefined {
  const isUsed = Object.values(reported ?? {}).some((count) => typeof count === 'number' && count > 0)
  return isUsed ? reported : undefined
}

/** Returns the sum of the usage of two calls. */
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

/** Returns usage plus the units that hooks charge for their own work. */
export function withHookUnits(usage: Usage, hookUnits: number): Usage {
  return hookUnits === 0 ? usage : { ...usage, hookUnits }
}
