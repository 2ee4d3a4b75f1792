import { anthropicFoundry } from '../vendors/anthropic/anthropic.ts'
import { azureOpenai } from '../vendors/azure-openai/azure-openai.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { SettingError } from './setting-values.ts'

/** A vendor, and whether it can be called. */
export interface ConfiguredVendor {
  readonly vendor: Vendor
  readonly state: 'configured' | 'stand-in' | 'not configured'
}

/** Where a resource of the operator's is, and its keys. */
interface Resource {
  readonly endpoint: string
  readonly apiKey: readonly string[] | string
}

/** A cloud at which each customer has a host of its own. */
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

/** OpenAI models by the name of their deployment, such as `my-deployment=gpt-6-luna,other=gpt-6-sol`. */
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

/** Has an address, although nothing is asked there. */
const NOWHERE = 'https://not-set.invalid'

/**
 * The clouds that the environment configures or `named` holds.
 * @param read Gives a variable without blanks; undefined when it is not set.
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

/** Runs what may throw a TypeError about a setting, and names the setting. */
export function naming<Value>(name: string, run: () => Value): Value {
  try {
    return run()
  } catch (error) {
    if (error instanceof TypeError) throw new SettingError(`${name}: ${error.message}`)
    throw error
  }
}
