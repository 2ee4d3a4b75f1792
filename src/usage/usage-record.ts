import { Buffer } from 'node:buffer'
import type { Ending } from '../core/events.ts'
import type { Usage, UsageCounts } from '../core/usage.ts'

/** One call to a vendor on behalf of a request. */
export interface AttemptRecord {
  /** Id of the vendor that was called. */
  readonly vendor: string
  /** Identifies the operator's key at the vendor without revealing it. */
  readonly credentialId: string
  /** Public id of the model. */
  readonly model: string
  /** `abandoned`: ended on this side, for a caller who left or an attempt that was faster. */
  readonly outcome: 'answered' | 'failed' | 'abandoned'
  /** Why it failed, as the event `attempt-failed` says it; undefined: it did not. */
  readonly reason: string | undefined
  /** The vendor's status where it refused; undefined: it answered, or not at all. */
  readonly status: number | undefined
  /** Milliseconds from the request's arrival. */
  readonly startMs: number
  /** From its beginning to its end. */
  readonly durationMs: number
}

/** Most attempts in a record: the first ones, and the last. */
export const MAX_ATTEMPTS_IN_RECORD = 16

/**
 * One call that reached a model, or the end of one task: who made it, what answered, what it used and what it cost. Contains
 * no prompt, answer or credential. Amounts in nano-dollars.
 */
export interface UsageRecord {
  /** Id of the request; of a task the request that submitted it. */
  readonly id: string
  /** Unix milliseconds; of a charged call the time of its journal line. */
  readonly endedAtMs: number
  /** The account that pays. */
  readonly accountId: string
  /** The key or identity that called. */
  readonly keyId: string
  /** Who was served on the account's behalf; undefined: not told. */
  readonly endUser: string | undefined
  /** At most 8, sorted as they were given. */
  readonly tags: readonly string[]
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model that answered, or was to answer. */
  readonly model: string
  /** What the caller wrote. */
  readonly requestedModel: string
  /** Undefined: no vendor was asked. */
  readonly vendor: string | undefined
  /** Identifies the operator's key at the vendor without revealing it. */
  readonly credentialId: string | undefined
  /** The vendor's id of its answer. */
  readonly vendorRequestId: string | undefined
  /** As in the event `request-ended`. */
  readonly ending: Ending
  /** HTTP status that the caller got; of a task 200: its end is no answer to a request. */
  readonly status: number
  /** Error code; undefined: none. */
  readonly code: string | undefined
  /** Did the caller ask for a stream? */
  readonly isStream: boolean
  /**
   * Units by meter of the model; empty where nothing is known to have been used. What other models consumed within the call is in
   * the journal's line, and paid with it: counts of several models would not add up to the model's.
   */
  readonly usage: UsageCounts
  /** True where the vendor reported nothing, and `usage` is an estimate. */
  readonly isEstimated: boolean
  /** From the request's arrival to its end. */
  readonly durationMs: number
  /** From the request's arrival to the first content; undefined where there was none. */
  readonly firstByteMs: number | undefined
  /**
   * The calls to vendors in the order of their beginnings, at most 16, where there was more than one, or one that failed. Undefined:
   * there was one, as the rest of the record says, or none; so records of most calls have no list.
   */
  readonly attempts: readonly AttemptRecord[] | undefined
  /** What the call cost. */
  readonly dueNanoDollars: bigint
  /** What the balance paid of it at once; the journal's charge. */
  readonly chargedNanoDollars: bigint
}

/** A record before the ledger has said what was charged and when. */
export type UsageDraft = Omit<UsageRecord, 'endedAtMs' | 'dueNanoDollars' | 'chargedNanoDollars'>

/** What of a record the ledger says. */
export type ChargedEnd = Omit<UsageRecord, keyof UsageDraft>

/** The record of a call that ended at `endedAtMs`. */
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

/** The counts of the called model alone. */
export function countsOf(usage: Usage): UsageCounts {
  if (usage.otherModels === undefined && usage.serviceTier === undefined) return usage
  const { otherModels: _, serviceTier: _tier, ...counts } = usage
  return counts
}

/** Longest text in a record, in UTF-16 units. */
const MAX_TEXT_LENGTH = 256

/** Halves of surrogate pairs, alone or not: a database refuses those that are alone. */
const SURROGATES = /[\ud800-\udfff]/

/** A text that every store can keep: bounded, without U+0000, and with lone surrogates replaced. */
export function storableText(text: string, maxLength = MAX_TEXT_LENGTH): string {
  const bounded = text.length > maxLength ? text.slice(0, maxLength) : text
  const isPlain = !bounded.includes('\u0000') && !SURROGATES.test(bounded)
  return isPlain ? bounded : Buffer.from(bounded.replaceAll('\u0000', '')).toString()
}

const MAX_TAGS = 8
const TAG = /^[\w.:/-]{1,64}$/

/** The tags of a call: those that cannot be removed first, each once, at most 8; what is no tag is left out. */
export function tagsOf(fixed: readonly string[] | undefined, listed: string | undefined): readonly string[] {
  if (listed === undefined && (fixed === undefined || fixed.length === 0)) return NO_TAGS
  const wanted = [...(fixed ?? []), ...(listed?.split(',').map((tag) => tag.trim()) ?? [])]
  return [...new Set(wanted.filter((tag) => TAG.test(tag)))].slice(0, MAX_TAGS)
}

const NO_TAGS: readonly string[] = []
