import { isYoungerThan } from './clock.ts'

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
