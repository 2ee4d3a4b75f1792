import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as z from 'zod'
import { modelDefinition } from '../catalog/parse-model-definitions.ts'
import { wholePriceFile } from '../catalog/prices/price-file.ts'
import { isAddress } from '../gateway/catalog-options.ts'
import type { CommandArguments } from './command.ts'
import { FILE_ONLY_OPTIONS, type FileOnlyOptions } from './file-only-options.ts'
import { parsedJson, readText, SettingError } from './setting-values.ts'
import { SETTINGS, settingText, VENDOR_VARIABLES } from './settings.ts'
import type { Documents, Environment } from './terminal.ts'
import { faultsOf, vendorsSchema } from './vendor-settings.ts'

/** Configuration of a command. Flags take precedence over variables, and variables over the file. */
export interface Configuration {
  /** Environment that includes the values of flags and of the file. */
  readonly environment: Environment
  readonly documents: Documents
  /** Name of the file, or `undefined` if there is none. */
  readonly file: string | undefined
  readonly serveConsole: boolean
  readonly gateway: FileOnlyOptions
  /** Returns the error with the name of the flag or member that set the variable. */
  named(error: unknown): unknown
}

/** Flag and variable that name the file. */
export const CONFIG_OPTION = {
  config: {
    value: 'FILE',
    text: 'configuration file (default: signalbox.config.json or .mjs, if it exists) [SIGNALBOX_CONFIG]',
  },
} as const

/** Every flag that replaces a variable. */
const FLAGS = [
  ...SETTINGS.map(({ variable, flag, value }) => ({ variable, flag, isSwitch: value === undefined })),
  ...VENDOR_VARIABLES.map(({ variable, flag }) => ({ variable, flag, isSwitch: false })),
].flatMap(({ flag, ...others }) => (flag === undefined ? [] : [{ flag, ...others }]))

/**
 * Reads flags and file.
 * @param isOption Whether the command has this flag.
 * @throws SettingError for a file that cannot be used.
 */
export async function readConfiguration(
  given: Pick<CommandArguments, 'option' | 'flag'>,
  environment: Environment,
  isOption: (name: string) => boolean,
): Promise<Configuration> {
  const path =
    (isOption('config') ? given.option('config') : undefined) ?? (environment['SIGNALBOX_CONFIG']?.trim() || undefined)
  const set: Record<string, string | undefined> = { ...environment }
  const origins = new Map<string, string>()
  for (const { variable, flag, isSwitch } of FLAGS) {
    if (!isOption(flag)) continue
    const text = isSwitch ? (given.flag(flag) ? '1' : undefined) : given.option(flag)
    if (text === undefined) continue
    set[variable] = text
    // The lower-case variable is read before the one in capitals.
    if (variable === 'HTTPS_PROXY' || variable === 'NO_PROXY') set[variable.toLowerCase()] = undefined
    origins.set(variable, `--${flag}`)
  }
  const file = path ?? foundFile()
  const {
    console: serveConsole = false,
    gateway = {},
    ...content
  } = file === undefined ? {} : await contentOf(file, environment)
  const folder = file === undefined ? '' : dirname(resolve(file))
  const documents: Record<string, unknown> = {}
  for (const { variable, member } of SETTINGS) {
    const value = memberOf(content, member)
    if (value === undefined || (set[variable]?.trim() ?? '') !== '') continue
    const origin = `${file}: ${member}`
    origins.set(variable, origin)
    if (isDocument(value, member)) documents[member] = value
    else
      set[variable] = settingText(
        PATHS.includes(member) ? inFolder(folder, value) : expanded(value, origin, environment),
      )
  }
  return {
    environment: set,
    documents: { ...documents, name: file ?? '', folder },
    file,
    serveConsole,
    gateway,
    named: (error) => {
      if (!(error instanceof SettingError)) return error
      const message = [...origins].reduce(
        (text, [variable, origin]) => text.replace(new RegExp(`(?<![A-Z_])${variable}(?![A-Z_])`, 'g'), () => origin),
        error.message,
      )
      return message === error.message ? error : Object.assign(new SettingError(message), { cause: error.cause })
    },
  }
}

/** Variables whose values are paths, relative to the folder of the file. */
const PATHS: readonly string[] = ['models', 'vendors', 'prices', 'plans', 'catalog']

function foundFile(): string | undefined {
  const [found, other] = CONFIG_FILES.filter((name) => existsSync(name))
  if (other !== undefined) throw new SettingError(`${found} and ${other} are both here; name one by --config`)
  return found
}

/**
 * Reads and checks the content of a file.
 * @throws SettingError naming file and member.
 */
async function contentOf(name: string, environment: Environment): Promise<FileContent> {
  const checked = CONFIG_SCHEMA.safeParse(await readContent(name, environment))
  if (checked.success) return checked.data as FileContent
  const faults = faultsOf('', CONFIG_SCHEMA, checked.error.issues).split('\n')
  throw new SettingError(faults.map((fault) => `${name}: ${fault}`).join('\n'))
}

/** Content of a file: the settings by their members, and what no variable can hold. */
interface FileContent extends Readonly<Record<string, unknown>> {
  readonly console?: boolean
  readonly gateway?: FileOnlyOptions
}

