// See docs/decisions/0001-packages.md.

import { Command, type CommanderError, Option } from 'commander'
import { nearestName } from '../core/known-members.ts'
import { SettingError } from './setting-values.ts'
import type { Terminal } from './terminal.ts'

/** Option of a command. */
export interface OptionDefinition {
  /** Placeholder of its value in the help, such as `TEXT`. If omitted, the option is a flag. */
  readonly value?: string
  /** One line for the help. */
  readonly text: string
}

/** Positional argument of a command. All are required. */
export interface PositionalDefinition {
  /** Placeholder in the help: `ID`. */
  readonly name: string
  /** Description for errors: `the account’s id`. */
  readonly text: string
}

/** Command, or one action of it. Help, parser and errors are derived from this definition. */
export interface ActionDefinition {
  /** One line for the help. */
  readonly summary: string
  readonly positionals?: readonly PositionalDefinition[]
  /** Options, keyed by name without the dashes. */
  readonly options: Readonly<Record<string, OptionDefinition>>
  /** Whether a positional argument may be a negative amount, such as `-5`. */
  readonly allowNegative?: boolean
  /** Text below the options in the help. */
  readonly after?: string
  /** Whether the action runs when the command has no action. At most one action per command. */
  readonly isDefault?: boolean
  run(given: CommandArguments, terminal: Terminal): Promise<void> | void
}

/** Command with several actions. */
export interface GroupDefinition {
  readonly summary: string
  readonly actions: Readonly<Record<string, ActionDefinition>>
}

/** Commands by name. */
export type CommandDefinitions = Readonly<Record<string, ActionDefinition | GroupDefinition>>

/** Arguments of a command. */
export interface CommandArguments {
  readonly positionals: readonly string[]
  /**
   * Returns the trimmed value of `--name`, or `undefined` if it was not set.
   * @throws TypeError for a name that the definition does not have.
   */
  option(name: string): string | undefined
  /**
   * Returns whether the flag `--name` was set.
   * @throws TypeError for a name that the definition does not have.
   */
  flag(name: string): boolean
}

/** Parts of a run of the command line. */
export interface CommandLine {
  readonly commands: CommandDefinitions
  readonly version: string
  /** Text below the list of commands in the help. */
  readonly after: string
}

const NEGATIVE = /^-\$?[\d.]/
/** Replaces a leading hyphen, because the parser treats a word with a hyphen as an option. */
const MINUS = '\u2212'

/**
 * Runs a command, or prints its help.
 * @throws SettingError for an unknown command, and the errors of the command.
 */
export async function runCommandLine(
  words: readonly string[],
  terminal: Terminal,
  { commands, version, after }: CommandLine,
): Promise<void> {
  const [first, ...others] = words
  // The parser's `help` supports commands, but not actions.
  const asked = first === 'help' && others.length > 0 ? [...others, '--help'] : words
  const given = asked.map((word) => (NEGATIVE.test(word) ? `${MINUS}${word.slice(1)}` : word))
  const program = configured(new Command('signalbox'), terminal)
    .description('An AI gateway: one OpenAI-compatible API in front of many vendors.')
    .usage('COMMAND')
    .version(version, '-v, --version', 'print the version')
    .helpCommand('help COMMAND', 'help for one command, the same as signalbox COMMAND --help')
    .addHelpText('after', `\n${actionLines(commands)}\n\n${after}`)
    .exitOverride((error) => {
      if (isHelp(error)) throw error
      const word = program.args[0] ?? ''
      const known = nearestName(word, Object.keys(commands))
      if (error.code === 'commander.unknownOption')
        throw new SettingError(`there is no option ${quotedIn(error)} here; see signalbox --help`)
      throw new SettingError(
        `there is no command ${JSON.stringify(word)}; ${known === undefined ? '' : `did you mean ${known}? `}see signalbox --help`,
      )
    })
  for (const [name, definition] of Object.entries(commands)) {
    if ('run' in definition) addAction(program, name, definition, { given, path: name, terminal })
    else addGroup(program, name, definition, { given, path: name, terminal })
  }
  // Without any argument the parser would write the help to standard error.
  const isBare = given.length === 0
  try {
    await program.parseAsync(isBare ? ['--help'] : given, { from: 'user' })
  } catch (error) {
    if (!isHelp(error)) throw error
  }
}

