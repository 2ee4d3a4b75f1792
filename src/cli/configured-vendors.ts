import type { CredentialProvider } from '../core/credential.ts'
import { awsSignature, tokenServiceOf } from '../credentials/aws.ts'
import { googleDefaultCredentials } from '../credentials/google.ts'
import { vendorConnection } from '../transport/vendor-connection.ts'
import { amazonBedrock } from '../vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropic, anthropicBedrock, anthropicFoundry, anthropicVertex } from '../vendors/anthropic/anthropic.ts'
import { azureOpenai } from '../vendors/azure-openai/azure-openai.ts'
import { cohere } from '../vendors/cohere/cohere.ts'
import { dashscope } from '../vendors/dashscope/dashscope.ts'
import { gemini, vertex } from '../vendors/gemini/gemini.ts'
import { openai } from '../vendors/openai/openai.ts'
import { openaiCompatible } from '../vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../vendors/presets/presets.ts'
import type { ApiKeys, Vendor } from '../vendors/vendor.ts'
import { voyage } from '../vendors/voyage/voyage.ts'
import { environmentProxy } from './environment-proxy.ts'
import { namingSetting, SettingError } from './setting-values.ts'
import type { Documents, Environment } from './terminal.ts'
import { type AdditionalVendor, type VendorSettings, vendorSettings } from './vendor-settings.ts'

interface VendorOptions {
  readonly apiKey?: readonly string[] | string
  readonly baseURL?: string
}

/** Vendors by the prefix of their variables: `OPENAI_API_KEY` with one or several keys, `OPENAI_BASE_URL`. */
const FACTORIES: readonly (readonly [prefix: string, make: (options: VendorOptions) => Vendor])[] = [
  ['OPENAI', openai],
  ['ANTHROPIC', anthropic],
  ['GEMINI', gemini],
  ['DASHSCOPE', dashscope],
  ['VOYAGE', voyage],
  ['COHERE', cohere],
]

/**
 * Builds every vendor from the environment, and the presets that it configures or `named` contains. Vendors without a key use the
 * stand-ins if their origin is set.
 * @param named Ids of the vendors that the operator's models name.
 * @throws SettingError for a malformed base URL or proxy, and for a preset whose account is missing.
 */
export function configuredVendors(
  environment: Environment,
  standInOrigin: string | undefined,
  named: ReadonlySet<string> = new Set(),
  documents?: Documents,
): ConfiguredVendor[] {
  const settings = vendorSettings(environment, documents)
  const hasStandIns = standInOrigin !== undefined
  const vendors = FACTORIES.map(([prefix, make]): ConfiguredVendor => {
    const apiKeys = keysOf(settings.keyText(prefix.toLowerCase(), [`${prefix}_API_KEY`], hasStandIns))
    const baseURL = baseURLOf(environment, `${prefix}_BASE_URL`)
    const options = settings.own(prefix.toLowerCase())
    if (apiKeys.length > 0) {
      const given = { ...options, apiKey: apiKeys, ...(baseURL === undefined ? {} : { baseURL }) }
      return {
        vendor: namingSetting(`SIGNALBOX_VENDORS: ${prefix.toLowerCase()}`, () => make(given)),
        state: 'configured',
      }
    }
    if (standInOrigin === undefined) return { vendor: make({}), state: 'not configured' }
    return { vendor: make({ apiKey: 'stand-in', baseURL: standInOrigin }), state: 'stand-in' }
  })
  for (const preset of Object.values<Preset>(presets)) {
    const isNamed = named.has(preset.id) || settings.ids.has(preset.id)
    const configured = configuredPreset(preset, environment, standInOrigin, isNamed, settings)
    if (configured !== undefined) vendors.push(configured)
  }
  for (const further of settings.further) vendors.push(furtherVendor(further, environment, standInOrigin))
  const read = (name: string): string | undefined => environment[name]?.trim() || undefined
  const source: CloudSource = { environment, read, standInOrigin, named }
  const all = [...vendors, ...configuredClouds(source), ...configuredBedrock(source), ...configuredVertex(source)]
  checkNamed(settings, all)
  return all.map((configured) => ({ ...configured, vendor: connected(configured.vendor, environment, settings) }))
}

