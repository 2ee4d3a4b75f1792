import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { CredentialProvider } from '../core/credential.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { EgressOptions } from '../transport/egress.ts'
import { type AwsIdentity, EMPTY_PAYLOAD_HASH, presign, requestSigner } from './aws-signature.ts'
import {
  type AskTokens,
  type Environment,
  refusalOf,
  required,
  type TokenAnswer,
  textOfFile,
  tokenAsker,
} from './token-request.ts'

const HOST = 'bedrock.amazonaws.com'
const PREFIX = 'bedrock-api-key-'
/** Maximum lifetime that the service accepts. */
const MAX_SECONDS = 43_200
/** Keys without an expiry time are requested again after this time. */
const UNKNOWN_SECONDS = 3_600
const INSTANCE_ORIGIN = 'http://169.254.169.254'
const CONTAINER_ORIGIN = 'http://169.254.170.2'

/** Options of {@link awsBedrock}. */
export interface AwsBedrockOptions extends EgressOptions {
  /** Region of the models, to which a token or signature is limited. Default: `AWS_REGION`, or `AWS_DEFAULT_REGION`. */
  readonly region?: string | undefined
  /** Returns the keys. `fromNodeProviderChain()` of `@aws-sdk/credential-providers` creates such a function. */
  readonly credentials?: (() => MaybePromise<AwsIdentity>) | undefined
  /** Environment from which variables are read. Default: that of the process. */
  readonly environment?: Environment | undefined
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
    const expiresSeconds = Math.min(leftSeconds, MAX_SECONDS)
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
  const { credentials } = options
  const region = required(factory, options, 'region', 'AWS_REGION', 'AWS_DEFAULT_REGION')
  return {
    region,
    identityOf: credentials === undefined ? awsIdentity({ ...options, region }) : async () => credentials(),
  }
}

/** Region of the keys, and the servers that issue them. */
type AwsLocation = Omit<AwsBedrockOptions, 'region' | 'credentials'> & { readonly region: string }

/** Finds AWS keys in the runtime environment; see `awsBedrock`. */
export function awsIdentity(options: AwsLocation): (signal: AbortSignal) => Promise<AwsIdentity> {
  const { environment = process.env } = options
  // Link-local servers are never called through a proxy.
  const local = tokenAsker()
  const remote = tokenAsker(options)
  return async (signal) =>
    (await fromProfile(environment)) ??
    fromEnvironment(environment) ??
    (await fromWebIdentity(remote, environment, options, signal)) ??
    (await awsDefaultProfile(environment)) ??
    (await fromContainer(local, environment, signal)) ??
    (await fromInstance(local, environment, options.instanceOrigin ?? INSTANCE_ORIGIN, signal))
}

/** A named profile takes precedence over keys of the environment, as in AWS's own tools. */
async function fromProfile(environment: Environment): Promise<AwsIdentity | undefined> {
  const profile = environment['AWS_PROFILE']
  return profile ? awsProfile(profile, environment) : undefined
}

/** Returns the domain of AWS's services in a region, according to its partition (AWS, "Partitions"). */
export function awsDomain(region: string): string {
  if (region.startsWith('cn-')) return 'amazonaws.com.cn'
  return region.startsWith('eusc-') ? 'amazonaws.eu' : 'amazonaws.com'
}

/** Returns the token service of a region, which issues keys for a web identity. */
export function tokenServiceOf(region: string): string {
  return `https://sts.${region}.${awsDomain(region)}`
}

function fromEnvironment(environment: Environment): AwsIdentity | undefined {
  const accessKeyId = environment['AWS_ACCESS_KEY_ID']
  const secretAccessKey = environment['AWS_SECRET_ACCESS_KEY']
  if (!accessKeyId || !secretAccessKey) return undefined
  const sessionToken = environment['AWS_SESSION_TOKEN'] || undefined
  return { accessKeyId, secretAccessKey, sessionToken }
}

