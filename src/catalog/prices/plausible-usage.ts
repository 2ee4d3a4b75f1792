import type { Usage, UsageField } from '../../core/usage.ts'
import type { ModelLimits } from '../model.ts'

/** What a vendor's report is measured by. */
export interface UsageBounds {
  /** The estimate by which money was held; the gateway's own, so it is trusted. */
  readonly hold: Usage
  readonly limits: Pick<ModelLimits, 'contextTokens' | 'maxOutputTokens'>
}

/** A report that can be charged for, and the names of the fields in it that could not be believed. */
export interface PlausibleUsage {
  readonly usage: Usage
  /** Fields of {@link Usage}, or `usage` when the report was no object at all. */
  readonly implausible: readonly string[]
}

/** Highest count believed where the model's own limit is not known. */
export const MAX_PLAUSIBLE_COUNT = 10_000_000

/** Vendors count a little above their own limits, and templates and tools add tokens: twice a limit is still believed. */
export const LIMIT_SLACK = 2

/**
 * A limit is for one text or one answer, while a call may hold many (a batch of embeddings, `n` choices). The hold knows of
 * them, so up to four times the hold is believed whatever the limit.
 */
export const HOLD_SLACK = 4

const FIELDS: Readonly<Record<UsageField, 'inputTokens' | 'outputTokens' | undefined>> = {
  inputTokens: undefined,
  cachedInputTokens: 'inputTokens',
  cacheWriteTokens: 'inputTokens',
  cacheWrite1hTokens: 'inputTokens',
  inputImageTokens: 'inputTokens',
  outputTokens: undefined,
  reasoningTokens: 'outputTokens',
  outputImageTokens: 'outputTokens',
  images: undefined,
  videoSeconds: undefined,
  characters: undefined,
  webSearches: undefined,
}
const FIELD_NAMES = Object.keys(FIELDS) as UsageField[]

/**
 * Makes a vendor's report safe to charge for. A field that is no number, is negative, fractional (seconds may be) or above
 * what the model can do takes the hold's value, or goes when the hold has none; its name is listed. Zero stays zero, a
 * field that is absent stays absent, and a part larger than its total is cut to the total. Never throws, whatever the
 * vendor sent.
 */
export function plausibleUsage(reported: unknown, bounds: UsageBounds): PlausibleUsage {
  if (typeof reported !== 'object' || reported === null || Array.isArray(reported)) {
    return { usage: bounds.hold, implausible: ['usage'] }
  }
  const usage: { -readonly [Field in UsageField]?: number } = {}
  const implausible: string[] = []
  for (const field of FIELD_NAMES) {
    let value: unknown = (reported as Record<string, unknown>)[field]
    if (value === undefined || value === null) continue
    if (!isPlausible(field, value, bounds)) {
      implausible.push(field)
      value = bounds.hold[field]
    }
    if (value === undefined) continue
    // Totals stand before their parts in the list, so the total is already known here.
    const totalName = FIELDS[field]
    const total = totalName === undefined ? undefined : usage[totalName]
    usage[field] = Math.min(value as number, total ?? Number.POSITIVE_INFINITY)
  }
  return { usage, implausible }
}

function isPlausible(field: UsageField, value: unknown, bounds: UsageBounds): boolean {
  if (typeof value !== 'number' || !(value >= 0)) return false
  return (field === 'videoSeconds' || Number.isInteger(value)) && value <= ceiling(field, bounds)
}

function ceiling(field: UsageField, { hold, limits }: UsageBounds): number {
  // No model has a limit of searches, and ten million of them would cost a fortune.
  if (field === 'webSearches') return (hold.webSearches ?? 0) * HOLD_SLACK
  const total = FIELDS[field] ?? field
  const limit =
    total === 'inputTokens' ? limits.contextTokens : total === 'outputTokens' ? limits.maxOutputTokens : undefined
  const byLimit = limit === undefined ? MAX_PLAUSIBLE_COUNT : limit * LIMIT_SLACK
  return Math.max(byLimit, (hold[total] ?? 0) * HOLD_SLACK)
}
