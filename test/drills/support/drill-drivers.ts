import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { Ledger } from '../../../src/stores/ledger.ts'
import { memoryConcurrencyLimiter, memoryRateLimiter } from '../../../src/stores/memory/memory-limiters.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import type { ConcurrencyLimiter, RateLimiter } from '../../../src/stores/rate-limiter.ts'
import type { Resolution } from '../../../src/stores/resolution.ts'
import type { StageGate } from './stage-gate.ts'

/** Drivers in memory that pass through the gate before they act, and count the gateway's reservations and releases. */
export interface DrillDrivers {
  readonly store: GatewayStore
  readonly concurrencyLimiter: ConcurrencyLimiter
  readonly rateLimiter: RateLimiter
  /** How each hold ended; several ends, or none, are what the drills look for. */
  readonly holds: ReadonlyMap<string, readonly string[]>
  readonly openLeases: ReadonlySet<string>
  /** Tokens taken and not given back. */
  readonly tokensTaken: number
}

export function drillDrivers(gate: StageGate): DrillDrivers {
  const inner = memoryStore()
  const holds = new Map<string, string[]>()
  const note = (holdId: string, how: string, resolution: Resolution): Resolution => {
    if (resolution.resolved) holds.get(holdId)?.push(how)
    return resolution
  }
  const ledger: Ledger = {
    ...inner.ledger,
    async reserve(reservation, nowMs) {
      await gate.reach('reserve')
      const result = await inner.ledger.reserve(reservation, nowMs)
      if (result.status === 'held') holds.set(reservation.holdId, [])
      return result
    },
    async settle(settlement, nowMs) {
      await gate.reach('settle')
      return note(settlement.holdId, 'settled', await inner.ledger.settle(settlement, nowMs))
    },
    async void(holdId, nowMs) {
      await gate.reach('settle')
      return note(holdId, 'voided', await inner.ledger.void(holdId, nowMs))
    },
  }
  const leases = memoryConcurrencyLimiter()
  const openLeases = new Set<string>()
  const rates = memoryRateLimiter()
  let tokensTaken = 0
  return {
    holds,
    openLeases,
    get tokensTaken() {
      return tokensTaken
    },
    store: {
      ...inner,
      ledger,
      keys: {
        ...inner.keys,
        async findByHash(hash) {
          await gate.reach('authenticate')
          return inner.keys.findByHash(hash)
        },
      },
    },
    concurrencyLimiter: {
      ...leases,
      async acquire(lease, nowMs) {
        await gate.reach('acquire lease')
        const isAcquired = await leases.acquire(lease, nowMs)
        if (isAcquired) openLeases.add(lease.leaseId)
        return isAcquired
      },
      async release(lease) {
        await gate.reach('release lease')
        await leases.release(lease)
        openLeases.delete(lease.leaseId)
      },
    },
    rateLimiter: {
      async take(takes, nowMs) {
        await gate.reach('take rates')
        const decision = rates.take(takes, nowMs)
        for (const { bucket, amount } of takes) if (bucket.startsWith('tokens:')) tokensTaken += amount
        return decision
      },
      async adjust(take, nowMs) {
        await gate.reach('adjust rates')
        rates.adjust(take, nowMs)
        tokensTaken += take.amount
      },
    },
  }
}
