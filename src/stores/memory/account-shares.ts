import type { StoredUsage } from '../stored-usage.ts'
import { MapCursor } from './map-scans.ts'

interface Share {
  /** Bytes of each entry, the oldest first. */
  readonly entries: Map<string, number>
  readonly oldest: MapCursor<string, number>
  byteLength: number
}

/**
 * Entries of one kind by their accounts, and which of them is dropped when there are too many. An account that holds no more than its
 * share, which is the bound divided by the number of accounts, loses none.
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

  /** Counts the entries of an account that have not expired. */
  usage(accountId: string, isLive: (name: string) => boolean): StoredUsage {
    const live = [...(this.#accounts.get(accountId)?.entries ?? [])].filter(([name]) => isLive(name))
    return { count: live.length, byteLength: live.reduce((sum, [, byteLength]) => sum + byteLength, 0) }
  }

  /** Adds an entry as the newest of its account, or moves it there with a new size. */
  set(accountId: string, name: string, byteLength = 0): void {
    this.delete(accountId, name)
    const entries = new Map<string, number>()
    const share = this.#accounts.get(accountId) ?? { entries, oldest: new MapCursor(entries), byteLength: 0 }
    this.#accounts.set(accountId, share)
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

  /** Names of the entries to delete until all fit. The account that was added to comes first if it has more than its share. */
  *surplus(accountId: string): Iterable<string> {
    let share = this.#accounts.get(accountId)
    while (this.#count > this.#maxCount || this.#byteLength > this.#maxBytes) {
      const [held, max] =
        this.#count > this.#maxCount
          ? [share?.entries.size ?? 0, this.#maxCount]
          : [share?.byteLength ?? 0, this.#maxBytes]
      // Some account has more than its share, because all together have more than the bound.
      if (held * this.#accounts.size > max) yield share!.oldest.next()![0]
      else share = this.#cursor.next()?.[1]
    }
  }
}
