import { styleText } from 'node:util'
import type { Logger } from '../core/logger.ts'
import { SettingError } from './setting-values.ts'
import { oneLine } from './terminal.ts'

/** Format of log lines: one JSON object each, or text for display. */
export type LogFormat = 'json' | 'text'

/**
 * Reads `json` or `text`.
 * @throws SettingError naming the option.
 */
export function parseLogFormat(name: string, text: string): LogFormat {
  if (text !== 'json' && text !== 'text') throw new SettingError(`${name}: must be json or text`)
  return text
}

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
