import { parseArgs } from 'node:util'
import { SettingError } from './setting-values.ts'
import type { Terminal } from './terminal.ts'

/** Runs one action of a command with the words after it. */
export type Action = (words: readonly string[], terminal: Terminal) => Promise<void>

/**
 * Runs the action that the first word names.
 * @throws SettingError for another word, listing the actions, and what the action throws.
 */
export async function runAction(
  command: string,
  actions: Readonly<Record<string, Action>>,
  [name = '', ...rest]: readonly string[],
  terminal: Terminal,
): Promise<void> {
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined
  if (action !== undefined) return action(rest, terminal)
  const names = Object.keys(actions)
  const last = names.pop()
  throw new SettingError(`${command}: say ${names.join(', ')} or ${last}; see signalbox --help`)
}

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
 * @param accepted names of options with a value, of flags, and of positional words, all of which are required.
 * @throws SettingError for missing or extra words and unknown options.
 */
export function commandArguments<Option extends string, Flag extends string>(
  words: readonly string[],
  accepted: {
    readonly options: readonly Option[]
    readonly flags: readonly Flag[]
    readonly positionals: readonly string[]
    /** May a positional word be a negative amount, such as `-5`? */
    readonly allowNegative?: boolean
  },
): CommandArguments<Option, Flag> {
  const options = {
    ...Object.fromEntries(accepted.options.map((name) => [name, { type: 'string' } as const])),
    ...Object.fromEntries(accepted.flags.map((name) => [name, { type: 'boolean' } as const])),
  }
  const negative = words.find((word) => NEGATIVE.test(word))
  if (negative !== undefined && accepted.allowNegative !== true)
    throw new SettingError(`${negative}: must not be negative`)
  // The parser takes a word that begins with a hyphen for an option.
  const { values, positionals: parsed } = parse(words.map(withMinusSign), options)
  const positionals = parsed.map((word) => word.replace(/^\u2212/, '-'))
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

const NEGATIVE = /^-\$?[\d.]/

function withMinusSign(word: string): string {
  return NEGATIVE.test(word) ? `\u2212${word.slice(1)}` : word
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
