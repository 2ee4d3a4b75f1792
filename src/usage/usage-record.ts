import { Buffer } from 'node:buffer'
import type { Ending } from '../core/events.ts'
import type { Usage, UsageCounts } from '../core/usage.ts'

/** Call to a vendor on behalf of a request. */
export interface AttemptRecord {
  /** Id of the vendor that was called. */
  readonly vendor: string
  /** Identifies the operator's key at the vendor without revealing it. */
  readonly credentialId: string
  /** Public id of the model. */
  readonly model: string
  /** `abandoned`: the gateway ended the call, because the caller disconnected or the gateway closes. */
  readonly outcome: 'answered' | 'failed' | 'abandoned'
  /** Reason of the failure, as in the event `attempt-failed`, or `undefined` if it did not fail. */
  readonly reason: string | undefined
  /** HTTP status with which the vendor rejected the call, or `undefined` if it answered or sent no status. */
  readonly status: number | undefined
  /** Milliseconds from the request's arrival. */
  readonly startMs: number
  /** Duration in milliseconds. */
  readonly durationMs: number
}

/** Maximum number of attempts in a record: the first ones, and the last. */
export const MAX_ATTEMPTS_IN_RECORD = 16

/**
 * Call that reached a model, or end of a task: its caller, model, usage and cost. Contains no prompt, answer or credential.
 * Amounts are in nano-dollars.
 */
export interface UsageRecord {
  /** Id of the request. For a task, the request that submitted it. */
  readonly id: string
  /** Time of the end in Unix milliseconds. For a charged call, the time of its journal line. */
  readonly endedAtMs: number
  /** Account that pays. */
  readonly accountId: string
  /** Key or identity that made the call. */
  readonly keyId: string
  /** End user on whose behalf the account called, or `undefined` if not specified. */
  readonly endUser: string | undefined
  /** Up to 8 tags in the given order. */
  readonly tags: readonly string[]
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model that answered or should have answered. */
  readonly model: string
  /** Model name that the caller wrote. */
  readonly requestedModel: string
  /** Vendor that was called, or `undefined` if there was none. */
  readonly vendor: string | undefined
  /** Identifies the operator's key at the vendor without revealing it. */
  readonly credentialId: string | undefined
  /** The vendor's id of the request. */
  readonly vendorRequestId: string | undefined
  /** Outcome, as in the event `request-ended`. */
  readonly ending: Ending
  /** HTTP status that the caller got. For a task 200, because its end does not answer a request. */
  readonly status: number
  /** Error code, or `undefined` if there was no error. */
  readonly code: string | undefined
  /** Whether the caller requested a stream. */
  readonly isStream: boolean
  /**
   * Units by meter of the model; empty if no usage is known. The journal's line contains and charges the usage of other models
   * within the call: counts of several models would not add up to the model's.
   */
  readonly usage: UsageCounts
  /** Whether `usage` is an estimate because the vendor reported none. */
  readonly isEstimated: boolean
  /** Milliseconds from the request's arrival to its end. */
  readonly durationMs: number
  /** Milliseconds from the request's arrival to the first content, or `undefined` if there was none. */
  readonly firstByteMs: number | undefined
  /**
   * Calls to vendors in the order of their start, at most 16, if there were several or one failed. Otherwise undefined, because
   * the rest of the record describes a single call; so most records have no list.
   */
  readonly attempts: readonly AttemptRecord[] | undefined
  /** Cost of the call. */
  readonly dueNanoDollars: bigint
  /** Part of the cost that the balance paid immediately; the journal's charge. */
  readonly chargedNanoDollars: bigint
}

/** Record before the ledger has determined its charge and time. */
export type UsageDraft = Omit<UsageRecord, 'endedAtMs' | 'dueNanoDollars' | 'chargedNanoDollars'>

/** Part of a record that the ledger determines. */
export type ChargedEnd = Omit<UsageRecord, keyof UsageDraft>

