import { fetchHandler } from '../adapters/fetch.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { createClient } from '../client/create-client.ts'
import type { GatewayClient } from '../client/gateway-client.ts'
import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, ExchangeHandler, GatewayRequest } from '../core/exchange.ts'
import { identify } from '../pipeline/authenticate.ts'
import { emit, type PipelineContext } from '../pipeline/pipeline-context.ts'
import type { RouteOverride } from '../routing/routing-options.ts'
import type { Principal } from '../stores/principal.ts'
import { TaskWorker } from '../tasks/task-worker.ts'
import { WebhookDeliverer } from '../tasks/webhook-deliverer.ts'
import { type Accounts, accountsOf } from './accounts.ts'
import { checkOptions, checkRouting } from './check-options.ts'
import { contextOf } from './context-of.ts'
import { type CostEstimate, estimateCost, type PricedRequest } from './estimate-cost.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { type Holds, holdsOf } from './holds.ts'
import { InFlight } from './in-flight.ts'
import { configureKey, type Keys, keysOf } from './keys.ts'
import { type ListedModel, modelList } from './model-list.ts'
import { type ListedPrice, priceList } from './price-list.ts'
import { type RouteReport, routeReport } from './route-report.ts'
import { RequestContext, type ServerState, serve } from './serve-request.ts'
import { warnOfPrices } from './unused-prices.ts'
import { DEFAULT_HOUR_DAYS, type UsageParts, type UsageReports, usageOf, usageStoreOf } from './usage.ts'
import { type Webhooks, webhooksOf } from './webhooks.ts'

/** Interval of the search for expired holds; shorter if holds have a short lifetime. */
const LONGEST_SWEEP_INTERVAL_MS = 30_000
const SHORTEST_SWEEP_INTERVAL_MS = 1_000

/** Most holds ended in one transaction. */
const SWEEP_BATCH = 500

/** The host's choices for requests in its own process. */
export interface InProcessOptions {
  /** Routing. Callers over HTTP have no such choice. */
  readonly route?: RouteOverride
}

