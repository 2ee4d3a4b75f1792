import type { RateTake } from '../rate-limiter.ts'

/** What one of several processes may grant by itself: an even part, rounded down, at least one. */
export function localShare(limit: number, expectedInstances: number): number {
  const share = limit / expectedInstances
  return share >= 1 ? Math.floor(share) : Math.min(limit, 1)
}

/** The take as one process judges it by itself. */
export function localTake(take: RateTake, expectedInstances: number): RateTake {
  return {
    ...take,
    perMinute: localShare(take.perMinute, expectedInstances),
    burst: localShare(take.burst ?? take.perMinute, expectedInstances),
  }
}
