import type { Clock } from '../core/clock.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { StoredBounds } from '../stores/stored-bounds.ts'
import type { DeliveryState, WebhookDelivery } from '../stores/webhook-store.ts'
import { newWebhookSecret, signingSecrets } from '../tasks/webhook-payload.ts'
import { administer, checkOverlap } from './audit.ts'
import { checkedPageSize, type PageOptions, pageOf, partsOfPlace, placeOf } from './page-cursor.ts'

/** Selects a page of the messages of all accounts. */
export interface AllDeliveriesOptions extends PageOptions {
  /** Account whose messages are listed. */
  readonly accountId?: string | undefined
  /** State of the listed messages. */
  readonly state?: DeliveryState | undefined
}

const ALL_DELIVERIES_OPTIONS = memberNames<AllDeliveriesOptions>()('accountId state cursor limit')

/** Page of the messages of all accounts. */
export interface AllDeliveriesPage {
  /** Messages, newest first. */
  readonly deliveries: readonly WebhookDelivery[]
  /** Cursor of the next page, or `undefined` if there is none. */
  readonly next: string | undefined
}

/** Administration of webhooks, for the host's own code. Every method throws a GatewayError. */
export interface Webhooks {
  /**
   * Returns the secret that signs the messages of an account, `whsec_…`, for the receiver: its own, else the gateway's
   * `webhookSecret`, else one that is created now and stored.
   */
  secret(accountId: string): Promise<string>
  /**
   * Gives an account its own secret, in place of the gateway's `webhookSecret`.
   * @param options `overlapMs` is how long earlier secrets, including the gateway's, still sign alongside the new one; default one
   *   day, 0 ends them immediately.
   * @returns the new secret, `whsec_…`, for the receiver.
   * @throws GatewayError `invalid_request` for a negative `overlapMs`; `storage_limit_reached` if `overlapMs` is above 0 and the
   *   account has `accountStorage.webhookSecrets` secrets that still sign.
   */
  rotateSecret(accountId: string, options?: { readonly overlapMs?: number }): Promise<string>
  /** Returns the messages about a task of the account with their newest 50 attempts, oldest first; empty for an unknown task. */
  deliveries(accountId: string, taskId: string): Promise<readonly WebhookDelivery[]>
  /**
   * Lists the messages of all accounts with their newest 50 attempts, newest first.
   * @throws GatewayError `invalid_request` for an invalid limit or cursor.
   */
  listAll(options?: AllDeliveriesOptions): Promise<AllDeliveriesPage>
  /** Sends a message again, whatever its state; returns false if the account has no message with that id. */
  resend(accountId: string, deliveryId: string): Promise<boolean>
}

const ROTATE_SECRET_OPTIONS = { overlapMs: true } as const

/** How long older secrets sign alongside their replacement, in milliseconds. */
export const DEFAULT_SECRET_OVERLAP_MS = 24 * 60 * 60 * 1000

/**
 * Creates the administration of a store's webhooks. `ready` resolves once the store can be used. `wake` notifies the deliverer of
 * this process, if there is one, that a message is due. Other processes find it within seconds.
 */
export function webhooksOf(
  store: GatewayStore,
  clock: Clock,
  ready: () => Promise<void>,
  parts: {
    readonly storedBounds: StoredBounds
    readonly webhookSecret?: string | undefined
    readonly wake?: () => void
  },
): Webhooks {
  const { storedBounds, webhookSecret, wake } = parts
  return {
    secret: (accountId) =>
      administer(ready, async () => {
        const [current] = await signingSecrets(store.webhooks, { accountId, webhookSecret, nowMs: clock.now() })
        return current
      }),
    async rotateSecret(accountId, options = {}) {
      checkMembers(options, ROTATE_SECRET_OPTIONS, 'webhooks.rotateSecret')
      const { overlapMs = DEFAULT_SECRET_OVERLAP_MS } = options
      return administer(ready, async () => {
        checkOverlap(overlapMs)
        const secret = newWebhookSecret()
        const replace = async (): Promise<void> => {
          // The gateway’s secret becomes an older secret of the account, because its receiver has no other yet.
          if (webhookSecret !== undefined && overlapMs > 0) await store.webhooks.ensureSecret(accountId, webhookSecret)
          const nowMs = clock.now()
          await store.webhooks.replaceSecret(accountId, secret, nowMs + overlapMs, nowMs)
        }
        // A leaked secret can be replaced in any case, which ends all others.
        if (overlapMs === 0) {
          await replace()
          storedBounds.freed(accountId, 'webhookSecrets')
        } else await storedBounds.add(accountId, [{ kind: 'webhookSecrets', byteLength: secret.length }], replace)
        return secret
      })
    },
    deliveries: (accountId, taskId) => administer(ready, () => store.webhooks.list(accountId, taskId)),
    async listAll(options = {}) {
      checkMembers(options, ALL_DELIVERIES_OPTIONS, 'webhooks.listAll')
      const { accountId, state, cursor, limit = 100 } = options
      return administer(ready, async () => {
        const query = { accountId, state, after: placeOf(cursor), limit: checkedPageSize(limit) + 1 }
        const { rows, next } = pageOf(await store.webhooks.listAll(query), limit, partsOfPlace)
        return { deliveries: rows, next }
      })
    },
    resend(accountId, deliveryId) {
      return administer(ready, async () => {
        const isKnown = await store.webhooks.resend(accountId, deliveryId, clock.now())
        if (isKnown) wake?.()
        return isKnown
      })
    },
  }
}
