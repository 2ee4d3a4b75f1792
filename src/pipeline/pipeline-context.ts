import type { Catalog } from '../catalog/catalog.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { Prices } from '../catalog/prices/prices.ts'
import type { CallsUnderWay } from '../core/calls-under-way.ts'
import type { Clock } from '../core/clock.ts'
import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { ClientAddress } from '../core/forwarded-address.ts'
import type { HeldBytes } from '../core/held-bytes.ts'
import type { Ids } from '../core/ids.ts'
import type { MemberNames } from '../core/known-members.ts'
import type { Logger } from '../core/logger.ts'
import type { UnknownInputTokens } from '../endpoints/media-input.ts'
import type { TokenEstimator } from '../endpoints/token-estimate.ts'
import type { HookTable } from '../hooks/hook-table.ts'
import type { RetryBudget } from '../routing/retry-budget.ts'
import type { RouteTable } from '../routing/route-table.ts'
import type { FallbackPolicy, HedgeOptions, RoutingStrategy } from '../routing/routing-options.ts'
import type { BatchStore } from '../stores/batch-store.ts'
import type { BlobStore } from '../stores/blob-store.ts'
import type { FileStore } from '../stores/file-store.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Authenticate, BillingMode } from '../stores/principal.ts'
import type { ConcurrencyLimiter, RateLimiter } from '../stores/rate-limiter.ts'
import type { Retention } from '../stores/retention.ts'
import type { SpendingThresholds } from '../stores/spending.ts'
import type { StoredBounds } from '../stores/stored-bounds.ts'
import type { ImageFetcher } from '../transport/fetch-image.ts'
import type { NameResolver } from '../transport/name-resolver.ts'
import type { Transport } from '../transport/transport.ts'
import type { UsageRecorder } from '../usage/usage-recorder.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { Disconnects } from './abort-scope.ts'
import type { AccountPlans } from './account-plans.ts'
import type { AnswerCache } from './cache/answer-cache.ts'
import type { Observers } from './call-observation.ts'
import type { ConfigurationWarnings } from './configuration-warnings.ts'
import type { Deadlines } from './deadlines.ts'
import type { EndpointTable } from './endpoint-table.ts'
import type { FetchedBytes } from './fetched-bytes.ts'
import type { LimitSet } from './limit-set.ts'
import type { PrincipalFaults } from './principal-faults.ts'
import type { RetirementNotices } from './retirement-notices.ts'
import type { SettlementRetries } from './settlement-retries.ts'
import type { SilenceWatch } from './silence-watch.ts'
import type { StateMakers } from './state-makers.ts'
import type { StoreOutage } from './store-outage.ts'
import type { TokenSizes } from './token-sizes.ts'

/** Longest waits for a vendor, in milliseconds. */
export interface Timeouts {
  /** To open a connection. */
  readonly connectMs: number
  /** From sending a request to the response headers of a stream; whole answers have the whole time. */
  readonly firstByteMs: number
  /** Between two chunks of a body, unless the model reasons without showing it or the vendor has long silences: then `totalMs`. */
  readonly idleMs: number
  /** For one request as a whole, retries included. */
  readonly totalMs: number
}

export const TIMEOUTS_MEMBERS = {
  connectMs: true,
  firstByteMs: true,
  idleMs: true,
  totalMs: true,
} satisfies MemberNames<Timeouts>

/** How requests find a vendor, with the defaults filled in. */
export interface RoutingSettings {
  readonly strategy: RoutingStrategy
  readonly fallback: FallbackPolicy
  /** Undefined: hedging is off. */
  readonly hedge: HedgeOptions | undefined
  readonly retryAfterTimeout: boolean
}

/** What a request without a bound of its output is held for, with the defaults filled in. */
export interface OutputBoundSettings {
  /** Most tokens of one answer. */
  readonly defaultMaxOutputTokens: number
  /** Part of the free balance that one call may take where the balance decides; above 0, at most 1. */
  readonly balanceSharePerCall: number
  /** May callers read in an error what they have and what is lacking? */
  readonly showBalanceInErrors: boolean
}

/** What is kept of answers that callers may continue, with the defaults filled in. */
export interface KeptAnswerSettings {
  /** False: nothing. */
  readonly keeps: boolean
  readonly retentionMs: number
  /** Signs state of vendors that callers carry; undefined: it is not protected from forgery. */
  readonly stateSecret: string | undefined
}

/** What is allowed of files and batches, and where they are kept, with the defaults filled in. */
export interface BatchSettings {
  readonly files: FileStore
  readonly blobs: BlobStore
  readonly outcomes: BatchStore
  /** Most bytes of one file. */
  readonly maxFileBytes: number
  /** How long files are kept. */
  readonly retentionMs: number
  /** Most requests of one batch. */
  readonly maxRequests: number
  /** Most batches of an account that have not ended. */
  readonly maxOpen: number
  /** Requests of one batch that one process makes at the same time. */
  readonly requestsAtOnce: number
  /** Are batches given to vendors that have a batch API? */
  readonly isNative: boolean
}

