import { createHash, createHmac } from 'node:crypto'
import type { CredentialProvider, SignableRequest } from '../core/credential.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { EgressOptions } from '../transport/egress.ts'
import { awsIdentity } from './aws-identity.ts'
import {
  type AwsIdentity,
  type AwsSigningScope,
  awsTimestamp,
  canonicalQuery,
  EMPTY_PAYLOAD_HASH,
  encoded,
  presign,
  signingKey,
} from './aws-presign.ts'
import { required } from './token-request.ts'

const HOST = 'bedrock.amazonaws.com'
const PREFIX = 'bedrock-api-key-'
/** Maximum lifetime that the service accepts. */
const LONGEST_SECONDS = 43_200
/** Keys without an expiry time are requested again after this time. */
const UNKNOWN_SECONDS = 3_600

/** Options of {@link awsBedrock}. */
export interface AwsBedrockOptions extends EgressOptions {
  /** Region of the models, to which a token or signature is limited. Default: `AWS_REGION`, or `AWS_DEFAULT_REGION`. */
  readonly region?: string | undefined
  /** Returns the keys. `fromNodeProviderChain()` of `@aws-sdk/credential-providers` creates such a function. */
  readonly credentials?: (() => MaybePromise<AwsIdentity>) | undefined
  /** Environment from which variables are read. Default: that of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined
  /** Origin of the token service. Defaults to that of the region, such as `https://sts.eu-central-1.amazonaws.com`. */
  readonly tokenServiceOrigin?: string | undefined
  /** Origin of the instance metadata server. Default `http://169.254.169.254`. */
  readonly instanceOrigin?: string | undefined
}

const AWS_BEDROCK_OPTIONS = memberNames<AwsBedrockOptions>()(
  'region credentials environment tokenServiceOrigin instanceOrigin tls proxy',
)

/** Options of {@link awsSignature}. */
export interface AwsSignatureOptions extends AwsBedrockOptions {
  /** Service whose requests are signed. Default `bedrock`; its other host is `bedrock-mantle`. */
  readonly service?: string | undefined
}

const AWS_SIGNATURE_OPTIONS = memberNames<AwsSignatureOptions>()(
  'service region credentials environment tokenServiceOrigin instanceOrigin tls proxy',
)

/**
 * Creates short-lived keys of Amazon Bedrock locally from AWS keys, without calling a server. Without `credentials`, the keys are
 * searched in this order: `AWS_PROFILE`, `AWS_ACCESS_KEY_ID`, the file of `AWS_WEB_IDENTITY_TOKEN_FILE` with `AWS_ROLE_ARN`, the
 * profile `default`, the container's server, the instance's server. The identity needs the permission `bedrock:CallWithBearerToken`.
 * @throws TypeError if no region is set.
 */
export function awsBedrock(options: AwsBedrockOptions = {}): CredentialProvider {
  checkMembers(options, AWS_BEDROCK_OPTIONS, 'awsBedrock')
  const { region, identityOf } = sourceOf('awsBedrock', options)
  const provider: CredentialProvider = async ({ signal, nowMs }) => {
    const identity = await identityOf(signal)
    const leftSeconds = secondsLeft(identity, nowMs) ?? UNKNOWN_SECONDS
    const expiresSeconds = Math.min(leftSeconds, LONGEST_SECONDS)
    const query = { Action: 'CallWithBearerToken' }
    const signed = presign(
      {
        method: 'POST',
        host: HOST,
        path: '/',
        query,
        region,
        service: 'bedrock',
        expiresSeconds,
        payloadHash: EMPTY_PAYLOAD_HASH,
        nowMs,
      },
      identity,
    )
    const token = `${PREFIX}${Buffer.from(`${signed}&Version=1`).toString('base64')}`
    return { token, expiresAtMs: nowMs + expiresSeconds * 1000 }
  }
  return Object.assign(provider, { slot: `aws ${region}` })
}

/**
 * Signs each request with AWS keys (Signature Version 4), which requires only the permission for the call itself. The keys are
 * searched as in {@link awsBedrock}. If the service rejects a signature because this machine's clock is wrong by minutes, later
 * signatures use the service's time.
 * @throws TypeError if no region is set.
 */
export function awsSignature(options: AwsSignatureOptions = {}): CredentialProvider {
  checkMembers(options, AWS_SIGNATURE_OPTIONS, 'awsSignature')
  const { service = 'bedrock' } = options
  const { region, identityOf } = sourceOf('awsSignature', options)
  const provider: CredentialProvider = async ({ signal, nowMs }) => {
    const identity = await identityOf(signal)
    const leftSeconds = secondsLeft(identity, nowMs)
    return {
      token: identity.sessionToken ?? identity.accessKeyId,
      sign: requestSigner(identity, { region, service }),
      ...(leftSeconds === undefined ? {} : { expiresAtMs: nowMs + leftSeconds * 1000 }),
    }
  }
  return Object.assign(provider, { slot: `aws ${region} ${service}` })
}

/** Returns the seconds until the keys expire, or `undefined` if they have no expiry time. @throws Error if they have expired. */
function secondsLeft({ expiration }: AwsIdentity, nowMs: number): number | undefined {
  if (expiration === undefined) return undefined
  const leftSeconds = Math.floor((expiration.getTime() - nowMs) / 1000)
  if (leftSeconds >= 1) return leftSeconds
  throw new Error(
    `the AWS keys expired ${-leftSeconds} s ago by the clock of this machine: sign in again, or set its clock`,
  )
}

/** Returns the source of the keys, and the region in which they are used. */
function sourceOf(
  factory: string,
  options: AwsBedrockOptions,
): { readonly region: string; readonly identityOf: (signal: AbortSignal) => Promise<AwsIdentity> } {
  const { environment = process.env, credentials } = options
  const region = required(
    options.region ?? (environment['AWS_REGION'] || environment['AWS_DEFAULT_REGION']),
    `${factory}({ region })`,
    'AWS_REGION',
  )
  return {
    region,
    identityOf: credentials === undefined ? awsIdentity({ ...options, region }) : async () => credentials(),
  }
}

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
