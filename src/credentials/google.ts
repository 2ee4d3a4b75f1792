import { createPrivateKey, createSign, type KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Credential, CredentialProvider, CredentialRequest } from '../core/credential.ts'
import { isJsonObject, objectOf, parseVendorJson } from '../core/json.ts'
import { checkGivenMembers, checkMembers, memberNames } from '../core/known-members.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { EgressOptions } from '../transport/egress.ts'
import {
  type AskTokens,
  type Environment,
  oauthCredential,
  refusalOf,
  textOfFile,
  tokenAsker,
} from './token-request.ts'

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const TOKEN_URL = 'https://oauth2.googleapis.com/token'
const METADATA_ORIGIN = 'http://metadata.google.internal'
/** The claim is backdated by this time, because the server rejects a claim from its future. */
const DATED_BACK_SECONDS = 30
const MAX_CLAIM_SECONDS = 3_600
/** The metadata server returns the same token until about this long before its expiry. */
const METADATA_AHEAD_MS = 240_000

type Content = Readonly<Record<string, unknown>>

/** Options of every source of Google's tokens. */
export interface GoogleOptions extends EgressOptions {
  /** Scope of the token. Default `https://www.googleapis.com/auth/cloud-platform`. */
  readonly scope?: string | undefined
}

/** Options of {@link googleServiceAccount}. */
export interface GoogleServiceAccountOptions extends GoogleOptions {
  /** JSON of the key file, as text or as an object. Line breaks of the key may be written as the two characters `\n`. */
  readonly key: string | Readonly<Record<string, unknown>>
}

const GOOGLE_SERVICE_ACCOUNT_OPTIONS = memberNames<GoogleServiceAccountOptions>()('key scope tls proxy')

/** Key and claims of a service account. */
interface ServiceAccount {
  readonly email: string
  readonly privateKey: KeyObject
  readonly keyId: string | undefined
  readonly tokenUrl: string
}

/**
 * Returns tokens of a service account, using its key.
 * @throws TypeError if the key is invalid. The message does not repeat it.
 */
export function googleServiceAccount(options: GoogleServiceAccountOptions): CredentialProvider {
  checkGivenMembers(options, GOOGLE_SERVICE_ACCOUNT_OPTIONS, 'googleServiceAccount')
  const account = serviceAccountIn(
    keyFileOf(options.key, 'googleServiceAccount({ key })'),
    'googleServiceAccount({ key })',
  )
  const ask = tokenAsker(options)
  const provider: CredentialProvider = (request) => signedToken(ask, account, options.scope ?? SCOPE, request)
  return Object.assign(provider, { slot: `google ${account.email}` })
}

/** Options of {@link googleDefaultCredentials}. */
export interface GoogleDefaultOptions extends GoogleOptions {
  /** Environment from which variables are read. Default: that of the process. */
  readonly environment?: Environment | undefined
  /** Origin of the metadata server. Default `http://metadata.google.internal`, or `GCE_METADATA_HOST`. */
  readonly metadataOrigin?: string | undefined
}

const GOOGLE_DEFAULT_OPTIONS = memberNames<GoogleDefaultOptions>()('environment metadataOrigin scope tls proxy')

/**
 * Uses Google's application default credentials: the file of `GOOGLE_APPLICATION_CREDENTIALS`, otherwise the file of `gcloud auth
 * application-default login`, otherwise the metadata server of the machine. Supports files of the types `service_account`,
 * `authorized_user`, `external_account` and `impersonated_service_account`, and reads them each time.
 */
export function googleDefaultCredentials(options: GoogleDefaultOptions = {}): CredentialProvider {
  checkMembers(options, GOOGLE_DEFAULT_OPTIONS, 'googleDefaultCredentials')
  const { environment = process.env, scope = SCOPE } = options
  const ask = tokenAsker(options)
  const askLocally = tokenAsker()
  const metadata = googleMetadata({
    metadataOrigin: options.metadataOrigin ?? metadataOriginIn(environment),
    ...(options.scope === undefined ? {} : { scope: options.scope }),
  })
  const provider: CredentialProvider = async (request) => {
    const file = credentialFile(environment)
    if (file === undefined) return withNotFoundHint(metadata(request))
    const setting = 'GOOGLE_APPLICATION_CREDENTIALS'
    const content = keyFileOf(await textOfFile(file, setting), setting)
    return tokenOf({ ask, askLocally, scope, setting }, content, request)
  }
  return Object.assign(provider, { slot: 'google default', refreshAheadMs: METADATA_AHEAD_MS })
}

