import { Buffer } from 'node:buffer'
import { BATCH_FIELD, BATCH_VALUE, type MeterPrice } from '../../catalog/prices/prices.ts'
import { endOfTurn } from '../../core/calls-in-flight.ts'
import { GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { addUsage, type Usage } from '../../core/usage.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { CallRecord, type Parsed } from '../../pipeline/call-record.ts'
import { estimateFor } from '../../pipeline/estimate.ts'
import { innerRequest, NOWHERE } from '../../pipeline/idempotent-request.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import { priceRequest } from '../../pipeline/pricing.ts'
import { unboundedRequest } from '../../pipeline/reserve.ts'
import { readRequest } from '../../pipeline/serve.ts'
import { recall } from '../../pipeline/stored-answers.ts'
import type { Principal } from '../../stores/principal.ts'
import { addCosts, boundCosts, NO_COSTS, writtenCosts } from './batch-record.ts'
import type { LineFault, WrittenRequest } from './lines.ts'

/** Request of a batch in the form that is run: one line of the batch's plan. */
export interface PlannedRequest {
  readonly id: string
  readonly body: unknown
  /** Name of its price in the prices of the batch. If omitted, nothing is charged. */
  readonly price?: string
  /**
   * Costs at three output limits, in nano-dollars: shortest, usual, longest. One value if the request sets a limit. If omitted,
   * the request is free.
   */
  readonly costs?: readonly string[]
}

/** Maximum number of reported faults. */
const MOST_FAULTS = 100
/** Maximum number of different prices in one batch. Requests may differ in what they are charged by. */
const MOST_PRICES = 100
/** Number of requests that are checked before other work gets a turn of the event loop. */
const CHECKED_PER_TURN = 20
/** A larger request has its own turns of the event loop: parsing its JSON may take half a second. */
const OWN_TURN_BYTES = 64 * 1024

/** Thrown into the reader of the requests if faults are known and nothing is to be stored. */
export class FaultyBatch extends Error {}

/**
 * Checks every request of a batch like a single request: its body, the scopes of its key, its model and its price. Nothing is
 * held, and no vendor is called. Hooks run later, when the request is run.
 */
export class RequestChecks {
  readonly faults: LineFault[] = []
  /** Prices by the name that requests refer to (index and model: `0 gp-5.4`), or `undefined` if billing is off or the endpoint is free. */
  prices: Record<string, readonly MeterPrice[]> | undefined
  /** Costs of all requests. */
  costs = NO_COSTS
  estimate: Usage = {}
  total = 0
  /** Model of all requests; set after the first one. */
  model: { readonly id: string; readonly vendor: string } | undefined
  readonly #context: PipelineContext
  readonly #endpoint: Endpoint
  readonly #principal: Principal
  readonly #customIds = new Set<string>()
  readonly #priceNames = new Map<string, string>()

  constructor(context: PipelineContext, endpoint: Endpoint, principal: Principal) {
    this.#context = context
    this.#endpoint = endpoint
    this.#principal = principal
  }

  /** Whether there are so many faults that the rest is not read. */
  get isHopeless(): boolean {
    return this.faults.length >= MOST_FAULTS
  }

  fault(fault: LineFault): void {
    if (!this.isHopeless) this.faults.push(fault)
  }

  /** @returns `undefined` for an invalid request. */
  async plan({ customId, body }: WrittenRequest, line: number): Promise<PlannedRequest | undefined> {
    this.total++
    if (this.total % CHECKED_PER_TURN === 0) await endOfTurn()
    if (this.#customIds.has(customId)) {
      const message = `custom_id: ${JSON.stringify(customId)} is that of an earlier request, too`
      this.fault({ code: 'duplicate_custom_id', line, message, param: 'custom_id' })
      return undefined
    }
    this.#customIds.add(customId)
    try {
      const bytes = Buffer.from(exactJsonText(body))
      const hasOwnTurns = bytes.byteLength > OWN_TURN_BYTES
      if (hasOwnTurns) await endOfTurn()
      const charged = await this.#check(bytes)
      if (hasOwnTurns) await endOfTurn()
      return { id: customId, body, ...charged }
    } catch (cause) {
      const error = GatewayError.from(cause)
      // Errors that the caller did not cause concern the whole batch.
      if (error.status >= 500 || error.code === 'model_not_priced') throw error
      this.fault({ code: error.publicCode, line, message: error.message, param: error.param ?? null })
      return undefined
    }
  }

  async #check(bytes: Buffer): Promise<Pick<PlannedRequest, 'price' | 'costs'> | undefined> {
    const context = this.#context
    const endpoint = this.#endpoint
    const record = new CallRecord({
      request: innerRequest(endpoint.path, bytes),
      sink: NOWHERE,
      requestId: 'batch',
      startedAtMs: context.clock.now(),
      called: endpoint,
      vouchedPrincipal: this.#principal,
      routeOverride: undefined,
    })
    const parsed = await readRequest(context, record)
    context.retirements.headerFor(context, parsed.chain)
    if (parsed.isStream || parsed.endpoint.deferral?.applies(parsed.body) === true) {
      const param = parsed.isStream ? 'stream' : 'background'
      throw new GatewayError('unsupported_parameter', {
        message: `${param}: not allowed in requests of a batch`,
        param,
      })
    }
    if (parsed.endpoint.continuation?.of(parsed.body) !== undefined)
      throw new GatewayError('unsupported_parameter', {
        message: 'Requests of a batch cannot begin or continue a conversation that the vendor stores.',
      })
    if (parsed.endpoint.kept !== undefined) await recall(context, parsed)
    this.#checkModel(parsed)
    record.billingFields = { ...parsed.billingFields, [BATCH_FIELD]: BATCH_VALUE }
    const estimate = estimateFor(context, parsed, parsed.chain[0]!)
    this.estimate = addUsage(this.estimate, estimate)
    const priced = priceRequest(context, parsed, estimate)
    if (priced === undefined) return undefined
    if (priced.rates.some(({ otherModels }) => otherModels !== undefined))
      throw new GatewayError('unsupported_parameter', {
        message: 'Tools that use other models cannot be used in a batch.',
      })
    const unbounded = unboundedRequest(context, parsed, priced)
    const costs = boundCosts(priced, unbounded)
    this.costs = addCosts(this.costs, costs)
    const price = this.#priceOf(priced.rates.map(({ model, prices }) => [model, prices]))
    return { price, costs: writtenCosts(costs) }
  }

  #checkModel({ chain, body }: Parsed): void {
    const { id, vendor } = this.#context.catalog.find(body.model) ?? chain[0]!
    this.model ??= { id, vendor }
    if (this.model.id === id) return
    throw new GatewayError('invalid_request', {
      message: `model: the requests of a batch have one model, and the first one has ${JSON.stringify(this.model.id)}`,
      param: 'model',
      publicCode: 'mismatched_model',
    })
  }

  #priceOf(rates: readonly (readonly [model: string, prices: readonly MeterPrice[]])[]): string {
    const key = JSON.stringify(rates)
    const known = this.#priceNames.get(key)
    if (known !== undefined) return known
    const name = String(this.#priceNames.size)
    if (this.#priceNames.size === MOST_PRICES)
      throw new GatewayError('invalid_request', {
        message: `A batch can have at most ${MOST_PRICES} different prices.`,
      })
    this.#priceNames.set(key, name)
    this.prices ??= {}
    for (const [model, prices] of rates) this.prices[`${name} ${model}`] = prices
    return name
  }
}
