/** Upper bounds of the duration buckets, in milliseconds. One more bucket counts longer durations. */
export const LATENCY_BOUNDS_MS: readonly number[] = [
  ...[10, 25, 50, 100, 250, 500, 1_000],
  ...[2_000, 4_000, 8_000, 15_000, 30_000, 60_000, 120_000],
]

/** Number of buckets. */
export const LATENCY_BUCKETS = LATENCY_BOUNDS_MS.length + 1

/** Number of calls per bucket of their duration, and per bucket of the time to their first content, if any. */
export interface LatencyCounts {
  readonly duration: readonly number[]
  readonly firstByte: readonly number[]
}

/** Milliseconds below which 50 %, 95 % and 99 % of the calls are. */
export interface Percentiles {
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

/** Returns the bucket of a duration. */
export function bucketOf(durationMs: number): number {
  const index = LATENCY_BOUNDS_MS.findIndex((boundMs) => durationMs <= boundMs)
  return index === -1 ? LATENCY_BOUNDS_MS.length : index
}

/** Returns percentiles of counts, interpolated within their buckets, or undefined if nothing was counted. */
export function percentilesOf(counts: readonly number[]): Percentiles | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  return {
    p50Ms: quantile(counts, total * 0.5),
    p95Ms: quantile(counts, total * 0.95),
    p99Ms: quantile(counts, total * 0.99),
  }
}

/** @param rank Number of calls below the result. */
function quantile(counts: readonly number[], rank: number): number {
  let below = 0
  for (const [index, count] of counts.entries()) {
    const upperMs = LATENCY_BOUNDS_MS[index]
    // The last bucket has no end: its calls took at least this long.
    if (upperMs === undefined) break
    if (below + count >= rank) {
      const lowerMs = LATENCY_BOUNDS_MS[index - 1] ?? 0
      return Math.round(lowerMs + ((upperMs - lowerMs) * (rank - below)) / count)
    }
    below += count
  }
  return LATENCY_BOUNDS_MS.at(-1)!
}