/** Returns the vendor with its connection settings, including the environment's proxy for its origin. */
function connected(vendor: Vendor, environment: Environment, settings: VendorSettings): Vendor {
  const own = settings.connection(vendor.id)
  const proxy = own.proxy ?? environmentProxy(vendor.origin, environment)
  const connection = namingSetting(`SIGNALBOX_VENDORS: ${vendor.id}`, () => vendorConnection({ ...own, proxy }))
  return { ...vendor, ...connection, ...settings.traits(vendor.id) }
}

/** An unknown vendor in the file is a typing error. */
function checkNamed({ ids }: VendorSettings, all: readonly ConfiguredVendor[]): void {
  for (const id of ids)
    if (!all.some(({ vendor }) => vendor.id === id))
      throw new SettingError(`SIGNALBOX_VENDORS: ${id}: there is no such vendor; give it a type, or set its variables`)
}

/** Variables of a preset; the first key variable is preferred. */
export interface PresetVariables {
  readonly keys: readonly string[]
  readonly baseURL: string
  /** Present if the base URL names an account. */
  readonly account: string | undefined
}

/** Returns the names of the variables that configure a preset. */
export function presetVariables({ id, keyVariables, baseURL }: Preset): PresetVariables {
  const prefix = id.toUpperCase().replaceAll('-', '_')
  return {
    keys: keyVariables,
    baseURL: `${prefix}_BASE_URL`,
    account: baseURL.includes('{account}') ? `${prefix}_ACCOUNT_ID` : undefined,
  }
}

/**
 * Returns the entry of a vendor in a new configuration file: the variable of its key, or an empty entry if it has none. Returns
 * `undefined` if the vendor is a cloud, whose location only the environment contains.
 */
export function vendorEntry(id: string, environment: Environment): { readonly keyVariable?: string } | undefined {
  const preset = Object.values<Preset>(presets).find((one) => one.id === id)
  const own = FACTORIES.filter(([prefix]) => prefix.toLowerCase() === id).map(([prefix]) => `${prefix}_API_KEY`)
  const keys = preset === undefined ? own : presetVariables(preset).keys
  if (preset === undefined && own.length === 0) return undefined
  const keyVariable = keys.find((name) => keysOf(environment[name]).length > 0)
  return keyVariable === undefined ? {} : { keyVariable }
}

/** Returns `undefined` if nothing requests this preset. */
function configuredPreset(
  preset: Preset,
  environment: Environment,
  standInOrigin: string | undefined,
  isNamed: boolean,
  settings: VendorSettings,
): ConfiguredVendor | undefined {
  const { baseURL: givenBaseURL, account: givenAccount, ...options } = settings.own(preset.id)
  const variables = presetVariables(preset)
  const apiKey = keysOf(settings.keyText(preset.id, variables.keys, standInOrigin !== undefined))
  const baseURL = baseURLOf(environment, variables.baseURL) ?? (givenBaseURL as string | undefined)
  if (apiKey.length === 0 && baseURL === undefined && !isNamed) return undefined
  const isReachable = apiKey.length > 0 || (!preset.needsKey && (baseURL !== undefined || standInOrigin === undefined))
  if (!isReachable && standInOrigin !== undefined) {
    const standIn = { apiKey: 'stand-in', baseURL: `${standInOrigin}/presets/${preset.id}/v1` }
    return { vendor: openaiCompatible(preset, standIn), state: 'stand-in' }
  }
  const account =
    variables.account === undefined
      ? undefined
      : environment[variables.account]?.trim() || ((givenAccount as string | undefined) ?? '')
  if (account === '' && baseURL === undefined && isReachable) {
    // Its key may belong to another tool of the same company.
    if (!isNamed) return undefined
    throw new SettingError(`${variables.account}: set it to the account that ${variables.keys[0]} belongs to`)
  }
  const given = {
    ...options,
    apiKey,
    ...(baseURL === undefined ? {} : { baseURL }),
    ...(account === undefined ? {} : { account: account === '' ? 'not-set' : account }),
  }
  const vendor = namingSetting(`SIGNALBOX_VENDORS: ${preset.id}`, () => openaiCompatible(preset, given))
  return { vendor, state: isReachable ? 'configured' : 'not configured' }
}

function baseURLOf(environment: Environment, name: string): string | undefined {
  const baseURL = environment[name]?.trim() ?? ''
  if (baseURL === '') return undefined
  if (!/^https?:\/\/\S+$/.test(baseURL) || !URL.canParse(baseURL))
    throw new SettingError(`${name}: ${JSON.stringify(baseURL)} is not an http or https URL`)
  return baseURL
}

