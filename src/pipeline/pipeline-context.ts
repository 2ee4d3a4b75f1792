import { createHash } from 'node:crypto'
import type { Catalog } from '../catalog/catalog.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { Prices } from '../catalog/prices/prices.ts'
import type { InFlightCalls } from '../core/calls-in-flight.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { ClientAddress, GatewayRequest } from '../core/exchange.ts'
import type { Ids } from '../core/ids.ts'
import type { Logger } from '../core/logger.ts'
import { RecentMap } from '../core/maps.ts'
import type { HeldBytes } from '../core/memory-use.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { ErrorDialect } from '../endpoints/error-dialect.ts'
import type { FileDialect } from '../endpoints/file-dialect.ts'
import type { UnknownInputTokens } from '../endpoints/media-input.ts'
import type { TokenEstimator } from '../endpoints/token-estimate.ts'
import type { HookTable } from '../hooks/hook-table.ts'
import type { FallbackPolicy, RouteCandidate, RouteTable, RoutingStrategy } from '../routing/candidate.ts'
import type { RetryBudget } from '../routing/selection.ts'
import type { BlobStore } from '../stores/blob-store.ts'
import type { BatchStore, FileStore } from '../stores/file-store.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Ledger } from '../stores/ledger.ts'
import type { Authenticate, BillingMode } from '../stores/principal.ts'
import type { ConcurrencyLimiter, RateLimiter, RateLimits } from '../stores/rate-limiter.ts'
import type { Retention } from '../stores/retention.ts'
import type { SpendingThresholds } from '../stores/spending.ts'
import type { StoredBounds } from '../stores/stored-bounds.ts'
import type { NameResolver } from '../transport/name-resolver.ts'
import type { Transport } from '../transport/transport.ts'
import type { UsageRecorder } from '../usage/usage-recorder.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { Disconnects } from './abort-scope.ts'
import type { AnswerCache } from './cache/answer-cache.ts'
import type { Observers } from './call-observation.ts'
import type { Candidate, Reserved } from './call-record.ts'
import type { Deadlines, SilenceWatch } from './call-timers.ts'
import type { FetchedBytes, ImageFetcher } from './fetched-media.ts'
import type { ConfigurationWarnings, PrincipalFaults, RetirementNotices } from './notices.ts'
import type { SettlementRetries, StoreOutage } from './store-health.ts'
import type { TokenSizes } from './token-sizes.ts'

/** Timeouts for vendors, in milliseconds. */
export interface Timeouts {
  /** Timeout for opening a connection. */
  readonly connectMs: number
  /** Timeout from sending a request to the response headers of a stream; whole answers have the total time. */
  readonly firstByteMs: number
  /** Timeout between two chunks of a body. It is `totalMs` if the model hides its reasoning or the vendor has long silences. */
  readonly idleMs: number
  /** Timeout of one whole request, including retries. */
  readonly totalMs: number
}

/** Routing settings with their defaults. */
export interface RoutingSettings {
  readonly strategy: RoutingStrategy
  readonly fallback: FallbackPolicy
  readonly retryAfterTimeout: boolean
}

/** Settings of requests without a bound of their output, with their defaults. */
export interface OutputBoundSettings {
  /** Maximum tokens of one answer. */
  readonly defaultMaxOutputTokens: number
  /** Whether errors show callers their balance and the missing amount. */
  readonly showBalanceInErrors: boolean
}

/** Settings of stored answers that callers may continue, with their defaults. */
export interface KeptAnswerSettings {
  /** Whether answers are stored. */
  readonly keeps: boolean
  readonly retentionMs: number
  /** Secret that signs vendor state carried by callers. If `undefined`, the state is not protected from forgery. */
  readonly stateSecret: string | undefined
}

/** Limits and storage of files and batches, with their defaults. */
export interface BatchSettings {
  readonly files: FileStore
  readonly blobs: BlobStore
  readonly outcomes: BatchStore
  /** Maximum size of one file, in bytes. */
  readonly maxFileBytes: number
  /** Retention of files, in milliseconds. */
  readonly retentionMs: number
  /** Maximum number of requests per batch. */
  readonly maxRequests: number
  /** Maximum number of open batches per account. */
  readonly maxOpen: number
  /** Number of requests of one batch that one process makes concurrently. */
  readonly requestsAtOnce: number
  /** Whether batches are submitted to vendors that have a batch API. */
  readonly isNative: boolean
}

