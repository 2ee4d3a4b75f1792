/** Minimum number of added entries before the entries are moved. */
const LEAST_ADDED = 128

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
  #addedLeft = LEAST_ADDED

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
      this.#addedLeft = Math.max(LEAST_ADDED, this.#entries.size)
    }
    this.#entries.set(key, value)
  }

  delete(key: Key): boolean {
    return this.#entries.delete(key)
  }

  clear(): void {
    this.#entries = new Map()
    this.#addedLeft = LEAST_ADDED
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
