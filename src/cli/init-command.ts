import { existsSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { ActionDefinition, CommandArguments } from './command.ts'
import { CONFIG_FILES } from './config-schema.ts'
import { configuredVendors, vendorEntry } from './configured-vendors.ts'
import { SettingError } from './setting-values.ts'
import type { Terminal } from './terminal.ts'

const [FILE] = CONFIG_FILES
/** Of the package, from a folder in which it is installed. */
const SCHEMA = 'node_modules/signalbox/schemas/signalbox.config.schema.json'

/** `signalbox init`. */
export const initCommand: ActionDefinition = {
  summary: 'write a configuration file for the vendors whose keys are in the environment',
  options: {
    print: { text: 'print the file, and write nothing' },
    force: { text: 'replace a file that is there' },
    config: { value: 'FILE', text: `the file to write (${FILE}) [SIGNALBOX_CONFIG]` },
  },
  after: 'The file names the variables that hold the keys, and no key.',
  run: init,
}

/**
 * Writes the file, and prints what to do next.
 * @throws SettingError without a vendor, for a variable that serve cannot use either, and where a file is there already.
 */
function init(given: CommandArguments, { environment, print }: Terminal): void {
  const path = given.option('config') ?? (environment['SIGNALBOX_CONFIG']?.trim() || FILE)
  if (!path.endsWith('.json')) throw new SettingError(`init: ${path} must end with .json`)
  // The vendors of another file are not for this one.
  const configured = configuredVendors({ ...environment, SIGNALBOX_VENDORS: undefined }, undefined).filter(
    ({ state }) => state === 'configured',
  )
  if (configured.length === 0)
    throw new SettingError(
      'init: no vendor has a key here; set one, such as OPENAI_API_KEY, or try signalbox serve --sandbox without any',
    )
  const vendors = configured.map(({ vendor }) => ({ id: vendor.id, entry: vendorEntry(vendor.id, environment) }))
  const content = fileContent(path, vendors)
  if (given.flag('print')) {
    print(content)
    return
  }
  write(path, content, given.flag('force'))
  const others = path === FILE ? '' : ` --config ${path}`
  print(`${path} is written, with ${vendors.map(nameOf).join(', ')}`)
  print(`next: signalbox check${others}   asks each vendor whether it accepts its key, which costs nothing`)
  print(`      signalbox serve${others}   starts the gateway, and prints its address, a key and a first call`)
  print('Billing is off without prices: "listPrices": 1 in the file charges the vendors’ list prices')
}

/** The defaults, so that they are seen. No store: an explicit one would not give way to memory where SQLite is missing. */
const ADDRESS = { host: '127.0.0.1', port: 8787 }

interface FoundVendor {
  readonly id: string
  /** Undefined: only the environment can configure it. */
  readonly entry: ReturnType<typeof vendorEntry>
}

function nameOf({ id, entry }: FoundVendor): string {
  if (entry === undefined) return `${id} (by its variables alone)`
  return entry.keyVariable === undefined ? id : `${id} (${entry.keyVariable})`
}

function fileContent(path: string, vendors: readonly FoundVendor[]): string {
  const entries = vendors.flatMap(({ id, entry }) => (entry === undefined ? [] : [[id, entry] as const]))
  const content = {
    ...schemaOf(path),
    ...ADDRESS,
    ...(entries.length === 0 ? {} : { vendors: Object.fromEntries(entries) }),
  }
  return JSON.stringify(content, null, 2)
}

/** Editors complete and check the file by it; a path that leads nowhere would be a warning there. */
function schemaOf(path: string): { readonly $schema?: string } {
  return existsSync(join(dirname(path), SCHEMA)) ? { $schema: `./${SCHEMA}` } : {}
}

function write(path: string, content: string, isForced: boolean): void {
  const name = basename(path)
  const other = CONFIG_FILES.find((one) => one !== name && existsSync(join(dirname(path), one)))
  if (other !== undefined && CONFIG_FILES.some((one) => one === name))
    throw new SettingError(`init: ${other} is here, and serve reads one file only; name another one by --config`)
  try {
    writeFileSync(path, `${content}\n`, { flag: isForced ? 'w' : 'wx' })
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new SettingError(`init: ${path} is there already; --force replaces it`)
    throw new SettingError(`init: ${path} cannot be written (${code})`)
  }
}
