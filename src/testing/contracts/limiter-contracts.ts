import type { ConcurrencyLimiter, RateLimiter, RateTake } from '../../stores/rate-limiter.ts'
import type { ResponseCache } from '../../stores/response-cache.ts'
import {
  type ContractClock,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  standingClock,
} from './contract-runner.ts'

/** A rate limiter under test. Set `clock` if it does not use the given `nowMs`. */
export interface RateLimiterSubject extends ContractSubject<RateLimiter> {
  readonly clock?: ContractClock
}

/** Tests each guarantee of {@link RateLimiter}. Limits are small and slow, so that a running clock does not matter. */
export function describeRateLimiter(runner: ContractRunner, subject: RateLimiterSubject): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const clock = subject.clock ?? standingClock()

  describe('rate limiter contract', () => {
    check('grants the whole limit at once and refuses what goes beyond it', async (limiter) => {
      for (let count = 0; count < 6; count++) {
        expect((await limiter.take([requests()], clock.now())).allowed).toEqual(true)
      }
      const refused = await limiter.take([requests()], clock.now())
      expect(refused.allowed).toEqual(false)
      expect(refused.retryAfterMs > 0 && refused.retryAfterMs <= 10_000).toEqual(true)
    })

    check('refills as usual after the clock was set back by an hour', async (limiter) => {
      for (let count = 0; count < 6; count++) await limiter.take([requests()], clock.now())
      await clock.advance(-3_600_000)
      expect((await limiter.take([requests()], clock.now())).allowed).toEqual(false)
      await clock.advance(10_000)
      expect((await limiter.take([requests()], clock.now())).allowed).toEqual(true)
      expect((await limiter.take([requests()], clock.now())).allowed).toEqual(false)
    })

    check('reports limit, what is left and the time until it is full, in the order of the takes', async (limiter) => {
      const { allowed, retryAfterMs, buckets } = await limiter.take([requests(), tokens(40)], clock.now())
      expect({ allowed, retryAfterMs }).toEqual({ allowed: true, retryAfterMs: 0 })
      expect(buckets.map(({ limit, remaining }) => ({ limit, remaining }))).toEqual([
        { limit: 6, remaining: 5 },
        { limit: 60, remaining: 20 },
      ])
      expect(buckets.map(({ resetMs }) => Math.ceil(resetMs / 1000))).toEqual([10, 40])
    })

    check('grants the same take after the time it named', async (limiter) => {
      await limiter.take([tokens(50)], clock.now())
      const refused = await limiter.take([tokens(20)], clock.now())
      expect(refused.allowed).toEqual(false)
      await clock.advance(refused.retryAfterMs)
      expect((await limiter.take([tokens(20)], clock.now())).allowed).toEqual(true)
    })

    check('gives back evenly, not all at once at the end of a minute', async (limiter) => {
      await limiter.take([tokens(60)], clock.now())
      await clock.advance(30_000)
      expect((await limiter.take([tokens(30)], clock.now())).allowed).toEqual(true)
      expect((await limiter.take([tokens(20)], clock.now())).allowed).toEqual(false)
    })

    check('saves up no more than the limit over a long silence', async (limiter) => {
      await limiter.take([requests()], clock.now())
      await clock.advance(600_000)
      for (let count = 0; count < 6; count++) await limiter.take([requests()], clock.now())
      expect((await limiter.take([requests()], clock.now())).allowed).toEqual(false)
    })

    check('grants no more at once than a burst that is smaller than the limit of a minute', async (limiter) => {
      const burst = { ...requests(), burst: 2 }
      expect((await limiter.take([burst], clock.now())).buckets[0]?.remaining).toEqual(1)
      expect((await limiter.take([burst], clock.now())).allowed).toEqual(true)
      const refused = await limiter.take([burst], clock.now())
      expect(refused.allowed).toEqual(false)
      await clock.advance(refused.retryAfterMs)
      expect((await limiter.take([burst], clock.now())).allowed).toEqual(true)
      await clock.advance(600_000)
      for (let count = 0; count < 2; count++) await limiter.take([burst], clock.now())
      expect((await limiter.take([burst], clock.now())).allowed).toEqual(false)
    })

    check('takes from all buckets or from none', async (limiter) => {
      await limiter.take([tokens(60)], clock.now())
      const refused = await limiter.take([requests(), tokens(30)], clock.now())
      expect(refused.allowed).toEqual(false)
      expect(refused.buckets[0]?.remaining).toEqual(6)
      expect((await limiter.take([requests()], clock.now())).buckets[0]?.remaining).toEqual(5)
    })

    check('judges and takes an amount above the whole size as if it were the size', async (limiter) => {
      const large = await limiter.take([tokens(5000)], clock.now())
      expect(large.allowed).toEqual(true)
      expect(large.buckets[0]?.remaining).toEqual(0)
      expect((large.buckets[0]?.resetMs ?? 0) <= 60_000).toEqual(true)
      expect((await limiter.take([tokens(5000)], clock.now())).allowed).toEqual(false)
    })

    check('gives tokens back that were taken by the estimate and not used', async (limiter) => {
      await limiter.take([tokens(60)], clock.now())
      await limiter.adjust(tokens(-50), clock.now())
      expect((await limiter.take([tokens(50)], clock.now())).allowed).toEqual(true)
      expect((await limiter.take([tokens(10)], clock.now())).allowed).toEqual(false)
    })

    check('takes more after the fact without refusing, and makes later takes wait for it', async (limiter) => {
      await limiter.take([tokens(60)], clock.now())
      await limiter.adjust(tokens(60), clock.now())
      await clock.advance(50_000)
      expect((await limiter.take([tokens(1)], clock.now())).allowed).toEqual(false)
      await clock.advance(20_000)
      expect((await limiter.take([tokens(1)], clock.now())).allowed).toEqual(true)
    })

    check('never fills a bucket above its size by giving back', async (limiter) => {
      await limiter.adjust(tokens(-500), clock.now())
      await limiter.take([tokens(60)], clock.now())
      expect((await limiter.take([tokens(20)], clock.now())).allowed).toEqual(false)
    })

    check('keeps buckets apart', async (limiter) => {
      for (let count = 0; count < 6; count++) await limiter.take([requests('key_1')], clock.now())
      expect((await limiter.take([requests('key_2')], clock.now())).allowed).toEqual(true)
    })

    check('grants no more than the limit to many callers at once', async (limiter) => {
      const decisions = await Promise.all(
        Array.from({ length: 100 }, async () => limiter.take([requests()], clock.now())),
      )
      expect(decisions.filter((decision) => decision.allowed).length).toEqual(6)
    })
  })
}

