import { googleDefaultCredentials } from '../credentials/google.ts'
import { anthropicVertex } from '../vendors/anthropic/anthropic.ts'
import { vertex } from '../vendors/gemini/gemini.ts'
import type { ApiKeys, Vendor } from '../vendors/vendor.ts'
import { type ConfiguredVendor, naming } from './configured-clouds.ts'
import { environmentProxy } from './environment-proxy.ts'
import { SettingError } from './setting-values.ts'
import type { Environment } from './terminal.ts'

/** Settings of both vendors. */
interface VertexSettings {
  readonly project: string
  readonly location: string
  readonly baseURL: string | undefined
  readonly apiKey: ApiKeys
}

const VENDORS: Readonly<Record<string, (settings: VertexSettings) => Vendor>> = {
  vertex,
  'anthropic-vertex': anthropicVertex,
}

const TOKEN_SERVER = 'https://oauth2.googleapis.com'

/** Placeholders of a vendor that is only named and never called. */
const NOWHERE = { project: 'not-set', location: 'global', baseURL: 'https://not-set.invalid' }

/**
 * Builds Vertex AI, and Claude on it, if the environment configures them or `named` contains them. A project alone configures
 * neither, because every program at Google Cloud may have one.
 * @throws SettingError naming the variable that is missing or cannot be used.
 */
export function configuredVertex(
  environment: Environment,
  keysOf: (text: string | undefined) => readonly string[],
  standInOrigin: string | undefined,
  named: ReadonlySet<string>,
): ConfiguredVendor[] {
  const read = (name: string): string | undefined => environment[name]?.trim() || undefined
  const project = read('GOOGLE_CLOUD_PROJECT')
  const location = read('GOOGLE_CLOUD_LOCATION')
  const baseURL = read('GOOGLE_VERTEX_BASE_URL')
  const keys = keysOf(read('GOOGLE_VERTEX_API_KEY'))
  const place = project === undefined || location === undefined ? undefined : { project, location }
  return Object.entries(VENDORS).flatMap(([id, make]): ConfiguredVendor[] => {
    if (id === 'vertex' && keys.length > 0)
      return [{ vendor: naming('Vertex AI', () => vertex({ ...place, baseURL, apiKey: keys })), state: 'configured' }]
    if (place !== undefined) {
      const proxy = environmentProxy(TOKEN_SERVER, environment)
      const apiKey = googleDefaultCredentials({ environment, ...(proxy === undefined ? {} : { proxy }) })
      return [{ vendor: naming('Vertex AI', () => make({ ...place, baseURL, apiKey })), state: 'configured' }]
    }
    if (!named.has(id)) return []
    if (standInOrigin !== undefined) {
      const apiKey = () => ({ token: 'stand-in' })
      return [{ vendor: make({ ...NOWHERE, baseURL: standInOrigin, apiKey }), state: 'stand-in' }]
    }
    if (project !== undefined)
      throw new SettingError('GOOGLE_CLOUD_LOCATION: set it to global, us, eu, or a region such as europe-west4')
    if (location !== undefined)
      throw new SettingError('GOOGLE_CLOUD_PROJECT: set it to the id of the project that pays')
    return [{ vendor: make({ ...NOWHERE, apiKey: undefined }), state: 'not configured' }]
  })
}
