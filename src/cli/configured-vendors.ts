import { egressRoute } from '../transport/egress-route.ts'
import { anthropic } from '../vendors/anthropic/anthropic.ts'
import { dashscope } from '../vendors/dashscope/dashscope.ts'
import { gemini } from '../vendors/gemini/gemini.ts'
import { openai } from '../vendors/openai/openai.ts'
import { openaiCompatible } from '../vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../vendors/presets/presets.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { voyage } from '../vendors/voyage/voyage.ts'
import { type ConfiguredVendor, configuredClouds } from './configured-clouds.ts'
import { environmentProxy } from './environment-proxy.ts'
import { SettingError } from './setting-values.ts'
import type { Environment } from './terminal.ts'

interface VendorOptions {
  readonly apiKey?: readonly string[] | string
  readonly baseURL?: string
}

/** Vendors by the prefix of their variables: `OPENAI_API_KEY` with one key or several, `OPENAI_BASE_URL`. */
const FACTORIES: readonly (readonly [prefix: string, make: (options: VendorOptions) => Vendor])[] = [
  ['OPENAI', openai],
  ['ANTHROPIC', anthropic],
  ['GEMINI', gemini],
  ['DASHSCOPE', dashscope],
  ['VOYAGE', voyage],
]

/**
 * Builds every vendor from the environment, and those presets that it configures or `named` holds. Vendors without a key use the
 * stand-ins when their origin is given.
 * @param named Ids of the vendors that the operator's models name.
 * @throws SettingError for a malformed base URL or proxy, and for a preset whose account is missing.
 */
export function configuredVendors(
  environment: Environment,
  standInOrigin: string | undefined,
  named: ReadonlySet<string> = new Set(),
): ConfiguredVendor[] {
  const vendors = FACTORIES.map(([prefix, make]): ConfiguredVendor => {
    const apiKeys = keysOf(environment[`${prefix}_API_KEY`])
    const baseURL = baseURLOf(environment, `${prefix}_BASE_URL`)
    if (apiKeys.length > 0) {
      return { vendor: make({ apiKey: apiKeys, ...(baseURL === undefined ? {} : { baseURL }) }), state: 'configured' }
    }
    if (standInOrigin === undefined) return { vendor: make({}), state: 'not configured' }
    return { vendor: make({ apiKey: 'stand-in', baseURL: standInOrigin }), state: 'stand-in' }
  })
  for (const preset of Object.values<Preset>(presets)) {
    const configured = configuredPreset(preset, environment, standInOrigin, named.has(preset.id))
    if (configured !== undefined) vendors.push(configured)
  }
  const read = (name: string): string | undefined => environment[name]?.trim() || undefined
  const all = [...vendors, ...configuredClouds(read, keysOf, standInOrigin, named)]
  return all.map((configured) => ({ ...configured, vendor: behindProxy(configured.vendor, environment) }))
}

/** The vendor as it is called through the proxy of the environment, where there is one for its origin. */
function behindProxy(vendor: Vendor, environment: Environment): Vendor {
  const proxy = environmentProxy(vendor.origin, environment)
  return proxy === undefined ? vendor : { ...vendor, egress: egressRoute({ proxy }) }
}

/** The variables of a preset, the first key variable being the preferred one. */
export interface PresetVariables {
  readonly keys: readonly string[]
  readonly baseURL: string
  /** Present where the base URL names an account. */
  readonly account: string | undefined
}

/** The names of the variables by which a preset is configured. */
export function presetVariables({ id, keyVariables, baseURL }: Preset): PresetVariables {
  const prefix = id.toUpperCase().replaceAll('-', '_')
  return {
    keys: keyVariables,
    baseURL: `${prefix}_BASE_URL`,
    account: baseURL.includes('{account}') ? `${prefix}_ACCOUNT_ID` : undefined,
  }
}

/** Undefined: nothing asks for this preset. */
function configuredPreset(
  preset: Preset,
  environment: Environment,
  standInOrigin: string | undefined,
  isNamed: boolean,
): ConfiguredVendor | undefined {
  const variables = presetVariables(preset)
  const apiKey = variables.keys.map((name) => keysOf(environment[name])).find((keys) => keys.length > 0) ?? []
  const baseURL = baseURLOf(environment, variables.baseURL)
  if (apiKey.length === 0 && baseURL === undefined && !isNamed) return undefined
  const isReachable = apiKey.length > 0 || (!preset.needsKey && (baseURL !== undefined || standInOrigin === undefined))
  if (!isReachable && standInOrigin !== undefined) {
    const standIn = { apiKey: 'stand-in', baseURL: `${standInOrigin}/presets/${preset.id}/v1` }
    return { vendor: openaiCompatible(preset, standIn), state: 'stand-in' }
  }
  const account = variables.account === undefined ? undefined : (environment[variables.account]?.trim() ?? '')
  if (account === '' && baseURL === undefined && isReachable) {
    // Its key may be there for another tool of the same company.
    if (!isNamed) return undefined
    throw new SettingError(`${variables.account}: set it to the account that ${variables.keys[0]} belongs to`)
  }
  const vendor = openaiCompatible(preset, {
    apiKey,
    ...(baseURL === undefined ? {} : { baseURL }),
    ...(account === undefined ? {} : { account: account === '' ? 'not-set' : account }),
  })
  return { vendor, state: isReachable ? 'configured' : 'not configured' }
}

function baseURLOf(environment: Environment, name: string): string | undefined {
  const baseURL = environment[name]?.trim() ?? ''
  if (baseURL === '') return undefined
  if (!/^https?:\/\/\S+$/.test(baseURL) || !URL.canParse(baseURL))
    throw new SettingError(`${name}: ${JSON.stringify(baseURL)} is not an http or https URL`)
  return baseURL
}

/** Keys separated by commas, without duplicates. No vendor's keys contain commas. */
function keysOf(text: string | undefined): readonly string[] {
  const keys = (text ?? '').split(',').map((key) => key.trim())
  return [...new Set(keys.filter((key) => key !== ''))]
}
