import type { SpendingLimit } from '../ledger.ts'
import { MapCursor } from './map-scans.ts'

/** What was charged and is held in one period. A hold keeps the counters it counts in, to correct them when it ends. */
export interface SpendingCounter {
  spent: bigint
  expiresAtMs: number
}

const SWEPT_PER_COUNT = 2

/** Counters of spending limits in this process. */
export class MemorySpending {
  readonly #counters = new Map<string, SpendingCounter>()
  readonly #cursor = new MapCursor(this.#counters)

  /** Name of the first counter that an amount would take beyond its limit. Nothing is counted. Zero always fits. */
  exceeded(limits: readonly SpendingLimit[], amount: bigint, nowMs: number): string | undefined {
    if (amount === 0n) return undefined
    return limits.find(({ counter, limit }) => this.#spent(counter, nowMs) + amount > limit)?.counter
  }

  /** Counts an amount in all of the counters, and gives them. */
  count(limits: readonly SpendingLimit[], amount: bigint, nowMs: number): readonly SpendingCounter[] {
    const counters = limits.map(({ counter: name, expiresAtMs }) => {
      const counter = this.#live(name, expiresAtMs, nowMs)
      counter.spent += amount
      counter.expiresAtMs = Math.max(counter.expiresAtMs, expiresAtMs)
      return counter
    })
    for (let step = 0; step < SWEPT_PER_COUNT; step++) {
      const next = this.#cursor.next()
      if (next !== undefined && next[1].expiresAtMs <= nowMs) this.#counters.delete(next[0])
    }
    return counters
  }

  #spent(name: string, nowMs: number): bigint {
    const counter = this.#counters.get(name)
    return counter === undefined || counter.expiresAtMs <= nowMs ? 0n : counter.spent
  }

  #live(name: string, expiresAtMs: number, nowMs: number): SpendingCounter {
    const existing = this.#counters.get(name)
    if (existing !== undefined && existing.expiresAtMs > nowMs) return existing
    // A new object: a hold of the expired counter must not correct this one.
    const counter = { spent: 0n, expiresAtMs }
    this.#counters.delete(name)
    this.#counters.set(name, counter)
    return counter
  }
}
