import { styleText } from 'node:util'
import type { Logger } from '../core/logger.ts'
import { formatDollars } from '../core/money.ts'
import type { UsageRetentionDays } from '../usage/usage-recorder.ts'

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Contents of a configuration file for variables that would name a file, or `undefined` if there are none. */
export interface Documents {
  /** Name of the configuration file, for errors. */
  readonly name: string
  /** Folder that paths in the configuration file are relative to. If empty, the working directory. */
  readonly folder: string
  readonly models?: unknown
  readonly vendors?: unknown
  readonly prices?: unknown
  readonly plans?: unknown
}

/** Settings and output of a command. */
export interface Terminal {
  readonly environment: Environment
  /** Contents of the configuration file. Default: none. */
  readonly documents?: Documents | undefined
  /** Retention of usage records in the configuration file. Default: none. */
  readonly usageRetention?: UsageRetentionDays | undefined
  /** Writes one line to standard output. */
  print(line: string): void
  /** Writes one line to standard error. If omitted, the line is not written. */
  warn?(line: string): void
  /** Makes the process exit with status 1 after the command. If omitted, the caller has to read the output. */
  fail?(): void
}

/** Returns text from outside as one line, without control characters for the terminal. */
export function oneLine(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Prints rows with their cells in columns, two spaces apart. */
export function printRows({ print }: Terminal, given: readonly (readonly string[])[]): void {
  const rows = given.map((row) => row.map(oneLine))
  const widths: number[] = []
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
  }
  for (const row of rows) {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0))
    print(cells.join('  ').trimEnd())
  }
}

/** Formats nano-dollars: `$1.5`, `-$0.003`. */
export function dollarsText(nanoDollars: bigint): string {
  return nanoDollars < 0n ? `-$${formatDollars(-nanoDollars)}` : `$${formatDollars(nanoDollars)}`
}

/** Format of log lines: one JSON object each, or text for display. */
export type LogFormat = 'json' | 'text'

/** Format and destination of a process's log. */
export interface TerminalLogOptions {
  readonly format: LogFormat
  /** Whether levels are coloured. Applies only to `text`. */
  readonly hasColours: boolean
  /** Writes one line, including its line end. */
  write(line: string): void
}

/** Logs lines of the level info and above. */
export function terminalLogger(options: TerminalLogOptions): Logger {
  const { write } = options
  const line = options.format === 'json' ? jsonLine : textLine(options.hasColours)
  const at =
    (level: Level) =>
    (message: string, fields: Record<string, unknown> = {}): void =>
      write(`${line(level, message, fields)}\n`)
  return { debug: () => undefined, info: at('info'), warn: at('warn'), error: at('error') }
}

/** Creates the logger of a command's process: JSON on standard error, or text if that is a terminal and no format is set. */
export function processLogger(format: LogFormat | undefined, environment: NodeJS.ProcessEnv = process.env): Logger {
  const { stderr } = process
  const isTerminal = stderr.isTTY === true
  return terminalLogger({
    format: format ?? (isTerminal ? 'text' : 'json'),
    // https://no-color.org
    hasColours: isTerminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb',
    write: (line) => void stderr.write(line),
  })
}

type Level = 'info' | 'warn' | 'error'

function jsonLine(level: Level, message: string, fields: Record<string, unknown>): string {
  const head = { time: new Date().toISOString(), level, message }
  // `head` comes first in the line, and no field replaces it.
  return JSON.stringify({ ...head, ...fields, ...head }, jsonValue)
}

function jsonValue(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (!(value instanceof Error)) return value
  return { error: value.message, code: (value as NodeJS.ErrnoException).code, stack: value.stack }
}

const COLOURS = { info: 'green', warn: 'yellow', error: 'red' } as const

function textLine(hasColours: boolean) {
  return (level: Level, message: string, fields: Record<string, unknown>): string => {
    const time = new Date().toISOString().slice(11, 23)
    const name = level.toUpperCase().padEnd(5)
    const shown = hasColours ? styleText(COLOURS[level], name, { validateStream: false }) : name
    const given = Object.entries(fields).filter(([, value]) => value !== undefined)
    const texts = given.map(([field, value]) => `${field}=${textValue(value)}`)
    return [time, shown, oneLine(message), ...texts].join(' ')
  }
}

/** Quotes text with spaces. Text from outside can neither end its line nor change the terminal's colours. */
function textValue(value: unknown): string {
  if (value instanceof Error) return textValue(value.message)
  if (typeof value === 'string') return /^[\w./:@+-]+$/.test(value) ? value : oneLine(JSON.stringify(value))
  return oneLine(JSON.stringify(value, jsonValue) ?? String(value))
}
