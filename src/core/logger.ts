/**
 * Target of the gateway's logs. Each entry has a message, and fields with its context, but never prompts, answers and
 * credentials. `console` can be used directly, a pino logger is recognized and called like {@link fromPino}, and winston needs
 * {@link fromWinston}.
 */
export interface Logger {
  /** Logs details for developers of the gateway. */
  debug(message: string, fields?: Record<string, unknown>): void
  /** Logs a normal occurrence, such as a start. */
  info(message: string, fields?: Record<string, unknown>): void
  /** Logs an occurrence that an operator should check. */
  warn(message: string, fields?: Record<string, unknown>): void
  /** Logs a failure that an operator must handle. */
  error(message: string, fields?: Record<string, unknown>): void
}

const ignore = (): void => undefined

/** Discards all logs. Default, because a library must not write to its host's output without being configured to. */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

type Level = (typeof LEVELS)[number]

/** Part of a pino logger that the gateway calls: fields first, then the message. Fastify's `app.log` is one. */
export type PinoLogger = { readonly [Name in Level]: (fields: object, message: string) => void }

/** Part of a winston logger that the gateway calls. */
export type WinstonLogger = { readonly [Name in Level]: (message: string, fields: object) => unknown }

/** Logs to pino, or to a logger with the same signature. An error in the fields becomes `err`, which pino writes with its stack. */
export function fromPino(logger: PinoLogger): Logger {
  return loggerOf((level, message, fields) => {
    const { error, ...rest } = fields
    logger[level](error === undefined ? rest : { ...rest, err: error }, message)
  })
}

/**
 * Logs to winston, or to a logger with the same signature. Errors in the fields become objects with name, message and stack,
 * because winston writes an error inside its fields as `{}`.
 */
export function fromWinston(logger: WinstonLogger): Logger {
  return loggerOf((level, message, fields) => {
    logger[level](message, Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(value)])))
  })
}

function loggerOf(log: (level: Level, message: string, fields: Record<string, unknown>) => void): Logger {
  const at =
    (level: Level) =>
    (message: string, fields: Record<string, unknown> = {}): void =>
      log(level, message, fields)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function plain(value: unknown): unknown {
  if (!(value instanceof Error)) return value
  const { name, message, stack, code } = value as NodeJS.ErrnoException
  return { name, message, stack, ...(code === undefined ? {} : { code }) }
}

/**
 * Returns a logger that calls the logger of the host with all fields, and never throws. Without a logger of the host, nothing is
 * logged. The first error of a logger becomes a process warning.
 */
export function usableLogger(given: Logger | undefined): Logger {
  if (given === undefined) return silentLogger
  const logger = isPino(given) ? fromPino(given) : given
  let hasWarned = false
  const at =
    (level: Level) =>
    (...line: [message: string, fields?: Record<string, unknown>]): void => {
      try {
        logger[level](...line)
      } catch (error) {
        if (!hasWarned) process.emitWarning(`The logger of the gateway threw. Its lines are lost. ${String(error)}`)
        hasWarned = true
      }
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Only pino loggers, including those of Fastify, have bindings. If called like a {@link Logger}, they would drop every field. */
function isPino(given: object): given is PinoLogger {
  return 'bindings' in given && typeof given.bindings === 'function'
}