async function fromWebIdentity(
  ask: AskTokens,
  environment: Environment,
  { region, tokenServiceOrigin = tokenServiceOf(region) }: AwsLocation,
  signal: AbortSignal,
): Promise<AwsIdentity | undefined> {
  const file = environment['AWS_WEB_IDENTITY_TOKEN_FILE']
  const role = environment['AWS_ROLE_ARN']
  if (!file || !role) return undefined
  const form = {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: role,
    RoleSessionName: environment['AWS_ROLE_SESSION_NAME'] || 'signalbox',
    WebIdentityToken: await textOfFile(file, 'AWS_WEB_IDENTITY_TOKEN_FILE'),
  }
  const answer = await ask({ url: `${tokenServiceOrigin}/`, method: 'POST', form, signal })
  // The service always answers in XML.
  const member = (name: string): string | undefined =>
    new RegExp(`<${name}>\\s*([^<]*?)\\s*</${name}>`).exec(answer.text)?.[1]
  const words = { error: member('Code'), message: member('Message') }
  const keys = { AccessKeyId: member('AccessKeyId'), SecretAccessKey: member('SecretAccessKey') }
  return identityInAnswer(
    { ...answer, json: { ...words, ...keys, Token: member('SessionToken'), Expiration: member('Expiration') } },
    `the role ${role} cannot be assumed: check AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE`,
  )
}

