import type { ConcurrencyLimiter } from '../../stores/rate-limiter.ts'
import {
  type ContractClock,
  type ContractRunner,
  type ContractSubject,
  standingClock,
  withDriver,
} from './contract-runner.ts'

/** A concurrency limiter under test; `clock` when it does not go by the `nowMs` it is given. */
export interface ConcurrencyLimiterSubject extends ContractSubject<ConcurrencyLimiter> {
  readonly clock?: ContractClock
}

const LEASE_MS = 60_000
const LIMIT = 2

/** One case for each guarantee of {@link ConcurrencyLimiter}. */
export function describeConcurrencyLimiter(
  { describe, it, expect }: ContractRunner,
  subject: ConcurrencyLimiterSubject,
): void {
  const clock = subject.clock ?? standingClock()
  const check = (name: string, body: (limiter: ConcurrencyLimiter) => Promise<void>) =>
    it(name, () => withDriver(subject, body))
  const acquire = async (limiter: ConcurrencyLimiter, leaseId: string, bucket = 'key_1') =>
    limiter.acquire({ bucket, leaseId, limit: LIMIT, expiresAtMs: clock.now() + LEASE_MS }, clock.now())

  describe('concurrency limiter contract', () => {
    check('gives leases up to the limit and no further', async (limiter) => {
      expect(await acquire(limiter, 'lease_1')).toEqual(true)
      expect(await acquire(limiter, 'lease_2')).toEqual(true)
      expect(await acquire(limiter, 'lease_3')).toEqual(false)
    })

    check('gives a place again once a lease was given back', async (limiter) => {
      await acquire(limiter, 'lease_1')
      await acquire(limiter, 'lease_2')
      await limiter.release({ bucket: 'key_1', leaseId: 'lease_1' })
      expect(await acquire(limiter, 'lease_3')).toEqual(true)
      expect(await acquire(limiter, 'lease_4')).toEqual(false)
    })

    check('counts a lease id once, however often it is asked for', async (limiter) => {
      await acquire(limiter, 'lease_1')
      expect(await acquire(limiter, 'lease_1')).toEqual(true)
      expect(await acquire(limiter, 'lease_2')).toEqual(true)
      expect(await acquire(limiter, 'lease_1')).toEqual(true)
    })

    check('does not count leases that expired, so a dead holder blocks nobody for ever', async (limiter) => {
      await acquire(limiter, 'lease_1')
      await acquire(limiter, 'lease_2')
      await clock.advance(LEASE_MS + 1)
      expect(await acquire(limiter, 'lease_3')).toEqual(true)
      expect(await acquire(limiter, 'lease_4')).toEqual(true)
      expect(await acquire(limiter, 'lease_5')).toEqual(false)
    })

    check('keeps a lease that was renewed', async (limiter) => {
      await acquire(limiter, 'lease_1')
      await acquire(limiter, 'lease_2')
      await clock.advance(LEASE_MS / 2)
      const renewed = { bucket: 'key_1', leaseId: 'lease_1', expiresAtMs: clock.now() + LEASE_MS }
      expect(await limiter.renew(renewed, clock.now())).toEqual(true)
      await clock.advance(LEASE_MS / 2 + 1)
      expect(await acquire(limiter, 'lease_3')).toEqual(true)
      expect(await acquire(limiter, 'lease_4')).toEqual(false)
    })

    check('renews no lease that expired, was given back or never was', async (limiter) => {
      await acquire(limiter, 'lease_1')
      await acquire(limiter, 'lease_2')
      await limiter.release({ bucket: 'key_1', leaseId: 'lease_2' })
      await clock.advance(LEASE_MS + 1)
      for (const leaseId of ['lease_1', 'lease_2', 'lease_3']) {
        const renewal = { bucket: 'key_1', leaseId, expiresAtMs: clock.now() + LEASE_MS }
        expect(await limiter.renew(renewal, clock.now())).toEqual(false)
      }
    })

    check('changes nothing by releasing a lease twice or one that never was', async (limiter) => {
      await acquire(limiter, 'lease_1')
      await acquire(limiter, 'lease_2')
      await limiter.release({ bucket: 'key_1', leaseId: 'lease_1' })
      await limiter.release({ bucket: 'key_1', leaseId: 'lease_1' })
      await limiter.release({ bucket: 'key_2', leaseId: 'lease_2' })
      expect(await acquire(limiter, 'lease_3')).toEqual(true)
      expect(await acquire(limiter, 'lease_4')).toEqual(false)
    })

    check('keeps buckets apart', async (limiter) => {
      await acquire(limiter, 'lease_1')
      await acquire(limiter, 'lease_2')
      expect(await acquire(limiter, 'lease_1', 'key_2')).toEqual(true)
    })

    check('gives no more leases than the limit to many callers at once', async (limiter) => {
      const given = await Promise.all(Array.from({ length: 100 }, (_, index) => acquire(limiter, `lease_${index}`)))
      expect(given.filter(Boolean).length).toEqual(LIMIT)
    })
  })
}
