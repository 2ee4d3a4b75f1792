/** At least so many entries are added before the entries are moved. */
const LEAST_ADDED = 128

/**
 * A map for entries that come and go, such as those of requests in progress; in the order of their addition.
 *
 * A `Map` of V8 moves its entries to a new table every so often, and each table keeps a reference to the one after it, for iterators.
 * The young generation is collected without asking whether old objects are alive. So once one table has become old, all that follow it
 * outlive every collection but those of the whole heap, with all entries that were ever in them. Here the map itself is replaced before
 * such a chain grows long, and nothing refers from the old one to the new one.
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

  /** An iterator may not see what is set after it was made. */
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
