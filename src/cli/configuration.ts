import type { CommandArguments } from './command.ts'
import { documentsOf, readConfigFile } from './config-file.ts'
import type { FurtherOptions } from './further-options.ts'
import { SettingError } from './setting-values.ts'
import { SETTINGS } from './settings.ts'
import type { Documents, Environment } from './terminal.ts'
import { VENDOR_VARIABLES } from './vendor-variables.ts'

/** Configuration of a command. Flags take precedence over variables, and variables over the file. */
export interface Configuration {
  /** Environment that includes the values of flags and of the file. */
  readonly environment: Environment
  readonly documents: Documents
  /** Name of the file, or `undefined` if there is none. */
  readonly file: string | undefined
  readonly serveConsole: boolean
  readonly gateway: FurtherOptions
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
  const file = await readConfigFile(path, environment)
  for (const { variable, member = '' } of SETTINGS) {
    if ((set[variable]?.trim() ?? '') !== '') continue
    const text = file?.variables.get(variable)
    if (text !== undefined) set[variable] = text
    if (text !== undefined || file?.documents.has(variable) === true) origins.set(variable, `${file?.name}: ${member}`)
  }
  return {
    environment: set,
    documents: documentsOf(file, set),
    file: file?.name,
    serveConsole: file?.serveConsole ?? false,
    gateway: file?.gateway ?? {},
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
