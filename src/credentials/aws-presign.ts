import { createHash, createHmac } from 'node:crypto'

/** Keys of an AWS identity. */
export interface AwsIdentity {
  /** `AKIA…` or `ASIA…`. */
  readonly accessKeyId: string
  /** Signs; is never sent. */
  readonly secretAccessKey: string
  /** Of temporary keys. */
  readonly sessionToken?: string | undefined
  /** When temporary keys end; absent: unknown. */
  readonly expiration?: Date | undefined
}

/** What a signature is valid for. */
export interface AwsSigningScope {
  readonly region: string
  readonly service: string
}

/** A request to be signed in its query. */
export interface PresignedRequest extends AwsSigningScope {
  readonly method: 'GET' | 'POST'
  readonly host: string
  /** As sent, percent-encoded. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly expiresSeconds: number
  /** Hexadecimal SHA-256 of the body, or `UNSIGNED-PAYLOAD`. */
  readonly payloadHash: string
  readonly nowMs: number
}

/** SHA-256 of a body that is empty. */
export const EMPTY_PAYLOAD_HASH = createHash('sha256').digest('hex')

/**
 * A URL without its scheme, signed in its query with Signature Version 4; only the host is a signed header. Source: AWS,
 * "Create a signed AWS API request", and the query variant of "Authenticating Requests".
 */
export function presign(request: PresignedRequest, identity: AwsIdentity): string {
  const { method, host, path, region, service, nowMs } = request
  const date = awsTimestamp(nowMs)
  const day = date.slice(0, 8)
  const scope = `${day}/${region}/${service}/aws4_request`
  const parameters = {
    ...request.query,
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${identity.accessKeyId}/${scope}`,
    'X-Amz-Date': date,
    'X-Amz-Expires': String(request.expiresSeconds),
    'X-Amz-SignedHeaders': 'host',
    ...(identity.sessionToken === undefined ? {} : { 'X-Amz-Security-Token': identity.sessionToken }),
  }
  const query = canonicalQuery(Object.entries(parameters))
  const canonical = [method, path, query, `host:${host}`, '', 'host', request.payloadHash].join('\n')
  const hash = createHash('sha256').update(canonical).digest('hex')
  const toSign = ['AWS4-HMAC-SHA256', date, scope, hash].join('\n')
  const key = signingKey(identity.secretAccessKey, day, request)
  const signature = createHmac('sha256', key).update(toSign).digest('hex')
  return `${host}${path}?${query}&X-Amz-Signature=${signature}`
}

/** The key of one day, region and service. */
export function signingKey(secretAccessKey: string, day: string, { region, service }: AwsSigningScope): Buffer {
  let key: Buffer = createHmac('sha256', `AWS4${secretAccessKey}`).update(day).digest()
  for (const part of [region, service, 'aws4_request']) key = createHmac('sha256', key).update(part).digest()
  return key
}

/** `20261122T100000Z` */
export function awsTimestamp(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

/** The query in the form that is signed. */
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

/** Percent-encoded, but for letters, digits and `-._~`. */
export function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}
