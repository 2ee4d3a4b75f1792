import { fetchHandler } from '../adapters/fetch.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { createClient } from '../client/create-client.ts'
import type { GatewayClient } from '../client/gateway-client.ts'
import { endOfTurn } from '../core/calls-in-flight.ts'
import { type Clock, countdown, type Timer } from '../core/clock.ts'
import { GatewayError, textOfError } from '../core/errors.ts'
import type { EventListener } from '../core/events.ts'
import type { ByteSink, ExchangeHandler, GatewayRequest } from '../core/exchange.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { usableLogger } from '../core/logger.ts'
import type { ObservedToolCall, ToolCallFacts } from '../core/observer.ts'
import { identify } from '../pipeline/authenticate.ts'
import { type Observers, ToolCallObservation } from '../pipeline/call-observation.ts'
import type { CommitWith } from '../pipeline/commit-with.ts'
import { type UnpricedModels, unpricedModels } from '../pipeline/model-notices.ts'
import type { ConfigurationWarning } from '../pipeline/notices.ts'
import { emit, type PipelineContext } from '../pipeline/pipeline-context.ts'
import type { RouteOverride } from '../routing/candidate.ts'
import type { Principal } from '../stores/principal.ts'
import { DeferredAnswers, DeferredRunner } from '../tasks/deferred-answers.ts'
import { TaskWorker } from '../tasks/task-worker.ts'
import { WebhookDeliverer } from '../tasks/webhook-deliverer.ts'
import { type Accounts, accountsOf } from './accounts.ts'
import { type Audit, auditOf } from './audit.ts'
import { type CacheControl, cacheControlOf } from './cache-options.ts'
import { CatalogInForce } from './catalog-in-force.ts'
import type { CatalogState } from './catalog-options.ts'
import { CatalogUpdates } from './catalog-updates.ts'
import { checkOptions, checkRoute } from './check-options.ts'
import { checkPrincipal } from './check-principal.ts'
import { contextOf, EventListeners } from './context.ts'
import { type CostEstimate, estimateCost, type PricedRequest } from './estimates.ts'
import { type CloseTimes, closeTimes, type GatewayHealth, Health, keepingAlive } from './health.ts'
import { expireHolds, type Holds, holdsOf } from './holds.ts'
import { CallerWatch, endWork, InFlight, workEnded } from './in-flight.ts'
import { configureKey, type Keys, keysOf } from './keys.ts'
import { type ListedModel, modelList } from './model-list.ts'
import { type ListedPrice, logUnpricedModels, priceList, warnOfModels, warnOfPrices } from './model-warnings.ts'
import {
  type OperatorActions,
  operatorActionsOf,
  type RouteReport,
  routeReport,
  type VendorKeys,
  vendorKeysOf,
} from './operator-actions.ts'
import type { GatewayOptions } from './options.ts'
import { overloadGuardOf } from './overload-guard.ts'
import { completionsOf, type HostChoices, RequestContext, type ServerState, serve } from './serve-request.ts'
import { cancelAnyTask, type LoadedBatches, loadBatches, type Tasks, tasksOf } from './tasks.ts'
import { type UsageReports, usageOf, usageStoreOf } from './usage.ts'
import { type Webhooks, webhooksOf } from './webhooks.ts'

/** Maximum interval between searches for expired holds, in milliseconds. It is shorter if holds have a short lifetime. */
const MAX_SWEEP_INTERVAL_MS = 30_000
const MIN_SWEEP_INTERVAL_MS = 1_000

/** Options of requests within the host's process. */
export interface InProcessOptions {
  /** Routing override. Callers over HTTP have no such option. */
  readonly route?: RouteOverride
  /** Tool call that makes the requests, from `beginToolCall` of the same gateway. Observers see the requests as parts of it. */
  readonly toolCall?: ObservedToolCall
  /**
   * Statements of the host that are committed in one transaction with the charge of each call. Requires billing, and a store on
   * PostgreSQL or SQLite. Videos, background answers and batches are rejected, because they are charged later.
   */
  readonly commitWith?: CommitWith
}

const IN_PROCESS_OPTIONS = memberNames<InProcessOptions>()('route toolCall commitWith')

const NO_CHOICES: HostChoices = {}