/** Shared objects of all stages. One per gateway. */
export interface PipelineContext {
  readonly endpoints: EndpointTable
  readonly catalog: Catalog
  readonly vendors: ReadonlyMap<string, Vendor>
  readonly transport: Transport
  /** Transport for addresses that callers chose: connects only to public ones. */
  readonly publicTransport: Transport
  readonly fetchImage: ImageFetcher
  /** Resolves the host names of addresses that callers chose. */
  readonly names: NameResolver
  readonly heldBytes: HeldBytes
  readonly fetchedBytes: FetchedBytes
  readonly store: GatewayStore
  /** Logs when the store stops answering and when it recovers. */
  readonly storeOutage: StoreOutage
  /** Limits of the storage of each account. */
  readonly storedBounds: StoredBounds
  /** Recorder of calls, or `undefined` if calls are not recorded. */
  readonly usage: UsageRecorder | undefined
  /** Retention that the processes of the store share. */
  readonly retention: Retention
  readonly authenticate: Authenticate
  /** Reports why callers cannot be served with the principal that the host returned. */
  readonly principalFaults: PrincipalFaults
  /** Price list, or `undefined` if billing is off. */
  readonly prices: Prices | undefined
  /** Names of features that are accepted without a price while billing is on: `web_search`, `beta=x`, `beta=*`. */
  readonly unpricedFeatures: ReadonlySet<string>
  readonly unknownInputTokens: UnknownInputTokens
  /** Billing mode of accounts that do not set their own. */
  readonly billing: BillingMode
  /** Whether the list of models shows prices. */
  readonly showPrices: boolean
  readonly rateLimiter: RateLimiter
  readonly concurrency: ConcurrencyLimiter
  /** Limits that apply if neither a key nor a plan sets them. */
  readonly limits: LimitSet
  /** Limits by name of plan. The gateway's limits replace omitted ones. */
  readonly plans: ReadonlyMap<string, LimitSet>
  readonly accountPlans: AccountPlans
  readonly retryBudget: RetryBudget
  /** All vendors and keys, with circuits, calls in progress and latencies. */
  readonly routes: RouteTable
  readonly routing: RoutingSettings
  /** Key for the state of the vendors over HTTP, or `undefined` if it is not available. */
  readonly operatorKey: string | undefined
  readonly clientAddress: ClientAddress | undefined
  readonly timeouts: Timeouts
  readonly bodyLimitBytes: number
  readonly holdTtlMs: number
  readonly disconnects: Disconnects
  /** Deadlines of the total time of requests. */
  readonly deadlines: Deadlines
  /** Reports vendors that send nothing. */
  readonly silenceWatch: SilenceWatch
  readonly outputBounds: OutputBoundSettings
  /** Bytes of generated text per token, by model. */
  readonly tokenSizes: TokenSizes
  /** Estimates the tokens of this many bytes of a request, as an upper bound. */
  readonly estimateTokens: TokenEstimator
  /** Whether prompts are marked for vendors' caches if the row of the model does not specify it. */
  readonly marksPrompts: boolean
  readonly keptAnswers: KeptAnswerSettings
  readonly stateMakers: StateOrigins
  /** Settings of files and batches, or `undefined` if they are off. */
  readonly batches: BatchSettings | undefined
  /** Response cache, or `undefined` if there is none. */
  readonly cache: AnswerCache | undefined
  readonly settlementRetries: SettlementRetries
  /** Thresholds of caps, balance and credit limit at which the operator is notified. */
  readonly spendingThresholds: SpendingThresholds
  /** Secret for webhooks of accounts without their own secret. If `undefined`, such accounts cannot have webhooks. */
  readonly webhookSecret: string | undefined
  /** Whether addresses that callers chose may be private. Only for tests on one machine. */
  readonly allowPrivateUrls: boolean
  /** Maximum duration of a task, in milliseconds; after that it fails. */
  readonly taskDeadlineMs: number
  /** Poll interval of tasks, or `undefined` for the vendor's recommendation. */
  readonly taskPollIntervalMs: number | undefined
  /** Task calls other than submissions: polls and downloads. */
  readonly taskCalls: InFlightCalls
  /** Hooks of the host, or `undefined` if there are none. */
  readonly hooks: HookTable | undefined
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
  readonly warnings: ConfigurationWarnings
  readonly retirements: RetirementNotices
  readonly onEvent: EventListener | undefined
  /** Observers of the host, or `undefined` if there are none. */
  readonly observers: Observers | undefined
}

