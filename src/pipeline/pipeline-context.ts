import type { Catalog } from '../catalog/catalog.ts'
import type { Prices } from '../catalog/prices/prices.ts'
import type { CallsUnderWay } from '../core/calls-under-way.ts'
import type { Clock } from '../core/clock.ts'
import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { Ids } from '../core/ids.ts'
import type { Logger } from '../core/logger.ts'
import type { TokenEstimator } from '../endpoints/token-estimate.ts'
import type { RetryBudget } from '../routing/retry-budget.ts'
import type { RouteTable } from '../routing/route-table.ts'
import type { FallbackPolicy, HedgeOptions, RoutingStrategy } from '../routing/routing-options.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Authenticate } from '../stores/principal.ts'
import type { ConcurrencyLimiter, RateLimiter, RateLimits } from '../stores/rate-limiter.ts'
import type { ImageFetcher } from '../transport/fetch-image.ts'
import type { Transport } from '../transport/transport.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { Disconnects } from './abort-scope.ts'
import type { Deadlines } from './deadlines.ts'
import type { EndpointTable } from './endpoint-table.ts'
import type { SettlementRetries } from './settlement-retries.ts'

/** Longest waits for a vendor, in milliseconds. */
export interface Timeouts {
  /** To open a connection. */
  readonly connectMs: number
  /** From sending a request to the response headers of a stream; whole answers have the whole time. */
  readonly firstByteMs: number
  /** Between two pieces of a body. */
  readonly idleMs: number
  /** For one request as a whole, retries included. */
  readonly totalMs: number
}

/** How requests find a vendor, with the defaults filled in. */
export interface RoutingSettings {
  readonly strategy: RoutingStrategy
  readonly fallback: FallbackPolicy
  /** Undefined: nobody is asked twice at the same time. */
  readonly hedge: HedgeOptions | undefined
  readonly retryAfterTimeout: boolean
}

/** What every stage may use. One per gateway. */
export interface PipelineContext {
  readonly endpoints: EndpointTable
  readonly catalog: Catalog
  readonly vendors: ReadonlyMap<string, Vendor>
  readonly transport: Transport
  /** For addresses that callers chose: connects to public ones only. */
  readonly publicTransport: Transport
  readonly fetchImage: ImageFetcher
  readonly store: GatewayStore
  readonly authenticate: Authenticate
  /** Are the parts of a split batch charged for that were answered before another one failed? */
  readonly chargePartialBatches: boolean
  /** Undefined: billing is off. */
  readonly prices: Prices | undefined
  readonly rateLimiter: RateLimiter
  readonly concurrency: ConcurrencyLimiter
  /** For whatever a key does not limit itself. */
  readonly limits: RateLimits
  readonly retryBudget: RetryBudget
  /** Every vendor and key, with circuits, load and latencies. */
  readonly routes: RouteTable
  readonly routing: RoutingSettings
  /** Undefined: nobody sees the state of the vendors over HTTP. */
  readonly operatorKey: string | undefined
  readonly timeouts: Timeouts
  readonly bodyLimitBytes: number
  readonly holdTtlMs: number
  readonly disconnects: Disconnects
  /** For the whole time of a request. */
  readonly deadlines: Deadlines
  /** Tokens in so many bytes of request, from above. */
  readonly estimateTokens: TokenEstimator
  readonly settlementRetries: SettlementRetries
  /** Signs webhooks of accounts that have no secret of their own; undefined: such accounts can have none. */
  readonly webhookSecret: string | undefined
  /** May addresses that callers chose be private? For tests on one machine only. */
  readonly allowPrivateUrls: boolean
  /** How long a task may take before it is given up, in milliseconds. */
  readonly taskDeadlineMs: number
  /** How often a vendor is asked about a task; undefined: as often as it recommends. */
  readonly taskPollIntervalMs: number | undefined
  /** Calls about tasks that no submission waits for: questions to vendors, and downloads. */
  readonly taskCalls: CallsUnderWay
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
  readonly onEvent: EventListener | undefined
}

/** Tells the host of an event; a listener's fault never reaches a request. */
export function emit(context: PipelineContext, event: GatewayEvent): void {
  if (context.onEvent === undefined) return
  try {
    context.onEvent(event)
  } catch (error) {
    context.logger.error('an event listener threw', { type: event.type, error })
  }
}

/** Tells the operator of a fault that reaches no caller, or not as what it is. */
export function reportFault(
  context: PipelineContext,
  requestId: string | undefined,
  where: string,
  error: unknown,
): void {
  context.logger.error('something failed inside the gateway', { requestId, where, error })
  emit(context, { type: 'internal-error', requestId, where, error })
}
