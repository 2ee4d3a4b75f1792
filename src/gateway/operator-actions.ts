import { createHash } from 'node:crypto'
import type { OperatorAction } from '../core/events.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { createWithinBounds, replayOf } from '../pipeline/idempotency-key.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import { IDEMPOTENCY_RETENTION_MS, type IdempotencyClaim, type StoredAnswer } from '../stores/idempotency-store.ts'
import { administer } from './administer.ts'

/** Change that is made once, however often it is sent. */
export interface RepeatableChange {
  /** Sender of the change. Keys of different operators are independent. */
  readonly operator: string
  readonly key: string
  /** Content of the request as text; it must be equal for the same key. */
  readonly request: string
}

/** Result of a change, made now or when it was sent first. */
export interface MadeChange {
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
  once(change: RepeatableChange, make: () => Promise<StoredAnswer>): Promise<MadeChange>
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
