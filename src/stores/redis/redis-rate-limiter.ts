import { memoryRateLimiter } from '../memory/memory-rate-limiter.ts'
import type { BucketState, RateLimiter, RateTake } from '../rate-limiter.ts'
import type { RedisLink } from './redis-link.ts'
import { ADJUST, bucketKey, TAKE } from './redis-scripts.ts'

/** Parts of the rate limiter. */
export interface RedisRateLimiterOptions {
  readonly link: RedisLink
  readonly prefix: string
  readonly expectedInstances: number
  /** Returns true for a while after the server recovered, because it may have lost its buckets. */
  readonly mayHaveLostBuckets: () => boolean
}

const MINUTE_MS = 60_000

/**
 * Creates limits shared through the server, with a local share for outages. Each process mirrors the bucket levels in its share,
 * so an outage grants no second burst. If the server returns without data, it is restored from the local share.
 */
export function redisRateLimiter(options: RedisRateLimiterOptions): RateLimiter {
  const { link, prefix, expectedInstances } = options
  const local = memoryRateLimiter()
  const shareOf = (take: RateTake): RateTake => localTake(take, expectedInstances)

  /** Sets the local bucket to the same relative level as the shared one. */
  function assume(take: RateTake, resetMs: number, nowMs: number): void {
    const share = shareOf(take)
    local.assume({ ...share, amount: (resetMs / MINUTE_MS) * share.perMinute }, nowMs)
  }

  function knownLevel(take: RateTake, nowMs: number): number {
    if (!options.mayHaveLostBuckets()) return 0
    const resetMs = local.take([{ ...shareOf(take), amount: 0 }], nowMs).buckets[0]?.resetMs ?? 0
    return (resetMs / MINUTE_MS) * take.perMinute
  }

  return {
    async take(takes, nowMs) {
      if (link.isUp && takes.length > 0) {
        const keys = takes.map((take) => bucketKey(prefix, take.bucket))
        const args = takes.flatMap((take) => [
          `${take.amount}`,
          `${take.perMinute}`,
          `${take.burst ?? take.perMinute}`,
          `${knownLevel(take, nowMs)}`,
        ])
        const reply = await link.call(TAKE, keys, args)
        if (reply !== undefined) {
          const buckets = takes.map(
            (take, index): BucketState => ({
              limit: take.perMinute,
              remaining: reply[1 + index * 2] ?? 0,
              resetMs: reply[2 + index * 2] ?? 0,
            }),
          )
          takes.forEach((take, index) => {
            assume(take, buckets[index]!.resetMs, nowMs)
          })
          const retryAfterMs = reply[0] ?? 0
          return { allowed: retryAfterMs === 0, retryAfterMs, buckets }
        }
      }
      return local.take(takes.map(shareOf), nowMs)
    },

    async adjust(take, nowMs) {
      if (!(take.perMinute > 0)) return
      const key = bucketKey(prefix, take.bucket)
      const reply = link.isUp ? await link.call(ADJUST, [key], [`${take.amount}`, `${take.perMinute}`]) : undefined
      if (reply === undefined) local.adjust(shareOf(take), nowMs)
      else assume(take, reply[0] ?? 0, nowMs)
    },
  }
}

/** Returns the share of a limit that one of several processes may grant: an even part, rounded down, at least one. */
export function localShare(limit: number, expectedInstances: number): number {
  const share = limit / expectedInstances
  return share >= 1 ? Math.floor(share) : Math.min(limit, 1)
}

/** Returns the take in the local share of one process. */
function localTake(take: RateTake, expectedInstances: number): RateTake {
  return {
    ...take,
    perMinute: localShare(take.perMinute, expectedInstances),
    burst: localShare(take.burst ?? take.perMinute, expectedInstances),
  }
}
