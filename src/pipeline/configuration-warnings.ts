import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'

/** What the operator is told. */
export type ConfigurationWarning = Omit<Extract<GatewayEvent, { type: 'configuration-warning' }>, 'type'>

/** Tells the operator what of the configuration has no effect, or another one than its words say: each of it once. */
export class ConfigurationWarnings {
  readonly #logger: Logger
  readonly #onEvent: EventListener | undefined
  // Messages name rows of the configuration and never what callers sent, so there is an end to them.
  readonly #told = new Map<string, ConfigurationWarning>()

  constructor(logger: Logger, onEvent: EventListener | undefined) {
    this.#logger = logger
    this.#onEvent = onEvent
  }

  /** What was told so far, in its order. */
  list(): readonly ConfigurationWarning[] {
    return [...this.#told.values()]
  }

  warn({ code, message }: ConfigurationWarning): void {
    if (this.#told.has(message)) return
    this.#told.set(message, { code, message })
    this.#logger.warn(message, { code })
    try {
      this.#onEvent?.({ type: 'configuration-warning', code, message })
    } catch (error) {
      this.#logger.error('an event listener threw', { type: 'configuration-warning', error })
    }
  }
}