/** Whether the vendor of a model has a key, so that it can be called. */
export function isConfigured(
  { vendors }: Pick<PipelineContext, 'vendors'>,
  { vendor }: Pick<CatalogModel, 'vendor'>,
): boolean {
  return (vendors.get(vendor)?.apiKeys.length ?? 0) > 0
}

/** Emits an event; an error in a listener never reaches a request. */
export function emit(context: PipelineContext, event: GatewayEvent): void {
  emitTo(context.onEvent, context.logger, event)
  context.observers?.event(event)
}

/** Emits an event without a context. */
export function emitTo(listener: EventListener | undefined, logger: Logger, event: GatewayEvent): void {
  if (listener === undefined) return
  try {
    listener(event)
  } catch (error) {
    logger.error('an event listener threw', { type: event.type, error })
  }
}

/** Values of `where` of faults that a failing store may have caused. */
const STORE_PLACES =
  /^(settle|usage|holds|tasks|idempotency|interactions|responses|deferred answers|batches|callers|operator|webhooks: (take|release|deliver .*))$/

/**
 * Reports a fault to the operator that callers do not see, or see as another error. While the store is down, its faults are
 * counted instead of logged. Each of them emits an event.
 */
export function reportFault(
  context: PipelineContext,
  requestId: string | undefined,
  where: string,
  error: unknown,
): void {
  const line = (): void => context.logger.error('an internal error in the gateway', { requestId, where, error })
  if (STORE_PLACES.test(where)) context.storeOutage.failed(error, line)
  else line()
  emit(context, { type: 'internal-error', requestId, where, error })
}

/** All endpoints of one gateway, by path and by id. */
export class EndpointTable {
  /** Endpoints in the given order. */
  readonly all: readonly Endpoint[]
  readonly #byPath: ReadonlyMap<string, Endpoint>
  readonly #withTasks: ReadonlyMap<string, Endpoint>
  /** Endpoints that store their answers. */
  readonly keepingAnswers: readonly Endpoint[]
  /** Endpoints whose own API has batches. */
  readonly withInlineBatches: readonly Endpoint[]

  /** @throws TypeError for two endpoints of one path, and without any endpoint. */
  constructor(endpoints: readonly Endpoint[]) {
    if (endpoints.length === 0) throw new TypeError('a gateway needs an endpoint')
    this.all = endpoints
    this.#byPath = new Map(endpoints.map((endpoint) => [endpoint.path, endpoint]))
    this.#withTasks = new Map(
      endpoints.filter(({ task }) => task !== undefined).map((endpoint) => [endpoint.id, endpoint]),
    )
    this.keepingAnswers = endpoints.filter(({ kept }) => kept !== undefined)
    this.withInlineBatches = endpoints.filter(({ inlineBatches }) => inlineBatches !== undefined)
    if (this.#byPath.size < endpoints.length) throw new TypeError('two endpoints have the same path')
  }

  /** Returns the endpoint of a path. */
  at(path: string): Endpoint | undefined {
    return this.#byPath.get(path)
  }

  /** Endpoints whose answers are tasks. */
  get withTasks(): Iterable<Endpoint> {
    return this.#withTasks.values()
  }

  /** Returns the endpoint of a task by the endpoint id of the task. */
  taskEndpoint(id: string): Endpoint | undefined {
    return this.#withTasks.get(id)
  }

  /** Returns the endpoint with deferred answers, given its id. */
  deferring(id: string): Endpoint | undefined {
    return this.all.find((endpoint) => endpoint.id === id && endpoint.deferral !== undefined)
  }

  /** Returns the error dialect for a path without an endpoint: that of the endpoint above it, or of the caller's client. */
  errorsAt(path: string, caller?: Pick<GatewayRequest, 'header'>): ErrorDialect {
    let nearest = this.#byPath.get(path)
    for (const endpoint of this.all) {
      if (path.startsWith(`${endpoint.path}/`) && endpoint.path.length > (nearest?.path.length ?? 0)) nearest = endpoint
    }
    nearest ??= this.all.find(({ errors }) => isFromClientOf(errors, caller))
    return (nearest ?? this.all[0]!).errors
  }

