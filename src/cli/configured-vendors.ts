import { anthropic } from '../vendors/anthropic/anthropic.ts'
import { dashscope } from '../vendors/dashscope/dashscope.ts'
import { gemini } from '../vendors/gemini/gemini.ts'
import { openai } from '../vendors/openai/openai.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { voyage } from '../vendors/voyage/voyage.ts'
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

/** A vendor, and whether it can be called. */
export interface ConfiguredVendor {
  readonly vendor: Vendor
  readonly state: 'configured' | 'stand-in' | 'not configured'
}

/**
 * Builds every vendor from the environment. Vendors without a key use the stand-ins when their origin is given.
 * @throws SettingError for a malformed base URL.
 */
export function configuredVendors(environment: Environment, standInOrigin: string | undefined): ConfiguredVendor[] {
  return FACTORIES.map(([prefix, make]) => {
    const apiKeys = keysOf(environment[`${prefix}_API_KEY`])
    const baseURL = environment[`${prefix}_BASE_URL`]?.trim()
    if (baseURL !== undefined && baseURL !== '' && !/^https?:\/\/\S+$/.test(baseURL)) {
      throw new SettingError(`${prefix}_BASE_URL: ${JSON.stringify(baseURL)} is not an http or https URL`)
    }
    if (apiKeys.length > 0) {
      return {
        vendor: make({ apiKey: apiKeys, ...(baseURL === undefined || baseURL === '' ? {} : { baseURL }) }),
        state: 'configured',
      }
    }
    if (standInOrigin === undefined) return { vendor: make({}), state: 'not configured' }
    return { vendor: make({ apiKey: 'stand-in', baseURL: standInOrigin }), state: 'stand-in' }
  })
}

/** Keys separated by commas, without duplicates. No vendor's keys contain commas. */
function keysOf(text: string | undefined): readonly string[] {
  const keys = (text ?? '').split(',').map((key) => key.trim())
  return [...new Set(keys.filter((key) => key !== ''))]
}
