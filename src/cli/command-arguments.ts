import { parseArgs } from 'node:util'
import { SettingError } from './setting-error.ts'

/** The words after a command. */
export interface CommandArguments<Option extends string, Flag extends string> {
  readonly positionals: readonly string[]
  /** Value of `--name`, trimmed. */
  option(name: Option): string | undefined
  /** Was `--name` given? */
  flag(name: Flag): boolean
}

/**
 * Reads the words after a command.
 * @param accepted names of options with a value, of flags, and of the words that stand for themselves, all of which must be there.
 * @throws SettingError for a word too many or too few, and for options that the command does not have.
 */
export function commandArguments<Option extends string, Flag extends string>(
  words: readonly string[],
  accepted: {
    readonly options: readonly Option[]
    readonly flags: readonly Flag[]
    readonly positionals: readonly string[]
  },
): CommandArguments<Option, Flag> {
  const options = {
    ...Object.fromEntries(accepted.options.map((name) => [name, { type: 'string' } as const])),
    ...Object.fromEntries(accepted.flags.map((name) => [name, { type: 'boolean' } as const])),
  }
  const negative = words.find((word) => /^-[\d.]/.test(word))
  if (negative !== undefined) throw new SettingError(`${negative}: must not be negative`)
  const { values, positionals } = parse(words, options)
  const missing = accepted.positionals[positionals.length]
  if (missing !== undefined) throw new SettingError(`${missing} is missing; see signalbox --help`)
  const extra = positionals[accepted.positionals.length]
  if (extra !== undefined) throw new SettingError(`unexpected argument ${JSON.stringify(extra)}; see signalbox --help`)
  return {
    positionals,
    option: (name) => (values[name] as string | undefined)?.trim(),
    flag: (name) => values[name] === true,
  }
}

function parse(words: readonly string[], options: Record<string, { readonly type: 'string' | 'boolean' }>) {
  try {
    return parseArgs({ args: [...words], allowPositionals: true, options })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code?.startsWith('ERR_PARSE_ARGS') !== true) throw error
    throw new SettingError(`${message}; see signalbox --help`)
  }
}