  /** Returns how the client of a request reads files, or `undefined` if its API has no files of its own. */
  filesFor(caller: Pick<GatewayRequest, 'header'>): FileDialect | undefined {
    return this.all.find(({ errors, files }) => files !== undefined && isFromClientOf(errors, caller))?.files
  }
}

function isFromClientOf({ clientHeader }: ErrorDialect, caller: Pick<GatewayRequest, 'header'> | undefined): boolean {
  return clientHeader !== undefined && caller?.header(clientHeader) !== undefined
}

/** Maximum number of remembered states, of a few hundred bytes each. */
const MAX_STATES = 20_000

/**
 * Remembers which credential created state that callers carry and that only this credential can read, such as encrypted
 * reasoning. Only the newest states, in the memory of the process: in another process the vendor decides.
 */
export class StateOrigins {
  readonly #makers = new Map<string, Pick<Candidate, 'credentialId'>>()

  /** Notes the state that an answer carries. Does nothing for vendors with one key. */
  note({ endpoint }: Reserved, { vendor, credentialId }: Candidate, answer: Readonly<Record<string, unknown>>): void {
    if (!this.isNeeded(endpoint, vendor)) return
    for (const state of endpoint.carried?.inAnswer(answer) ?? []) this.#makers.set(digestOf(state), { credentialId })
    for (const oldest of this.#makers.keys()) {
      if (this.#makers.size <= MAX_STATES) return
      this.#makers.delete(oldest)
    }
  }

  /** Whether answers of the endpoint at the vendor can carry state that another key of the vendor cannot read. */
  isNeeded({ carried }: Reserved['endpoint'], { apiKeys }: Candidate['vendor']): boolean {
    return carried !== undefined && apiKeys.length > 1
  }

  /**
   * Returns the candidates without other keys of the vendor whose key created the state in the request. Another key would reject
   * it, so it is not tried even if the first one fails. Returns all of them if that key is unknown or not configured.
   */
  able({ endpoint, body }: Reserved, candidates: readonly RouteCandidate[]): readonly RouteCandidate[] {
    if (candidates.length < 2 || this.#makers.size === 0) return candidates
    const state = endpoint.carried?.inRequest(body)
    const maker = state === undefined ? undefined : this.#makers.get(digestOf(state))
    const own = candidates.find(({ credentialId }) => credentialId === maker?.credentialId)
    if (own === undefined) return candidates
    return candidates.filter(
      ({ vendor, credentialId }) => vendor.id !== own.vendor.id || credentialId === own.credentialId,
    )
  }
}

function digestOf(state: string): string {
  return createHash('sha256').update(state).digest('base64url').slice(0, 22)
}

/** Limits by owner. */
export interface LimitSet {
  readonly perKey: RateLimits
  /** Limits of all keys of an account together. */
  readonly perAccount: RateLimits
  /** Limits of each end user of an account, whatever the key. */
  readonly perEndUser: RateLimits
}

/** Returns limits with defaults for omitted members. */
export function withDefaults(own: RateLimits, defaults: RateLimits): RateLimits {
  return {
    requestsPerMinute: own.requestsPerMinute ?? defaults.requestsPerMinute,
    tokensPerMinute: own.tokensPerMinute ?? defaults.tokensPerMinute,
    concurrency: own.concurrency ?? defaults.concurrency,
  }
}

/** Lifetime of a cached plan. */
const CACHE_MS = 5_000
const MAX_CACHED = 10_000

/** Plans of accounts for principals that the host created, because the gateway has not read these accounts itself. */
export class AccountPlans {
  readonly #ledger: Pick<Ledger, 'account'>
  readonly #clock: Clock
  /** Plans by account; null if the account has none. */
  readonly #cache = new RecentMap<string | null>(MAX_CACHED)

  constructor(ledger: Pick<Ledger, 'account'>, clock: Clock) {
    this.#ledger = ledger
    this.#clock = clock
  }

  /**
   * Returns the plan of an account, or `undefined` if it has none or does not exist.
   * @throws GatewayError `store_unavailable`.
   */
  async planOf(accountId: string): Promise<string | undefined> {
    const known = this.#cache.get(accountId, this.#clock.now())
    if (known !== undefined) return known ?? undefined
    try {
      const plan = (await this.#ledger.account(accountId))?.plan
      this.#cache.set(accountId, plan ?? null, this.#clock.now(), CACHE_MS)
      return plan
    } catch (cause) {
      throw new GatewayError('store_unavailable', { cause })
    }
  }
}
