import { createHash } from 'node:crypto'
import { GatewayError } from '../core/errors.ts'
import type { OperatorAction } from '../core/events.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { createWithinBounds, replayOf } from '../pipeline/idempotent-request.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import {
  type Circuit,
  CLOSED,
  callsInFlight,
  circuitOf,
  ejected,
  type OpenReason,
  type RouteTable,
  type VendorKey,
} from '../routing/candidate.ts'
import { IDEMPOTENCY_RETENTION_MS, type IdempotencyClaim, type StoredAnswer } from '../stores/idempotency-store.ts'
import { administer } from './audit.ts'

/** Change that is made once, however often it is sent. */
export interface RepeatableChange {
  /** Sender of the change. Keys of different operators are independent. */
  readonly operator: string
  readonly key: string
  /** Content of the request as text; it must be equal for the same key. */
  readonly request: string
}

/** Result of a change, made now or when it was sent first. */
export interface AppliedChange {
  readonly answer: StoredAnswer
  readonly isReplay: boolean
}

/** Operations for handlers alongside the gateway that make changes for an operator. */
export interface OperatorActions {
  /**
   * Makes a change once within 24 hours, in all processes of the store. A failed change may be sent again with the same key.
   * @param make Makes the change and returns the answer that is stored for repeated requests; it must contain no secret.
   * @throws GatewayError `idempotency_in_flight` while the first is not answered, `idempotency_mismatch` if the key was used with
   *   another request, `storage_limit_reached` beyond `accountStorage.idempotencyKeys` of one operator, `store_unavailable`, and
   *   whatever `make` throws.
   */
  once(change: RepeatableChange, make: () => Promise<StoredAnswer>): Promise<AppliedChange>
  /** Reports a change to the host, by the event `operator-action`. */
  report(action: OperatorAction): void
  /**
   * Reports a fault after a change was made, by the event `internal-error`.
   * @param line Logs the fault. Faults of a store that does not answer are counted instead.
   */
  reportFault(error: unknown, line: () => void): void
  /**
   * Notes a request that failed because of the store.
   * @param line Logs the failure. Failures of a store that does not answer are counted instead.
   */
  requestFailed(error: unknown, line: () => void): void
}

/** Creates the operator actions of a gateway. `ready` resolves once its store can be used. */
export function operatorActionsOf(context: PipelineContext, ready: () => Promise<void>): OperatorActions {
  const { clock } = context
  const { idempotency } = context.store
  const attempt = async (call: () => MaybePromise<unknown>): Promise<void> => {
    await administer(ready, call).catch((error: unknown) => reportFault(context, undefined, 'operator', error))
  }
  return {
    report: (action) => emit(context, { type: 'operator-action', ...action }),
    reportFault(error, line) {
      context.storeOutage.failed(error, line)
      emit(context, { type: 'internal-error', requestId: undefined, where: 'operator', error })
    },
    requestFailed: (error, line) => context.storeOutage.failed(error, line, true),
    async once({ operator, key, request }, make) {
      const nowMs = clock.now()
      // No account has an id with a space in it.
      const accountId = `operator ${operator}`
      const claim: IdempotencyClaim = {
        accountId,
        key,
        fingerprint: createHash('sha256').update(request).digest('hex'),
        // The claim also stays if the process dies: it is then unknown whether the change was made, and most changes must not be made
        // twice.
        expiresAtMs: nowMs + IDEMPOTENCY_RETENTION_MS,
      }
      const result = await administer(ready, () =>
        createWithinBounds(context, { accountId, claim }, () => idempotency.claim(claim, nowMs)),
      )
      if (result.status !== 'claimed') return { answer: replayOf(result), isReplay: true }
      const answer = await make().catch(async (error: unknown) => {
        await attempt(() => idempotency.release(claim))
        throw error
      })
      // The change is made either way, and its result may contain a secret that is shown once.
      await attempt(() => idempotency.complete(claim, answer, clock.now()))
      return { answer, isReplay: false }
    },
  }
}

/** Options of `eject`. */
export interface EjectOptions {
  /** How long the key is not used, in milliseconds: above 0, at most 30 days. Default one hour. */
  readonly forMs?: number | undefined
}

const EJECT_OPTIONS = memberNames<EjectOptions>()('forMs')

/**
 * Operator's keys at the vendors, as this process uses them. Other processes are not notified. Both methods throw a GatewayError
 * `invalid_request` for a credential id that `gateway.routes()` does not contain.
 */
export interface VendorKeys {
  /**
   * Opens the circuit of a key manually: for this time, other keys and vendors take precedence; then one request probes the key. If
   * it is the only one left, it is still used.
   * @returns the end of that time in Unix milliseconds.
   */
  eject(credentialId: string, options?: EjectOptions): number
  /** Closes the circuit of a key, whatever opened it, and the circuits of its models. */
  restore(credentialId: string): void
}

const DEFAULT_EJECTION_MS = 60 * 60_000
const MAX_EJECTION_MS = 30 * 24 * 60 * 60_000

/** Creates the administration of a gateway's vendor keys. */
export function vendorKeysOf(context: PipelineContext): VendorKeys {
  const { routes, clock } = context
  return {
    eject(credentialId, options = {}) {
      checkMembers(options, EJECT_OPTIONS, 'vendorKeys.eject')
      const { forMs = DEFAULT_EJECTION_MS } = options
      const key = keyOf(context, credentialId)
      if (!(forMs > 0 && forMs <= MAX_EJECTION_MS)) {
        const message = `forMs must be above 0 and at most ${MAX_EJECTION_MS}, not ${forMs}`
        throw new GatewayError('invalid_request', { message, param: 'forMs' })
      }
      key.circuit = ejected(key.circuit, clock.now(), forMs)
      const { openUntilMs: untilMs } = key.circuit
      const opened = { vendor: key.vendorId, credentialId, model: undefined, reason: 'operator', untilMs } as const
      emit(context, { type: 'circuit-opened', ...opened })
      return untilMs
    },
    restore(credentialId) {
      const key = keyOf(context, credentialId)
      const isOpen = key.circuit !== CLOSED
      key.circuit = CLOSED
      for (const candidate of routes.candidates()) if (candidate.key === key) candidate.restore()
      if (isOpen) emit(context, { type: 'circuit-closed', vendor: key.vendorId, credentialId, model: undefined })
    },
  }
}

function keyOf({ routes }: PipelineContext, credentialId: string): VendorKey {
  for (const { keys } of routes.vendors) {
    const key = keys.find((candidate) => candidate.credentialId === credentialId)
    if (key !== undefined) return key
  }
  const message = `no vendor has a key with the credential id ${JSON.stringify(credentialId)}`
  throw new GatewayError('invalid_request', { message, param: 'credentialId' })
}

/** Circuit and calls in progress of one of the operator's keys at a vendor. The key itself is not included. */
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
  /** Reports of its keys. */
  readonly keys: readonly KeyReport[]
}

/** Circuits, calls in progress and latencies of the vendors in this process. */
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
  const vendors = Array.from(routes.vendors, (routed): VendorReport => {
    const { vendor, keys } = routed
    return {
      vendor: vendor.id,
      origin: vendor.origin,
      inFlight: callsInFlight(routed),
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
