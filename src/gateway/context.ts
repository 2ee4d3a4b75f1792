import cluster from 'node:cluster'
import { InFlightCalls } from '../core/calls-in-flight.ts'
import { systemClock } from '../core/clock.ts'
import type { EventListener, GatewayEvent } from '../core/events.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { type Logger, usableLogger } from '../core/logger.ts'
import { HeldBytes } from '../core/memory-use.ts'
import type { GatewayState } from '../core/observer.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS, estimateTokens } from '../endpoints/token-estimate.ts'
import { HookTable } from '../hooks/hook-table.ts'
import { Disconnects } from '../pipeline/abort-scope.ts'
import { Observers } from '../pipeline/call-observation.ts'
import { Deadlines, SilenceWatch } from '../pipeline/call-timers.ts'
import { FetchedBytes, imageFetcher } from '../pipeline/fetched-media.ts'
import { ConfigurationWarnings, PrincipalFaults, RetirementNotices } from '../pipeline/notices.ts'
import {
  AccountPlans,
  emit,
  emitTo,
  type PipelineContext,
  StateOrigins,
  type Timeouts,
} from '../pipeline/pipeline-context.ts'
import { probeStore, SettlementRetries, StoreOutage } from '../pipeline/store-health.ts'
import { TokenSizes } from '../pipeline/token-sizes.ts'
import { callsInFlight, circuitOf, RouteTable } from '../routing/candidate.ts'
import { RetryBudget } from '../routing/selection.ts'
import { memoryConcurrencyLimiter, memoryRateLimiter } from '../stores/memory/memory-limiters.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { Retention } from '../stores/retention.ts'
import { StoredBounds } from '../stores/stored-bounds.ts'
import { NameResolver } from '../transport/name-resolver.ts'
import { undiciTransport } from '../transport/undici.ts'
import { UsageRecorder } from '../usage/usage-recorder.ts'
import { accountStorageOf } from './accounts.ts'
import { keyAuthentication } from './authenticate.ts'
import { answerCacheOf } from './cache-options.ts'
import { CatalogInForce } from './catalog-in-force.ts'
import { batchSettingsOf, limitSetOf, planLimitsOf } from './catalog-options.ts'
import { hooksFor } from './hook-host.ts'
import { signIn } from './keys.ts'
import { billingModeOf, DEFAULT_DRAIN_MS, DEFAULT_TIMEOUTS, defaultHoldTtlMs, type GatewayOptions } from './options.ts'
import { usageStoreOf } from './usage.ts'

const DEFAULT_BODY_LIMIT_BYTES = 32 * 1024 * 1024
const DEFAULT_FETCHED_BYTES_PER_ACCOUNT = 64 * 1024 * 1024
const DAY_MS = 24 * 60 * 60_000
const DEFAULT_TASK_DEADLINE_MS = DAY_MS
const DEFAULT_ANSWER_RETENTION_DAYS = 30
const DEFAULT_PERCENTS: readonly number[] = [50, 80, 100]

