import { createHash, createHmac } from 'node:crypto'
import type { SignableRequest } from '../core/credential.ts'

/** Keys of an AWS identity. */
export interface AwsIdentity {
  /** `AKIA…` or `ASIA…`. */
  readonly accessKeyId: string
  /** Key for signatures; never sent. */
  readonly secretAccessKey: string
  /** Session token of temporary keys. */
  readonly sessionToken?: string | undefined
  /** Time at which temporary keys expire, or `undefined` if it is not known. */
  readonly expiration?: Date | undefined
}

/** Scope of a signature. */
interface AwsSigningScope {
  readonly region: string
  readonly service: string
}

/** Request whose query is to be signed. */
interface PresignedRequest extends AwsSigningScope {
  readonly method: 'GET' | 'POST'
  readonly host: string
  /** Path as sent, percent-encoded. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly expiresSeconds: number
  /** Hexadecimal SHA-256 of the body, or `UNSIGNED-PAYLOAD`. */
  readonly payloadHash: string
  readonly nowMs: number
}

/** SHA-256 of an empty body. */
export const EMPTY_PAYLOAD_HASH = createHash('sha256').digest('hex')

/**
 * Returns a URL without its scheme, signed in its query with Signature Version 4; only the host is a signed header. Source: AWS,
 * "Create a signed AWS API request", and the query variant of "Authenticating Requests".
 */
export function presign(request: PresignedRequest, identity: AwsIdentity): string {
  const { method, host, path, payloadHash, nowMs } = request
  const date = awsTimestamp(nowMs)
  const parameters = {
    ...request.query,
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${identity.accessKeyId}/${scopeText(request, date)}`,
    'X-Amz-Date': date,
    'X-Amz-Expires': String(request.expiresSeconds),
    'X-Amz-SignedHeaders': 'host',
    ...(identity.sessionToken === undefined ? {} : { 'X-Amz-Security-Token': identity.sessionToken }),
  }
  const query = canonicalQuery(Object.entries(parameters))
  const key = signingKey(identity.secretAccessKey, date.slice(0, 8), request)
  const signature = signatureOf({ method, path, query, headers: [['host', host]], payloadHash }, request, nowMs, key)
  return `${host}${path}?${query}&X-Amz-Signature=${signature}`
}

/** Returns the key of one day, region and service. */
export function signingKey(secretAccessKey: string, day: string, { region, service }: AwsSigningScope): Buffer {
  let key: Buffer = createHmac('sha256', `AWS4${secretAccessKey}`).update(day).digest()
  for (const part of [region, service, 'aws4_request']) key = createHmac('sha256', key).update(part).digest()
  return key
}

/** Formats a time as `20261122T100000Z`. */
function awsTimestamp(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

/** Returns the query in its signed form. */
export function canonicalQuery(query: readonly (readonly [name: string, value: string])[]): string {
  return query
    .map(([name, value]) => [encoded(name), encoded(value)] as const)
    .sort(([name, value], [otherName, otherValue]) => inOrder(name, otherName) || inOrder(value, otherValue))
    .map((pair) => pair.join('='))
    .join('&')
}

function inOrder(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

/** Percent-encodes all characters except letters, digits and `-._~`. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Request in its signed form. */
interface CanonicalRequest {
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
