import { existsSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ADMIN_COMMANDS } from './admin-commands.ts'
import { catalogCommand, modelsCommand } from './catalog-command.ts'
import { checkCommand } from './check-command.ts'
import {
  type ActionDefinition,
  type CommandArguments,
  type CommandDefinitions,
  type GroupDefinition,
  runCommandLine,
} from './command.ts'
import { CONFIG_FILES, CONFIG_OPTION, readConfiguration } from './configuration.ts'
import { configuredVendors, vendorEntry } from './configured-vendors.ts'
import { migrateCommand } from './migrate-command.ts'
import { serveCommand } from './serve-command.ts'
import { SettingError } from './setting-values.ts'
import { variableLines } from './settings.ts'
import type { Terminal } from './terminal.ts'

/** Runs one command line. A serving command returns once it listens. */
export async function runSignalbox(words: readonly string[], terminal: Terminal, version: string): Promise<void> {
  if (words.includes('--version') || words.includes('-v')) return terminal.print(version)
  const commands: CommandDefinitions = {
    init: initCommand,
    serve: serveCommand(version),
    check: checkCommand,
    migrate: configured(migrateCommand),
    models: configured(modelsCommand),
    catalog: group(catalogCommand),
    ...Object.fromEntries(Object.entries(ADMIN_COMMANDS).map(([name, command]) => [name, group(command)])),
  }
  await runCommandLine(words, terminal, { commands, version, after: variableLines() })
}

function group({ summary, actions }: GroupDefinition): GroupDefinition {
  return {
    summary,
    actions: Object.fromEntries(Object.entries(actions).map(([name, action]) => [name, configured(action)])),
  }
}

/** Returns the action with the settings of the configuration file. */
function configured(action: ActionDefinition): ActionDefinition {
  return {
    ...action,
    options: { ...action.options, ...CONFIG_OPTION },
    async run(given, terminal) {
      // Other flags belong to the action itself: `--models` of keys is a scope.
      const { environment, documents, gateway, named } = await readConfiguration(
        given,
        terminal.environment,
        (name) => name === 'config',
      )
      const usageRetention = gateway.usage === 'off' ? undefined : gateway.usage?.retention
      try {
        await action.run(given, { ...terminal, environment, documents, usageRetention })
      } catch (error) {
        throw named(error)
      }
    },
  }
}

const [FILE] = CONFIG_FILES
/** Path of the schema from a folder in which the package is installed. */
const SCHEMA = 'node_modules/signalbox/schemas/signalbox.config.schema.json'

/** Command `signalbox init`. */
const initCommand: ActionDefinition = {
  summary: 'write a configuration file for the vendors whose keys are in the environment',
  options: {
    print: { text: 'print the file instead of writing it' },
    force: { text: 'replace an existing file' },
    config: { value: 'FILE', text: `file to write (default: ${FILE}) [SIGNALBOX_CONFIG]` },
  },
  after: 'The file contains the names of the key variables, but no keys.',
  run: init,
}

/**
 * Writes the file, and prints the next steps.
 * @throws SettingError without a vendor, for a variable that `serve` cannot use either, or if the file exists.
 */
function init(given: CommandArguments, { environment, print }: Terminal): void {
  const path = given.option('config') ?? (environment['SIGNALBOX_CONFIG']?.trim() || FILE)
  if (!path.endsWith('.json')) throw new SettingError(`init: ${path} must end with .json`)
  // Vendors of another file do not belong to this one.
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

/** The defaults, made visible. There is no store: an explicit one would not fall back to memory if SQLite is missing. */
const ADDRESS = { host: '127.0.0.1', port: 8787 }

interface FoundVendor {
  readonly id: string
  /** Entry of the vendor, or `undefined` if only the environment can configure it. */
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

/** Editors use it to complete and check the file; a path that does not exist would cause a warning there. */
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