/** Applies the defaults, once, and builds the context that the stages share. */
export function contextOf(
  options: GatewayOptions,
  listeners = new EventListeners(options.onEvent, usableLogger(options.logger)),
  { endpoints, catalog, prices } = new CatalogInForce(options),
): PipelineContext {
  const clock = options.clock ?? systemClock
  const timeouts: Timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts }
  const drainMs = options.drainMs ?? DEFAULT_DRAIN_MS
  const billing = billingModeOf(options.billing)
  const logger = usableLogger(options.logger)
  const store = options.store ?? memoryStore()
  const allowPrivate = options.allowPrivateUrls ?? false
  const ownTransport = options.transport ?? undiciTransport({ connectTimeoutMs: timeouts.connectMs })
  const observers =
    options.observe === undefined || options.observe.length === 0
      ? undefined
      : new Observers(options.observe, { logger, clock }, ownTransport)
  const names = new NameResolver({ allowPrivate, clock })
  const plainTransport = undiciTransport({ connectTimeoutMs: timeouts.connectMs, lookup: names.lookup })
  const heldBytes = new HeldBytes(options.overload?.maxHeldBytes)
  const publicTransport = observers?.aside(plainTransport) ?? plainTransport
  const vendors = new Map(options.vendors.map((vendor) => [vendor.id, vendor]))
  const { strategy = 'weighted', fallback = 'on-failure', retryAfterTimeout = false } = options.routing ?? {}
  const limits = limitSetOf(options.limits, 'limits')
  const keys = keyAuthentication(store, clock)
  const principalFaults = new PrincipalFaults(logger, (error) =>
    emit(context, { type: 'internal-error', requestId: undefined, where: 'authenticate', error }),
  )
  const given = options.hooks ?? []
  const hosted = { endpoints: endpoints.all, catalog, context: () => context }
  const hooks = given.length === 0 ? undefined : new HookTable(hooksFor(given, hosted), endpoints.all)
  hooks?.start(logger, clock)
  const storeOutage = new StoreOutage({
    clock,
    logger,
    probe: () => probeStore(store, prices !== undefined),
    emit: (event) => emit(context, event),
  })
  const warnings = new ConfigurationWarnings(logger, options.onEvent)
  const usageRetention = options.usage === 'off' ? undefined : options.usage?.retention
  const retention = new Retention(
    store.settings,
    { ...usageRetention, taskDays: options.taskRetentionDays },
    (message) => warnings.warn({ code: 'retention-changed', message }),
  )
  const context: PipelineContext = {
    endpoints,
    catalog,
    vendors,
    transport: observers?.aside(ownTransport) ?? ownTransport,
    publicTransport,
    fetchImage: imageFetcher(publicTransport, { names, allowPrivate, clock }),
    names,
    heldBytes,
    fetchedBytes: new FetchedBytes(options.fetchedBytesPerAccount ?? DEFAULT_FETCHED_BYTES_PER_ACCOUNT, heldBytes),
    store,
    storeOutage,
    storedBounds: new StoredBounds(store, clock, accountStorageOf(options.accountStorage)),
    retention,
    usage: recorderOf(options, { store, retention, clock }, (event) => {
      const { type, error } = event
      if (type === 'internal-error')
        storeOutage.failed(error, () => logger.error('usage could not be summed up', { error }))
      else logger.error('usage records of calls that were not charged are lost', { records: event.records, error })
      emit(context, event)
    }),
    authenticate: options.authenticate === undefined ? keys : signIn(options.authenticate, keys, principalFaults),
    principalFaults,
    prices,
    showPrices: options.showPrices ?? false,
    unpricedFeatures: new Set(options.unpricedFeatures),
    unknownInputTokens: options.unknownInputTokens ?? {},
    billing: billing === 'metered' ? 'metered' : 'prepaid',
    rateLimiter: options.rateLimiter ?? memoryRateLimiter(),
    concurrency: options.concurrencyLimiter ?? memoryConcurrencyLimiter(),
    limits,
    plans: planLimitsOf(options.plans, limits),
    accountPlans: new AccountPlans(store.ledger, clock),
    retryBudget: new RetryBudget(),
    routes: new RouteTable(options.vendors, {
      clock,
      onFailure: (failure) => {
        const { message: reason, ...named } = failure
        logger.error('a credential provider failed', { ...named, reason })
        emit(context, { type: 'credential-refresh-failed', ...failure })
      },
    }),
    routing: { strategy, fallback, retryAfterTimeout },
    operatorKey: options.operatorKey,
    clientAddress: options.clientAddress,
    timeouts,
    bodyLimitBytes: options.bodyLimitBytes ?? DEFAULT_BODY_LIMIT_BYTES,
    // Without billing the time limits only claims of Idempotency-Keys, which no call may outlive.
    holdTtlMs: (billing === 'off' ? undefined : options.holdTtlMs) ?? defaultHoldTtlMs(timeouts.totalMs, drainMs),
    deadlines: new Deadlines(clock, timeouts.totalMs),
    silenceWatch: new SilenceWatch(clock),
    disconnects: new Disconnects(options.disconnect, drainMs),
    outputBounds: {
      defaultMaxOutputTokens: options.defaultMaxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS,
      showBalanceInErrors: options.showBalanceInErrors ?? true,
    },
    tokenSizes: new TokenSizes(),
    estimateTokens: options.estimateTokens ?? estimateTokens,
    marksPrompts: options.promptCaching === 'auto',
    keptAnswers: {
      keeps: options.responses?.store !== 'never',
      retentionMs: (options.responses?.retentionDays ?? DEFAULT_ANSWER_RETENTION_DAYS) * DAY_MS,
      stateSecret: options.responses?.stateSecret,
    },
    stateMakers: new StateOrigins(),
    batches: batchSettingsOf(options.batches, store),
    cache: answerCacheOf(options.cache, endpoints.all, hooks),
    settlementRetries: new SettlementRetries(clock, (waiting, error) =>
      storeOutage.failed(error, () =>
        logger.warn('a settlement is waiting: the store is unavailable', { waiting, error }),
      ),
    ),
    spendingThresholds: {
      caps: options.spendingThresholds?.caps ?? DEFAULT_PERCENTS,
      balance: options.spendingThresholds?.balance ?? DEFAULT_PERCENTS,
    },
    webhookSecret: options.webhookSecret,
    allowPrivateUrls: allowPrivate,
    taskDeadlineMs: options.taskDeadlineMs ?? DEFAULT_TASK_DEADLINE_MS,
    taskPollIntervalMs: options.taskPollIntervalMs,
    taskCalls: new InFlightCalls(),
    hooks,
    clock,
    ids: options.ids ?? timeOrderedIds,
    logger,
    warnings,
    retirements: new RetirementNotices((event) => emit(context, event)),
    get onEvent() {
      return listeners.current
    },
    observers,
  }
  observers?.attached(() => stateOf(context))
  const { stateSecret, store: kept } = options.responses ?? {}
  if ((store.isShared === true || cluster.isWorker) && stateSecret === undefined && kept !== 'never')
    context.warnings.warn({ code: 'state-secret-missing', message: STATE_SECRET_MISSING })
  return context
}

