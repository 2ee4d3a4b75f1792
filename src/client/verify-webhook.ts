import { ClientError } from './client-error.ts'
import type { VideoTask } from './video-task.ts'

/** Headers of a request: Node's, those of `fetch`, or a plain object. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/** Webhook as it was received. */
export interface ReceivedWebhook {
  /** Body exactly as sent: parsing and serializing it would change it. */
  readonly body: string | Uint8Array
  readonly headers: WebhookHeaders
  /** Secret of the account, `whsec_…`; several during a rotation. */
  readonly secret: string | readonly string[]
  /** Maximum difference between the message's time and this machine's, in seconds. At least 0; default 300. */
  readonly toleranceSeconds?: number
}

/** Message with a valid signature. */
export type WebhookMessage = {
  /** Id that every attempt at this message shares. Store it, because a message can arrive twice. */
  readonly id: string
  /** End of the task in ISO 8601. */
  readonly timestamp: string
} & (
  | {
      readonly type: 'video.generation.completed' | 'video.generation.failed' | 'video.generation.cancelled'
      readonly data: VideoTask
    }
  | {
      readonly type: 'response.completed' | 'response.incomplete' | 'response.failed' | 'response.cancelled'
      readonly data: { readonly id: string }
    }
  | {
      readonly type: 'batch.completed' | 'batch.expired' | 'batch.failed' | 'batch.cancelled'
      readonly data: { readonly id: string }
    }
)

const PREFIX = 'whsec_'
const DEFAULT_TOLERANCE_SECONDS = 300

/**
 * Verifies a webhook of a gateway (Standard Webhooks 1.0) and returns its message. Requires `crypto.subtle`, which Node, Deno, Bun,
 * workers and pages on https have.
 * @throws ClientError `invalid_request` if no secret has signed the message, or it is too old or incomplete. Answer it with 401.
 * @throws TypeError if a secret is malformed, or `toleranceSeconds` is negative or not a number.
 */
export async function verifyWebhook({
  body,
  headers,
  secret,
  toleranceSeconds = DEFAULT_TOLERANCE_SECONDS,
}: ReceivedWebhook): Promise<WebhookMessage> {
  const keys = (typeof secret === 'string' ? [secret] : (secret ?? [])).map(keyBytes)
  if (keys.length === 0) throw new TypeError('webhooks: secret: give at least one')
  if (!(toleranceSeconds >= 0))
    throw new TypeError(`webhooks: toleranceSeconds: must be 0 or more, not ${toleranceSeconds}`)
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) => header(headers, `webhook-${name}`))
  if (!id || !timestamp || !signatures) throw refused('a header is missing: webhook-id, -timestamp or -signature')
  const ageSeconds = Date.now() / 1000 - Number(timestamp)
  if (!/^\d+$/.test(timestamp) || Math.abs(ageSeconds) > toleranceSeconds)
    throw refused('its timestamp is too far from the time of this machine')
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  const start = new TextEncoder().encode(`${id}.${timestamp}.`)
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const content = new Uint8Array(start.length + bytes.length)
  content.set(start)
  content.set(bytes, start.length)
  if (!(await isSigned(content, keys, signatures))) throw refused('no signature is by this secret')
  try {
    return { ...JSON.parse(text), id }
  } catch {
    throw refused('its body is not JSON')
  }
}

async function isSigned(
  content: Uint8Array<ArrayBuffer>,
  keys: readonly Uint8Array<ArrayBuffer>[],
  signatures: string,
): Promise<boolean> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  for (const bytes of keys) {
    const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['verify'])
    for (const signature of signatures.split(' ')) {
      const given = signature.startsWith('v1,') ? fromBase64(signature.slice('v1,'.length)) : undefined
      // Compares in constant time.
      if (given !== undefined && (await crypto.subtle.verify(algorithm, key, given, content))) return true
    }
  }
  return false
}

function header(headers: WebhookHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined
  const value = Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1]
  return typeof value === 'string' ? value : undefined
}

function keyBytes(secret: string): Uint8Array<ArrayBuffer> {
  const bytes = secret.startsWith(PREFIX) ? fromBase64(secret.slice(PREFIX.length)) : undefined
  if (bytes === undefined || bytes.length === 0)
    throw new TypeError('webhooks: secret: must be whsec_ and base64, as the gateway shows it')
  return bytes
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

function refused(why: string): ClientError {
  return new ClientError('invalid_request', { message: `The webhook cannot be trusted: ${why}.` })
}