/** Returns the token of a file, by its type. */
async function tokenOf(context: FederationContext, content: Content, request: CredentialRequest): Promise<Credential> {
  const { ask, scope, setting } = context
  const { type, source_credentials: source } = content
  if (type === 'authorized_user') return userToken(ask, content, request)
  if (type === 'service_account') return signedToken(ask, serviceAccountIn(content, setting), scope, request)
  if (type === 'external_account') return federatedToken(context, content, request)
  // Only one level, because an impersonated account cannot impersonate another.
  if (type === 'impersonated_service_account' && isJsonObject(source) && source['type'] !== type)
    return impersonated(context, content, await tokenOf(context, source, request), request)
  throw new Error(
    `${setting}: credentials of the type ${JSON.stringify(type)} are not supported: pass a function that gets a token from google-auth-library`,
  )
}

/** Options of {@link googleWorkloadIdentity}. */
export interface GoogleWorkloadIdentityOptions extends GoogleOptions {
  /** The JSON of `gcloud iam workload-identity-pools create-cred-config`, as text or as an object. It contains no secret. */
  readonly configuration: string | Readonly<Record<string, unknown>>
}

const GOOGLE_WORKLOAD_IDENTITY_OPTIONS = memberNames<GoogleWorkloadIdentityOptions>()('configuration scope tls proxy')

/**
 * Returns tokens for a workload of another platform by workload identity federation: its own token comes from a file or a URL.
 * @throws TypeError if the configuration is invalid.
 */
export function googleWorkloadIdentity(options: GoogleWorkloadIdentityOptions): CredentialProvider {
  checkGivenMembers(options, GOOGLE_WORKLOAD_IDENTITY_OPTIONS, 'googleWorkloadIdentity')
  const { scope = SCOPE } = options
  const setting = 'googleWorkloadIdentity({ configuration })'
  const content = keyFileOf(options.configuration, setting)
  if (content['type'] !== 'external_account')
    throw new TypeError(`${setting}: is of the type ${JSON.stringify(content['type'])}, not external_account`)
  const context = { ask: tokenAsker(options), askLocally: tokenAsker(), scope, setting }
  const provider: CredentialProvider = (request) => federatedToken(context, content, request)
  return Object.assign(provider, { slot: `google ${String(content['audience'])}` })
}

/** Options of {@link googleMetadata}. */
export interface GoogleMetadataOptions {
  readonly scope?: string | undefined
  /** Origin of the metadata server. Default `http://metadata.google.internal`. */
  readonly metadataOrigin?: string | undefined
}

const GOOGLE_METADATA_OPTIONS = memberNames<GoogleMetadataOptions>()('scope metadataOrigin')

/** Returns tokens of the service account of a machine from its metadata server. Never called through a proxy. */
export function googleMetadata(options: GoogleMetadataOptions = {}): CredentialProvider {
  checkMembers(options, GOOGLE_METADATA_OPTIONS, 'googleMetadata')
  const { scope, metadataOrigin = METADATA_ORIGIN } = options
  const url = new URL(`${metadataOrigin}/computeMetadata/v1/instance/service-accounts/default/token`)
  if (scope !== undefined) url.searchParams.set('scopes', scope)
  const ask = tokenAsker()
  const provider: CredentialProvider = async ({ signal, nowMs }) => {
    const answer = await ask({ url: url.href, method: 'GET', headers: { 'metadata-flavor': 'Google' }, signal })
    return oauthCredential(
      answer,
      nowMs,
      'no token of the machine: assign a service account to it, or set GOOGLE_APPLICATION_CREDENTIALS',
    )
  }
  return Object.assign(provider, { slot: 'google metadata', refreshAheadMs: METADATA_AHEAD_MS })
}

/** Without a metadata server there is no credential, and the error lists the possible sources. */
async function withNotFoundHint(asked: MaybePromise<Credential>): Promise<Credential> {
  try {
    return await asked
  } catch (cause) {
    const sources =
      'set GOOGLE_APPLICATION_CREDENTIALS, run gcloud auth application-default login, or assign a service account to this machine'
    throw new Error(`no Google credentials: ${sources} (${(cause as Error).message})`, { cause })
  }
}

function metadataOriginIn(environment: Environment): string {
  const host = environment['GCE_METADATA_HOST']
  return host === undefined || host === '' ? METADATA_ORIGIN : `http://${host}`
}

function credentialFile(environment: Environment): string | undefined {
  const named = environment['GOOGLE_APPLICATION_CREDENTIALS']?.trim()
  if (named !== undefined && named !== '') return named
  const file = join(gcloudFolder(environment), 'application_default_credentials.json')
  return existsSync(file) ? file : undefined
}

