import type { CredentialProvider } from '../core/credential.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { EgressOptions } from '../transport/egress.ts'
import { type Environment, oauthCredential, required, textOfFile, tokenAsker } from './token-request.ts'

/** Default audience of Azure's models. Older resources require `https://cognitiveservices.azure.com/.default`. */
const DEFAULT_SCOPE = 'https://ai.azure.com/.default'
const DEFAULT_AUTHORITY = 'https://login.microsoftonline.com'
const METADATA_ORIGIN = 'http://169.254.169.254'

/** Options of every source of Entra tokens. */
export interface EntraOptions {
  /** Audience of the token. Default `https://ai.azure.com/.default`. */
  readonly scope?: string | undefined
  /** Environment from which variables are read. Default: that of the process. */
  readonly environment?: Environment | undefined
}

/** Options of {@link entraClientSecret}. */
export interface EntraClientSecretOptions extends EntraOptions, EgressOptions {
  /** Id of the tenant. Default: `AZURE_TENANT_ID`. */
  readonly tenantId?: string | undefined
  /** Id of the app. Default: `AZURE_CLIENT_ID`. */
  readonly clientId?: string | undefined
  /** Client secret of the app. Default: `AZURE_CLIENT_SECRET`. */
  readonly clientSecret?: string | undefined
  /** Origin of the authority. Default: `AZURE_AUTHORITY_HOST`, or `https://login.microsoftonline.com`. */
  readonly authority?: string | undefined
}

const ENTRA_CLIENT_SECRET_OPTIONS = memberNames<EntraClientSecretOptions>()(
  'tenantId clientId clientSecret authority scope environment tls proxy',
)

/**
 * Returns tokens of an app registration, using its client secret.
 * @throws TypeError with the missing setting.
 */
export function entraClientSecret(options: EntraClientSecretOptions = {}): CredentialProvider {
  checkMembers(options, ENTRA_CLIENT_SECRET_OPTIONS, 'entraClientSecret')
  const { slot, exchange } = tokenEndpoint('entraClientSecret', options)
  const secret = required('entraClientSecret', options, 'clientSecret', 'AZURE_CLIENT_SECRET')
  const provider: CredentialProvider = (request) => exchange(request, { client_secret: secret }, 'AZURE_CLIENT_SECRET')
  return Object.assign(provider, { slot })
}

/** Options of {@link entraWorkloadIdentity}. */
export interface EntraWorkloadIdentityOptions extends Omit<EntraClientSecretOptions, 'clientSecret'> {
  /** File with the token of the platform, which replaces it regularly. Default: `AZURE_FEDERATED_TOKEN_FILE`. */
  readonly tokenFile?: string | undefined
}

const ENTRA_WORKLOAD_IDENTITY_OPTIONS = memberNames<EntraWorkloadIdentityOptions>()(
  'tokenFile tenantId clientId authority scope environment tls proxy',
)

/**
 * Returns tokens for a workload, such as a Kubernetes pod, using the token that its platform writes to a file.
 * @throws TypeError with the missing setting.
 */
export function entraWorkloadIdentity(options: EntraWorkloadIdentityOptions = {}): CredentialProvider {
  checkMembers(options, ENTRA_WORKLOAD_IDENTITY_OPTIONS, 'entraWorkloadIdentity')
  const { slot, exchange } = tokenEndpoint('entraWorkloadIdentity', options)
  const tokenFile = required('entraWorkloadIdentity', options, 'tokenFile', 'AZURE_FEDERATED_TOKEN_FILE')
  const provider: CredentialProvider = async (request) => {
    const assertion = await textOfFile(tokenFile, 'AZURE_FEDERATED_TOKEN_FILE')
    const proof = {
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion,
    }
    return exchange(request, proof, 'the federated credential of the app, and AZURE_FEDERATED_TOKEN_FILE')
  }
  return Object.assign(provider, { slot })
}

