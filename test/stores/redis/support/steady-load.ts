import type { RedisLimits } from '../../../../src/stores/redis/redis-limits.ts'

/** Results of the callers during the load. */
export interface LoadReport {
  readonly admitted: number
  readonly asked: number
  /** Requests that were asked and never decided. */
  readonly hung: number
  /** Time that 99 of 100 requests waited at most for their limits, giving back included, milliseconds. */
  readonly p99Ms: number
  readonly durationMs: number
}

/** A load that runs until it is stopped. */
export interface SteadyLoad {
  stop(): Promise<LoadReport>
}

const TICK_MS = 5
const LEASE_MS = 60_000

/**
 * Asks as the gateway does, a lease, then one request from the bucket, then the lease back, at a steady rate whatever the answers.
 * `perMinute` and `burst` describe the bucket; `perTick` requests are asked every 5 ms.
 */
export function steadyLoad(
  limits: RedisLimits,
  options: { readonly perMinute: number; readonly burst: number; readonly perTick: number },
): SteadyLoad {
  const waits: number[] = []
  const underWay = new Set<Promise<void>>()
  const startMs = Date.now()
  let asked = 0
  let admitted = 0

  async function ask(): Promise<void> {
    const lease = { bucket: 'concurrency:key_1', leaseId: `lease_${asked++}` }
    const askedAtMs = performance.now()
    const nowMs = Date.now()
    const hasPlace = await limits.concurrencyLimiter.acquire(
      { ...lease, limit: 10_000, expiresAtMs: nowMs + LEASE_MS },
      nowMs,
    )
    const { perMinute, burst } = options
    const { allowed } = await limits.rateLimiter.take(
      [{ bucket: 'requests:key_1', amount: 1, perMinute, burst }],
      nowMs,
    )
    if (hasPlace && allowed) admitted += 1
    await limits.concurrencyLimiter.release(lease)
    waits.push(performance.now() - askedAtMs)
  }

  const ticks = setInterval(() => {
    for (let count = 0; count < options.perTick; count++) {
      const asking: Promise<void> = ask().finally(() => underWay.delete(asking))
      underWay.add(asking)
    }
  }, TICK_MS)

  return {
    async stop() {
      clearInterval(ticks)
      const durationMs = Date.now() - startMs
      const patience = new Promise((resolve) => setTimeout(resolve, 1_000).unref())
      await Promise.race([Promise.all(underWay), patience])
      waits.sort((left, right) => left - right)
      const p99Ms = waits[Math.floor(waits.length * 0.99)] ?? 0
      return { admitted, asked, hung: underWay.size, p99Ms, durationMs }
    },
  }
}
