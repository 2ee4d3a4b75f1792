import { anthropicFoundry } from '../vendors/anthropic/anthropic.ts'
import { azureOpenai } from '../vendors/azure-openai/azure-openai.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { SettingError } from './setting-values.ts'

/** Vendor, and whether it can be called. */
export interface ConfiguredVendor {
  readonly vendor: Vendor
  readonly state: 'configured' | 'stand-in' | 'not configured'
}

/** Address and keys of an operator's resource. */
interface Resource {
  readonly endpoint: string
  readonly apiKey: readonly string[] | string
}

/** Cloud that gives each customer a separate host. */
interface Cloud {
  readonly id: string
  readonly keyVariable: string
  readonly endpointVariable: string
  make(resource: Resource, read: (name: string) => string | undefined): Vendor
}

const CLOUDS: readonly Cloud[] = [
  {
    id: 'azure-openai',
    keyVariable: 'AZURE_OPENAI_API_KEY',
    endpointVariable: 'AZURE_OPENAI_ENDPOINT',
    make: (resource, read) =>
      azureOpenai({
        ...resource,
        apiVersion: read('AZURE_OPENAI_API_VERSION'),
        deployments: deploymentsOf(read('AZURE_OPENAI_DEPLOYMENTS')),
      }),
  },
  {
    id: 'anthropic-foundry',
    keyVariable: 'ANTHROPIC_FOUNDRY_API_KEY',
    endpointVariable: 'ANTHROPIC_FOUNDRY_BASE_URL',
    make: (resource) => anthropicFoundry(resource),
  },
]

/** Parses the deployments of OpenAI models, such as `my-deployment=gpt-6-luna,other=gpt-6-sol`. */
function deploymentsOf(text: string | undefined): Readonly<Record<string, string>> {
  const pairs = (text ?? '').split(',').flatMap((pair) => (pair.trim() === '' ? [] : [pair.split('=')]))
  return Object.fromEntries(
    pairs.map(([deployment = '', model = '', ...rest]) => {
      if (deployment.trim() === '' || model.trim() === '' || rest.length > 0)
        throw new SettingError(
          'AZURE_OPENAI_DEPLOYMENTS: must be a list such as my-deployment=gpt-6-luna,other=gpt-6-sol',
        )
      return [deployment.trim(), model.trim()]
    }),
  )
}

/** Placeholder address that is never called. */
const NOWHERE = 'https://not-set.invalid'

/**
 * Builds the clouds that the environment configures or `named` contains.
 * @param read Returns a trimmed variable, or `undefined` if it is not set.
 * @throws SettingError for an address that cannot be used, and for a key without an address.
 */
export function configuredClouds(
  read: (name: string) => string | undefined,
  keysOf: (text: string | undefined) => readonly string[],
  standInOrigin: string | undefined,
  named: ReadonlySet<string>,
): ConfiguredVendor[] {
  return CLOUDS.flatMap(({ id, keyVariable, endpointVariable, make }): ConfiguredVendor[] => {
    const apiKey = keysOf(read(keyVariable))
    const endpoint = read(endpointVariable)
    if (apiKey.length === 0 && endpoint === undefined && !named.has(id)) return []
    if (apiKey.length === 0 && standInOrigin !== undefined) {
      return [{ vendor: make({ endpoint: standInOrigin, apiKey: 'stand-in' }, () => undefined), state: 'stand-in' }]
    }
    if (apiKey.length > 0 && endpoint === undefined)
      throw new SettingError(
        `${endpointVariable}: set it to the address of the resource that ${keyVariable} belongs to`,
      )
    const vendor = naming(endpointVariable, () => make({ endpoint: endpoint ?? NOWHERE, apiKey }, read))
    return [{ vendor, state: apiKey.length > 0 ? 'configured' : 'not configured' }]
  })
}

/** Runs a function that may throw a TypeError about a setting, and adds the name of the setting. */
export function naming<Value>(name: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    if (error instanceof TypeError) throw new SettingError(`${name}: ${error.message}`)
    throw error
  }
}
