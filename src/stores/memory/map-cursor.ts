/**
 * Goes round a map for ever, one entry at a time, so that cleaning costs each call the same little instead of a pause now
 * and then. Entries may be added and deleted meanwhile. As long as each entry it gives is deleted, it gives the oldest,
 * without the walk over deleted entries that a new iterator begins with.
 */
export class MapCursor<Key, Value> {
  readonly #map: ReadonlyMap<Key, Value>
  #entries: Iterator<[Key, Value]>

  constructor(map: ReadonlyMap<Key, Value>) {
    this.#map = map
    this.#entries = map.entries()
  }

  /** The next entry; undefined when the map is empty. */
  next(): [Key, Value] | undefined {
    const step = this.#entries.next()
    if (step.done !== true) return step.value
    this.#entries = this.#map.entries()
    const first = this.#entries.next()
    return first.done === true ? undefined : first.value
  }
}