/** Returns the folder of gcloud's files. */
function gcloudFolder(environment: Environment): string {
  const { CLOUDSDK_CONFIG: named, APPDATA: roaming, HOME: home } = environment
  if (named) return named
  return process.platform === 'win32' && roaming
    ? join(roaming, 'gcloud')
    : join(home || homedir(), '.config', 'gcloud')
}

async function signedToken(
  ask: AskTokens,
  account: ServiceAccount,
  scope: string,
  { signal, nowMs }: CredentialRequest,
): Promise<Credential> {
  const { email, keyId, privateKey, tokenUrl } = account
  const issuedAt = Math.floor(nowMs / 1000) - DATED_BACK_SECONDS
  const head = { alg: 'RS256', typ: 'JWT', ...(keyId === undefined ? {} : { kid: keyId }) }
  const claims = { iss: email, scope, aud: tokenUrl, iat: issuedAt, exp: issuedAt + MAX_CLAIM_SECONDS }
  const unsigned = [head, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  const signature = createSign('RSA-SHA256').update(unsigned).sign(privateKey, 'base64url')
  const form = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: `${unsigned}.${signature}` }
  const answer = await ask({ url: tokenUrl, method: 'POST', form, signal })
  const isClock = answer.json['error'] === 'invalid_grant'
  const remedy = isClock
    ? 'set the clock of this machine, or renew the key of the service account'
    : 'check the key of the service account, and its scope'
  return oauthCredential(answer, nowMs, `Google returned no token for ${email}: ${remedy}`)
}

async function userToken(ask: AskTokens, content: Content, { signal, nowMs }: CredentialRequest): Promise<Credential> {
  const [clientId, clientSecret, refreshToken] = ['client_id', 'client_secret', 'refresh_token'].map((name) => {
    const value = content[name]
    if (typeof value === 'string') return value
    throw new Error(`GOOGLE_APPLICATION_CREDENTIALS: ${name} is missing; run gcloud auth application-default login`)
  }) as [string, string, string]
  const form = {
    grant_type: 'refresh_token',
    client_id: clientId,
    client_secret: clientSecret,
    refresh_token: refreshToken,
  }
  const url = typeof content['token_uri'] === 'string' ? content['token_uri'] : TOKEN_URL
  const answer = await ask({ url, method: 'POST', form, signal })
  return oauthCredential(
    answer,
    nowMs,
    'Google returned no token for this user: run gcloud auth application-default login',
  )
}

/** @throws TypeError that does not repeat the text, which contains a private key. */
function keyFileOf(key: string | Content, setting: string): Content {
  const value = typeof key === 'string' ? parseVendorJson(key) : key
  if (isJsonObject(value)) return value
  throw new TypeError(`${setting}: is not the JSON of a key file`)
}

function serviceAccountIn(content: Content, setting: string): ServiceAccount {
  const { client_email: email, private_key: key, private_key_id: keyId, token_uri: tokenUrl } = content
  if (typeof email !== 'string' || typeof key !== 'string')
    throw new TypeError(`${setting}: client_email or private_key is missing: pass the whole key file`)
  return {
    email,
    privateKey: privateKeyIn(key, setting),
    keyId: typeof keyId === 'string' ? keyId : undefined,
    tokenUrl: typeof tokenUrl === 'string' ? tokenUrl : TOKEN_URL,
  }
}

/** @throws TypeError that does not repeat the key. */
function privateKeyIn(text: string, setting: string): KeyObject {
  try {
    return createPrivateKey(text.replaceAll('\\n', '\n'))
  } catch {
    throw new TypeError(
      `${setting}: private_key cannot be read: it must be whole, from BEGIN to END, with its line breaks or with \\n in their place`,
    )
  }
}

const IMPERSONATION_SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const MAX_SECONDS = 3_600

/** Settings of a request for a federated token. */
interface FederationContext {
  readonly scope: string
  /** File or option that errors name. */
  readonly setting: string
  readonly ask: AskTokens
  /** Calls servers on the machine's own network, which no proxy reaches. */
  readonly askLocally: AskTokens
}

/**
 * Returns a token for a workload or a person of another identity provider (Google, AIP-4117). The provider's token, from a file
 * or a URL, is exchanged at Google's token service, and then for a token of a service account if the configuration names one. The
 * provider's token is read each time, because its platform replaces it regularly.
 * @throws Error with the setting and the missing part, without any token.
 */
