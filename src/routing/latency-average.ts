/** Share of the newest measurement in the average. */
const NEWEST = 0.2
/** Samples decay with this half-life, so that what was slow once is tried again. */
const HALF_LIFE_MS = 30_000

/** A moving average of the time to an answer. */
export class LatencyAverage {
  // Negative: nothing was measured. Always a number, so that the engine need not allocate one for every measurement.
  #averageMs = -1
  #measuredAtMs = 0

  /** The average, in milliseconds; undefined before the first measurement. */
  get averageMs(): number | undefined {
    return this.#averageMs < 0 ? undefined : this.#averageMs
  }

  add(durationMs: number, nowMs: number): void {
    this.#averageMs = this.#averageMs < 0 ? durationMs : this.#averageMs + NEWEST * (durationMs - this.#averageMs)
    this.#measuredAtMs = nowMs
  }

  /** What to reckon with now, in milliseconds: the average, nearer to 0 the older it is; 0 when nothing is known. */
  expectedMs(nowMs: number): number {
    if (this.#averageMs < 0) return 0
    return this.#averageMs * 0.5 ** (Math.max(0, nowMs - this.#measuredAtMs) / HALF_LIFE_MS)
  }
}