/** Options of {@link entraManagedIdentity}. */
export interface EntraManagedIdentityOptions extends EntraOptions {
  /** Client id of a user-assigned identity. Default: `AZURE_CLIENT_ID`, or the identity of the system. */
  readonly clientId?: string | undefined
  /** Origin of the metadata server. Default `http://169.254.169.254`; App Service names its own in `IDENTITY_ENDPOINT`. */
  readonly metadataOrigin?: string | undefined
}

const ENTRA_MANAGED_IDENTITY_OPTIONS = memberNames<EntraManagedIdentityOptions>()(
  'clientId metadataOrigin scope environment',
)

/** Returns tokens of the identity of a virtual machine, a container or an App Service. Never called through a proxy. */
export function entraManagedIdentity(options: EntraManagedIdentityOptions = {}): CredentialProvider {
  checkMembers(options, ENTRA_MANAGED_IDENTITY_OPTIONS, 'entraManagedIdentity')
  const { environment = process.env, scope = DEFAULT_SCOPE } = options
  const clientId = options.clientId || environment['AZURE_CLIENT_ID'] || undefined
  const endpoint = environment['IDENTITY_ENDPOINT']
  const header = environment['IDENTITY_HEADER']
  const isAppService = options.metadataOrigin === undefined && endpoint && header
  const url = new URL(
    isAppService ? endpoint : `${options.metadataOrigin ?? METADATA_ORIGIN}/metadata/identity/oauth2/token`,
  )
  url.searchParams.set('api-version', isAppService ? '2019-08-01' : '2018-02-01')
  url.searchParams.set('resource', scope.replace(/\/\.default$/, ''))
  if (clientId !== undefined) url.searchParams.set('client_id', clientId)
  const headers: Record<string, string> = isAppService ? { 'x-identity-header': header } : { metadata: 'true' }
  const ask = tokenAsker()
  const provider: CredentialProvider = async ({ signal, nowMs }) => {
    const answer = await ask({ url: url.href, method: 'GET', headers, signal })
    // App Service returns `expires_on`, in Unix seconds, and no `expires_in`.
    const endsAtSeconds = Number(answer.json['expires_on'])
    const what =
      'no token of the managed identity: assign one to this machine, and set AZURE_CLIENT_ID if it has several'
    const credential = oauthCredential(answer, nowMs, what)
    return credential.expiresAtMs === undefined && endsAtSeconds > 0
      ? { ...credential, expiresAtMs: endsAtSeconds * 1000 }
      : credential
  }
  return Object.assign(provider, { slot: `entra-managed-identity ${clientId ?? 'system'}` })
}

interface TokenEndpoint {
  readonly slot: string
  exchange(
    request: Parameters<CredentialProvider>[0],
    proof: Readonly<Record<string, string>>,
    setting: string,
  ): Promise<Awaited<ReturnType<CredentialProvider>>>
}

function tokenEndpoint(factory: string, options: Omit<EntraClientSecretOptions, 'clientSecret'>): TokenEndpoint {
  const { environment = process.env, scope = DEFAULT_SCOPE } = options
  const tenantId = required(factory, options, 'tenantId', 'AZURE_TENANT_ID')
  const clientId = required(factory, options, 'clientId', 'AZURE_CLIENT_ID')
  const authority = (options.authority || environment['AZURE_AUTHORITY_HOST'] || DEFAULT_AUTHORITY).replace(/\/+$/, '')
  const url = `${authority}/${encodeURIComponent(tenantId)}/oauth2/v2.0/token`
  const ask = tokenAsker(options)
  return {
    slot: `entra ${tenantId} ${clientId}`,
    async exchange({ signal, nowMs }, proof, setting) {
      const form = { grant_type: 'client_credentials', client_id: clientId, scope, ...proof }
      const answer = await ask({ url, method: 'POST', form, signal })
      return oauthCredential(
        answer,
        nowMs,
        `Entra returned no token: check AZURE_TENANT_ID, AZURE_CLIENT_ID, the scope, ${setting}`,
      )
    },
  }
}
