import type { Credential, CredentialRequest } from '../core/credential.ts'
import { isJsonObject } from '../core/json.ts'
import { type AskTokens, oauthCredential, refusalOf, textOfFile } from './token-request.ts'

const IMPERSONATION_SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const LONGEST_SECONDS = 3_600

type Content = Readonly<Record<string, unknown>>

/** Settings of a request for a federated token. */
export interface FederationContext {
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
export async function federatedToken(
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
export async function impersonated(
  { ask, scope, setting }: Pick<FederationContext, 'ask' | 'scope' | 'setting'>,
  content: Content,
  { token }: Credential,
  { signal, nowMs }: CredentialRequest,
): Promise<Credential> {
  const url = textOf(content, 'service_account_impersonation_url', setting)
  const wished = isJsonObject(content['service_account_impersonation'])
    ? Number(content['service_account_impersonation']['token_lifetime_seconds'])
    : LONGEST_SECONDS
  const lifetimeSeconds = Number.isSafeInteger(wished) && wished > 0 ? wished : LONGEST_SECONDS
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
  const token = type === 'json' ? memberOf(text, String(name)) : text
  if (typeof token === 'string' && token !== '') return token
  throw new Error(`credential_source of ${setting}: its output contains no token; check its format`)
}

function memberOf(text: string, name: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value[name] : undefined
  } catch {
    // The message of the parser repeats the text, which contains a token.
    return undefined
  }
}

function textOf(content: Content, name: string, setting: string): string {
  const value = content[name]
  if (typeof value === 'string' && value !== '') return value
  throw new Error(
    `${setting}: ${name} is missing: create the file again with gcloud iam workload-identity-pools create-cred-config`,
  )
}