interface Place {
  readonly given: readonly string[]
  /** Full name, such as `accounts list`. */
  readonly path: string
  readonly terminal: Terminal
  /** Actions of the same command. */
  readonly siblings?: readonly string[]
}

function addGroup(program: Command, name: string, { summary, actions }: GroupDefinition, place: Place): void {
  const names = Object.keys(actions)
  const group = configured(program.command(name), place.terminal)
    .description(summary)
    .usage('ACTION')
    .configureHelp({
      showGlobalOptions: false,
      subcommandTerm: (one) => termOf(`${name} ${one.name()}`, actions[one.name()]),
    })
    .helpCommand(false)
    .addHelpText('after', `\n${sharedOptions(Object.values(actions))}`)
    .exitOverride((error) => {
      if (isHelp(error) && error.exitCode === 0) throw error
      throw unknownAction(name, names, group.args[0])
    })
  for (const [action, definition] of Object.entries(actions))
    addAction(group, action, definition, { ...place, path: `${name} ${action}`, siblings: names })
}

function addAction(parent: Command, name: string, definition: ActionDefinition, place: Place): void {
  const { summary, options, positionals = [], after } = definition
  const command = configured(parent.command(name, { isDefault: definition.isDefault === true }), place.terminal)
    .description(summary)
    .usage([...positionals.map((one) => one.name), '[options]'].join(' '))
    .allowExcessArguments(false)
    .exitOverride((error) => {
      throw isHelp(error) ? error : toSettingError(error, command, definition, place)
    })
  if (after !== undefined) command.addHelpText('after', `\n${after}`)
  for (const { name: word, text } of positionals) command.argument(`<${word}>`, text)
  const parsed = new Map<string, Option>()
  for (const [option, { value, text }] of Object.entries(options)) {
    const made = new Option(value === undefined ? `--${option}` : `--${option} <${value}>`, text)
    if (value !== undefined) made.argParser((word) => checkedValue(option, word, place.given))
    command.addOption(made)
    parsed.set(option, made)
  }
  const givenOf = (option: string): unknown => {
    const made = parsed.get(option)
    if (made === undefined) throw new TypeError(`${place.path} has no option ${option}`)
    return command.getOptionValue(made.attributeName())
  }
  command.action(async () => {
    const negative = place.given.find((word) => word.startsWith(MINUS))
    if (negative !== undefined && definition.allowNegative !== true)
      throw new SettingError(`-${negative.slice(1)}: must not be negative`)
    const given: CommandArguments = {
      positionals: command.args.map(withHyphen),
      option: (option) => givenOf(option) as string | undefined,
      flag: (option) => givenOf(option) === true,
    }
    await definition.run(given, place.terminal)
  })
}

/** Rejects `--limit --json`, which lacks the value. A value that begins with a hyphen is written as `--reason=-x`. */
function checkedValue(option: string, word: string, given: readonly string[]): string {
  if (word.startsWith('-') && !given.includes(`--${option}=${word}`))
    throw new SettingError(`--${option} needs a value; see signalbox --help`)
  return withHyphen(word.trim())
}

/** Restores the leading hyphen of an argument. */
function withHyphen(word: string): string {
  return word.startsWith(MINUS) ? `-${word.slice(1)}` : word
}

