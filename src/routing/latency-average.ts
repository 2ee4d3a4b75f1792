/** Share of the newest measurement in the average. */
const NEWEST = 0.2
/** Samples decay with this half-life, so that a slow candidate is tried again. */
const HALF_LIFE_MS = 30_000

/** Moving average of the time to an answer. */
export class LatencyAverage {
  // Negative before the first sample. Always a number, so that the engine does not allocate one per sample.
  #averageMs = -1
  #measuredAtMs = 0

  /** Average in milliseconds; undefined before the first measurement. */
  get averageMs(): number | undefined {
    return this.#averageMs < 0 ? undefined : this.#averageMs
  }

  add(durationMs: number, nowMs: number): void {
    this.#averageMs = this.#averageMs < 0 ? durationMs : this.#averageMs + NEWEST * (durationMs - this.#averageMs)
    this.#measuredAtMs = nowMs
  }

  /** Expected latency now, in milliseconds: the average, decaying towards 0 with age; 0 without samples. */
  expectedMs(nowMs: number): number {
    if (this.#averageMs < 0) return 0
    // If the clock was set back, the age restarts now.
    if (nowMs < this.#measuredAtMs) this.#measuredAtMs = nowMs
    return this.#averageMs * 0.5 ** ((nowMs - this.#measuredAtMs) / HALF_LIFE_MS)
  }
}