async function federatedToken(
  context: FederationContext,
  content: Content,
  request: CredentialRequest,
): Promise<Credential> {
  const { ask, scope, setting } = context
  const { signal, nowMs } = request
  const audience = textOf(content, 'audience', setting)
  const subjectToken = await subjectTokenOf(context, content['credential_source'], signal)
  const userProject = content['workforce_pool_user_project']
  const clientId = content['client_id']
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    audience,
    // The impersonating identity needs the impersonation scope, and the account the requested one.
    scope: content['service_account_impersonation_url'] === undefined ? scope : IMPERSONATION_SCOPE,
    subject_token: subjectToken,
    subject_token_type: textOf(content, 'subject_token_type', setting),
    ...(typeof userProject === 'string' && clientId === undefined ? { options: JSON.stringify({ userProject }) } : {}),
  }
  const basic = `${String(clientId)}:${String(content['client_secret'] ?? '')}`
  const headers: Record<string, string> =
    clientId === undefined ? {} : { authorization: `Basic ${Buffer.from(basic).toString('base64')}` }
  const answer = await ask({ url: textOf(content, 'token_url', setting), method: 'POST', headers, form, signal })
  const credential = oauthCredential(
    answer,
    nowMs,
    `Google does not accept the token of ${audience}: check the provider of the pool, and the output of credential_source of ${setting}`,
  )
  return content['service_account_impersonation_url'] === undefined
    ? credential
    : impersonated(context, content, credential, request)
}

/** Exchanges the token of another identity for a token of the configured service account. */
async function impersonated(
  { ask, scope, setting }: Pick<FederationContext, 'ask' | 'scope' | 'setting'>,
  content: Content,
  { token }: Credential,
  { signal, nowMs }: CredentialRequest,
): Promise<Credential> {
  const url = textOf(content, 'service_account_impersonation_url', setting)
  const wished = isJsonObject(content['service_account_impersonation'])
    ? Number(content['service_account_impersonation']['token_lifetime_seconds'])
    : MAX_SECONDS
  const lifetimeSeconds = Number.isSafeInteger(wished) && wished > 0 ? wished : MAX_SECONDS
  // The accounts between the identity and this one. Each may create tokens of the next.
  const { delegates } = content
  const answer = await ask({
    url,
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    json: {
      scope: [scope],
      lifetime: `${lifetimeSeconds}s`,
      ...(Array.isArray(delegates) && delegates.length > 0 ? { delegates } : {}),
    },
    signal,
  })
  const { accessToken } = answer.json
  // Counted from its arrival, so that different clocks do not matter.
  if (answer.status === 200 && typeof accessToken === 'string')
    return { token: accessToken, expiresAtMs: nowMs + lifetimeSeconds * 1000 }
  const account = /serviceAccounts\/([^/:]+)/.exec(url)?.[1] ?? 'the service account'
  throw new Error(
    `no token of ${account}: give the identity the role Service Account Token Creator on it: ${refusalOf(answer.status, answer.json)}`,
  )
}

async function subjectTokenOf(
  { ask, askLocally, setting }: FederationContext,
  source: unknown,
  signal: AbortSignal,
): Promise<string> {
  const { file, url, headers, format } = isJsonObject(source) ? source : {}
  if (typeof file === 'string')
    return readToken(await textOfFile(file, `credential_source of ${setting}`), format, setting)
  if (typeof url === 'string' && URL.canParse(url)) {
    const asker = url.startsWith('http:') ? askLocally : ask
    const sent = isJsonObject(headers) ? (headers as Readonly<Record<string, string>>) : {}
    const { status, text, json } = await asker({ url, method: 'GET', headers: sent, signal })
    if (status === 200) return readToken(text.trim(), format, setting)
    throw new Error(
      `credential_source of ${setting}: ${new URL(url).origin} returned no token: ${refusalOf(status, json)}`,
    )
  }
  throw new Error(
    `credential_source of ${setting}: only file and url are supported: pass a function that gets a token from google-auth-library`,
  )
}

/** Returns the token from the output of a source: the whole text, or a member of its JSON. */
function readToken(text: string, format: unknown, setting: string): string {
  const { type = 'text', subject_token_field_name: name } = isJsonObject(format) ? format : {}
  const token = type === 'json' ? objectOf(parseVendorJson(text))[String(name)] : text
  if (typeof token === 'string' && token !== '') return token
  throw new Error(`credential_source of ${setting}: its output contains no token; check its format`)
}

function textOf(content: Content, name: string, setting: string): string {
  const value = content[name]
  if (typeof value === 'string' && value !== '') return value
  throw new Error(
    `${setting}: ${name} is missing: create the file again with gcloud iam workload-identity-pools create-cred-config`,
  )
}
