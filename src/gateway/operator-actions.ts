import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { OperatorAction } from '../core/events.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { replayOf } from '../pipeline/idempotency-key.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import { IDEMPOTENCY_RETENTION_MS, type IdempotencyClaim, type StoredAnswer } from '../stores/idempotency-store.ts'
import { administer } from './administer.ts'

/** A change that is made once, however often it is sent. */
export interface RepeatableChange {
  /** Who sends it; keys of different operators are different. */
  readonly operator: string
  /** The Idempotency-Key. */
  readonly key: string
  /** What is sent, as text: with the same key it must be the same. */
  readonly request: string
}

/** What a change gave: now, or when it was sent first. */
export interface MadeChange {
  readonly answer: StoredAnswer
  readonly isReplay: boolean
}

/** What handlers beside the gateway need that change things in an operator's name. */
export interface OperatorActions {
  /**
   * Makes a change once within 24 hours, in all processes of the store. One that fails may be sent again with the same key.
   * @param make gives what is kept for those who send it again; nothing secret may be in it.
   * @throws GatewayError `idempotency_in_flight` while the first is not answered, `idempotency_mismatch` when the key was used
   *   with another request, `store_unavailable`, and what `make` throws.
   */
  once(change: RepeatableChange, make: () => Promise<StoredAnswer>): Promise<MadeChange>
  /** Tells the host of a change, by the event `operator-action`. */
  report(action: OperatorAction): void
}

/** Listeners for changes, and for faults that do not make a change fail. */
export interface OperatorListeners {
  readonly report: (action: OperatorAction) => void
  readonly onFault: (error: unknown) => void
}

/** Makes them for a store. `ready` resolves once it can be used. */
export function operatorActionsOf(
  { idempotency }: GatewayStore,
  clock: Clock,
  ready: () => Promise<void>,
  { report, onFault }: OperatorListeners,
): OperatorActions {
  const attempt = async (call: () => MaybePromise<unknown>): Promise<void> => {
    await administer(ready, call).catch(onFault)
  }
  return {
    report,
    async once({ operator, key, request }, make) {
      const nowMs = clock.now()
      const claim: IdempotencyClaim = {
        // No account has an id with a space in it.
        accountId: `operator ${operator}`,
        key,
        fingerprint: createHash('sha256').update(request).digest('hex'),
        // Not sooner if the process dies: whether the change was made is not known then, and most are not to be made twice.
        expiresAtMs: nowMs + IDEMPOTENCY_RETENTION_MS,
      }
      const result = await administer(ready, () => idempotency.claim(claim, nowMs))
      if (result.status !== 'claimed') return { answer: replayOf(result), isReplay: true }
      const answer = await make().catch(async (error: unknown) => {
        await attempt(() => idempotency.release(claim))
        throw error
      })
      // The change is made either way, and may have given what is shown once.
      await attempt(() => idempotency.complete(claim, answer, clock.now()))
      return { answer, isReplay: false }
    },
  }
}