const STATE_SECRET_MISSING =
  'responses.stateSecret is not set, but several processes may share the store. Reasoning that callers carry in encrypted_content is lost at another process and after a restart. Set the same secret in all of them.'

/** State that observers can read. */
function stateOf({ routes, retryBudget, settlementRetries, usage, clock }: PipelineContext): GatewayState {
  const nowMs = clock.now()
  return {
    retriesLeft: retryBudget.left,
    settlementsWaiting: settlementRetries.size,
    rollUpAgeMs: usage?.rollUpAgeMs ?? 0,
    vendors: Array.from(routes.vendors, (routed) => ({
      vendor: routed.vendor.id,
      inFlight: callsInFlight(routed),
      keys: routed.keys.map(({ credentialId, circuit }) => ({
        credentialId,
        isUp: circuitOf(circuit, nowMs) !== 'open',
      })),
    })),
  }
}

function recorderOf(
  { usage }: GatewayOptions,
  { store, retention, clock }: Pick<PipelineContext, 'store' | 'retention' | 'clock'>,
  tell: (event: Extract<GatewayEvent, { type: 'usage-dropped' | 'internal-error' }>) => void,
): UsageRecorder | undefined {
  const kept = usageStoreOf(store, usage)
  if (kept === undefined) return undefined
  return new UsageRecorder({
    store: kept,
    clock,
    retention: () => retention.days(),
    dropped: (records, error) => tell({ type: 'usage-dropped', records, error }),
    failed: (error) => tell({ type: 'internal-error', requestId: undefined, where: 'usage', error }),
  })
}

/** Listeners to the events of one gateway: the host's, and those that handlers add. */
export class EventListeners {
  readonly #logger: Logger
  #all: readonly EventListener[]
  /** Notifies all listeners; `undefined` without listeners, so that no event is created. */
  current: EventListener | undefined

  constructor(host: EventListener | undefined, logger: Logger) {
    this.#logger = logger
    this.#all = host === undefined ? [] : [host]
    this.current = host
  }

  /** @returns a function that removes the listener. */
  add(listener: EventListener): () => void {
    // The same function may be added twice, and each is removed separately.
    const added: EventListener = (event) => listener(event)
    this.#set([...this.#all, added])
    return () => this.#set(this.#all.filter((other) => other !== added))
  }

  #set(listeners: readonly EventListener[]): void {
    this.#all = listeners
    const [only] = listeners
    this.current = listeners.length > 1 ? (event) => this.#tellEach(event) : only
  }

  /** An error in one listener does not affect the others. */
  #tellEach(event: GatewayEvent): void {
    for (const listener of this.#all) emitTo(listener, this.#logger, event)
  }
}
