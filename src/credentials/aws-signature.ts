import { createHash, createHmac } from 'node:crypto'
import type { SignableRequest } from '../core/credential.ts'
import {
  type AwsIdentity,
  type AwsSigningScope,
  awsTimestamp,
  canonicalQuery,
  encoded,
  signingKey,
} from './aws-presign.ts'

/** Request in its signed form. */
export interface CanonicalRequest {
  readonly method: string
  /** Path as sent, percent-encoded. */
  readonly path: string
  /** Query as sent, without the question mark. */
  readonly query: string
  /** Signed headers by lower-case name, in alphabetical order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Hexadecimal SHA-256 of the body. */
  readonly payloadHash: string
}

/** Returns the signature of a request, in hexadecimal. @param key See `signingKey`. */
export function signatureOf(request: CanonicalRequest, scope: AwsSigningScope, nowMs: number, key: Buffer): string {
  const { method, path, query, headers, payloadHash } = request
  const canonical = [
    method,
    // The signature covers the encoded path encoded once more.
    path.split('/').map(encoded).join('/'),
    canonicalQuery([...new URLSearchParams(query)]),
    ...headers.map(([name, value]) => `${name}:${value.trim().replace(/\s+/g, ' ')}`),
    '',
    headers.map(([name]) => name).join(';'),
    payloadHash,
  ].join('\n')
  const hash = createHash('sha256').update(canonical).digest('hex')
  const date = awsTimestamp(nowMs)
  const text = `AWS4-HMAC-SHA256\n${date}\n${scopeText(scope, date)}\n${hash}`
  return createHmac('sha256', key).update(text).digest('hex')
}

/**
 * Signs requests with Signature Version 4 and caches the key of the day. Source: AWS, "Create a signed AWS API request". The
 * signed headers are a fixed set, so that other headers, added on the way to the service, cannot break a signature.
 * @returns A function that returns the headers to add.
 */
export function requestSigner(
  identity: AwsIdentity,
  scope: AwsSigningScope,
): (request: SignableRequest) => readonly string[] {
  let kept: { readonly day: string; readonly key: Buffer } | undefined
  const keyOf = (day: string): Buffer => {
    if (kept?.day !== day) kept = { day, key: signingKey(identity.secretAccessKey, day, scope) }
    return kept.key
  }
  return ({ method, origin, path, headers, body, nowMs }) => {
    const date = awsTimestamp(nowMs)
    const payloadHash = hashOf(body)
    const contentType = headerIn(headers, 'content-type')
    const signed: (readonly [string, string])[] = [
      ...(contentType === undefined ? [] : [['content-type', contentType] as const]),
      ['host', new URL(origin).host],
      ['x-amz-content-sha256', payloadHash],
      ['x-amz-date', date],
      ...(identity.sessionToken === undefined ? [] : [['x-amz-security-token', identity.sessionToken] as const]),
    ]
    const mark = path.indexOf('?')
    const request = {
      method,
      path: mark === -1 ? path : path.slice(0, mark),
      query: mark === -1 ? '' : path.slice(mark + 1),
      headers: signed,
      payloadHash,
    }
    const signature = signatureOf(request, scope, nowMs, keyOf(date.slice(0, 8)))
    const names = signed.map(([name]) => name).join(';')
    const authorization = `AWS4-HMAC-SHA256 Credential=${identity.accessKeyId}/${scopeText(scope, date)}, SignedHeaders=${names}, Signature=${signature}`
    const added = signed.filter(([name]) => name.startsWith('x-amz-')).flat()
    return [...added, 'authorization', authorization]
  }
}

function scopeText({ region, service }: AwsSigningScope, date: string): string {
  return `${date.slice(0, 8)}/${region}/${service}/aws4_request`
}

function hashOf(body: SignableRequest['body']): string {
  const hash = createHash('sha256')
  if (typeof body === 'string' || body instanceof Uint8Array) hash.update(body)
  else for (const piece of body ?? []) hash.update(piece)
  return hash.digest('hex')
}

function headerIn(headers: readonly string[], name: string): string | undefined {
  for (let place = 0; place < headers.length; place += 2)
    if (headers[place]?.toLowerCase() === name) return headers[place + 1]
  return undefined
}
