import { resolve } from 'node:path'
import * as z from 'zod'
import { isJsonObject } from '../core/json.ts'
import { hintAt } from '../core/known-members.ts'
import { knownAt } from '../core/option-schema.ts'
import type { DashScopeRegion } from '../vendors/dashscope/dashscope.ts'
import { type Preset, presets } from '../vendors/presets/presets.ts'
import type { ConnectionOptions } from '../vendors/vendor.ts'
import { readJson, readText, SettingError } from './setting-values.ts'
import type { Documents, Environment } from './terminal.ts'

const FILE = 'SIGNALBOX_VENDORS'
const PASSING = 'SIGNALBOX_PASS_UNKNOWN_MODELS'

const text = z.string().min(1)
const word = text.exactOptional()
const flag = z.boolean().exactOptional()
const texts = z.record(text, z.string()).exactOptional()
const tokenLimitField = z.enum(['max_tokens', 'max_completion_tokens'])
const tokenLimitFields = z.record(text, tokenLimitField).exactOptional()
const maxEmbeddingInputs = z.int().positive().exactOptional()

/** Options of every vendor. */
const common = {
  headers: texts,
  query: texts,
  proxy: z.string().exactOptional(),
  tls: z.strictObject({ ca: word, cert: word, key: word, passphrase: word, servername: word }).exactOptional(),
  passUnknownModels: flag,
  fetchesUrls: flag,
}

/** Options of vendors with OpenAI's dialect. */
const openai = { responses: flag, allowVendorObjects: flag, safetyIdentifierKey: word }

const url = z.string().regex(/^https?:\/\/\S+$/, 'must be an http or https URL')
const baseURL = url.exactOptional()

/** Name of the variable with its key, or its keys separated by commas. */
const keyVariable = word

/** Options of single factories, in addition to the common ones. */
const OWN = {
  openai: {
    keyVariable,
    baseURL,
    ...openai,
    tokenLimitFields,
    defaultTokenLimitField: tokenLimitField.exactOptional(),
  },
  anthropic: { keyVariable, baseURL, version: word, allowVendorObjects: flag },
  gemini: {
    keyVariable,
    baseURL,
    apiVersion: word,
    images: z.enum(['interactions', 'generateContent']).exactOptional(),
  },
  dashscope: {
    keyVariable,
    baseURL,
    region: z.enum(['intl', 'cn', 'us', 'hk']).exactOptional() satisfies z.ZodType<DashScopeRegion | undefined>,
  },
  voyage: { keyVariable, baseURL },
  cohere: { keyVariable, baseURL },
} as const

const presetOptions = { keyVariable, baseURL, account: word, displayName: word, maxEmbeddingInputs, ...openai }

/** Vendors at an additional server or account, alongside those that the environment names, by their type. */
const FURTHER = {
  preset: z
    .strictObject({
      ...common,
      ...presetOptions,
      type: z.enum(Object.keys(presets) as (keyof typeof presets)[]),
    })
    .meta({ id: 'further-preset' }),
  'openai-compatible': z
    .strictObject({
      ...common,
      keyVariable,
      displayName: word,
      type: z.literal('openai-compatible'),
      baseURL: url,
      maxEmbeddingInputs,
      replaysExtensions: flag,
      ...openai,
    })
    .meta({ id: 'further-openai-compatible' }),
  'azure-openai': z
    .strictObject({
      ...common,
      keyVariable,
      displayName: word,
      type: z.literal('azure-openai'),
      endpoint: url,
      apiVersion: word,
      deployments: texts,
      ...openai,
      tokenLimitFields,
    })
    .meta({ id: 'further-azure-openai' }),
}

type Common = z.infer<z.ZodObject<typeof common>>

/** Vendor that only the file has. Its other members are options of its factory. */
export type AdditionalVendor = { readonly id: string } & z.infer<(typeof FURTHER)[keyof typeof FURTHER]>

