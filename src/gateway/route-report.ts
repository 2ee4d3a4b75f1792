import { type EjectionReason, type Standing, standingOf } from '../routing/health.ts'
import type { RouteTable } from '../routing/route-table.ts'
import type { StageContext } from '../stages/stage-context.ts'

/** One of the operator's keys at a vendor, and how it does. The key itself is not in it. */
export interface KeyReport {
  /** Names the key: the vendor's id and 16 hexadecimal digits of the key's SHA-256. */
  readonly account: string
  /** Share of the vendor's calls. */
  readonly weight: number
  /** `ready`, `ejected` (left alone for a while), or `probe` (the next request finds out whether it is well again). */
  readonly state: Standing
  /** Why it is, or was last, left alone; null when nothing is known against it. */
  readonly reason: EjectionReason | null
  /** Unix milliseconds; null when it is not left alone. */
  readonly ejectedUntilMs: number | null
  /** Failures since the last success. */
  readonly failures: number
  /** Calls under way. */
  readonly inFlight: number
  /** Moving average of the time to a whole answer or to a stream's first content, in milliseconds; null before the first. */
  readonly latencyMs: number | null
  /** Models, by public id, that are left alone behind this key alone. */
  readonly ejectedModels: readonly string[]
}

/** One vendor with its keys. */
export interface VendorReport {
  readonly vendor: string
  readonly origin: string
  /** Calls under way, over all keys. */
  readonly inFlight: number
  /** How many it bears at once, as far as is known; above it, it is passed over while others have room. */
  readonly limit: number
  readonly keys: readonly KeyReport[]
}

/** How the vendors do, as seen from this process. */
export interface RouteReport {
  /** Retries that may be made now. */
  readonly retriesLeft: number
  readonly vendors: readonly VendorReport[]
}

/** Reports on every vendor and key. */
export function routeReport({ routes, retryBudget, clock }: StageContext): RouteReport {
  const nowMs = clock.now()
  const ejectedModels = modelsByKey(routes, nowMs)
  const vendors = Array.from(routes.vendors, ({ vendor, keys, load }): VendorReport => {
    const { inFlight, limit } = load
    return {
      vendor: vendor.id,
      origin: vendor.origin,
      inFlight,
      limit,
      keys: keys.map((key): KeyReport => {
        const { account, weight, health, latency } = key
        const { averageMs } = latency
        return {
          account,
          weight,
          state: standingOf(health, nowMs),
          reason: health.reason ?? null,
          ejectedUntilMs: health.ejectedUntilMs === 0 ? null : health.ejectedUntilMs,
          failures: health.failures,
          inFlight: key.inFlight,
          latencyMs: averageMs === undefined ? null : Math.round(averageMs),
          ejectedModels: ejectedModels.get(account) ?? [],
        }
      }),
    }
  })
  return { retriesLeft: retryBudget.left, vendors }
}

function modelsByKey(routes: RouteTable, nowMs: number): ReadonlyMap<string, readonly string[]> {
  const byKey = new Map<string, string[]>()
  for (const { key, model, health } of routes.candidates()) {
    if (standingOf(health, nowMs) === 'ready') continue
    const models = byKey.get(key.account) ?? []
    if (!models.includes(model.id)) models.push(model.id)
    byKey.set(key.account, models)
  }
  return byKey
}
