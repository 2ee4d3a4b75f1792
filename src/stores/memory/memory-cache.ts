import { checkMembers, memberNames } from '../../core/known-members.ts'
import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../idempotency-store.ts'
import type { ResponseCache } from '../response-cache.ts'
import type { StoredUsage } from '../sql-rows.ts'
import { AccountShares, accountKey, MapCursor } from './account-shares.ts'

/** Options of `memoryCache`. */
export interface MemoryCacheOptions {
  /** Maximum memory for entries, in bytes. Default 64 MiB. */
  readonly maxBytes?: number | undefined
}

const MEMORY_CACHE_OPTIONS = memberNames<MemoryCacheOptions>()('maxBytes')

/** Cache in this process. */
export interface MemoryCache extends ResponseCache {
  /** Memory of all entries, in bytes. */
  readonly byteLength: number
  /** Number of entries. */
  readonly size: number
}

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

/** Memory of an entry in addition to its bytes: the key, the map's slot, the objects. */
const ENTRY_OVERHEAD_BYTES = 400

interface Kept {
  readonly bytes: Uint8Array
  readonly untilMs: number
}

/**
 * Creates a response cache in memory with a maximum size in bytes; the least recently read entries are evicted first. Every
 * process has its own.
 * @throws TypeError for a maximum that is not a positive number.
 */
export function memoryCache(options: MemoryCacheOptions = {}): MemoryCache {
  checkMembers(options, MEMORY_CACHE_OPTIONS, 'memoryCache')
  const { maxBytes = DEFAULT_MAX_BYTES } = options
  if (!(maxBytes > 0)) throw new TypeError('memoryCache: maxBytes must be a positive number')
  // Ordered by their last use.
  const entries = new Map<string, Kept>()
  const oldest = new MapCursor(entries)
  const generations = new Map<string, number>()
  let byteLength = 0

  function forget(key: string, { bytes }: Kept): void {
    entries.delete(key)
    byteLength -= sizeOf(key, bytes)
  }

  return {
    get byteLength() {
      return byteLength
    },
    get size() {
      return entries.size
    },

    get(key, nowMs) {
      const kept = entries.get(key)
      if (kept === undefined) return undefined
      if (kept.untilMs <= nowMs) {
        forget(key, kept)
        return undefined
      }
      entries.delete(key)
      entries.set(key, kept)
      return kept.bytes
    },

    set(key, entry, keepMs, nowMs) {
      const before = entries.get(key)
      if (before !== undefined) forget(key, before)
      // A view of a larger buffer would retain all of it.
      const bytes = entry.buffer.byteLength === entry.byteLength ? entry : new Uint8Array(entry)
      const size = sizeOf(key, bytes)
      if (size > maxBytes || keepMs <= 0) return
      while (byteLength + size > maxBytes) {
        const next = oldest.next()
        if (next === undefined) break
        forget(next[0], next[1])
      }
      entries.set(key, { bytes, untilMs: nowMs + keepMs })
      byteLength += size
    },

    generation: (scope) => generations.get(scope) ?? 0,

    clear(scope) {
      generations.set(scope, (generations.get(scope) ?? 0) + 1)
    },
  }
}

function sizeOf(key: string, bytes: Uint8Array): number {
  return key.length + bytes.byteLength + ENTRY_OVERHEAD_BYTES
}

/** Limits of stored answers for replay. */
export interface MemoryClaimsOptions {
  /** Maximum number of stored answers, each for at most 24 hours. Default 100,000. */
  readonly maxAnswers?: number | undefined
  /** Maximum size of stored answer bodies in bytes. Default 128 MiB. */
  readonly maxAnswerBytes?: number | undefined
}

interface ClaimEntry {
  readonly accountId: string
  readonly fingerprint: string
  /** Time at which the key becomes free; possibly sooner without an answer. */
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
 * dropped. Answers beyond the limits are dropped, beginning with the oldest of accounts that exceed their share.
 */
export class MemoryClaims {
  readonly #entries = new Map<string, ClaimEntry>()
  readonly #cursor = new MapCursor(this.#entries)
  readonly #claimed = new AccountShares()
  readonly #answered: AccountShares

  constructor({ maxAnswers = 100_000, maxAnswerBytes = 128 * 1024 * 1024 }: MemoryClaimsOptions = {}) {
    this.#answered = new AccountShares(maxAnswers, maxAnswerBytes)
  }

  /** Returns how much an account has stored, without expired data. */
  stored(accountId: string, nowMs: number): StoredUsage {
    return this.#claimed.usage(accountId, nowMs, (name) => this.#entries.get(name)!.expiresAtMs)
  }

  /** Returns the result of a claim without claiming. */
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
    this.#entries.set(name, { accountId: claim.accountId, fingerprint, expiresAtMs, claimedBy, answer: undefined })
    this.#claimed.set(claim.accountId, name, 0, expiresAtMs)
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
    for (const shares of [this.#claimed, this.#answered])
      shares.set(claim.accountId, name, answer.body.byteLength, entry.expiresAtMs)
    for (const surplus of this.#answered.surplus(claim.accountId)) this.#drop(surplus)
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
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    this.#entries.delete(name)
    this.#claimed.delete(entry.accountId, name)
    this.#answered.delete(entry.accountId, name)
  }
}

/** An expired key may belong to another request by now, which has another body or another claimant. */
function isOf(entry: ClaimEntry, { fingerprint, claimedBy }: IdempotencyClaim): boolean {
  const isOther = claimedBy !== undefined && entry.claimedBy !== undefined && entry.claimedBy !== claimedBy
  return entry.fingerprint === fingerprint && !isOther
}
