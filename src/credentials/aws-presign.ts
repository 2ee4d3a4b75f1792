import { createHash, createHmac } from 'node:crypto'

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
export interface AwsSigningScope {
  readonly region: string
  readonly service: string
}

/** Request whose query is to be signed. */
export interface PresignedRequest extends AwsSigningScope {
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

/** Returns the key of one day, region and service. */
export function signingKey(secretAccessKey: string, day: string, { region, service }: AwsSigningScope): Buffer {
  let key: Buffer = createHmac('sha256', `AWS4${secretAccessKey}`).update(day).digest()
  for (const part of [region, service, 'aws4_request']) key = createHmac('sha256', key).update(part).digest()
  return key
}

/** Formats a time as `20261122T100000Z`. */
export function awsTimestamp(timeMs: number): string {
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
export function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}
