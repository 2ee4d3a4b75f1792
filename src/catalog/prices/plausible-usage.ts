import { METERS_BY_FIELD, type ModelUsage, USAGE_METERS, type Usage, type UsageField } from '../../core/usage.ts'
import type { ModelLimits } from '../model.ts'

/** Bounds against which a vendor's report is checked. */
export interface UsageBounds {
  /** The gateway's own estimate, from which the hold was calculated. Trusted. */
  readonly hold: Usage
  readonly limits: Pick<ModelLimits, 'contextTokens' | 'maxOutputTokens'>
  /** Returns how often the model may read its prompt and write an answer in the call; see `Endpoint.samplings`. If omitted, once. */
  readonly samplings?: (() => number) | undefined
}

/** Report that can be charged, and the names of its fields that were replaced or reduced. */
interface PlausibleUsage {
  readonly usage: Usage
  /** Fields of {@link Usage}, or `usage` if the report was not an object. */
  readonly implausible: readonly string[]
}

/** Highest plausible count if the model's own limit is not known. */
export const MAX_PLAUSIBLE_COUNT = 10_000_000

/** Factor of the model's limits, or of the hold, up to which reports are charged unchanged. */
const SLACK = 4

/** Assumed limits of a model without known ones: larger than those of nearly all models. */
const ASSUMED_LIMITS = { contextTokens: 1_048_576, maxOutputTokens: 131_072 }

/** Number of samplings that are always plausible in a request with tools that the vendor runs. */
export const SAMPLINGS_WITH_TOOLS = 64

/** Number of searches, images and other units that one sampling may use. */
const UNITS_PER_SAMPLING = 16

const NONE: readonly string[] = []

const FACTS: Readonly<Record<UsageField, (typeof METERS_BY_FIELD)[number][1]>> = USAGE_METERS

/**
 * Makes a vendor's report safe to charge. A field that is not a finite number, or is negative or fractional (seconds may be
 * fractional), is replaced by the hold's value, or dropped if the hold has none. A field above the ability of the model is
 * reduced to that bound, which is never less than the hold. Both are listed. Reported zeros are kept, absent fields stay absent,
 * and a part larger than its total is reduced to the total. Never throws.
 */
export function plausibleUsage(reported: unknown, bounds: UsageBounds): PlausibleUsage {
  if (typeof reported !== 'object' || reported === null || Array.isArray(reported)) {
    return { usage: bounds.hold, implausible: ['usage'] }
  }
  return isPlausibleTokens(reported, bounds)
    ? { usage: reported, implausible: NONE }
    : plausibleFields(reported, bounds)
}

// Separate from its caller, because a function that may create closures allocates for them in every call.
function plausibleFields(reported: object, bounds: UsageBounds): PlausibleUsage {
  const usage: Mutable = {}
  let implausible = NONE
  for (const [field, { total: totalName }] of METERS_BY_FIELD) {
    let value: unknown = (reported as Record<string, unknown>)[field]
    if (value === undefined || value === null) continue
    const most = ceiling(field, bounds)
    if (!isCount(field, value) || value > most) {
      implausible = [...implausible, field]
      value = isCount(field, value) ? most : bounds.hold[field]
    }
    if (value === undefined) continue
    // Totals precede their parts in the list, so the total is already known here.
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

/** Whether a report contains only plausible token counts. Nearly all reports do, and then no lookup by field name is needed. */
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
  // Nearly every report is within its hold, so its ceiling is not computed.
  return isTokenCount(count, bounds.hold[field] ?? 0) || isTokenCount(count, ceiling(field, bounds))
}

function isPart(field: UsageField, count: number | undefined, total: number | undefined, bounds: UsageBounds): boolean {
  return total === undefined ? isTotal(field, count, bounds) : isTokenCount(count, total)
}

function isTokenCount(value: number | undefined, most: number): boolean {
  return value === undefined || (Number.isInteger(value) && value >= 0 && value <= most)
}

type Mutable = { -readonly [Name in keyof Usage]?: Usage[Name] }

/** Whether a value is a count of this field, whatever its size. */
export function isCount(field: string, value: unknown): value is number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) return false
  return Number.isInteger(value) || FACTS[field as UsageField]?.isFractional === true
}

/** Highest count that is charged as reported. */
function ceiling(field: UsageField, { hold, limits, samplings: samplingsOf }: UsageBounds): number {
  const samplings = samplingsOf?.() ?? 1
  const total = FACTS[field].total ?? field
  const held = (hold[total] ?? 0) * SLACK
  if (total === 'inputTokens')
    return Math.max(held, (limits.contextTokens ?? ASSUMED_LIMITS.contextTokens) * SLACK * samplings)
  // Some vendors do not include thinking in the maximum output, but it never exceeds the context.
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
