import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { type Circuit, circuitOf, type OpenReason } from '../routing/circuit-breaker.ts'
import type { RouteTable } from '../routing/route-table.ts'

/** Circuit and load of one of the operator's keys at a vendor. The key itself is not included. */
export interface KeyReport {
  /** Credential id: the vendor's id and 16 hexadecimal digits of the key's SHA-256. */
  readonly credentialId: string
  /** Share of the vendor's calls. */
  readonly weight: number
  /** State of its circuit: `closed`, `open` (no calls for a while), or `half-open` (the next request probes it). */
  readonly circuit: Circuit
  /** Why the circuit is or was last open; `null` if it has not opened since the last success. */
  readonly reason: OpenReason | null
  /** Time in Unix milliseconds until which it stays open, or `null` if it is closed. */
  readonly openUntilMs: number | null
  /** Failures since the last success. */
  readonly failures: number
  readonly inFlight: number
  /** Moving average of the time to a whole answer or to a stream's first content, in milliseconds; null before the first. */
  readonly latencyMs: number | null
  /** Models, by public id, whose own circuit behind this key is not closed. */
  readonly openModels: readonly string[]
}

export interface VendorReport {
  /** Id of the vendor. */
  readonly vendor: string
  /** Scheme, host and port: `https://api.openai.com`. */
  readonly origin: string
  /** Calls in progress, over all keys. */
  readonly inFlight: number
  /** Adaptive concurrency limit; above it, the vendor is skipped while others have room. */
  readonly limit: number
  /** Reports of its keys. */
  readonly keys: readonly KeyReport[]
}

/** Circuits, load and latencies of the vendors in this process. */
export interface RouteReport {
  /** Retries available now. */
  readonly retriesLeft: number
  /** Vendors in the order of the option `vendors`. */
  readonly vendors: readonly VendorReport[]
}

/** Reports on every vendor and key. */
export function routeReport({ routes, retryBudget, clock }: PipelineContext): RouteReport {
  const nowMs = clock.now()
  const openModels = modelsByKey(routes, nowMs)
  const vendors = Array.from(routes.vendors, ({ vendor, keys, load }): VendorReport => {
    const { inFlight, limit } = load
    return {
      vendor: vendor.id,
      origin: vendor.origin,
      inFlight,
      limit,
      keys: keys.map((key): KeyReport => {
        const { credentialId, weight, circuit, latency } = key
        const { averageMs } = latency
        return {
          credentialId,
          weight,
          circuit: circuitOf(circuit, nowMs),
          reason: circuit.reason ?? null,
          openUntilMs: circuit.openUntilMs === 0 ? null : circuit.openUntilMs,
          failures: circuit.failures,
          inFlight: key.inFlight,
          latencyMs: averageMs === undefined ? null : Math.round(averageMs),
          openModels: openModels.get(credentialId) ?? [],
        }
      }),
    }
  })
  return { retriesLeft: retryBudget.left, vendors }
}

function modelsByKey(routes: RouteTable, nowMs: number): ReadonlyMap<string, readonly string[]> {
  const byKey = new Map<string, string[]>()
  for (const { key, model, circuit } of routes.candidates()) {
    if (circuitOf(circuit, nowMs) === 'closed') continue
    const models = byKey.get(key.credentialId) ?? []
    if (!models.includes(model.id)) models.push(model.id)
    byKey.set(key.credentialId, models)
  }
  return byKey
}
