import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isAddress } from '../gateway/catalog-options.ts'
import { CONFIG_FILES, CONFIG_SCHEMA } from './config-schema.ts'
import type { FurtherOptions } from './further-options.ts'
import { parsedJson, readText } from './json-file.ts'
import { faultsOf } from './schema-faults.ts'
import { SettingError } from './setting-values.ts'
import { SETTINGS } from './settings.ts'
import type { Documents, Environment } from './terminal.ts'

/** Configuration file: values by variable, and contents that no variable can hold. */
export interface ConfigFile {
  /** Name under which it was requested: `signalbox.config.json`. */
  readonly name: string
  /** Values by the variable that they replace. */
  readonly variables: ReadonlyMap<string, string>
  /** Models, vendors, prices and plans inside the file, by their variable. */
  readonly documents: ReadonlyMap<string, unknown>
  /** Folder that paths in the file are relative to. */
  readonly folder: string
  readonly serveConsole: boolean
  readonly gateway: FurtherOptions
}

/** Variables whose values are paths, relative to the folder of the file. */
const PATHS: readonly string[] = ['models', 'vendors', 'prices', 'plans', 'catalog']

/**
 * Reads the file at `path`, or the default one in the working directory. Returns `undefined` if there is none.
 * @throws SettingError naming file and member.
 */
export async function readConfigFile(
  path: string | undefined,
  environment: Environment,
): Promise<ConfigFile | undefined> {
  const name = path ?? foundFile()
  if (name === undefined) return undefined
  const checked = CONFIG_SCHEMA.safeParse(await contentOf(name, environment))
  if (!checked.success) {
    const faults = faultsOf('', CONFIG_SCHEMA, checked.error.issues)
    throw new SettingError(
      faults
        .split('\n')
        .map((fault) => `${name}: ${fault}`)
        .join('\n'),
    )
  }
  const content = checked.data as Readonly<Record<string, unknown>>
  const folder = dirname(resolve(name))
  const variables = new Map<string, string>()
  const documents = new Map<string, unknown>()
  for (const { variable, member, toText } of SETTINGS) {
    const value = member === undefined ? undefined : memberOf(content, member)
    if (value === undefined || member === undefined) continue
    if (isDocument(value, member)) documents.set(variable, value)
    else {
      const given = PATHS.includes(member)
        ? inFolder(folder, value)
        : expanded(value, `${name}: ${member}`, environment)
      variables.set(variable, toText(given as never))
    }
  }
  const { console: serveConsole = false, gateway = {} } = checked.data
  return { name, variables, documents, folder, serveConsole, gateway }
}

function foundFile(): string | undefined {
  const [found, other] = CONFIG_FILES.filter((name) => existsSync(name))
  if (other !== undefined) throw new SettingError(`${found} and ${other} are both here; name one by --config`)
  return found
}

async function contentOf(name: string, environment: Environment): Promise<unknown> {
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

/** Returns the documents inside the file, except those that a variable overrides. */
export function documentsOf(file: ConfigFile | undefined, environment: Environment): Documents {
  const of = (variable: string): unknown =>
    (environment[variable]?.trim() ?? '') === '' ? file?.documents.get(variable) : undefined
  return {
    name: file?.name ?? '',
    folder: file?.folder ?? '',
    models: of('SIGNALBOX_MODELS'),
    vendors: of('SIGNALBOX_VENDORS'),
    prices: of('SIGNALBOX_PRICES'),
    plans: of('SIGNALBOX_PLANS'),
  }
}
