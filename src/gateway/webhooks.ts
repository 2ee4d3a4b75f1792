import type { Clock } from '../core/clock.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { WebhookDelivery } from '../stores/webhook-store.ts'
import { newWebhookSecret } from '../tasks/webhook-signature.ts'
import { administer, checkOverlap } from './administer.ts'

/** Administration of webhooks, for the host's own code. Every method throws a GatewayError. */
export interface Webhooks {
  /**
   * Gives an account a secret of its own, in place of the gateway's `webhookSecret`.
   * @param options `overlapMs`: how long the account's older secrets sign beside it; default one day, 0 ends them at once.
   * @returns the new secret, `whsec_…`, for the receiver.
   * @throws GatewayError `invalid_request` for a negative `overlapMs`.
   */
  rotateSecret(accountId: string, options?: { readonly overlapMs?: number }): Promise<string>
  /** The messages about a task of the account with their newest 50 attempts, oldest first; empty for an unknown task. */
  deliveries(accountId: string, taskId: string): Promise<readonly WebhookDelivery[]>
  /** Sends a message again, whatever became of it; false when the account has none of that id. */
  resend(accountId: string, deliveryId: string): Promise<boolean>
}

/** How long older secrets sign beside the one that replaces them. */
export const DEFAULT_SECRET_OVERLAP_MS = 24 * 60 * 60 * 1000

/**
 * Makes the administration of a store's webhooks. `ready` resolves once the store can be used; `wake` tells the deliverer
 * of this process, if there is one, that a message is due. Others find it within seconds.
 */
export function webhooksOf(store: GatewayStore, clock: Clock, ready: () => Promise<void>, wake?: () => void): Webhooks {
  return {
    rotateSecret(accountId, { overlapMs = DEFAULT_SECRET_OVERLAP_MS } = {}) {
      return administer(ready, async () => {
        checkOverlap(overlapMs)
        const secret = newWebhookSecret()
        await store.webhooks.replaceSecret(accountId, secret, clock.now() + overlapMs)
        return secret
      })
    },
    deliveries: (accountId, taskId) => administer(ready, () => store.webhooks.list(accountId, taskId)),
    resend(accountId, deliveryId) {
      return administer(ready, async () => {
        const isKnown = await store.webhooks.resend(accountId, deliveryId, clock.now())
        if (isKnown) wake?.()
        return isKnown
      })
    },
  }
}
