import type { ListPlace, NewestFirstQuery } from '../resolution.ts'
import type { StoredUsage } from '../sql-rows.ts'

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

/**
 * Iterates over a map endlessly, one entry at a time, so that every call pays the same small cost of cleaning instead of an
 * occasional pause. Entries may be added and deleted meanwhile. If each returned entry is deleted, the next one is always the
 * oldest, without scanning deleted entries as a new iterator would.
 */
export class MapCursor<Key, Value> {
  readonly #map: ReadonlyMap<Key, Value>
  #entries: Iterator<[Key, Value]>

  constructor(map: ReadonlyMap<Key, Value>) {
    this.#map = map
    this.#entries = map.entries()
  }

  /** Returns the next entry; undefined if the map is empty. */
  next(): [Key, Value] | undefined {
    const step = this.#entries.next()
    if (step.done !== true) return step.value
    this.#entries = this.#map.entries()
    const first = this.#entries.next()
    return first.done === true ? undefined : first.value
  }
}

/**
 * Returns up to `limit` due entries that have waited longest, in that order. Needs one pass for any order of the entries, and
 * sorts at most twice `limit` of them at a time.
 *
 * @param timeOf Unix milliseconds at which the entry is due; undefined skips it.
 */
export function longestOverdue<Entry>(
  entries: Iterable<Entry>,
  timeOf: (entry: Entry) => number | undefined,
  nowMs: number,
  limit: number,
): Entry[] {
  if (limit <= 0) return []
  let waiting: { readonly entry: Entry; readonly timeMs: number }[] = []
  let latestMs = nowMs
  const keepLongest = (): void => {
    waiting.sort((one, other) => one.timeMs - other.timeMs)
    waiting = waiting.slice(0, limit)
  }
  for (const entry of entries) {
    const timeMs = timeOf(entry)
    if (timeMs === undefined || timeMs > latestMs) continue
    waiting.push({ entry, timeMs })
    if (waiting.length < limit * 2) continue
    keepLongest()
    latestMs = waiting.at(-1)!.timeMs
  }
  keepLongest()
  return waiting.map(({ entry }) => entry)
}

/** Returns a page of a list of all accounts, with one pass over all items and a sort of the matches. */
export function newestFirst<Item extends ListPlace & { readonly accountId: string; readonly state: string }>(
  items: Iterable<Item>,
  { accountId, state, after, limit }: NewestFirstQuery<string>,
): Item[] {
  const found: Item[] = []
  for (const item of items) {
    const isWanted =
      (accountId === undefined || item.accountId === accountId) && (state === undefined || item.state === state)
    if (isWanted && (after === undefined || byAge(after, item) < 0)) found.push(item)
  }
  return found.sort(byAge).slice(0, Math.max(0, limit))
}

/** Orders the newer item first. */
function byAge(one: ListPlace, other: ListPlace): number {
  return other.createdAtMs - one.createdAtMs || (one.id < other.id ? 1 : one.id > other.id ? -1 : 0)
}

/** Returns the key of an object of an account. The length separates account and id, whatever characters they contain. */
export function accountKey(accountId: string, id: string): string {
  return `${accountId.length}:${accountId}${id}`
}
