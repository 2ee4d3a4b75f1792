import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import type { Vendor } from '../vendors/vendor.ts'

/** What the operator is told. */
export type ConfigurationWarning = Omit<Extract<GatewayEvent, { type: 'configuration-warning' }>, 'type'>

/** Warning about a vendor that the configuration or a call names, and that has no key or is not listed. */
export function vendorWithoutKey(vendors: ReadonlyMap<string, Vendor>, id: string): ConfigurationWarning {
  const vendor = vendors.get(id)
  const name = JSON.stringify(id)
  const message =
    vendor === undefined
      ? `There is no vendor ${name}, so no call goes to it. Add it to the option vendors.`
      : `The vendor ${name} has no key, so no call goes to it. Set ${vendor.configuredBy}.`
  return { code: 'vendor-unconfigured', message }
}

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
