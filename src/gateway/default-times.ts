import type { Timeouts } from '../pipeline/pipeline-context.ts'

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5_000, firstByteMs: 120_000, idleMs: 60_000, totalMs: 600_000 }
export const DEFAULT_DRAIN_MS = 30_000

const SHORTEST_HOLD_TTL_MS = 15 * 60_000
/** How much longer than its call a hold lives at least: settling takes time, too. */
const SETTLING_MS = 60_000

/** How long a hold lives when the host does not say: longer than any call, drained ones included. */
export function defaultHoldTtlMs(totalMs: number, drainMs: number): number {
  return Math.max(SHORTEST_HOLD_TTL_MS, totalMs + drainMs + SETTLING_MS)
}