/** Replaces errors of the parser, which refer to its own interface. */
function toSettingError(
  error: CommanderError,
  command: Command,
  definition: ActionDefinition,
  place: Place,
): SettingError {
  const { positionals = [], options } = definition
  const help = `see signalbox ${place.path} --help`
  const quoted = quotedIn(error)
  switch (error.code) {
    case 'commander.unknownOption': {
      const [name = ''] = quoted.split('=', 1)
      if (quoted.includes('=') && Object.hasOwn(options, name.slice(2)))
        return new SettingError(`${name} takes no value; ${help}`)
      const names = Object.keys(options).map((option) => `--${option}`)
      const known = nearestName(name, names)
      const hint = known === undefined ? `the options are ${names.join(', ')}` : `did you mean ${known}?`
      return new SettingError(`there is no option ${name} here; ${hint}${known === undefined ? ';' : ''} ${help}`)
    }
    case 'commander.optionMissingArgument':
      return new SettingError(`${quoted.split(' ', 1)[0]} needs a value; ${help}`)
    case 'commander.missingArgument':
      return new SettingError(`${positionals[command.args.length]?.text} is missing; ${help}`)
    case 'commander.excessArguments':
      // A word after the command is not one of its actions.
      if (definition.isDefault === true && place.siblings !== undefined)
        return unknownAction(place.path.split(' ', 1)[0] ?? '', place.siblings, command.args[0])
      return new SettingError(`unexpected argument ${JSON.stringify(command.args[positionals.length])}; ${help}`)
    default:
      return new SettingError(`${error.message.replace(/^error: /, '')}; ${help}`)
  }
}

function unknownAction(command: string, names: readonly string[], word = ''): SettingError {
  const known = nearestName(word, names)
  const hint = known === undefined ? '' : `did you mean ${known}? `
  return new SettingError(
    `${command}: say ${names.slice(0, -1).join(', ')} or ${names.at(-1)}; ${hint}see signalbox --help`,
  )
}

function quotedIn(error: CommanderError): string {
  return /'([^']*)'/.exec(error.message)?.[1] ?? ''
}

function isHelp(error: unknown): boolean {
  const code = (error as Partial<CommanderError>).code ?? ''
  return code === 'commander.help' || code === 'commander.helpDisplayed' || code === 'commander.version'
}

function configured(command: Command, { print }: Terminal): Command {
  const write = (text: string): void => print(text.trimEnd())
  return (
    command
      // Omits the help that the parser prints with an error: the error names the command that prints the help.
      .configureOutput({
        writeOut: write,
        writeErr: () => undefined,
        outputError: () => undefined,
        getOutHelpWidth: () => 120,
      })
      .configureHelp({ showGlobalOptions: false })
      .helpOption('-h, --help', 'print this')
      .showSuggestionAfterError(false)
      .showHelpAfterError(false)
  )
}

/** Lists every action in one line. */
function actionLines(commands: CommandDefinitions): string {
  const rows = Object.entries(commands).flatMap(([name, definition]) =>
    'run' in definition
      ? [[usageOf(name, definition), definition.summary] as const]
      : Object.entries(definition.actions).map(
          ([action, one]) => [usageOf(`${name} ${action}`, one), one.summary] as const,
        ),
  )
  const width = Math.max(...rows.map(([usage]) => usage.length))
  return ['Actions:', ...rows.map(([usage, summary]) => `  ${usage.padEnd(width)}  ${summary}`)].join('\n')
}

function usageOf(path: string, { positionals = [] }: ActionDefinition): string {
  return ['signalbox', path, ...positionals.map(({ name }) => name)].join(' ')
}

function termOf(path: string, action: ActionDefinition | undefined): string {
  return action === undefined ? path : usageOf(path, action)
}

/** Options that all actions share, listed once. */
function sharedOptions(actions: readonly ActionDefinition[]): string {
  const [first, ...others] = actions
  const shared = Object.entries(first?.options ?? {}).filter(([name]) =>
    others.every((action) => Object.hasOwn(action.options, name)),
  )
  if (shared.length === 0) return ''
  const rows = shared.map(([name, { value, text }]) => [`--${name}${value === undefined ? '' : ` ${value}`}`, text])
  const width = Math.max(...rows.map(([flag = '']) => flag.length))
  return ['Options of every action:', ...rows.map(([flag = '', text]) => `  ${flag.padEnd(width)}  ${text}`)].join('\n')
}
