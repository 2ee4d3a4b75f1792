// See docs/decisions/0029-speed.md.

import { isYoungerThan } from './clock.ts'

/** Minimum number of added entries before the entries are moved. */
const MIN_ADDED = 128

/**
 * Map for short-lived entries, such as those of requests in progress, in insertion order.
 *
 * V8 regularly moves the entries of a `Map` to a new table, and each table keeps a reference to the next one for iterators. The
 * young generation is collected without checking whether old objects are alive. So once one table has become old, all later
 * tables survive every collection except those of the whole heap, with all entries that were ever in them. This class replaces
 * the map before such a chain grows long, and the old map has no reference to the new one.
 */
export class TransientMap<Key, Value> implements Iterable<[Key, Value]> {
  #entries = new Map<Key, Value>()
  #addedLeft = MIN_ADDED

  get size(): number {
    return this.#entries.size
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  has(key: Key): boolean {
    return this.#entries.has(key)
  }

  /** An iterator must not see entries that are added after its creation. */
  set(key: Key, value: Value): void {
    this.#addedLeft -= 1
    if (this.#addedLeft < 0) {
      this.#entries = new Map(this.#entries)
      this.#addedLeft = Math.max(MIN_ADDED, this.#entries.size)
    }
    this.#entries.set(key, value)
  }

  delete(key: Key): boolean {
    return this.#entries.delete(key)
  }

  clear(): void {
    this.#entries = new Map()
    this.#addedLeft = MIN_ADDED
  }

  keys(): IterableIterator<Key> {
    return this.#entries.keys()
  }

  values(): IterableIterator<Value> {
    return this.#entries.values()
  }

  [Symbol.iterator](): IterableIterator<[Key, Value]> {
    return this.#entries[Symbol.iterator]()
  }
}

interface Entry<Value> {
  readonly value: Value
  readonly fromMs: number
  readonly forMs: number
}

/** Cache of values that are reused for a short time. A maximum size applies: another value replaces the oldest. */
export class RecentMap<Value> {
  readonly #most: number
  /** Entries, ordered from oldest to newest. */
  readonly #entries = new Map<string, Entry<Value>>()

  constructor(most: number) {
    this.#most = most
  }

  /** Returns the value, or `undefined` if it is absent or expired. */
  get(key: string, nowMs: number): Value | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (isYoungerThan(entry.forMs, entry.fromMs, nowMs)) return entry.value
    this.#entries.delete(key)
    return undefined
  }

  /** Returns the values that have not expired, oldest first. */
  *values(nowMs: number): Iterable<Value> {
    for (const { value, forMs, fromMs } of this.#entries.values()) if (isYoungerThan(forMs, fromMs, nowMs)) yield value
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  /** @param forMs Lifetime of the value, in milliseconds. */
  set(key: string, value: Value, nowMs: number, forMs: number): void {
    this.#entries.delete(key)
    const oldest = this.#entries.size < this.#most ? undefined : this.#entries.keys().next().value
    if (oldest !== undefined) this.#entries.delete(oldest)
    this.#entries.set(key, { value, fromMs: nowMs, forMs })
  }
}
