import { azureOpenai } from '../vendors/azure-openai/azure-openai.ts'
import { openaiCompatible } from '../vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../vendors/presets/presets.ts'
import type { ConfiguredVendor } from './configured-clouds.ts'
import { SettingError } from './setting-values.ts'
import type { Environment } from './terminal.ts'
import type { FurtherVendor } from './vendor-settings.ts'

/** Builds a vendor that only the file has. If a required key is missing, the vendor counts as not configured. */
export function furtherVendor(
  settings: FurtherVendor,
  environment: Environment,
  standInOrigin: string | undefined,
): ConfiguredVendor {
  const { id, keyVariable, headers: _h, query: _q, proxy: _p, tls: _t, passUnknownModels: _u, ...given } = settings
  const apiKey = keyVariable === undefined ? [] : keysOf(environment[keyVariable])
  if (keyVariable !== undefined && apiKey.length === 0 && standInOrigin === undefined)
    throw new SettingError(`${keyVariable}: is not set, but SIGNALBOX_VENDORS names it for ${id}`)
  const isStandIn = keyVariable !== undefined && apiKey.length === 0
  const key = isStandIn ? { apiKey: 'stand-in' } : apiKey.length === 0 ? {} : { apiKey }
  const vendor = namingFile(id, () => {
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

/** Runs a function; errors about an option name the file. */
export function namingFile<Value>(id: string, make: () => Value): Value {
  try {
    return make()
  } catch (error) {
    if (error instanceof TypeError) throw new SettingError(`SIGNALBOX_VENDORS: ${id}: ${error.message}`)
    throw error
  }
}

/** Parses keys separated by commas, without duplicates. No vendor's keys contain commas. */
export function keysOf(text: string | undefined): readonly string[] {
  const keys = (text ?? '').split(',').map((key) => key.trim())
  return [...new Set(keys.filter((key) => key !== ''))]
}
