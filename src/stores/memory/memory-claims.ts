import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../idempotency-store.ts'
import { accountKey, MapCursor } from './map-scans.ts'

/** Bounds of what is kept for replay. */
export interface MemoryClaimsOptions {
  /** Most answers kept, each for at most 24 hours; 100,000 when absent. */
  readonly maxAnswers?: number | undefined
  /** Most bytes of answer bodies kept; 128 MiB when absent. */
  readonly maxAnswerBytes?: number | undefined
}

interface ClaimEntry {
  readonly fingerprint: string
  /** When the key is free: without an answer it may be sooner. */
  expiresAtMs: number
  readonly claimedBy: string | undefined
  answer: StoredAnswer | undefined
}

const CLAIMED: ClaimResult = { status: 'claimed' }
const IN_FLIGHT: ClaimResult = { status: 'in_flight' }
const MISMATCH: ClaimResult = { status: 'mismatch' }
const SWEPT_PER_CLAIM = 2

/**
 * Idempotency keys in this process, shared by the memory ledger and the memory idempotency store. Keys in flight are never
 * dropped; answers beyond the bounds are, the oldest first.
 */
export class MemoryClaims {
  readonly #entries = new Map<string, ClaimEntry>()
  readonly #cursor = new MapCursor(this.#entries)
  /** Bytes of each answer by the entry's name, oldest answer first. */
  readonly #answered = new Map<string, number>()
  readonly #oldestAnswers = new MapCursor(this.#answered)
  readonly #maxAnswers: number
  readonly #maxAnswerBytes: number
  #answerBytes = 0

  constructor(options: MemoryClaimsOptions = {}) {
    this.#maxAnswers = options.maxAnswers ?? 100_000
    this.#maxAnswerBytes = options.maxAnswerBytes ?? 128 * 1024 * 1024
  }

  /** What claiming would find, without claiming. */
  peek(claim: IdempotencyClaim, nowMs: number): ClaimResult {
    const entry = this.#entries.get(accountKey(claim.accountId, claim.key))
    if (entry === undefined || entry.expiresAtMs <= nowMs) return CLAIMED
    if (entry.fingerprint !== claim.fingerprint) return MISMATCH
    return entry.answer === undefined ? IN_FLIGHT : { status: 'replay', answer: entry.answer }
  }

  claim(claim: IdempotencyClaim, nowMs: number): ClaimResult {
    const found = this.peek(claim, nowMs)
    const name = accountKey(claim.accountId, claim.key)
    const { fingerprint, claimedBy } = claim
    const expiresAtMs = claim.pendingUntilMs ?? claim.expiresAtMs
    const entry = this.#entries.get(name)
    if (found === IN_FLIGHT && entry !== undefined && claimedBy !== undefined && entry.claimedBy === claimedBy) {
      entry.expiresAtMs = Math.max(entry.expiresAtMs, expiresAtMs)
      return CLAIMED
    }
    if (found !== CLAIMED) return found
    this.#drop(name)
    this.#entries.set(name, { fingerprint, expiresAtMs, claimedBy, answer: undefined })
    this.#sweep(nowMs)
    return CLAIMED
  }

  complete(claim: IdempotencyClaim, answer: StoredAnswer): boolean {
    const name = accountKey(claim.accountId, claim.key)
    const entry = this.#entries.get(name)
    if (entry === undefined || !isOf(entry, claim)) return false
    if (entry.answer !== undefined) return true
    entry.answer = answer
    entry.expiresAtMs = Math.max(entry.expiresAtMs, claim.expiresAtMs)
    this.#answered.set(name, answer.body.byteLength)
    this.#answerBytes += answer.body.byteLength
    while (this.#answered.size > this.#maxAnswers || this.#answerBytes > this.#maxAnswerBytes) {
      const oldest = this.#oldestAnswers.next()
      if (oldest === undefined) break
      this.#drop(oldest[0])
    }
    return true
  }

  release(claim: IdempotencyClaim): void {
    const name = accountKey(claim.accountId, claim.key)
    const entry = this.#entries.get(name)
    if (entry !== undefined && entry.answer === undefined && isOf(entry, claim)) this.#drop(name)
  }

  #sweep(nowMs: number): void {
    for (let count = 0; count < SWEPT_PER_CLAIM; count++) {
      const next = this.#cursor.next()
      if (next !== undefined && next[1].expiresAtMs <= nowMs) this.#drop(next[0])
    }
  }

  #drop(name: string): void {
    this.#entries.delete(name)
    this.#answerBytes -= this.#answered.get(name) ?? 0
    this.#answered.delete(name)
  }
}

/** A key whose time was over may belong to another request by now, told apart by its body, or by who has claimed it. */
function isOf(entry: ClaimEntry, { fingerprint, claimedBy }: IdempotencyClaim): boolean {
  const isOther = claimedBy !== undefined && entry.claimedBy !== undefined && entry.claimedBy !== claimedBy
  return entry.fingerprint === fingerprint && !isOther
}