async function fromContainer(
  ask: AskTokens,
  environment: Environment,
  signal: AbortSignal,
): Promise<AwsIdentity | undefined> {
  const relative = environment['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']
  const url = relative ? `${CONTAINER_ORIGIN}${relative}` : environment['AWS_CONTAINER_CREDENTIALS_FULL_URI']
  if (!url) return undefined
  const file = environment['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']
  const token = file
    ? await textOfFile(file, 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE')
    : environment['AWS_CONTAINER_AUTHORIZATION_TOKEN']
  const headers: Record<string, string> = token ? { authorization: token } : {}
  const answer = await ask({ url, method: 'GET', headers, signal })
  return identityInAnswer(answer, 'the container provides no keys: assign a role to its task or pod')
}

async function fromInstance(
  ask: AskTokens,
  environment: Environment,
  origin: string,
  signal: AbortSignal,
): Promise<AwsIdentity> {
  const what =
    'no AWS keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, assign a role to this machine, or pass credentials to awsBedrock'
  const base = `${origin}/latest/meta-data/iam/security-credentials/`
  if (environment['AWS_EC2_METADATA_DISABLED']?.toLowerCase() === 'true')
    throw new Error(`${what} (AWS_EC2_METADATA_DISABLED)`)
  try {
    const ttl = { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' }
    const session = await ask({ url: `${origin}/latest/api/token`, method: 'PUT', headers: ttl, signal })
    const headers = { 'x-aws-ec2-metadata-token': session.text.trim() }
    const role = await ask({ url: base, method: 'GET', headers, signal })
    const name = role.text.trim().split('\n')[0] ?? ''
    if (role.status !== 200 || name === '') throw new Error(`the instance has no role (${role.status})`)
    return identityInAnswer(
      await ask({ url: `${base}${encodeURIComponent(name)}`, method: 'GET', headers, signal }),
      what,
    )
  } catch (cause) {
    throw new Error(`${what} (${(cause as Error).message})`, { cause })
  }
}

function identityInAnswer({ status, json }: TokenAnswer, what: string): AwsIdentity {
  const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: sessionToken, Expiration: end } = json
  if (status !== 200 || typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string')
    throw new Error(`${what}: ${refusalOf(status, json)}`)
  const expiration = typeof end === 'string' ? new Date(end) : undefined
  return {
    accessKeyId,
    secretAccessKey,
    sessionToken: typeof sessionToken === 'string' ? sessionToken : undefined,
    ...(expiration === undefined || Number.isNaN(expiration.getTime()) ? {} : { expiration }),
  }
}

/** File of AWS's tools, or the reason why it cannot be read. */
interface ProfileFile {
  readonly path: string
  readonly text: string
  readonly fault: NodeJS.ErrnoException | undefined
}

/**
 * Returns the keys of a profile in the files of AWS's tools, `credentials` before `config` (AWS, "Configuration and credential
 * file settings").
 * @throws Error that names the profile and a remedy if there is no such file or profile, or if it contains no keys.
 */
async function awsProfile(profile: string, environment: Environment): Promise<AwsIdentity> {
  const { credentials, config, identity } = await keysOf(profile, environment)
  if (identity !== undefined) return identity
  const what = `AWS_PROFILE: the profile ${JSON.stringify(profile)}`
  if (credentials.fault !== undefined && config.fault !== undefined) {
    const cause = credentials.fault
    throw new Error(`${what} cannot be read: ${credentials.path} (${cause.code})`, { cause })
  }
  const export_ = `aws configure export-credentials --profile ${profile} --format env`
  throw new Error(
    `${what} has no keys in ${credentials.path} or ${config.path}; if it uses SSO, a role or a process, pass credentials of @aws-sdk/credential-providers, or set the variables that "${export_}" prints`,
  )
}

/** Returns the keys of the profile `default`, or `undefined` if it has none. */
async function awsDefaultProfile(environment: Environment): Promise<AwsIdentity | undefined> {
  return (await keysOf('default', environment)).identity
}

async function keysOf(
  profile: string,
  environment: Environment,
): Promise<{
  readonly credentials: ProfileFile
  readonly config: ProfileFile
  readonly identity: AwsIdentity | undefined
}> {
  const folder = join(environment['HOME'] || environment['USERPROFILE'] || homedir(), '.aws')
  const [credentials, config] = await Promise.all([
    fileAt(environment['AWS_SHARED_CREDENTIALS_FILE'] || join(folder, 'credentials')),
    fileAt(environment['AWS_CONFIG_FILE'] || join(folder, 'config')),
  ])
  const inCredentials = sectionOf(credentials.text, profile)
  const named = sectionOf(config.text, `profile ${profile}`)
  const inConfig = named ?? (profile === 'default' ? sectionOf(config.text, profile) : undefined)
  const hasRole = assumesRole(new Map([...(inConfig ?? []), ...(inCredentials ?? [])]))
  const identity = hasRole ? undefined : (identityInProfile(inCredentials) ?? identityInProfile(inConfig))
  return { credentials, config, identity }
}

async function fileAt(path: string): Promise<ProfileFile> {
  try {
    return { path, text: await readFile(path, 'utf8'), fault: undefined }
  } catch (cause) {
    return { path, text: '', fault: cause as NodeJS.ErrnoException }
  }
}

function identityInProfile(values: ReadonlyMap<string, string> | undefined): AwsIdentity | undefined {
  const accessKeyId = values?.get('aws_access_key_id')
  const secretAccessKey = values?.get('aws_secret_access_key')
  if (!accessKeyId || !secretAccessKey) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: values?.get('aws_session_token') || undefined }
}

/** Keys in a profile with a role belong to another identity, which assumes the role. */
function assumesRole(values: ReadonlyMap<string, string>): boolean {
  return values.has('role_arn') && (values.has('source_profile') || values.has('credential_source'))
}

/** A comment begins a line, or follows white space. */
const COMMENT = /(?:^|\s)[#;].*$/

/** Returns the settings below `[name]`, or `undefined` if there is no such section. */
function sectionOf(text: string, name: string): ReadonlyMap<string, string> | undefined {
  let found: Map<string, string> | undefined
  let isInside = false
  for (const whole of text.split(/\r?\n/)) {
    const line = whole.replace(COMMENT, '')
    const section = /^\s*\[\s*([^\]]*?)\s*\]/.exec(line)?.[1]
    if (section !== undefined) {
      isInside = section.replace(/^(\S+)\s+(["']?)(.+)\2$/, '$1 $3') === name
      if (isInside) found ??= new Map()
      continue
    }
    const setting = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(line)
    if (isInside && setting !== null) found?.set(setting[1]!.toLowerCase(), setting[2]!)
  }
  return found
}
