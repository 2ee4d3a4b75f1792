import { vendorConnection } from '../transport/vendor-connection.ts'
import { anthropic } from '../vendors/anthropic/anthropic.ts'
import { cohere } from '../vendors/cohere/cohere.ts'
import { dashscope } from '../vendors/dashscope/dashscope.ts'
import { gemini } from '../vendors/gemini/gemini.ts'
import { openai } from '../vendors/openai/openai.ts'
import { openaiCompatible } from '../vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../vendors/presets/presets.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { voyage } from '../vendors/voyage/voyage.ts'
import { configuredBedrock } from './configured-bedrock.ts'
import { type ConfiguredVendor, configuredClouds } from './configured-clouds.ts'
import { configuredVertex } from './configured-vertex.ts'
import { environmentProxy } from './environment-proxy.ts'
import { furtherVendor, keysOf, namingFile } from './further-vendors.ts'
import { SettingError } from './setting-values.ts'
import type { Documents, Environment } from './terminal.ts'
import { type VendorSettings, vendorSettings } from './vendor-settings.ts'

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
      return { vendor: namingFile(prefix.toLowerCase(), () => make(given)), state: 'configured' }
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
  const all = [
    ...vendors,
    ...configuredClouds(read, keysOf, standInOrigin, named),
    ...configuredBedrock(environment, keysOf, standInOrigin, named),
    ...configuredVertex(environment, keysOf, standInOrigin, named),
  ]
  checkNamed(settings, all)
  return all.map((configured) => ({ ...configured, vendor: connected(configured.vendor, environment, settings) }))
}

/** Returns the vendor with its connection settings, including the environment's proxy for its origin. */
function connected(vendor: Vendor, environment: Environment, settings: VendorSettings): Vendor {
  const own = settings.connection(vendor.id)
  const proxy = own.proxy ?? environmentProxy(vendor.origin, environment)
  const connection = namingFile(vendor.id, () => vendorConnection({ ...own, proxy }))
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
  const vendor = namingFile(preset.id, () => openaiCompatible(preset, given))
  return { vendor, state: isReachable ? 'configured' : 'not configured' }
}

function baseURLOf(environment: Environment, name: string): string | undefined {
  const baseURL = environment[name]?.trim() ?? ''
  if (baseURL === '') return undefined
  if (!/^https?:\/\/\S+$/.test(baseURL) || !URL.canParse(baseURL))
    throw new SettingError(`${name}: ${JSON.stringify(baseURL)} is not an http or https URL`)
  return baseURL
}