function requests(keyId = 'key_1'): RateTake {
  return { bucket: `requests:${keyId}`, amount: 1, perMinute: 6 }
}

function tokens(amount: number): RateTake {
  return { bucket: 'tokens:key_1', amount, perMinute: 60 }
}

/** A concurrency limiter under test. Set `clock` if it does not use the given `nowMs`. */
export interface ConcurrencyLimiterSubject extends ContractSubject<ConcurrencyLimiter> {
  readonly clock?: ContractClock
}

const LEASE_MS = 60_000
const LIMIT = 2

/** Tests each guarantee of {@link ConcurrencyLimiter}. */
export function describeConcurrencyLimiter(runner: ContractRunner, subject: ConcurrencyLimiterSubject): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const clock = subject.clock ?? standingClock()
  const acquire = async (limiter: ConcurrencyLimiter, leaseId: string, bucket = 'key_1') =>
    limiter.acquire({ bucket, leaseId, limit: LIMIT, expiresAtMs: clock.now() + LEASE_MS }, clock.now())

  const acquireBoth = async (limiter: ConcurrencyLimiter): Promise<void> => {
    for (const leaseId of ['lease_1', 'lease_2']) await acquire(limiter, leaseId)
  }
  /** Returns how many more leases the limiter gives. */
  const freePlaces = async (limiter: ConcurrencyLimiter): Promise<number> => {
    for (let count = 0; ; count++) if (!(await acquire(limiter, `lease_more_${count}`))) return count
  }

  describe('concurrency limiter contract', () => {
    check('gives leases up to the limit and no further', async (limiter) => {
      expect(await freePlaces(limiter)).toEqual(2)
    })

    check('gives a place again once a lease was given back', async (limiter) => {
      await acquireBoth(limiter)
      await limiter.release({ bucket: 'key_1', leaseId: 'lease_1' })
      expect(await freePlaces(limiter)).toEqual(1)
    })

    check('counts a lease id once, however often it is asked for', async (limiter) => {
      await acquire(limiter, 'lease_1')
      expect(await acquire(limiter, 'lease_1')).toEqual(true)
      expect(await acquire(limiter, 'lease_2')).toEqual(true)
      expect(await acquire(limiter, 'lease_1')).toEqual(true)
    })

    check('does not count expired leases, so a dead holder does not block others indefinitely', async (limiter) => {
      await acquireBoth(limiter)
      await clock.advance(LEASE_MS + 1)
      expect(await freePlaces(limiter)).toEqual(2)
    })

    check('keeps a lease that was renewed', async (limiter) => {
      await acquireBoth(limiter)
      await clock.advance(LEASE_MS / 2)
      const renewed = { bucket: 'key_1', leaseId: 'lease_1', expiresAtMs: clock.now() + LEASE_MS }
      expect(await limiter.renew(renewed, clock.now())).toEqual(true)
      await clock.advance(LEASE_MS / 2 + 1)
      expect(await freePlaces(limiter)).toEqual(1)
    })

    check('renews no lease that expired, was given back or never was', async (limiter) => {
      await acquireBoth(limiter)
      await limiter.release({ bucket: 'key_1', leaseId: 'lease_2' })
      await clock.advance(LEASE_MS + 1)
      for (const leaseId of ['lease_1', 'lease_2', 'lease_3']) {
        const renewal = { bucket: 'key_1', leaseId, expiresAtMs: clock.now() + LEASE_MS }
        expect(await limiter.renew(renewal, clock.now())).toEqual(false)
      }
    })

    check('changes nothing by releasing a lease twice or one that never was', async (limiter) => {
      await acquireBoth(limiter)
      await limiter.release({ bucket: 'key_1', leaseId: 'lease_1' })
      await limiter.release({ bucket: 'key_1', leaseId: 'lease_1' })
      await limiter.release({ bucket: 'key_2', leaseId: 'lease_2' })
      expect(await freePlaces(limiter)).toEqual(1)
    })

    check('keeps buckets apart', async (limiter) => {
      await acquireBoth(limiter)
      expect(await acquire(limiter, 'lease_1', 'key_2')).toEqual(true)
    })

    check('gives no more leases than the limit to many callers at once', async (limiter) => {
      const given = await Promise.all(Array.from({ length: 100 }, (_, index) => acquire(limiter, `lease_${index}`)))
      expect(given.filter(Boolean).length).toEqual(LIMIT)
    })
  })
}

