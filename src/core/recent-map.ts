import { isYoungerThan } from './clock.ts'

interface Entry<Value> {
  readonly value: Value
  readonly fromMs: number
  readonly forMs: number
}

/** Values that are used again for a short time. There are at most so many: another one takes the place of the oldest. */
export class RecentMap<Value> {
  readonly #most: number
  /** The oldest stand first. */
  readonly #entries = new Map<string, Entry<Value>>()

  constructor(most: number) {
    this.#most = most
  }

  /** Undefined: there is none, or its time is over. */
  get(key: string, nowMs: number): Value | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (isYoungerThan(entry.forMs, entry.fromMs, nowMs)) return entry.value
    this.#entries.delete(key)
    return undefined
  }

  /** Values whose time is not over, the oldest first. */
  *values(nowMs: number): Iterable<Value> {
    for (const { value, forMs, fromMs } of this.#entries.values()) if (isYoungerThan(forMs, fromMs, nowMs)) yield value
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  /** @param forMs How long it may be used. */
  set(key: string, value: Value, nowMs: number, forMs: number): void {
    this.#entries.delete(key)
    const oldest = this.#entries.size < this.#most ? undefined : this.#entries.keys().next().value
    if (oldest !== undefined) this.#entries.delete(oldest)
    this.#entries.set(key, { value, fromMs: nowMs, forMs })
  }
}
