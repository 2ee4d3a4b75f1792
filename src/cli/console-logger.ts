import type { Logger } from '../core/logger.ts'

/** Logs to standard error, one line of JSON each, with errors as their text. */
export const consoleLogger: Logger = {
  debug: () => undefined,
  info: (message, fields) => write('info', message, fields),
  warn: (message, fields) => write('warn', message, fields),
  error: (message, fields) => write('error', message, fields),
}

function write(level: string, message: string, fields: Record<string, unknown> | undefined): void {
  const line = { time: new Date().toISOString(), level, message, ...fields }
  process.stderr.write(
    `${JSON.stringify(line, (_name, value: unknown) => (value instanceof Error ? { error: value.message, stack: value.stack } : value))}\n`,
  )
}
