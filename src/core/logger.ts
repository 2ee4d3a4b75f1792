/** What the gateway logs to. Prompts, answers and credentials are never passed to it. */
export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

const ignore = (): void => undefined

/** Logs nothing. The default: a library does not write to its host's output unless asked. */
export const silentLogger: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }
