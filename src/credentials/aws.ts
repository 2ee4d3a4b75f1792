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
/** The longest that the service takes. */
const LONGEST_SECONDS = 43_200
/** Keys that do not say when they end are asked for again after this time. */
const UNKNOWN_SECONDS = 3_600

/** Options of {@link awsBedrock}. */
export interface AwsBedrockOptions extends EgressOptions {
  /** Region of the models: a token or signature is for one. Default: `AWS_REGION`, or `AWS_DEFAULT_REGION`. */
  readonly region?: string | undefined
  /** Gives the keys; `fromNodeProviderChain()` of `@aws-sdk/credential-providers` is such a function. */
  readonly credentials?: (() => MaybePromise<AwsIdentity>) | undefined
  /** Replaces the environment that variables are read from. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined
  /** Replaces the region's own, such as `https://sts.eu-central-1.amazonaws.com`. */
  readonly tokenServiceOrigin?: string | undefined
  /** Replaces `http://169.254.169.254`. */
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
  /** The service whose requests are signed; `bedrock` by default, `bedrock-mantle` for its other host. */
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
 * Short-lived keys of Amazon Bedrock, made here from keys of AWS without asking a server. Without `credentials` those are looked
 * for in this order: `AWS_PROFILE`, `AWS_ACCESS_KEY_ID`, the file of `AWS_WEB_IDENTITY_TOKEN_FILE` with `AWS_ROLE_ARN`, the
 * profile `default`, the container's server, the instance's. The identity needs the permission `bedrock:CallWithBearerToken`.
 * @throws TypeError when no region is set.
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
 * Signs each request with keys of AWS (Signature Version 4), which needs no permission but that of the call itself. The keys are
 * looked for as {@link awsBedrock} does. Where the service refuses a signature because this machine's clock is wrong by minutes,
 * later ones are made by the service's.
 * @throws TypeError when no region is set.
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

/** Seconds until the keys end; undefined: they do not say when. @throws Error when they have ended. */
function secondsLeft({ expiration }: AwsIdentity, nowMs: number): number | undefined {
  if (expiration === undefined) return undefined
  const leftSeconds = Math.floor((expiration.getTime() - nowMs) / 1000)
  if (leftSeconds >= 1) return leftSeconds
  throw new Error(
    `the AWS keys expired ${-leftSeconds} s ago by the clock of this machine: sign in again, or set its clock`,
  )
}

/** Where the keys come from, and the region they are used in. */
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