async function readContent(name: string, environment: Environment): Promise<unknown> {
  if (name.endsWith('.json')) return parsedJson(readText('--config', name), `${name}: is not valid JSON`)
  if (!/\.m?js$/.test(name)) throw new SettingError(`--config: ${name} must end with .json, .mjs or .js`)
  if (!existsSync(name)) throw new SettingError(`--config: the file ${name} cannot be read (ENOENT)`)
  try {
    const module = (await import(/* @vite-ignore */ pathToFileURL(resolve(name)).href)) as {
      readonly default?: unknown
    }
    if (typeof module.default === 'function')
      return await (module.default as (given: Environment) => unknown)(environment)
    if (module.default !== undefined) return module.default
  } catch (error) {
    const place = error instanceof SyntaxError ? syntaxErrorPlace(name) : ''
    throw Object.assign(new SettingError(`${name}: ${place}${(error as Error).message}`), { cause: error })
  }
  throw new SettingError(`${name}: must have a default export, an object or a function of the environment`)
}

/** Returns `line 3: ` for a module that does not compile. An error of `import()` does not contain it, so Node checks the file. */
export function syntaxErrorPlace(path: string): string {
  const { stderr } = spawnSync(process.execPath, ['--check', path], { encoding: 'utf8' })
  const [first = ''] = String(stderr).split('\n')
  const line = first.includes(basename(path)) ? /:(\d+)$/.exec(first)?.[1] : undefined
  return line === undefined ? '' : `line ${line}: `
}

function memberOf(content: Readonly<Record<string, unknown>>, member: string): unknown {
  let value: unknown = content
  for (const step of member.split('.')) value = (value as Record<string, unknown> | undefined)?.[step]
  return value
}

/** Whether a value contains rows or options itself, and is not a path. */
function isDocument(value: unknown, member: string): boolean {
  return PATHS.includes(member) && typeof (Array.isArray(value) ? value[0] : value) === 'object'
}

function inFolder(folder: string, value: unknown): unknown {
  if (typeof value === 'string' && isAddress(value)) return value
  return Array.isArray(value)
    ? value.map((path) => resolve(folder, String(path)))
    : String(value)
        .split(',')
        .map((path) => resolve(folder, path.trim()))
        .join(',')
}

/** Replaces a string `$NAME` by the value of a variable. */
function expanded(value: unknown, place: string, environment: Environment): unknown {
  if (Array.isArray(value)) return value.map((one) => expanded(one, place, environment))
  if (typeof value !== 'string' || !/^\$[A-Za-z_][A-Za-z0-9_]*$/.test(value)) return value
  const name = value.slice(1)
  const found = environment[name]?.trim()
  if (found === undefined || found === '') throw new SettingError(`${place}: the variable ${name} is not set`)
  return found
}

/** Names of the file if `--config` is not set. */
export const CONFIG_FILES = ['signalbox.config.json', 'signalbox.config.mjs'] as const

/** Content of the configuration file. Members and descriptions come from the settings. */
const CONFIG_SCHEMA = z.strictObject({
  $schema: z.string().exactOptional().describe('the schema of this file, for editors'),
  ...membersOf(SETTINGS),
  console: z.boolean().exactOptional().describe('also serve the page for operators at /console/'),
  gateway: FILE_ONLY_OPTIONS.exactOptional().describe('further options of createGateway'),
})

/** Turns `limits.perKey` into a member of the object `limits`. */
function membersOf(settings: typeof SETTINGS): Record<string, z.ZodType> {
  const members: Record<string, z.ZodType> = {}
  const nested: Record<string, Record<string, z.ZodType>> = {}
  for (const { member, schema, text } of settings) {
    const [name = '', inner] = member.split('.')
    const described = (schema as z.ZodString).exactOptional().describe(text)
    if (inner === undefined) members[name] = described
    else nested[name] = { ...nested[name], [inner]: described }
  }
  for (const [name, inner] of Object.entries(nested)) members[name] = z.strictObject(inner).exactOptional()
  return members
}

/** The JSON Schema of the file. `npm run config:schema` writes it into the package. */
export function configJsonSchema(): Record<string, unknown> {
  const plan = z.strictObject({ limits: z.record(z.string(), z.unknown()).exactOptional() })
  // Documents that may also be in separate files are checked when those files are read.
  const rows: Readonly<Record<string, z.ZodType>> = {
    models: z.union([z.string(), z.array(z.string()), z.array(modelDefinition())]),
    vendors: z.union([z.string(), vendorsSchema()]),
    prices: z.union([z.string(), wholePriceFile()]),
    plans: z.union([z.string(), z.record(z.string(), plan)]),
  }
  const shape: Record<string, z.ZodType> = { ...CONFIG_SCHEMA.shape }
  for (const [name, schema] of Object.entries(rows))
    shape[name] = (schema as z.ZodString).exactOptional().describe(shape[name]?.description ?? '')
  const { $schema, ...schema } = z.toJSONSchema(z.strictObject(shape), {
    target: 'draft-7',
    io: 'input',
    reused: 'inline',
  })
  return { $schema, title: 'Configuration of signalbox serve', ...schema }
}
