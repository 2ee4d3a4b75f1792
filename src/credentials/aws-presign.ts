import { createHash, createHmac } from 'node:crypto'

/** Keys of an AWS identity. */
export interface AwsIdentity {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Of temporary keys. */
  readonly sessionToken?: string | undefined
  /** When temporary keys end; absent: unknown. */
  readonly expiration?: Date | undefined
}

/** A request to be signed in its query. */
export interface PresignedRequest {
  readonly method: 'GET' | 'POST'
  readonly host: string
  /** As sent, percent-encoded. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly region: string
  readonly service: string
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
  const date = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const day = date.slice(0, 8)
  const scope = `${day}/${region}/${service}/aws4_request`
  const query = canonicalQuery({
    ...request.query,
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${identity.accessKeyId}/${scope}`,
    'X-Amz-Date': date,
    'X-Amz-Expires': String(request.expiresSeconds),
    'X-Amz-SignedHeaders': 'host',
    ...(identity.sessionToken === undefined ? {} : { 'X-Amz-Security-Token': identity.sessionToken }),
  })
  const canonical = [method, path, query, `host:${host}`, '', 'host', request.payloadHash].join('\n')
  const hash = createHash('sha256').update(canonical).digest('hex')
  const toSign = ['AWS4-HMAC-SHA256', date, scope, hash].join('\n')
  const signingKey = [day, region, service, 'aws4_request'].reduce<string | Buffer>(
    (key, part) => createHmac('sha256', key).update(part).digest(),
    `AWS4${identity.secretAccessKey}`,
  )
  const signature = createHmac('sha256', signingKey).update(toSign).digest('hex')
  return `${host}${path}?${query}&X-Amz-Signature=${signature}`
}

function canonicalQuery(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&')
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}