/** Placeholder address that is never called. */
const UNSET_URL = 'https://not-set.invalid'

/** Where the settings of clouds come from. */
interface CloudSource {
  readonly environment: Environment
  /** Returns a trimmed variable, or `undefined` if it is not set. */
  read(name: string): string | undefined
  readonly standInOrigin: string | undefined
  /** Ids of the vendors that the operator's models name. */
  readonly named: ReadonlySet<string>
}

type Location = { readonly region: string } | { readonly endpoint: string }
type Keys = readonly string[] | string | CredentialProvider

const BEDROCK_VENDORS: Readonly<Record<string, (options: Location & { readonly apiKey: Keys }) => Vendor>> = {
  'amazon-bedrock': amazonBedrock,
  'anthropic-bedrock': anthropicBedrock,
}

/**
 * AWS credentials may belong to another service, so they count only if a region is set or the operator's models name Bedrock. A
 * Bedrock key always counts.
 */
const KEY_VARIABLES = ['AWS_ACCESS_KEY_ID', 'AWS_PROFILE', 'AWS_WEB_IDENTITY_TOKEN_FILE'] as const

/**
 * Builds Amazon Bedrock, and Claude on it, if the environment configures them or `named` contains them.
 * @throws SettingError for a key without a region, or an invalid region.
 */
function configuredBedrock({ environment, read, standInOrigin, named }: CloudSource): ConfiguredVendor[] {
  const bearers = keysOf(read('AWS_BEARER_TOKEN_BEDROCK'))
  const region = read('AWS_REGION') ?? read('AWS_DEFAULT_REGION')
  const endpoint = read('AWS_ENDPOINT_URL_BEDROCK_RUNTIME')
  const hasKeys = KEY_VARIABLES.some((name) => read(name) !== undefined)
  return Object.entries(BEDROCK_VENDORS).flatMap(([id, make]): ConfiguredVendor[] => {
    const isNamed = named.has(id)
    const isConfigured = bearers.length > 0 || (hasKeys && (region !== undefined || isNamed))
    if (!isConfigured && !isNamed) return []
    if (!isConfigured && standInOrigin !== undefined)
      return [{ vendor: make({ endpoint: `${standInOrigin}/bedrock`, apiKey: 'stand-in' }), state: 'stand-in' }]
    if (!isConfigured) return [{ vendor: make({ endpoint: UNSET_URL, apiKey: [] }), state: 'not configured' }]
    if (region === undefined && (endpoint === undefined || bearers.length === 0))
      throw new SettingError('AWS_REGION: set it to the region of the models, such as eu-central-1')
    const location = endpoint === undefined ? { region: region! } : { endpoint }
    const apiKey = bearers.length > 0 ? bearers : signatureIn(region!, environment)
    const setting = endpoint === undefined ? 'AWS_REGION' : 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME'
    return [{ vendor: namingSetting(setting, () => make({ ...location, apiKey })), state: 'configured' }]
  })
}

/** Signs with the AWS credentials of the environment, which may have to be requested through its proxy. */
function signatureIn(region: string, environment: Environment): CredentialProvider {
  return awsSignature({ region, environment, proxy: environmentProxy(tokenServiceOf(region), environment) })
}

/** Settings of both vendors. */
interface VertexSettings {
  readonly project: string
  readonly location: string
  readonly baseURL: string | undefined
  readonly apiKey: ApiKeys
}

const VERTEX_VENDORS: Readonly<Record<string, (settings: VertexSettings) => Vendor>> = {
  vertex,
  'anthropic-vertex': anthropicVertex,
}

const TOKEN_SERVER = 'https://oauth2.googleapis.com'

/** Placeholders of a vendor that is only named and never called. */
const UNSET_VERTEX = { project: 'not-set', location: 'global', baseURL: UNSET_URL }

/**
 * Builds Vertex AI, and Claude on it, if the environment configures them or `named` contains them. A project alone configures
 * neither, because every program at Google Cloud may have one.
 * @throws SettingError naming the variable that is missing or cannot be used.
 */