/** An AI gateway in this process. Mount it with an adapter, call it with `fetch`, or in process with `client`. */
export interface Gateway extends ExchangeHandler {
  /** Handles one request; for adapters. Never throws. */
  handle(request: GatewayRequest, sink: ByteSink): void
  /** Answers a web-standard request. */
  fetch(request: Request): Promise<Response>
  /** A client that calls the gateway in this process as `principal`, without HTTP. The same limits and billing apply. */
  client(principal: Principal, options?: InProcessOptions): GatewayClient
  /**
   * The gateway for one caller, with the same paths but without credentials. The same limits, billing and isolation apply.
   */
  exchangeAs(principal: Principal, options?: InProcessOptions): ExchangeHandler
  /**
   * Identifies the sender of a request from its headers; for handlers beside the gateway that accept the same keys.
   * @throws GatewayError `invalid_api_key`, `gateway_closing` or `store_unavailable`.
   */
  authenticate(request: GatewayRequest): Promise<Principal>
  /**
   * Computes the hold of a request; nothing is held, counted or sent.
   * @throws GatewayError for a request that would be refused before limits and balance are checked.
   */
  estimate(principal: Principal, request: PricedRequest): Promise<CostEstimate>
  /** What the catalog's models cost by the price list in force; undefined when billing is off. */
  prices(): readonly ListedPrice[] | undefined
  /** The models that callers may name, with their limits and abilities. */
  readonly catalog: Catalog
  /** The models of `GET /v1/models`. */
  models(): readonly ListedModel[]
  /** Circuits, load and latencies of the vendors and the operator's keys, as seen from this process. */
  routes(): RouteReport
  readonly accounts: Accounts
  readonly keys: Keys
  readonly holds: Holds
  readonly webhooks: Webhooks
  /** What was used, by whom, and what it cost. */
  readonly usage: UsageReports
  /** Opens the store and begins background work: following tasks, delivering webhooks, sweeping holds. Called by the first request if not before. */
  start(): Promise<void>
  /**
   * Refuses new requests with 503, lets those under way end for at most `drainMs` (default 30,000), settles the rest, and
   * closes the store and all connections. When the store is down, it is waited for within the same time.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Makes a gateway.
 * @throws TypeError for options that contradict each other; RangeError for bad prices or models.
 */
export function createGateway(options: GatewayOptions): Gateway {
  checkOptions(options)
  const context = contextOf(options)
  const inFlight = new InFlight()
  let starting: Promise<void> | undefined
  let isStarted = false
  let sweeper: Timer | undefined
  let sweeping: Promise<void> | undefined
  const sweepIntervalMs = Math.min(
    LONGEST_SWEEP_INTERVAL_MS,
    Math.max(SHORTEST_SWEEP_INTERVAL_MS, context.holdTtlMs / 2),
  )
  let closing: Promise<void> | undefined
  const deliverer = new WebhookDeliverer(context)
  const wakeWebhooks = (): void => deliverer.wake()
  const worker = new TaskWorker(context, wakeWebhooks, { retentionDays: options.taskRetentionDays })

  const ready = (): Promise<void> => {
    starting ??= open(context, options).then(() => {
      isStarted = true
      warnOfPrices(context)
      // A process that died may have left holds behind.
      sweep()
      if (closing === undefined) {
        worker.start()
        deliverer.start()
      }
    })
    // The next request retries opening the store.
    starting.catch(() => {
      starting = undefined
    })
    return starting
  }
  const sweep = (): void => {
    if (closing !== undefined) return
    sweeping = expireHolds(context, () => closing !== undefined).finally(() => {
      if (closing === undefined) sweeper = context.clock.schedule(sweepIntervalMs, sweep)
    })
  }
  const server: ServerState = {
    inFlight,
    get isClosing() {
      return closing !== undefined
    },
    wakeWebhooks,
    get ready() {
      return isStarted ? undefined : ready
    },
  }
  const accept = (
    request: GatewayRequest,
    sink: ByteSink,
    principal?: Principal,
    routeOverride?: RouteOverride,
  ): void => {
    void serve(context, server, new RequestContext(request, sink, principal, routeOverride))
  }
  const answerFetch = fetchHandler({ handle: (request, sink) => accept(request, sink) })
  const exchangeAs = (principal: Principal, { route }: InProcessOptions = {}): ExchangeHandler => {
    if (route !== undefined) checkRouting(route)
    return { handle: (request, sink) => accept(request, sink, principal, route) }
  }

  return {
    handle: (request, sink) => accept(request, sink),
    fetch: (request) => answerFetch(request),
    client: (principal, inProcess) =>
      createClient({
        baseURL: 'http://gateway.invalid/v1',
        // In process no network can fail, and the gateway has already retried what it reports.
        maxRetries: 0,
        fetch: fetchHandler(exchangeAs(principal, inProcess)),
      }),
    exchangeAs,
    async authenticate(request) {
      if (closing !== undefined) throw new GatewayError('gateway_closing')
      if (!isStarted) await ready()
      return await identify(context, request, false)
    },
    estimate: (principal, request) => estimateCost(context, principal, request),
    prices: () => (context.prices === undefined ? undefined : priceList(context.catalog, context.prices)),
    catalog: context.catalog,
    models: () => modelList(context.catalog.list(), context).data,
    routes: () => routeReport(context),
    accounts: accountsOf(context.store, context.clock, context.ids, ready, {
      plans: context.plans,
      onFrozen: (accountId, reason) => emit(context, { type: 'account-frozen', accountId, reason }),
      billing: context.billing,
    }),
    keys: keysOf(context.store, context.clock, context.ids, ready),
    holds: holdsOf(context.store, context.clock, ready),
    webhooks: webhooksOf(context.store, context.clock, ready, wakeWebhooks),
    usage: usageOf(usageParts(context, options), ready),
    start: ready,
    close({ drainMs = 30_000 } = {}) {
      closing ??= (async () => {
        const startedAtMs = context.clock.now()
        sweeper?.cancel()
        await inFlight.drain(context.clock, drainMs)
        await context.settlementRetries.drain(startedAtMs + drainMs - context.clock.now())
        const leftMs = Math.max(0, startedAtMs + drainMs - context.clock.now())
        await Promise.all([sweeping, worker.stop({ drainMs: leftMs }), deliverer.stop({ drainMs: leftMs })])
        await Promise.all([context.transport.close(), context.publicTransport.close()])
        if (starting !== undefined) await context.usage?.close()
        if (starting !== undefined) await context.store.close()
      })()
      return closing
    },
    [Symbol.asyncDispose]() {
      return this.close()
    },
  }
}

function usageParts({ store, clock }: PipelineContext, { usage }: GatewayOptions): UsageParts {
  const hourDays = (usage === 'off' ? undefined : usage?.retention?.hourDays) ?? DEFAULT_HOUR_DAYS
  return { store: usageStoreOf(store, usage), clock, hourDays }
}

async function open(context: PipelineContext, options: GatewayOptions): Promise<void> {
  try {
    await context.store.start()
    const nowMs = context.clock.now()
    for (const { key, account, tier, limits, namesEndUsers = false } of options.keys ?? []) {
      await context.store.ledger.createAccount({ id: account, ...(tier === undefined ? {} : { tier }) }, nowMs)
      await configureKey(context.store, { key, account, limits, namesEndUsers }, nowMs)
    }
  } catch (cause) {
    if (cause instanceof TypeError) throw cause
    throw new GatewayError('store_unavailable', { cause })
  }
}

async function expireHolds(context: PipelineContext, isOver: () => boolean): Promise<void> {
  try {
    let expired = SWEEP_BATCH
    while (expired === SWEEP_BATCH && !isOver())
      expired = await context.store.ledger.expire(context.clock.now(), SWEEP_BATCH)
    await context.store.ledger.expireCredits(context.clock.now(), SWEEP_BATCH)
  } catch (error) {
    context.logger.error('holds and credits could not be expired', { error })
  }
}