/** What every stage may use. One per gateway. */
export interface PipelineContext {
  readonly endpoints: EndpointTable
  readonly catalog: Catalog
  readonly vendors: ReadonlyMap<string, Vendor>
  readonly transport: Transport
  /** For addresses that callers chose: connects only to public ones. */
  readonly publicTransport: Transport
  readonly fetchImage: ImageFetcher
  /** Resolves the host names of addresses that callers chose. */
  readonly names: NameResolver
  readonly heldBytes: HeldBytes
  readonly fetchedBytes: FetchedBytes
  readonly store: GatewayStore
  /** Logs when the store stops answering and when it answers again. */
  readonly storeOutage: StoreOutage
  /** Bounds of the storage of each account. */
  readonly storedBounds: StoredBounds
  /** Undefined: calls are not recorded. */
  readonly usage: UsageRecorder | undefined
  /** Retention that the processes of the store share. */
  readonly retention: Retention
  readonly authenticate: Authenticate
  /** Tells why callers cannot be served as the host has named them. */
  readonly principalFaults: PrincipalFaults
  /** Are the parts of a split batch charged for that were answered before another one failed? */
  readonly chargePartialBatches: boolean
  /** Is what a vendor may bill charged for where the answer broke off or did not come in time? */
  readonly chargeBrokenAnswers: boolean
  /** Undefined: billing is off. */
  readonly prices: Prices | undefined
  /** Names of what passes without a price while billing is on: `web_search`, `beta=x`, `beta=*`. */
  readonly unpricedFeatures: ReadonlySet<string>
  readonly unknownInputTokens: UnknownInputTokens
  /** When accounts pay that do not say so themselves. */
  readonly billing: BillingMode
  /** Does the list of models say prices? */
  readonly showPrices: boolean
  readonly rateLimiter: RateLimiter
  readonly concurrency: ConcurrencyLimiter
  /** For everything that neither a key nor a plan limits. */
  readonly limits: LimitSet
  /** Limits by name of plan, with the gateway's for what a plan leaves open. */
  readonly plans: ReadonlyMap<string, LimitSet>
  readonly accountPlans: AccountPlans
  readonly retryBudget: RetryBudget
  /** Every vendor and key, with circuits, load and latencies. */
  readonly routes: RouteTable
  readonly routing: RoutingSettings
  /** Undefined: the state of the vendors is not available over HTTP. */
  readonly operatorKey: string | undefined
  readonly clientAddress: ClientAddress | undefined
  readonly timeouts: Timeouts
  readonly bodyLimitBytes: number
  readonly holdTtlMs: number
  readonly disconnects: Disconnects
  /** Longest time for a request. */
  readonly deadlines: Deadlines
  /** Reports vendors that send nothing. */
  readonly silenceWatch: SilenceWatch
  readonly outputBounds: OutputBoundSettings
  /** Bytes of generated text for one token of each model. */
  readonly tokenSizes: TokenSizes
  /** Tokens in so many bytes of request, from above. */
  readonly estimateTokens: TokenEstimator
  /** Are prompts marked for the caches of vendors, where the row of the model does not say? */
  readonly marksPrompts: boolean
  readonly keptAnswers: KeptAnswerSettings
  readonly stateMakers: StateMakers
  /** Undefined: there are neither files nor batches. */
  readonly batches: BatchSettings | undefined
  /** Undefined: no answer is given twice. */
  readonly cache: AnswerCache | undefined
  readonly settlementRetries: SettlementRetries
  /** At which shares of caps, balance and credit limit the operator is told. */
  readonly spendingThresholds: SpendingThresholds
  /** Signs webhooks of accounts that have no secret of their own; undefined: such accounts can have none. */
  readonly webhookSecret: string | undefined
  /** May addresses that callers chose be private? For tests on one machine only. */
  readonly allowPrivateUrls: boolean
  /** Longest time for a task, in milliseconds; it fails after that. */
  readonly taskDeadlineMs: number
  /** How often a task is polled; undefined: as often as the vendor recommends. */
  readonly taskPollIntervalMs: number | undefined
  /** Task calls outside of submissions: polls and downloads. */
  readonly taskCalls: CallsUnderWay
  /** Undefined: the host has none. */
  readonly hooks: HookTable | undefined
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
  readonly warnings: ConfigurationWarnings
  readonly retirements: RetirementNotices
  readonly onEvent: EventListener | undefined
  /** Undefined: nobody observes requests. */
  readonly observers: Observers | undefined
}

/** Has the vendor of a model a key, so that it can be called? */
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

/** The same before there is a context. */
export function emitTo(listener: EventListener | undefined, logger: Logger, event: GatewayEvent): void {
  if (listener === undefined) return
  try {
    listener(event)
  } catch (error) {
    logger.error('an event listener threw', { type: event.type, error })
  }
}

/** Values of `where` of faults whose cause may be a store that does not answer. */
const STORE_PLACES =
  /^(settle|usage|holds|tasks|idempotency|interactions|responses|deferred answers|batches|callers|operator|webhooks: (take|release|deliver .*))$/

/**
 * Reports a fault to the operator that callers do not see, or see as another error. While the store does not answer, faults
 * at the store are counted instead of logged. Each of them emits an event.
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