/** AI gateway in this process. Mount it with an adapter, call it with `fetch`, or in process with `client`. */
export interface Gateway extends ExchangeHandler {
  /** Handles one request; for adapters. Never throws. The promise resolves when the request is settled. */
  handle(request: GatewayRequest, sink: ByteSink): Promise<void>
  /**
   * Resolves when this process has finished the remaining work of answered requests: settlements that the store rejected, usage
   * records, due webhooks, background answers, batches, and polls of videos. Resolves at the latest after 5 minutes. For hosts that
   * freeze a process between requests. Never rejects.
   */
  workEnded(): Promise<void>
  /** Answers a web-standard request. */
  fetch(request: Request): Promise<Response>
  /**
   * Returns a client that calls the gateway in this process as `principal`, without HTTP. The same limits and billing apply.
   * @throws TypeError for an invalid principal or an unknown option.
   */
  client(principal: Principal, options?: InProcessOptions): GatewayClient
  /**
   * Returns the gateway for one caller, with the same paths but without credentials. The same limits, billing and isolation apply.
   * @throws TypeError as `client` does.
   */
  exchangeAs(principal: Principal, options?: InProcessOptions): ExchangeHandler
  /**
   * Notifies observers of a tool call, for handlers that offer tools alongside the gateway. `undefined` if no observer receives tool
   * calls. Never throws.
   */
  readonly beginToolCall: ((facts: Omit<ToolCallFacts, 'startedAtMs'>) => ObservedToolCall) | undefined
  /**
   * Identifies the sender of a request from its headers; for handlers alongside the gateway that accept the same keys.
   * @throws GatewayError `invalid_api_key`, `invalid_principal`, `gateway_closing` or `store_unavailable`.
   */
  authenticate(request: GatewayRequest): Promise<Principal>
  /**
   * Computes the hold of a request; nothing is held, counted or sent.
   * @throws GatewayError if the request would be rejected before limits and balance are checked.
   */
  estimate(principal: Principal, request: PricedRequest): Promise<CostEstimate>
  /** Returns the prices of the catalog's models by the price list in force, or `undefined` if billing is off. */
  prices(): readonly ListedPrice[] | undefined
  /**
   * Returns the number of models of the configured vendors that have no price and are rejected. `undefined` if billing is off, or if
   * the prices do not list their rows.
   */
  unpricedModels(): UnpricedModels | undefined
  /**
   * Returns parts of the configuration without effect, or with another effect than expected, each once. They are equal to the events
   * `configuration-warning`. Nearly all are known after the start of the gateway.
   */
  warnings(): readonly ConfigurationWarning[]
  /** Models that callers may name, with their limits and abilities; follows `loadCatalog`. */
  readonly catalog: Catalog
  /**
   * Loads a newer snapshot of the vendors' models and list prices from a path or URL; by default from the option `catalog`. Requests
   * in flight keep their model and price.
   * @throws TypeError with the reason. The catalog in force stays then.
   */
  loadCatalog(from?: string): Promise<CatalogState>
  /** Returns the models of `GET /v1/models`. */
  models(): readonly ListedModel[]
  /** Returns circuits, calls in progress and latencies of the vendors and the operator's keys in this process. */
  routes(): RouteReport
  /**
   * Returns whether this process can serve requests. Opens the store if necessary, and waits up to 2 seconds for its answer, at most
   * once a second. Never rejects. `GET /readyz` returns 200 if `status` is `ok`.
   */
  health(): Promise<GatewayHealth>
  /** Accounts, their money and their books. */
  readonly accounts: Accounts
  /** API keys of callers. */
  readonly keys: Keys
  /** Money held for calls in progress. */
  readonly holds: Holds
  /** Clears the response cache, and counts its hits. */
  readonly cache: CacheControl
  /** Messages to callers' webhooks, and their secrets. */
  readonly webhooks: Webhooks
  /** Videos, background answers and batches of all accounts. */
  readonly tasks: Tasks
  /** Operator's keys at the vendors, as this process uses them. */
  readonly vendorKeys: VendorKeys
  /** Operations for handlers alongside the gateway that make changes for an operator. */
  readonly operatorActions: OperatorActions
  /** Changes by operators, kept for a year. */
  readonly audit: Audit
  /** Usage and cost of calls, by caller. */
  readonly usage: UsageReports
  /** Adds a listener to the events of this process. The returned function removes it. */
  listen(listener: EventListener): () => void
  /**
   * Opens the store and starts background work: polling tasks, delivering webhooks, sweeping holds. The first request calls it if the
   * host has not.
   */
  start(): Promise<void>
  /**
   * Rejects new requests with 503, lets requests in flight end for at most `drainMs` (default 30,000), settles the rest, and closes
   * the store and all connections. If the store is down, it waits for the store within the same time. The process stays alive until
   * then. For `delayMs` before that (default 0), `/readyz` returns 503 while requests are still accepted, so that a load balancer can
   * react. From the call on, each answer closes its connection, and kept connections move to other processes.
   */
  close(options?: { readonly drainMs?: number; readonly delayMs?: number }): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Creates a gateway.
 * @throws TypeError for unknown or contradictory options; RangeError for invalid prices or models.
 */
export function createGateway(options: GatewayOptions): Gateway {
  checkOptions(options)
  const listeners = new EventListeners(options.onEvent, usableLogger(options.logger))
  const models = new CatalogInForce(options)
  const context = contextOf(options, listeners, models)
  const updates = new CatalogUpdates(context, models, options.catalog)
  const wakeWatch = (): void => watch.wake()
  const inFlight = new InFlight(wakeWatch)
  let starting: Promise<void> | undefined
  let isStarted = false
  let sweeper: Timer | undefined
  let sweeping: Promise<void> | undefined
  const sweepIntervalMs = Math.min(MAX_SWEEP_INTERVAL_MS, Math.max(MIN_SWEEP_INTERVAL_MS, context.holdTtlMs / 2))
  let closing: Promise<void> | undefined
  let isRefusing = false
  const deliverer = new WebhookDeliverer(context)
  const wakeWebhooks = (): void => deliverer.wake()
  const runner = new DeferredRunner(context, wakeWebhooks, wakeWatch)
  const deferred = new DeferredAnswers(runner, wakeWebhooks)
  let batches: LoadedBatches | undefined
  const runners = { deferred, wakeWebhooks, batches: () => batches }
  const watch = new CallerWatch(context, () => [inFlight, runner, batches?.runner])
  const { clock, retention } = context
  const retentionDays = async (): Promise<number> => (await retention.days()).taskDays
  const worker = new TaskWorker(context, wakeWebhooks, { retentionDays })
  const ready = (): Promise<void> => {
    starting ??= open(context, options).then(async () => {
      batches ??= await loadBatches(context, wakeWebhooks, wakeWatch)
      isStarted = true
      if (closing === undefined) overload?.start()
      await updates.start()
      warnOfPrices(context)
      warnOfModels(context, options)
      logUnpricedModels(context)
      // A process that died may have left holds.
      sweep()
      if (closing === undefined) {
        watch.start()
        worker.start()
        runner.start()
        batches?.runner.start()
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
  const health = new Health({
    clock: context.clock,
    store: context.store,
    storeOutage: context.storeOutage,
    isBilled: context.prices !== undefined,
    ready: () => (isStarted ? undefined : ready),
    isClosing: () => closing !== undefined,
    inFlight: () => inFlight.size,
    catalog: () => updates.state(),
  })
  const overload = overloadGuardOf(options.overload, context.clock, context.heldBytes)
  const server: ServerState = {
    inFlight,
    overload,
    health,
    get isClosing() {
      return isRefusing
    },
    wakeWebhooks,
    deferred,
    completionOf: completionsOf(deferred),
    get batches() {
      return batches
    },
    get ready() {
      return isStarted ? undefined : ready
    },
  }
  const accept = (
    request: GatewayRequest,
    sink: ByteSink,
    principal?: Principal,
    choices: HostChoices = NO_CHOICES,
  ): Promise<void> => {
    if (closing !== undefined) sink.endConnection?.()
    return serve(context, server, new RequestContext(request, sink, principal, choices))
  }
  const whenWorkEnded = (): Promise<void> => workEnded(context, [runner, batches?.runner, worker, deliverer])
  const answerFetch = fetchHandler({ handle: (request, sink) => accept(request, sink) })
  const exchangeAs = (principal: Principal, inProcess: InProcessOptions = {}): ExchangeHandler => {
    checkMembers(inProcess, IN_PROCESS_OPTIONS, 'gateway')
    const { route, toolCall, commitWith } = inProcess
    checkPrincipal(principal, 'gateway')
    if (route !== undefined) checkRoute(route)
    if (toolCall !== undefined && !isToolCallOf(toolCall, context.observers))
      throw new TypeError('gateway: toolCall must be a result of beginToolCall of the same gateway')
    if (commitWith !== undefined) checkCommitWith(commitWith, context)
    const choices = { routeOverride: route, toolCall, commitWith }
    return { handle: (request, sink) => accept(request, sink, principal, choices), workEnded: whenWorkEnded }
  }

  return {
    handle: (request, sink) => accept(request, sink),
    workEnded: whenWorkEnded,
    fetch: (request) => answerFetch(request),
    client: (principal, inProcess) =>
      createClient({
        baseURL: 'http://gateway.invalid/v1',
        // No network can fail in process, and the gateway has already retried what it reports.
        maxRetries: 0,
        fetch: fetchHandler(exchangeAs(principal, inProcess)),
      }),
    exchangeAs,
    beginToolCall:
      context.observers?.hearsToolCalls === true ? toolCallsOf(context.observers, context.clock) : undefined,
    async authenticate(request) {
      if (isRefusing) throw new GatewayError('gateway_closing')
      if (!isStarted) await ready()
      return await identify(context, request, false)
    },
    async estimate(principal, request) {
      checkPrincipal(principal, 'gateway')
      return await estimateCost(context, principal, request)
    },
    prices: () => (context.prices === undefined ? undefined : priceList(context.catalog, context.prices)),
    unpricedModels: () => unpricedModels(context),
    warnings: () => context.warnings.list(),
    catalog: context.catalog,
    loadCatalog: (from) => updates.load(from),
    models: () => modelList(context.catalog.list(), context).data,
    routes: () => routeReport(context),
    health: () => health.read(),
    accounts: accountsOf(context.store, context.clock, context.ids, ready, {
      plans: context.plans,
      onFrozen: (accountId, reason) => emit(context, { type: 'account-frozen', accountId, reason }),
      billing: context.billing,
    }),
    keys: keysOf(context.store, context.clock, context.ids, ready, context),
    cache: cacheControlOf(context),
    holds: holdsOf(context.store, context.clock, ready),
    webhooks: webhooksOf(context.store, context.clock, ready, {
      storedBounds: context.storedBounds,
      webhookSecret: context.webhookSecret,
      wake: wakeWebhooks,
    }),
    tasks: tasksOf(context.store, ready, (task) => cancelAnyTask(context, runners, task)),
    vendorKeys: vendorKeysOf(context),
    operatorActions: operatorActionsOf(context, ready),
    audit: auditOf(context.store, context.clock, context.ids, ready),
    usage: usageOf({ store: usageStoreOf(context.store, options.usage), clock, retention }, ready),
    listen: (listener) => listeners.add(listener),
    start: () => ready().catch(rethrowWithReason),
    close(given = {}) {
      let times: Required<CloseTimes>
      try {
        times = closeTimes(given)
      } catch (error) {
        return Promise.reject(error)
      }
      const { drainMs, delayMs } = times
      if (closing === undefined) inFlight.endConnections()
      closing ??= keepingAlive(async () => {
        if (delayMs > 0) await new Promise<void>((resolve) => context.clock.schedule(delayMs, resolve))
        isRefusing = true
        const leftMs = countdown(context.clock, drainMs)
        sweeper?.cancel()
        overload?.close()
        updates.close()
        await endWork(context, { inFlight, runner, batches: batches?.runner, worker, deliverer, watch }, drainMs)
        await sweeping
        context.storeOutage.close()
        context.names.close()
        await Promise.all([context.transport.close(), context.publicTransport.close()])
        context.observers?.detached()
        if (context.hooks !== undefined) await context.hooks.close(context.clock, leftMs(), context.logger)
        if (starting !== undefined) await context.usage?.close()
        if (starting !== undefined) await context.store.close()
        // The last answers are sent before the host ends its process.
        await endOfTurn()
      })
      return closing
    },
    [Symbol.asyncDispose]() {
      return this.close()
    },
  }
}

async function open(context: PipelineContext, options: GatewayOptions): Promise<void> {
  try {
    await context.store.start()
    await context.retention.write()
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

/** The message contains the reason for the host; callers of the gateway get the safe text of the error table. */
function rethrowWithReason(error: unknown): never {
  if (!GatewayError.isInstance(error) || error.cause === undefined) throw error
  throw new GatewayError(error.code, {
    message: `The store cannot be opened: ${textOfError(error.cause)}`,
    cause: error.cause,
  })
}

function toolCallsOf(observers: Observers, clock: Clock): NonNullable<Gateway['beginToolCall']> {
  return (facts) => new ToolCallObservation(observers, clock, facts)
}

function checkCommitWith(commitWith: unknown, { prices, store }: PipelineContext): void {
  if (typeof commitWith !== 'function') throw new TypeError('gateway: commitWith must be a function')
  if (prices === undefined) throw new TypeError('gateway: commitWith needs billing. Set prices in createGateway.')
  if (store.ledger.settleWith === undefined)
    throw new TypeError('gateway: commitWith needs a store with transactions. Use PostgreSQL or SQLite.')
}

/** Other gateways' observers cannot read a tool call of these observers. */
function isToolCallOf(toolCall: ObservedToolCall, observers: Observers | undefined): toolCall is ToolCallObservation {
  return toolCall instanceof ToolCallObservation && toolCall.observers === observers
}
