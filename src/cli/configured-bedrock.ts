import type { CredentialProvider } from '../core/credential.ts'
import { awsSignature } from '../credentials/aws.ts'
import { tokenServiceOf } from '../credentials/aws-identity.ts'
import { amazonBedrock } from '../vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropicBedrock } from '../vendors/anthropic/anthropic.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { type ConfiguredVendor, naming } from './configured-clouds.ts'
import { environmentProxy } from './environment-proxy.ts'
import { SettingError } from './setting-values.ts'
import type { Environment } from './terminal.ts'

type Location = { readonly region: string } | { readonly endpoint: string }
type Keys = readonly string[] | string | CredentialProvider

const VENDORS: Readonly<Record<string, (options: Location & { readonly apiKey: Keys }) => Vendor>> = {
  'amazon-bedrock': amazonBedrock,
  'anthropic-bedrock': anthropicBedrock,
}

/**
 * AWS credentials may belong to another service, so they count only if a region is set or the operator's models name Bedrock. A
 * Bedrock key always counts.
 */
const KEY_VARIABLES = ['AWS_ACCESS_KEY_ID', 'AWS_PROFILE', 'AWS_WEB_IDENTITY_TOKEN_FILE'] as const

/** Placeholder address that is never called. */
const NO_REGION = { endpoint: 'https://not-set.invalid' }

/**
 * Builds Amazon Bedrock, and Claude on it, if the environment configures them or `named` contains them.
 * @throws SettingError for a key without a region, or an invalid region.
 */
export function configuredBedrock(
  environment: Environment,
  keysOf: (text: string | undefined) => readonly string[],
  standInOrigin: string | undefined,
  named: ReadonlySet<string>,
): ConfiguredVendor[] {
  const read = (name: string): string | undefined => environment[name]?.trim() || undefined
  const bearers = keysOf(read('AWS_BEARER_TOKEN_BEDROCK'))
  const region = read('AWS_REGION') ?? read('AWS_DEFAULT_REGION')
  const endpoint = read('AWS_ENDPOINT_URL_BEDROCK_RUNTIME')
  const hasKeys = KEY_VARIABLES.some((name) => read(name) !== undefined)
  return Object.entries(VENDORS).flatMap(([id, make]): ConfiguredVendor[] => {
    const isNamed = named.has(id)
    const isConfigured = bearers.length > 0 || (hasKeys && (region !== undefined || isNamed))
    if (!isConfigured && !isNamed) return []
    if (!isConfigured && standInOrigin !== undefined)
      return [{ vendor: make({ endpoint: `${standInOrigin}/bedrock`, apiKey: 'stand-in' }), state: 'stand-in' }]
    if (!isConfigured) return [{ vendor: make({ ...NO_REGION, apiKey: [] }), state: 'not configured' }]
    if (region === undefined && (endpoint === undefined || bearers.length === 0))
      throw new SettingError('AWS_REGION: set it to the region of the models, such as eu-central-1')
    const location = endpoint === undefined ? { region: region! } : { endpoint }
    const apiKey = bearers.length > 0 ? bearers : signatureIn(region!, environment)
    return [
      {
        vendor: naming(endpoint === undefined ? 'AWS_REGION' : 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME', () =>
          make({ ...location, apiKey }),
        ),
        state: 'configured',
      },
    ]
  })
}

/** Signs with the AWS credentials of the environment, which may have to be requested through its proxy. */
function signatureIn(region: string, environment: Environment): CredentialProvider {
  const proxy = environmentProxy(tokenServiceOf(region), environment)
  return awsSignature({ region, environment, ...(proxy === undefined ? {} : { proxy }) })
}
