import { createHmac } from 'node:crypto'
import { secretBytes } from '../core/ids.ts'
import type { WebhookStore } from '../stores/webhook-store.ts'

const PREFIX = 'whsec_'
const FEWEST_BYTES = 24
const MOST_BYTES = 64

/** As long as the digest: a longer key makes HMAC-SHA256 no stronger. */
const NEW_SECRET_BYTES = 32

/** What is signed, and by what. */
export interface SignedMessage {
  /** Every secret that is live, newest first; at least one. */
  readonly secrets: readonly string[]
  /** The same for all attempts at one message. */
  readonly id: string
  /** Unix seconds of this attempt. */
  readonly timestampSeconds: number
  /** The exact text that is sent. */
  readonly body: string
}

/**
 * The headers `webhook-id`, `webhook-timestamp` and `webhook-signature`, as a flat list (Standard Webhooks 1.0, "Webhook
 * metadata" and "Signature scheme"). There is one `v1` signature for each secret, so that receivers with the old secret
 * and receivers with the new one both find theirs.
 * @throws TypeError for a secret that {@link checkWebhookSecret} refuses.
 */
export function webhookHeaders({ secrets, id, timestampSeconds, body }: SignedMessage): string[] {
  const content = `${id}.${timestampSeconds}.${body}`
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', keyOf(secret)).update(content).digest('base64')}`,
  )
  return [
    ...['webhook-id', id],
    ...['webhook-timestamp', String(timestampSeconds)],
    ...['webhook-signature', signatures.join(' ')],
  ]
}

/**
 * Checks a secret and returns it: `whsec_` and padded base64 of 24 to 64 bytes (Standard Webhooks 1.0, "Signature scheme").
 * @throws TypeError naming the rule; it never shows the text.
 */
export function checkWebhookSecret(text: string): string {
  keyOf(text)
  return text
}

/** A new random secret. */
export function newWebhookSecret(): string {
  return `${PREFIX}${Buffer.from(secretBytes(NEW_SECRET_BYTES)).toString('base64')}`
}

/**
 * The secrets that sign the messages of an account, newest first; at least one. Its own go before the gateway's; where there is
 * neither, the account gets one that is kept.
 */
export async function signingSecrets(
  store: WebhookStore,
  account: { readonly accountId: string; readonly webhookSecret: string | undefined; readonly nowMs: number },
): Promise<readonly [string, ...string[]]> {
  const { accountId, webhookSecret, nowMs } = account
  const [newest, ...older] = (await store.secrets(accountId, nowMs)).map(({ secret }) => secret)
  if (newest !== undefined) return [newest, ...older]
  return [webhookSecret ?? (await store.ensureSecret(accountId, newWebhookSecret()))]
}

function keyOf(secret: string): Buffer {
  const encoded = typeof secret === 'string' && secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
  const key = Buffer.from(encoded, 'base64')
  // Node reads broken base64 as far as it can, and would sign with fewer bytes than the receiver has, or none.
  const isWhole = key.toString('base64') === encoded
  if (!isWhole || key.byteLength < FEWEST_BYTES || key.byteLength > MOST_BYTES) {
    throw new TypeError(
      `a webhook secret must be ${PREFIX} and the padded base64 of ${FEWEST_BYTES} to ${MOST_BYTES} bytes`,
    )
  }
  return key
}
