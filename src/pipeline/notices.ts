import { type Catalog, noticeStartMs, retirementOf } from '../catalog/catalog.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import type { Vendor } from '../vendors/vendor.ts'

const DAY_MS = 24 * 60 * 60_000

/** Maximum number of events per day. A pattern matches any number of ids, which callers choose. */
const MAX_EVENTS_PER_DAY = 1_000

/** Parts of a gateway that announcements need. */
interface NoticeContext {
  readonly catalog: Pick<Catalog, 'source'>
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Logger
}

interface RetirementPlan {
  /** Day such as `2026-12-31`, or `undefined` if the model does not retire. */
  readonly retires: string | undefined
  readonly noticeMs: number
}

/** Announces requested models that retire soon: to callers by a header, to the operator by one event per model and UTC day. */
export class RetirementNotices {
  readonly #emit: EventListener
  readonly #models = new Set<string>()
  readonly #plans = new WeakMap<CatalogModel, RetirementPlan>()
  #day = 0

  constructor(emit: EventListener) {
    this.#emit = emit
  }

  /** Returns the header as name and value, or `undefined` if the model does not retire soon. */
  headerFor(
    { catalog, clock, logger }: NoticeContext,
    [requested]: readonly CatalogModel[],
  ): readonly [string, string] | undefined {
    const { id: model, vendor } = requested!
    let plan = this.#plans.get(requested!)
    if (plan === undefined) {
      const day = retirementOf(requested!, catalog.source)
      plan = { retires: day, noticeMs: day === undefined ? Number.POSITIVE_INFINITY : noticeStartMs(day) }
      this.#plans.set(requested!, plan)
    }
    const { retires, noticeMs } = plan
    if (retires === undefined) return undefined
    const nowMs = clock.now()
    if (nowMs < noticeMs) return undefined
    const day = Math.floor(nowMs / DAY_MS)
    if (day !== this.#day) this.#models.clear()
    this.#day = day
    if (!this.#models.has(model) && this.#models.size < MAX_EVENTS_PER_DAY) {
      this.#models.add(model)
      logger.warn('a requested model retires soon', { model, vendor, retires })
      this.#emit({ type: 'model-retiring', model, vendor, retires })
    }
    return ['x-signalbox-model-retires', retires]
  }
}

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

/** Maximum number of remembered reasons. They contain account ids, so their number is otherwise unlimited. */
const MAX_TOLD = 1_000

/** Reports to the operator why callers cannot be served with the principals of the host; once per reason. */
export class PrincipalFaults {
  readonly #logger: Logger
  readonly #onFault: (error: Error) => void
  readonly #told = new Set<string>()

  constructor(logger: Logger, onFault: (error: Error) => void) {
    this.#logger = logger
    this.#onFault = onFault
  }

  /** Returns the error for the caller, without the reason. */
  error(reason: string): GatewayError {
    const cause = new TypeError(reason)
    if (!this.#told.has(reason)) {
      if (this.#told.size >= MAX_TOLD) this.#told.clear()
      this.#told.add(reason)
      this.#logger.error('a principal cannot be used', { reason })
      this.#onFault(cause)
    }
    return new GatewayError('invalid_principal', { cause })
  }

  /** Returns the error for a principal whose account is not in the store. */
  unknownAccount(accountId: string): GatewayError {
    return this.error(
      `there is no account ${JSON.stringify(accountId)}: create it with gateway.accounts.create before its first call`,
    )
  }
}