/** Returns the record of a call that ended at `endedAtMs`. */
export function usageRecord(draft: UsageDraft, ended: ChargedEnd): UsageRecord {
  return {
    id: draft.id,
    endedAtMs: Math.floor(ended.endedAtMs),
    accountId: draft.accountId,
    keyId: draft.keyId,
    endUser: draft.endUser,
    tags: draft.tags,
    endpoint: draft.endpoint,
    model: draft.model,
    requestedModel: draft.requestedModel,
    vendor: draft.vendor,
    credentialId: draft.credentialId,
    vendorRequestId: draft.vendorRequestId,
    ending: draft.ending,
    status: draft.status,
    code: draft.code,
    isStream: draft.isStream,
    usage: countsOf(draft.usage),
    isEstimated: draft.isEstimated,
    durationMs: draft.durationMs,
    firstByteMs: draft.firstByteMs,
    attempts: draft.attempts,
    dueNanoDollars: ended.dueNanoDollars,
    chargedNanoDollars: ended.chargedNanoDollars,
  }
}

/** Returns the counts of the called model alone. */
export function countsOf(usage: Usage): UsageCounts {
  if (usage.otherModels === undefined && usage.serviceTier === undefined) return usage
  const { otherModels: _, serviceTier: _tier, ...counts } = usage
  return counts
}

/** Maximum length of a text in a record, in UTF-16 units. */
const MAX_TEXT_LENGTH = 256

/** Halves of surrogate pairs. Databases reject a half without its counterpart. */
const SURROGATES = /[\ud800-\udfff]/

/** Returns a text that every store accepts: limited in length, without U+0000, and with lone surrogates replaced. */
export function storableText(text: string, maxLength = MAX_TEXT_LENGTH): string {
  const bounded = text.length > maxLength ? text.slice(0, maxLength) : text
  const isPlain = !bounded.includes('\u0000') && !SURROGATES.test(bounded)
  return isPlain ? bounded : Buffer.from(bounded.replaceAll('\u0000', '')).toString()
}

/** Returns {@link storableText}, or null without a text. */
export function storableTextOrNull(text: string | undefined): string | null {
  return text === undefined ? null : storableText(text)
}

const MAX_TAGS = 8
const TAG = /^[\w.:/-]{1,64}$/

/** Returns the tags of a call: fixed tags first, without duplicates, at most 8. Invalid tags are dropped. */
export function tagsOf(fixed: readonly string[] | undefined, listed: string | undefined): readonly string[] {
  if (listed === undefined && (fixed === undefined || fixed.length === 0)) return NO_TAGS
  const wanted = [...(fixed ?? []), ...(listed?.split(',').map((tag) => tag.trim()) ?? [])]
  return [...new Set(wanted.filter((tag) => TAG.test(tag)))].slice(0, MAX_TAGS)
}

const NO_TAGS: readonly string[] = []

/** Upper bounds of the duration buckets, in milliseconds. One more bucket counts longer durations. */
export const LATENCY_BOUNDS_MS: readonly number[] = [
  ...[10, 25, 50, 100, 250, 500, 1_000],
  ...[2_000, 4_000, 8_000, 15_000, 30_000, 60_000, 120_000],
]

/** Number of buckets. */
export const LATENCY_BUCKETS = LATENCY_BOUNDS_MS.length + 1

/** Number of calls per bucket of their duration, and per bucket of the time to their first content, if any. */
export interface LatencyCounts {
  readonly duration: readonly number[]
  readonly firstByte: readonly number[]
}

/** Milliseconds below which 50 %, 95 % and 99 % of the calls are. */
export interface Percentiles {
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

/** Returns the bucket of a duration. */
export function bucketOf(durationMs: number): number {
  const index = LATENCY_BOUNDS_MS.findIndex((boundMs) => durationMs <= boundMs)
  return index === -1 ? LATENCY_BOUNDS_MS.length : index
}

/** Returns percentiles of counts, interpolated within their buckets, or undefined if nothing was counted. */
export function percentilesOf(counts: readonly number[]): Percentiles | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  return {
    p50Ms: quantile(counts, total * 0.5),
    p95Ms: quantile(counts, total * 0.95),
    p99Ms: quantile(counts, total * 0.99),
  }
}

/** @param rank Number of calls below the result. */
function quantile(counts: readonly number[], rank: number): number {
  let below = 0
  for (const [index, count] of counts.entries()) {
    const upperMs = LATENCY_BOUNDS_MS[index]
    // The last bucket has no end: its calls took at least this long.
    if (upperMs === undefined) break
    if (below + count >= rank) {
      const lowerMs = LATENCY_BOUNDS_MS[index - 1] ?? 0
      return Math.round(lowerMs + ((upperMs - lowerMs) * (rank - below)) / count)
    }
    below += count
  }
  return LATENCY_BOUNDS_MS.at(-1)!
}
