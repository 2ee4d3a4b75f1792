import type { ModelUsage, Usage, UsageField } from '../../core/usage.ts'
import type { ModelLimits } from '../model.ts'

/** What a vendor's report is checked against. */
export interface UsageBounds {
  /** The gateway's own estimate, by which money was held; trusted. */
  readonly hold: Usage
  readonly limits: Pick<ModelLimits, 'contextTokens' | 'maxOutputTokens'>
  /** Returns how often the model may read its prompt and write an answer in the call; see `Endpoint.samplings`. If omitted, once. */
  readonly samplings?: (() => number) | undefined
}

/** A report that can be charged for, and the names of its fields that were replaced or cut. */
export interface PlausibleUsage {
  readonly usage: Usage
  /** Fields of {@link Usage}, or `usage` when the report was no object at all. */
  readonly implausible: readonly string[]
}

/** Highest plausible count where the model's own limit is not known. */
export const MAX_PLAUSIBLE_COUNT = 10_000_000

/** Reports up to this many times the limits of the model, or the hold, are charged as they are. */
const SLACK = 4

/** Limits of a model whose own ones are not known: larger than those of nearly all models. */
const ASSUMED_LIMITS = { contextTokens: 1_048_576, maxOutputTokens: 131_072 }

/** Samplings that are always plausible in a request with tools that the vendor runs. */
export const SAMPLINGS_WITH_TOOLS = 64

/** Searches, images and other units that one sampling may use. */
const UNITS_PER_SAMPLING = 16

const NONE: readonly string[] = []

const FIELDS: Readonly<Record<UsageField, 'inputTokens' | 'outputTokens' | undefined>> = {
  inputTokens: undefined,
  cachedInputTokens: 'inputTokens',
  cacheWriteTokens: 'inputTokens',
  cacheWrite1hTokens: 'inputTokens',
  inputImageTokens: 'inputTokens',
  inputAudioTokens: 'inputTokens',
  outputTokens: undefined,
  reasoningTokens: 'outputTokens',
  outputImageTokens: 'outputTokens',
  images: undefined,
  videoSeconds: undefined,
  characters: undefined,
  webSearches: undefined,
  audioSeconds: undefined,
  searchUnits: undefined,
  hookUnits: undefined,
}
const FIELD_NAMES = Object.keys(FIELDS) as UsageField[]

/**
 * Makes a vendor's report safe to charge for. A field that is not a finite number, or is negative or fractional (seconds may be) is
 * replaced by the hold's value, or dropped if the hold has none. A field above what the model can do is cut to that, which is never
 * less than the hold. Both are listed. Reported zeros are kept, absent fields stay absent, and a part larger than its total is cut to
 * the total. Never throws.
 */
export function plausibleUsage(reported: unknown, bounds: UsageBounds): PlausibleUsage {
  if (typeof reported !== 'object' || reported === null || Array.isArray(reported)) {
    return { usage: bounds.hold, implausible: ['usage'] }
  }
  return isPlausibleTokens(reported, bounds)
    ? { usage: reported, implausible: NONE }
    : plausibleFields(reported, bounds)
}

// Apart from its caller: a function that may make closures allocates for them in every call.
function plausibleFields(reported: object, bounds: UsageBounds): PlausibleUsage {
  const usage: Mutable = {}
  let implausible = NONE
  for (const field of FIELD_NAMES) {
    let value: unknown = (reported as Record<string, unknown>)[field]
    if (value === undefined || value === null) continue
    const most = ceiling(field, bounds)
    if (!isCount(field, value) || value > most) {
      implausible = [...implausible, field]
      value = isCount(field, value) ? most : bounds.hold[field]
    }
    if (value === undefined) continue
    // Totals stand before their parts in the list, so the total is already known here.
    const totalName = FIELDS[field]
    const total = totalName === undefined ? undefined : usage[totalName]
    usage[field] = Math.min(value as number, total ?? Number.POSITIVE_INFINITY)
  }
  const { otherModels, serviceTier } = reported as Usage
  if (typeof serviceTier === 'string') usage.serviceTier = serviceTier
  if (otherModels !== undefined) {
    usage.otherModels = otherModels.map((other): ModelUsage => {
      const hold = bounds.hold.otherModels?.find(({ model }) => model === other.model)?.usage ?? {}
      const checked = plausibleUsage(other.usage, { hold, limits: {} })
      if (checked.implausible.length > 0) implausible = [...implausible, 'otherModels']
      return { model: other.model, usage: checked.usage }
    })
  }
  return { usage, implausible }
}

const TOKEN_COUNTS: ReadonlySet<string> = new Set<keyof Usage>([
  'serviceTier',
  'inputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'outputTokens',
  'reasoningTokens',
])

/** Does a report have nothing but plausible counts of tokens? Nearly all do, and their fields need not be looked up by name. */
function isPlausibleTokens(reported: Usage, bounds: UsageBounds): boolean {
  for (const field in reported) if (!TOKEN_COUNTS.has(field)) return false
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } = reported
  return (
    isTotal('inputTokens', inputTokens, bounds) &&
    isTotal('outputTokens', outputTokens, bounds) &&
    isPart('inputTokens', cachedInputTokens, inputTokens, bounds) &&
    isPart('inputTokens', cacheWriteTokens, inputTokens, bounds) &&
    isPart('outputTokens', reasoningTokens, outputTokens, bounds)
  )
}

function isTotal(field: UsageField, count: number | undefined, bounds: UsageBounds): boolean {
  // Nearly every report is within its hold, so that its ceiling is not counted.
  return isTokenCount(count, bounds.hold[field] ?? 0) || isTokenCount(count, ceiling(field, bounds))
}

function isPart(field: UsageField, count: number | undefined, total: number | undefined, bounds: UsageBounds): boolean {
  return total === undefined ? isTotal(field, count, bounds) : isTokenCount(count, total)
}

function isTokenCount(value: number | undefined, most: number): boolean {
  return value === undefined || (Number.isInteger(value) && value >= 0 && value <= most)
}

type Mutable = { -readonly [Name in keyof Usage]?: Usage[Name] }

/** Whether a value is a count of this field, however large. */
export function isCount(field: string, value: unknown): value is number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) return false
  return field === 'videoSeconds' || field === 'audioSeconds' || Number.isInteger(value)
}

/** Highest count that is charged as reported. */
function ceiling(field: UsageField, { hold, limits, samplings: samplingsOf }: UsageBounds): number {
  const samplings = samplingsOf?.() ?? 1
  const total = FIELDS[field] ?? field
  const held = (hold[total] ?? 0) * SLACK
  if (total === 'inputTokens')
    return Math.max(held, (limits.contextTokens ?? ASSUMED_LIMITS.contextTokens) * SLACK * samplings)
  // Some vendors do not count thinking in the longest answer, but it never exceeds the context.
  if (total === 'outputTokens') {
    // The request decides how many tokens its images take.
    const assumed = hold.images === undefined ? ASSUMED_LIMITS.maxOutputTokens : 0
    const { contextTokens = 0, maxOutputTokens = assumed } = limits
    return Math.max(held, Math.max(maxOutputTokens * SLACK, contextTokens) * samplings)
  }
  // The request decides how many seconds, characters and units are used, and a vendor may search without a tool of the request.
  if (field === 'webSearches') return Math.max(held, UNITS_PER_SAMPLING * Math.max(samplings, SAMPLINGS_WITH_TOOLS))
  return Math.max(held, UNITS_PER_SAMPLING * samplings)
}