function configuredVertex({ environment, read, standInOrigin, named }: CloudSource): ConfiguredVendor[] {
  const project = read('GOOGLE_CLOUD_PROJECT')
  const location = read('GOOGLE_CLOUD_LOCATION')
  const baseURL = read('GOOGLE_VERTEX_BASE_URL')
  const keys = keysOf(read('GOOGLE_VERTEX_API_KEY'))
  const place = project === undefined || location === undefined ? undefined : { project, location }
  return Object.entries(VERTEX_VENDORS).flatMap(([id, make]): ConfiguredVendor[] => {
    if (id === 'vertex' && keys.length > 0)
      return [
        { vendor: namingSetting('Vertex AI', () => vertex({ ...place, baseURL, apiKey: keys })), state: 'configured' },
      ]
    if (place !== undefined) {
      const apiKey = googleDefaultCredentials({ environment, proxy: environmentProxy(TOKEN_SERVER, environment) })
      return [{ vendor: namingSetting('Vertex AI', () => make({ ...place, baseURL, apiKey })), state: 'configured' }]
    }
    if (!named.has(id)) return []
    if (standInOrigin !== undefined) {
      const apiKey = () => ({ token: 'stand-in' })
      return [{ vendor: make({ ...UNSET_VERTEX, baseURL: standInOrigin, apiKey }), state: 'stand-in' }]
    }
    if (project !== undefined)
      throw new SettingError('GOOGLE_CLOUD_LOCATION: set it to global, us, eu, or a region such as europe-west4')
    if (location !== undefined)
      throw new SettingError('GOOGLE_CLOUD_PROJECT: set it to the id of the project that pays')
    return [{ vendor: make({ ...UNSET_VERTEX, apiKey: undefined }), state: 'not configured' }]
  })
}

/** Builds a vendor that only the file has. If a required key is missing, the vendor counts as not configured. */
function furtherVendor(
  settings: AdditionalVendor,
  environment: Environment,
  standInOrigin: string | undefined,
): ConfiguredVendor {
  const { id, keyVariable, headers: _h, query: _q, proxy: _p, tls: _t, passUnknownModels: _u, ...given } = settings
  const apiKey = keyVariable === undefined ? [] : keysOf(environment[keyVariable])
  if (keyVariable !== undefined && apiKey.length === 0 && standInOrigin === undefined)
    throw new SettingError(`${keyVariable}: is not set, but SIGNALBOX_VENDORS names it for ${id}`)
  const isStandIn = keyVariable !== undefined && apiKey.length === 0
  const key = isStandIn ? { apiKey: 'stand-in' } : apiKey.length === 0 ? {} : { apiKey }
  const vendor = namingSetting(`SIGNALBOX_VENDORS: ${id}`, () => {
    if (given.type === 'azure-openai') {
      const { type: _type, fetchesUrls: _fetches, endpoint, ...options } = given
      return azureOpenai({ ...options, ...key, id, endpoint: isStandIn ? standInOrigin! : endpoint })
    }
    if (given.type === 'openai-compatible') {
      const { type: _type, ...options } = given
      return openaiCompatible({
        ...options,
        ...key,
        id,
        models: [],
        ...(isStandIn ? { baseURL: `${standInOrigin}/v1` } : {}),
      })
    }
    const { type, ...options } = given
    const address = isStandIn ? { baseURL: `${standInOrigin}/presets/${type}/v1` } : {}
    return openaiCompatible(presets[type], { ...options, ...key, id, ...address })
  })
  if (isStandIn) return { vendor, state: 'stand-in' }
  return { vendor, state: vendor.apiKeys.length > 0 ? 'configured' : 'not configured' }
}

/** Parses keys separated by commas, without duplicates. No vendor's keys contain commas. */
function keysOf(text: string | undefined): readonly string[] {
  const keys = (text ?? '').split(',').map((key) => key.trim())
  return [...new Set(keys.filter((key) => key !== ''))]
}

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

/**
 * Builds the clouds that the environment configures or `named` contains.
 * @throws SettingError for an address that cannot be used, and for a key without an address.
 */
function configuredClouds({ read, standInOrigin, named }: CloudSource): ConfiguredVendor[] {
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
    const vendor = namingSetting(endpointVariable, () => make({ endpoint: endpoint ?? UNSET_URL, apiKey }, read))
    return [{ vendor, state: apiKey.length > 0 ? 'configured' : 'not configured' }]
  })
}
