import type { CredentialProvider } from '../core/credential.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { EgressOptions } from '../transport/egress-route.ts'
import { awsIdentity } from './aws-identity.ts'
import { type AwsIdentity, EMPTY_PAYLOAD_HASH, presign } from './aws-presign.ts'
import { requestSigner } from './aws-signature.ts'
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

const AWS_BEDROCK_OPTIONS = {
  region: true,
  credentials: true,
  environment: true,
  tokenServiceOrigin: true,
  instanceOrigin: true,
  tls: true,
  proxy: true,
} satisfies MemberNames<AwsBedrockOptions>

/** Options of {@link awsSignature}. */
export interface AwsSignatureOptions extends AwsBedrockOptions {
  /** Service whose requests are signed. Default `bedrock`; its other host is `bedrock-mantle`. */
  readonly service?: string | undefined
}

const AWS_SIGNATURE_OPTIONS = {
  service: true,
  region: true,
  credentials: true,
  environment: true,
  tokenServiceOrigin: true,
  instanceOrigin: true,
  tls: true,
  proxy: true,
} satisfies MemberNames<AwsSignatureOptions>

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