/** Settings of vendors in a file and from `SIGNALBOX_PASS_UNKNOWN_MODELS`. */
export interface VendorSettings {
  /** Ids in the file of vendors that the environment may configure. */
  readonly ids: ReadonlySet<string>
  /** Vendors that only the file has. */
  readonly further: readonly AdditionalVendor[]
  /** Returns the options of a vendor's factory, without those that every vendor has. */
  own(id: string): Readonly<Record<string, unknown>>
  /**
   * Returns the text of the variable with the vendor's key, or of the first variable of `usual` that is set.
   * @throws SettingError if a variable that the file names is not set, unless stand-ins replace the vendor.
   */
  keyText(id: string, usual: readonly string[], hasStandIns: boolean): string | undefined
  /** Returns the connection options. An omitted proxy is undefined; an empty one disables the proxy. */
  connection(id: string): ConnectionOptions
  /** Returns settings of its models and requests, if they are set. */
  traits(id: string): { readonly passUnknownModels?: boolean; readonly fetchesUrls?: boolean }
}

/**
 * Reads the settings of vendors.
 * @throws SettingError naming the variable, the vendor and the member: `SIGNALBOX_VENDORS: groq.headers: …`.
 */
export function vendorSettings(environment: Environment, documents?: Documents): VendorSettings {
  const path = environment[FILE]?.trim() ?? ''
  const given = path === '' ? (documents?.vendors ?? {}) : readJson(FILE, path)
  const folder = path === '' ? (documents?.folder ?? '') : ''
  const entries = Object.entries(objectOf(given))
  const checked = new Map(entries.map(([id, entry]) => [id, withSecret(checkedEntry(id, entry), environment)]))
  const passing = new Set((environment[PASSING] ?? '').split(',').map((id) => id.trim()))
  passing.delete('')
  const commonOf = (id: string): Common => (checked.get(id) ?? {}) as Common
  return {
    ids: new Set([...checked].filter(([, entry]) => !('type' in entry)).map(([id]) => id)),
    further: [...checked].flatMap(([id, entry]) => ('type' in entry ? [{ ...entry, id } as AdditionalVendor] : [])),
    own: (id) =>
      Object.fromEntries(
        Object.entries(checked.get(id) ?? {}).filter(
          ([name]) => !Object.hasOwn(common, name) && name !== 'keyVariable',
        ),
      ),
    keyText(id, usual, hasStandIns) {
      const { keyVariable: named } = (checked.get(id) ?? {}) as { readonly keyVariable?: string }
      if (named === undefined) return usual.map((name) => environment[name]).find((key) => (key?.trim() ?? '') !== '')
      const key = environment[named]
      if ((key?.trim() ?? '') === '' && !hasStandIns)
        throw new SettingError(`${named}: is not set, but ${FILE} names it for ${id}`)
      return key
    },
    connection(id) {
      const { headers, query, proxy, tls } = commonOf(id)
      const read = (value: string): string => expanded(value, environment)
      return {
        headers: headers && mapped(headers, read),
        query: query && mapped(query, read),
        proxy: proxy && read(proxy),
        tls: tls && tlsMaterial(tls, environment, folder),
      }
    },
    traits(id) {
      const { passUnknownModels = passing.has(id) || undefined, fetchesUrls } = commonOf(id)
      return {
        ...(passUnknownModels === undefined ? {} : { passUnknownModels }),
        ...(fetchesUrls === undefined ? {} : { fetchesUrls }),
      }
    },
  }
}

function objectOf(json: unknown): object {
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json
  throw new SettingError(`${FILE}: must hold an object with a member for each vendor, by its id`)
}

function checkedEntry(id: string, entry: unknown): object {
  const schema = schemaOf(id, entry)
  const result = schema.safeParse(entry)
  if (result.success) return result.data
  const further = isJsonObject(entry) ? Object.keys(entry).find((name) => FURTHER_MEMBERS.has(name)) : undefined
  if (schema === CLOUD && further !== undefined)
    throw new SettingError(
      `${FILE}: ${id}.type: is missing; it says what answers there: "openai-compatible", "azure-openai", or a preset such as "vllm" (a cloud has no ${further} here: its variables say it)`,
    )
  throw new SettingError(`${FILE}: ${faultsOf(id, schema, result.error.issues)}`)
}

