import type { StoredUsage } from '../stored-usage.ts'
import { MapCursor } from './map-scans.ts'

interface Share {
  /** Bytes of each entry, oldest first. */
  readonly entries: Map<string, number>
  readonly oldest: MapCursor<string, number>
  byteLength: number
  /** No entry expires before this time, in Unix milliseconds. */
  soonestEndMs: number
}

/**
 * Entries of one kind by account, which determine the entries to drop if there are too many. An account within its share, which
 * is the maximum divided by the number of accounts, loses none.
 */
export class AccountShares {
  readonly #maxCount: number
  readonly #maxBytes: number
  readonly #accounts = new Map<string, Share>()
  readonly #cursor = new MapCursor(this.#accounts)
  #count = 0
  #byteLength = 0

  constructor(maxCount = Number.POSITIVE_INFINITY, maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxCount = maxCount
    this.#maxBytes = maxBytes
  }

  /** Returns the number and size of an account's entries that have not expired. Reads them only if one may have. */
  usage(accountId: string, nowMs: number, expiresAtMsOf: (name: string) => number): StoredUsage {
    const share = this.#accounts.get(accountId)
    if (share === undefined) return { count: 0, byteLength: 0 }
    if (nowMs < share.soonestEndMs) return { count: share.entries.size, byteLength: share.byteLength }
    let count = 0
    let byteLength = 0
    share.soonestEndMs = Number.POSITIVE_INFINITY
    for (const [name, size] of share.entries) {
      const expiresAtMs = expiresAtMsOf(name)
      share.soonestEndMs = Math.min(share.soonestEndMs, expiresAtMs)
      if (expiresAtMs <= nowMs) continue
      count += 1
      byteLength += size
    }
    return { count, byteLength }
  }

  /**
   * Adds an entry as the newest of its account, or moves it there with a new size.
   * @param expiresAtMs Earliest time at which the entry expires; only {@link usage} needs it.
   */
  set(accountId: string, name: string, byteLength = 0, expiresAtMs = Number.POSITIVE_INFINITY): void {
    this.delete(accountId, name)
    const entries = new Map<string, number>()
    const share = this.#accounts.get(accountId) ?? {
      entries,
      oldest: new MapCursor(entries),
      byteLength: 0,
      soonestEndMs: Number.POSITIVE_INFINITY,
    }
    this.#accounts.set(accountId, share)
    share.soonestEndMs = Math.min(share.soonestEndMs, expiresAtMs)
    share.entries.set(name, byteLength)
    share.byteLength += byteLength
    this.#byteLength += byteLength
    this.#count += 1
  }

  delete(accountId: string, name: string): void {
    const share = this.#accounts.get(accountId)
    const byteLength = share?.entries.get(name)
    if (share === undefined || byteLength === undefined) return
    share.entries.delete(name)
    share.byteLength -= byteLength
    this.#byteLength -= byteLength
    this.#count -= 1
    if (share.entries.size === 0) this.#accounts.delete(accountId)
  }

  /** Returns the names of entries to delete until all fit. Begins with the account that was added to if it exceeds its share. */
  *surplus(accountId: string): Iterable<string> {
    let share = this.#accounts.get(accountId)
    while (this.#count > this.#maxCount || this.#byteLength > this.#maxBytes) {
      const [held, max] =
        this.#count > this.#maxCount
          ? [share?.entries.size ?? 0, this.#maxCount]
          : [share?.byteLength ?? 0, this.#maxBytes]
      // Some account exceeds its share, because all together exceed the maximum.
      if (held * this.#accounts.size > max) yield share!.oldest.next()![0]
      else share = this.#cursor.next()?.[1]
    }
  }
}
