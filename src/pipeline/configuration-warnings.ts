import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import type { Vendor } from '../vendors/vendor.ts'

/** Warning for the operator. */
export type ConfigurationWarning = Omit<Extract<GatewayEvent, { type: 'configuration-warning' }>, 'type'>

/** Returns a warning about a vendor in the configuration or a call that has no key or is not listed. */
export function vendorWithoutKey(vendors: ReadonlyMap<string, Vendor>, id: string): ConfigurationWarning {
  const vendor = vendors.get(id)
  const name = JSON.stringify(id)
  const message =
    vendor === undefined
      ? `There is no vendor ${name}, so no call goes to it. Add it to the option vendors.`
      : `The vendor ${name} has no key, so no call goes to it. Set ${vendor.configuredBy}.`
  return { code: 'vendor-unconfigured', message }
}

/** Warns the operator about parts of the configuration that have no effect, or an unexpected one; once for each part. */
export class ConfigurationWarnings {
  readonly #logger: Logger
  readonly #onEvent: EventListener | undefined
  // Messages name rows of the configuration and never callers' input, so their number is limited.
  readonly #told = new Map<string, ConfigurationWarning>()

  constructor(logger: Logger, onEvent: EventListener | undefined) {
    this.#logger = logger
    this.#onEvent = onEvent
  }

  /** Returns the warnings so far, in order. */
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
