import type { ModelUsage, Usage, UsageField } from '../../core/usage.ts'
import type { ModelLimits } from '../model.ts'

/** What a vendor's report is checked against. */
export interface UsageBounds {
  /** The gateway's own estimate, by which money was held; trusted. */
  readonly hold: Usage
  readonly limits: Pick<ModelLimits, 'contextTokens' | 'maxOutputTokens'>
}

/** A report that can be charged for, and the names of its implausible fields. */
export interface PlausibleUsage {
  readonly usage: Usage
  /** Fields of {@link Usage}, or `usage` when the report was no object at all. */
  readonly implausible: readonly string[]
}

/** Highest plausible count where the model's own limit is not known. */
export const MAX_PLAUSIBLE_COUNT = 10_000_000

/** Vendors count a little above their own limits, and templates and tools add tokens: twice a limit is plausible. */
export const LIMIT_SLACK = 2

/**
 * A limit is for one text or one answer, while a call may hold many (a batch of embeddings, `n` choices). The hold counts
 * them, so up to four times the hold is plausible whatever the limit.
 */
export const HOLD_SLACK = 4

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
 * Makes a vendor's report safe to charge for. A field that is no number, is negative, fractional (seconds may be) or above
 * what the model can do is clamped to the hold's value, or dropped when the hold has none; its name is listed. Reported
 * zeros are kept, absent fields stay absent, and a part larger than its total is cut to the total. Never throws.
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
    if (!isPlausible(field, value, bounds)) {
      implausible = [...implausible, field]
      value = bounds.hold[field]
    }
    if (value === undefined) continue
    // Totals stand before their parts in the list, so the total is already known here.
    const totalName = FIELDS[field]
    const total = totalName === undefined ? undefined : usage[totalName]
    usage[field] = Math.min(value as number, total ?? Number.POSITIVE_INFINITY)
  }
  const { otherModels } = reported as Usage
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

const TOKEN_COUNTS: ReadonlySet<string> = new Set<UsageField>([
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
  const mostInput = ceiling('inputTokens', bounds)
  const mostOutput = ceiling('outputTokens', bounds)
  if (!isCount(inputTokens, mostInput) || !isCount(outputTokens, mostOutput)) return false
  return (
    isCount(cachedInputTokens, inputTokens ?? mostInput) &&
    isCount(cacheWriteTokens, inputTokens ?? mostInput) &&
    isCount(reasoningTokens, outputTokens ?? mostOutput)
  )
}

function isCount(value: number | undefined, most: number): boolean {
  return value === undefined || (Number.isInteger(value) && value >= 0 && value <= most)
}

type Mutable = { -readonly [Name in keyof Usage]?: Usage[Name] }

function isPlausible(field: UsageField, value: unknown, bounds: UsageBounds): boolean {
  if (typeof value !== 'number' || !(value >= 0)) return false
  return (
    (field === 'videoSeconds' || field === 'audioSeconds' || Number.isInteger(value)) && value <= ceiling(field, bounds)
  )
}

function ceiling(field: UsageField, { hold, limits }: UsageBounds): number {
  // Models have no limit of searches, and MAX_PLAUSIBLE_COUNT of them would be far too expensive.
  if (field === 'webSearches' || field === 'searchUnits') return (hold[field] ?? 0) * HOLD_SLACK
  const total = FIELDS[field] ?? field
  const limit =
    total === 'inputTokens' ? limits.contextTokens : total === 'outputTokens' ? limits.maxOutputTokens : undefined
  const byLimit = limit === undefined ? MAX_PLAUSIBLE_COUNT : limit * LIMIT_SLACK
  return Math.max(byLimit, (hold[total] ?? 0) * HOLD_SLACK)
}
