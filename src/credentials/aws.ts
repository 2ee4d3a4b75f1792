import type { CredentialProvider } from '../core/credential.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { EgressOptions } from '../transport/egress-route.ts'
import { awsIdentity } from './aws-identity.ts'
import { type AwsIdentity, EMPTY_PAYLOAD_HASH, presign } from './aws-presign.ts'
import { required } from './token-request.ts'

const HOST = 'bedrock.amazonaws.com'
const PREFIX = 'bedrock-api-key-'
/** The longest that the service takes. */
const LONGEST_SECONDS = 43_200
/** Keys that do not say when they end are asked for again after this time. */
const UNKNOWN_SECONDS = 3_600

/** Options of {@link awsBedrock}. */
export interface AwsBedrockOptions extends EgressOptions {
  /** Region of the models: a token is for one. Default: `AWS_REGION`, or `AWS_DEFAULT_REGION`. */
  readonly region?: string | undefined
  /** Gives the keys; `fromNodeProviderChain()` of `@aws-sdk/credential-providers` is such a function. */
  readonly credentials?: (() => MaybePromise<AwsIdentity>) | undefined
  /** Replaces the environment that variables are read from. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined
  /** Replaces `https://sts.<region>.amazonaws.com`. */
  readonly tokenServiceOrigin?: string | undefined
  /** Replaces `http://169.254.169.254`. */
  readonly instanceOrigin?: string | undefined
}

/**
 * Short-lived keys of Amazon Bedrock, made here from keys of AWS without asking a server. Without `credentials` those are looked
 * for in this order: `AWS_ACCESS_KEY_ID`, the file of `AWS_WEB_IDENTITY_TOKEN_FILE` with `AWS_ROLE_ARN`, the container's server,
 * the instance's. The identity needs the permission `bedrock:CallWithBearerToken`.
 * @throws TypeError when no region is set.
 */
export function awsBedrock(options: AwsBedrockOptions = {}): CredentialProvider {
  const { environment = process.env } = options
  const region = required(
    options.region ?? (environment['AWS_REGION'] || environment['AWS_DEFAULT_REGION']),
    'awsBedrock({ region })',
    'AWS_REGION',
  )
  const { credentials: given } = options
  const identityOf = given === undefined ? awsIdentity({ ...options, region }) : async () => given()
  const provider: CredentialProvider = async ({ signal, nowMs }) => {
    const identity = await identityOf(signal)
    const endMs = identity.expiration?.getTime()
    const leftSeconds = endMs === undefined ? UNKNOWN_SECONDS : Math.floor((endMs - nowMs) / 1000)
    if (leftSeconds < 1)
      throw new Error(
        `the AWS keys expired ${-leftSeconds} s ago by the clock of this machine: sign in again, or set its clock`,
      )
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