/** A response cache under test. Set `clock` if it does not use the given `nowMs`. */
export interface ResponseCacheSubject extends ContractSubject<ResponseCache> {
  readonly clock?: ContractClock
}

const KEEP_MS = 60_000
const LARGE_BYTES = 1024 * 1024

/** One case for each guarantee of {@link ResponseCache}. */
export function describeResponseCache(runner: ContractRunner, subject: ResponseCacheSubject): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const clock = subject.clock ?? standingClock()
  const read = async (cache: ResponseCache, key: string): Promise<number[] | undefined> => {
    const entry = await cache.get(key, clock.now())
    return entry && [...entry]
  }

  describe('response cache contract', () => {
    check('gives nothing for a key that was never set', async (cache) => {
      expect(await read(cache, 'unknown')).toEqual(undefined)
    })

    check('gives the bytes that were set, whatever they are', async (cache) => {
      const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index)
      await cache.set('key_1', everyByte, KEEP_MS, clock.now())
      expect(await read(cache, 'key_1')).toEqual([...everyByte])
      await cache.set('key_2', new Uint8Array(0), KEEP_MS, clock.now())
      expect(await read(cache, 'key_2')).toEqual([])
    })

    check('keeps a mebibyte', async (cache) => {
      const large = new Uint8Array(LARGE_BYTES).fill(7)
      await cache.set('large', large, KEEP_MS, clock.now())
      const kept = await cache.get('large', clock.now())
      expect(kept?.byteLength).toEqual(LARGE_BYTES)
      expect(kept?.every((byte) => byte === 7)).toEqual(true)
    })

    check('keeps what it was given when the giver goes on with a part of a larger buffer', async (cache) => {
      const buffer = new Uint8Array([1, 2, 3, 4, 5])
      await cache.set('key_1', buffer.subarray(1, 3), KEEP_MS, clock.now())
      buffer.fill(9)
      expect(await read(cache, 'key_1')).toEqual([2, 3])
    })

    check('replaces the entry of a key', async (cache) => {
      await cache.set('key_1', Uint8Array.of(1), KEEP_MS, clock.now())
      await cache.set('key_1', Uint8Array.of(2, 2), KEEP_MS, clock.now())
      expect(await read(cache, 'key_1')).toEqual([2, 2])
    })

    check('keeps keys apart', async (cache) => {
      await cache.set('key_1', Uint8Array.of(1), KEEP_MS, clock.now())
      await cache.set('key_2', Uint8Array.of(2), KEEP_MS, clock.now())
      expect(await read(cache, 'key_1')).toEqual([1])
      expect(await read(cache, 'key_2')).toEqual([2])
    })

    check('gives an entry for as long as it is to be kept, and not longer', async (cache) => {
      await cache.set('short', Uint8Array.of(1), KEEP_MS, clock.now())
      await cache.set('long', Uint8Array.of(2), 3 * KEEP_MS, clock.now())
      await clock.advance(KEEP_MS - 5_000)
      expect(await read(cache, 'short')).toEqual([1])
      await clock.advance(5_001)
      expect(await read(cache, 'short')).toEqual(undefined)
      expect(await read(cache, 'long')).toEqual([2])
    })

    check('counts how often a scope was cleared, each for itself, at once', async (cache) => {
      expect(await cache.generation('acct_1', clock.now())).toEqual(0)
      await cache.clear('acct_1', clock.now())
      expect(await cache.generation('acct_1', clock.now())).toEqual(1)
      await cache.clear('acct_1', clock.now())
      expect(await cache.generation('acct_1', clock.now())).toEqual(2)
      expect(await cache.generation('acct_2', clock.now())).toEqual(0)
      expect(await cache.generation('', clock.now())).toEqual(0)
    })
  })
}
