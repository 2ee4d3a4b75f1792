/**
 * What the gateway logs to: a text, and fields that say what it is about. Prompts, answers and credentials are never passed to it.
 * `console` is one; a pino logger is recognised and called as {@link fromPino} does; for winston use {@link fromWinston}.
 */
export interface Logger {
  /** For the author of the gateway. */
  debug(message: string, fields?: Record<string, unknown>): void
  /** Something that is as it should be, such as a start. */
  info(message: string, fields?: Record<string, unknown>): void
  /** Something that an operator should look at. */
  warn(message: string, fields?: Record<string, unknown>): void
  /** Something that failed and needs an operator. */
  error(message: string, fields?: Record<string, unknown>): void
}

const ignore = (): void => undefined

/** Logs nothing. The default: a library does not write to its host's output unless asked. */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

type Level = (typeof LEVELS)[number]

/** The part of a pino logger that is used: fields first, then the text. Fastify's `app.log` is one. */
export type PinoLogger = { readonly [Name in Level]: (fields: object, message: string) => void }

/** The part of a winston logger that is used. */
export type WinstonLogger = { readonly [Name in Level]: (message: string, fields: object) => unknown }

/** Logs to pino, or to a logger that is called like it. An error in the fields becomes `err`, which pino writes with its stack. */
export function fromPino(logger: PinoLogger): Logger {
  return loggerOf((level, message, fields) => {
    const { error, ...rest } = fields
    logger[level](error === undefined ? rest : { ...rest, err: error }, message)
  })
}

/**
 * Logs to winston, or to a logger that is called like it. Errors in the fields become objects with name, message and stack, because
 * winston writes an error inside its fields as `{}`.
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
 * Returns a logger that calls the logger of the host with all fields, and never throws. Without one, nothing is logged. The first error
 * of a logger becomes a warning of the process.
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

/** Only pino's loggers, those of Fastify included, have bindings. Called as a {@link Logger} they would drop every field. */
function isPino(given: object): given is PinoLogger {
  return 'bindings' in given && typeof given.bindings === 'function'
}
