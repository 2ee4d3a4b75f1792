import type { Timeouts } from '../pipeline/pipeline-context.ts'

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5_000, firstByteMs: 120_000, idleMs: 60_000, totalMs: 600_000 }
export const DEFAULT_DRAIN_MS = 30_000

const SHORTEST_HOLD_TTL_MS = 15 * 60_000
/** Minimum time by which a hold outlives its call, in milliseconds, because settling takes time too. */
const SETTLING_MS = 60_000

/** Returns the default lifetime of a hold: longer than any call, including drained ones. */
export function defaultHoldTtlMs(totalMs: number, drainMs: number): number {
  return Math.max(SHORTEST_HOLD_TTL_MS, totalMs + drainMs + SETTLING_MS)
}
