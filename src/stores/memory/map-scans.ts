import type { ListPlace, NewestFirstQuery } from '../newest-first.ts'

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