/** Options of the vendors that the environment configures, by their ids. */
const KNOWN: Readonly<Record<string, z.ZodObject>> = Object.fromEntries(
  Object.entries(OWN).map(([id, own]) => [id, z.strictObject({ ...common, ...own }).meta({ id: `vendor-${id}` })]),
)
const PRESET = z.strictObject({ ...common, ...presetOptions }).meta({ id: 'preset' })
/** Cloud, whose address and keys come from the environment. */
const CLOUD = z.strictObject(common).meta({ id: 'cloud' })

/** Members that only a vendor with a type has. */
const FURTHER_MEMBERS: ReadonlySet<string> = new Set(
  Object.values(FURTHER)
    .flatMap(({ shape }) => Object.keys(shape))
    .filter((name) => !Object.hasOwn(common, name)),
)

const ANY = z.union([CLOUD, ...Object.values(FURTHER)]).meta({ id: 'vendor' })

const PRESET_IDS: readonly string[] = Object.values<Preset>(presets).map((preset) => preset.id)

/** Schema of such a file, for the JSON Schema. Each entry is checked by its own schema. */
export function vendorsSchema(): z.ZodType {
  const known = [...Object.entries(KNOWN), ...PRESET_IDS.map((id) => [id, PRESET] as const)]
  const members = known.map(([id, schema]) => [id, z.union([schema, ANY]).exactOptional()])
  return z.object(Object.fromEntries(members)).catchall(ANY)
}

function schemaOf(id: string, entry: unknown): z.ZodType<object> {
  const type: unknown = typeof entry === 'object' && entry !== null && 'type' in entry ? entry.type : undefined
  if (type !== undefined) {
    if (type === 'openai-compatible' || type === 'azure-openai') return FURTHER[type]
    return FURTHER.preset
  }
  return KNOWN[id] ?? (PRESET_IDS.includes(id) ? PRESET : CLOUD)
}

/** The entry with the secret of identifiers in place of the name of its variable. */
function withSecret(entry: { readonly safetyIdentifierKey?: string }, environment: Environment): object {
  const { safetyIdentifierKey: key } = entry
  return key === undefined ? entry : { ...entry, safetyIdentifierKey: expanded(key, environment) }
}

/** Returns a value. `$NAME` is replaced by the variable of that name, so that files need no secrets. */
function expanded(value: string, environment: Environment): string {
  if (!/^\$[A-Z][A-Z0-9_]*$/.test(value)) return value
  const name = value.slice(1)
  const found = environment[name]?.trim()
  if (found === undefined || found === '') throw new SettingError(`${name}: is not set, but ${FILE} names it`)
  return found
}

function tlsMaterial(
  { passphrase, servername, ...paths }: NonNullable<Common['tls']>,
  environment: Environment,
  folder: string,
): NonNullable<ConnectionOptions['tls']> {
  return {
    ...mapped(paths as Readonly<Record<string, string>>, (path) =>
      readText(FILE, folder === '' ? path : resolve(folder, path)),
    ),
    ...(passphrase === undefined ? {} : { passphrase: expanded(passphrase, environment) }),
    ...(servername === undefined ? {} : { servername }),
  }
}

function mapped(values: Readonly<Record<string, string>>, map: (value: string) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]))
}

/** Fault of a value, as zod reports it. */
type Issue = z.core.$ZodIssue

/**
 * Describes faults, one per line, with the nearest known name for an unknown one.
 * @param root Name before every path; may be empty.
 */
export function faultsOf(root: string, schema: z.ZodType, issues: readonly Issue[]): string {
  return issues
    .flatMap((issue) => {
      const place = [root, ...issue.path.map(String)].filter((step) => step !== '').join('.')
      const at = place === '' ? '' : `${place}: `
      if (issue.code !== 'unrecognized_keys') return [`${at}${issue.message}`]
      const known = knownAt(schema, issue.path)
      return issue.keys.map((key) => {
        return `${at}unknown member ${JSON.stringify(key)}; ${hintAt(key, known)}`
      })
    })
    .join('\n')
}
