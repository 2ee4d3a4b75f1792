/**
 * Newest entries, at least `least` of them and up to twice as many. There are two generations: when the newer one is full it
 * becomes the older, so that entries are never deleted one by one.
 */
export class NewestEntries<Value> {
  readonly #least: number
  #newer = new Map<string, Value>()
  #older = new Map<string, Value>()

  constructor(least: number) {
    this.#least = least
  }

  get(key: string): Value | undefined {
    return this.#newer.get(key) ?? this.#older.get(key)
  }

  set(key: string, value: Value): void {
    this.#newer.set(key, value)
    if (this.#newer.size < this.#least) return
    this.#older = this.#newer
    this.#newer = new Map()
  }

  delete(key: string): void {
    this.#newer.delete(key)
    this.#older.delete(key)
  }
}
