import { GatewayError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../stores/idempotency-store.ts'
import type { Creation } from '../stores/stored-bounds.ts'
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
