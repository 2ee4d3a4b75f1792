// See docs/decisions/0010-webhook-secrets.md.

import { createHmac } from 'node:crypto'
import { type Ids, secretBytes } from '../core/ids.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { NewDelivery, WebhookStore } from '../stores/webhook-store.ts'

/** Webhook message of an endpoint about the end of its tasks. */
export interface TaskMessage {
  eventType(state: 'completed' | 'failed' | 'cancelled', task: TaskRecord): string
  eventData(task: TaskRecord): object
}

/** How a task is shown to its owner, and what its end reports. */
export interface TaskKind {
  /** Status of the response to a submission. */
  readonly receiptStatus: number
  /** Body of the response to a submission, or `undefined` if the gateway no longer has the endpoint. */
  receipt(context: PipelineContext, task: TaskRecord): object | undefined
  /** Webhook message for the end of a task, or `undefined` if the gateway no longer has the endpoint. */
  message(context: PipelineContext, task: TaskRecord): TaskMessage | undefined
  /** Returns what finished parts of an open task cost, in nano-dollars. If omitted, a task has no parts. */
  costOfParts?(context: PipelineContext, task: TaskRecord): Promise<bigint>
}

/**
 * Builds the message about a task's end: `{"type","timestamp","data"}` (Standard Webhooks 1.0, "Payload structure"), with `timestamp`
 * in ISO 8601, and the other members of OpenAI's events (OpenAI API reference, "Webhook Events"), which its clients unwrap.
 * @param end `task` is the task after the change; `message` belongs to its endpoint.
 * @returns `undefined` if the caller gave no `webhook_url`, or the gateway no longer has the endpoint.
 * @throws RangeError if the task has not ended.
 */
export function newDelivery(end: {
  readonly ids: Ids
  readonly nowMs: number
  readonly task: TaskRecord
  readonly message: TaskMessage | undefined
}): NewDelivery | undefined {
  const { ids, nowMs, task, message } = end
  const url = task.details.webhookUrl
  const { state } = task
  if (url === undefined || message === undefined) return undefined
  if (state !== 'completed' && state !== 'failed' && state !== 'cancelled')
    throw new RangeError(`a task in state ${state} has no message`)
  const id = ids.next('msg')
  return {
    id,
    accountId: task.accountId,
    taskId: task.id,
    url,
    body: JSON.stringify({
      id,
      object: 'event',
      type: message.eventType(state, task),
      created_at: Math.floor(nowMs / 1000),
      timestamp: new Date(nowMs).toISOString(),
      data: message.eventData(task),
    }),
    createdAtMs: nowMs,
    nextAttemptAtMs: nowMs,
  }
}

const PREFIX = 'whsec_'
const MIN_BYTES = 24
const MAX_BYTES = 64

/** Length of the digest: a longer key makes HMAC-SHA256 no stronger. */
const NEW_SECRET_BYTES = 32

/** Message to sign, and its secrets. */
export interface SignedMessage {
  /** Every live secret, newest first; at least one. */
  readonly secrets: readonly string[]
  /** Id that all attempts at one message share. */
  readonly id: string
  /** Time of this attempt, in Unix seconds. */
  readonly timestampSeconds: number
  /** Exact text that is sent. */
  readonly body: string
}

/**
 * The headers `webhook-id`, `webhook-timestamp` and `webhook-signature`, as a flat list (Standard Webhooks 1.0, "Webhook metadata"
 * and "Signature scheme"). There is one `v1` signature for each secret, so that receivers with the old secret and receivers with the
 * new one both find theirs.
 * @throws TypeError if {@link checkWebhookSecret} rejects a secret.
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
 * @throws TypeError naming the rule; it never contains the secret.
 */
export function checkWebhookSecret(text: string): string {
  keyOf(text)
  return text
}

/** Creates a random secret. */
export function newWebhookSecret(): string {
  return `${PREFIX}${Buffer.from(secretBytes(NEW_SECRET_BYTES)).toString('base64')}`
}

/**
 * Returns the secrets that sign the messages of an account, newest first; at least one. Its own secrets take precedence over the
 * gateway's. If there are none, a secret is created and stored for the account.
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
  // Node decodes malformed base64 as far as it can, and would sign with fewer bytes than the receiver has, or none.
  const isWhole = key.toString('base64') === encoded
  if (!isWhole || key.byteLength < MIN_BYTES || key.byteLength > MAX_BYTES) {
    throw new TypeError(
      `a webhook secret must be ${PREFIX} and the padded base64 of ${MIN_BYTES} to ${MAX_BYTES} bytes`,
    )
  }
  return key
}
