import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../stores/idempotency-store.ts'
import type { Principal } from '../stores/principal.ts'
import type { Creation } from '../stores/stored-bounds.ts'
import { CallRecord } from './call-record.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'

/**
 * Claims the key of a request without a hold. If its process dies, the key becomes free when none of its calls can be in flight
 * any more, like the key of a hold.
 */
export function claimKey(
  { store, clock, holdTtlMs }: PipelineContext,
  claim: IdempotencyClaim,
): MaybePromise<ClaimResult> {
  const nowMs = clock.now()
  return store.idempotency.claim({ ...claim, pendingUntilMs: nowMs + holdTtlMs }, nowMs)
}

/** Data that a request is about to store. */
export interface PlannedStorage {
  readonly accountId: string
  /** The Idempotency-Key to claim, if any. */
  readonly claim: IdempotencyClaim | undefined
  /** Everything else, in the order of `STORED_KINDS`. */
  readonly creations?: readonly Creation[]
}

/**
 * Stores data, and claims its key, if the account has room. Without room, a known key still returns its stored result.
 * @throws GatewayError `storage_limit_reached`, and the errors of `create` and the store.
 */
export async function createWithinBounds<Value>(
  context: PipelineContext,
  { accountId, claim, creations = [] }: PlannedStorage,
  create: () => MaybePromise<Value>,
): Promise<Value | ClaimResult> {
  const all: readonly Creation[] = claim === undefined ? creations : [{ kind: 'idempotencyKeys' }, ...creations]
  try {
    return await context.storedBounds.add(accountId, all, create)
  } catch (error) {
    if (claim === undefined || !GatewayError.isInstance(error) || error.code !== 'storage_limit_reached') throw error
    const found = await claimKey(context, claim)
    if (found.status !== 'claimed') return found
    await context.store.idempotency.release(claim)
    throw error
  }
}

/**
 * Returns the answer of an earlier request with the same key.
 * @throws GatewayError `idempotency_in_flight` and `idempotency_mismatch`.
 */
export function replayOf(result: Exclude<ClaimResult, { status: 'claimed' }>): StoredAnswer {
  if (result.status === 'in_flight') throw new GatewayError('idempotency_in_flight', { retryAfterSeconds: 1 })
  if (result.status === 'mismatch') throw new GatewayError('idempotency_mismatch')
  return result.answer
}

/** Stores an answer for repeated requests. If it is too late to be stored, the operator is notified. */
export async function completeKey(
  context: PipelineContext,
  claim: IdempotencyClaim,
  answer: StoredAnswer,
): Promise<void> {
  const { store, clock } = context
  if (await store.idempotency.complete(claim, answer, clock.now())) return
  const error = new Error('an Idempotency-Key was freed before the answer arrived: the answer is not stored')
  reportFault(context, claim.claimedBy, 'idempotency', error)
}

/** Request of the gateway to itself. */
export interface InnerCall {
  readonly endpoint: Endpoint
  readonly principal: Principal
  readonly requestId: string
  /** JSON text. */
  readonly body: string
  /** Discards the answer by default. */
  readonly sink?: ByteSink
  readonly answerId?: string
}

/** Creates the record of a request of the gateway to itself. */
export function innerCall(
  { clock }: Pick<PipelineContext, 'clock'>,
  { endpoint, principal, requestId, body, sink = DISCARD_SINK, answerId }: InnerCall,
): CallRecord {
  return new CallRecord({
    request: innerRequest(endpoint.path, Buffer.from(body)),
    sink,
    requestId,
    startedAtMs: clock.now(),
    called: endpoint,
    vouchedPrincipal: principal,
    routeOverride: undefined,
    answerId,
  })
}

/** Creates the record of a request whose acceptance and end have their own events. */
export function laterCall(context: PipelineContext, call: InnerCall): CallRecord {
  const record = innerCall(context, call)
  record.observation = context.observers?.later(record.startedAtMs)
  record.announced()
  return record
}

/** Request of the gateway to itself: JSON, without other headers. */
export function innerRequest(path: string, body: Uint8Array): GatewayRequest {
  return {
    method: 'POST',
    path,
    query: '',
    header: (name) => (name === 'content-type' ? 'application/json' : undefined),
    readBody: (_limitBytes, listener) => listener(undefined, [body]),
  }
}

/** Discards an answer. */
export const DISCARD_SINK: ByteSink = {
  closed: false,
  head: () => undefined,
  write: () => true,
  end: () => undefined,
  destroy: () => undefined,
  onDrain: () => undefined,
  onClose: () => undefined,
}

/** Caller's side of a request of the gateway to itself. Stores the answer, and can disconnect like any caller. */
export class InnerCaller implements ByteSink {
  readonly #chunks: Uint8Array[] = []
  #status = 0
  #hasLeft = false
  #onLeft: (() => void) | undefined

  get closed(): boolean {
    return this.#hasLeft
  }

  /** HTTP status, or 0 without an answer. */
  get status(): number {
    return this.#status
  }

  /** The body of the answer. */
  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8')
  }

  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.#onLeft?.()
  }

  head(status: number): void {
    this.#status = status
  }

  write(bytes: Uint8Array | string): boolean {
    this.#chunks.push(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
    return true
  }

  end(bytes?: Uint8Array | string): void {
    if (bytes !== undefined) this.write(bytes)
  }

  destroy(): void {}

  onDrain(): void {}

  onClose(listener: () => void): void {
    this.#onLeft = listener
    if (this.#hasLeft) listener()
  }
}
