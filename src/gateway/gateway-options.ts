import type { ModelDefinition } from '../catalog/model.ts'
import type { PriceFile, Prices } from '../catalog/prices/prices.ts'
import type { Clock } from '../core/clock.ts'
import type { EventListener } from '../core/events.ts'
import type { Ids } from '../core/ids.ts'
import type { Logger } from '../core/logger.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { TokenEstimator } from '../endpoints/token-estimate.ts'
import type { DisconnectPolicies } from '../pipeline/abort-scope.ts'
import type { Timeouts } from '../pipeline/pipeline-context.ts'
import type { RoutingOptions } from '../routing/routing-options.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Authenticate, Tier } from '../stores/principal.ts'
import type { ConcurrencyLimiter, RateLimiter, RateLimits } from '../stores/rate-limiter.ts'
import type { Transport } from '../transport/transport.ts'
import type { Vendor } from '../vendors/vendor.ts'

/** A key that the host fixes in its configuration. */
export interface FixedKey {
  /** The key itself, as callers send it. */
  readonly key: string
  /** The account that pays; made at start when it does not exist. */
  readonly account: string
  readonly tier?: Tier
  readonly limits?: RateLimits
}

/** Options of `createGateway`. */
export interface GatewayOptions {
  /** Whom to call. Models of a vendor that is missing here, or that has no key, are listed as unavailable. */
  readonly vendors: readonly Vendor[]
  /** Endpoints of the host's own, beside the built-in ones; made by `defineEndpoint`. */
  readonly endpoints?: readonly Endpoint[]
  /** Rows added to the catalog, or replacing rows of the same id. */
  readonly models?: readonly ModelDefinition[]
  /** Prices per model and meter. Required unless `billing` is `'off'`. */
  readonly prices?: PriceFile | Prices
  /** `'off'`: nothing is held or charged, whatever the balances. */
  readonly billing?: 'off'
  /**
   * Charges for the parts of a batch of embeddings that the vendor answered before another part failed; the caller reads the
   * error all the same. Default false: they are told by the event `unbilled-usage`.
   */
  readonly chargePartialBatches?: boolean
  /** Accounts, keys, holds, ledger. Default: in memory, gone when the process ends. */
  readonly store?: GatewayStore
  /** Keys known from the start, beside those in the store. */
  readonly keys?: readonly FixedKey[]
  /** Replaces key look-up altogether: the host tells who is calling. */
  readonly authenticate?: Authenticate
  /** Each holds for every key that does not set this limit itself. Default: none. */
  readonly limits?: RateLimits
  readonly rateLimiter?: RateLimiter
  readonly concurrencyLimiter?: ConcurrencyLimiter
  /** Defaults: connect 5 s, first byte 120 s (of streams), idle 60 s, total 600 s. */
  readonly timeouts?: Partial<Timeouts>
  /** How requests find a vendor where several could answer. */
  readonly routing?: RoutingOptions
  /**
   * Opens `GET /healthz?verbose`, which shows the state of vendors and keys, to whoever sends it as bearer token: at least 24
   * characters. Default: nobody.
   */
  readonly operatorKey?: string
  /** Largest request body. Default 32 MiB. */
  readonly bodyLimitBytes?: number
  /** How long a hold lives when nothing ends it, in milliseconds. Default 15 minutes. A total timeout above it is cut to it. */
  readonly holdTtlMs?: number
  /**
   * What happens at the vendor when a caller leaves: `cancel` stops the call, `drain` reads it to its end, for at most
   * `drainMs` and at most 100 calls at once. One policy, or one per endpoint: `{ default: 'cancel', embeddings: 'drain' }`.
   * Default: `cancel`, but `drain` while a model reasons unseen, because only the vendor's report tells what that costs.
   */
  readonly disconnect?: DisconnectPolicies
  /** Longest time that an abandoned call is read on under the policy `drain`. Default 30,000. */
  readonly drainMs?: number
  /** Tokens in a request, from above, before a vendor has counted. Default: one for every three bytes. */
  readonly estimateTokens?: TokenEstimator
  /**
   * Signs webhooks of accounts that have no secret of their own: `whsec_` and base64 of 24 to 64 bytes. Without it, and
   * without an account's own secret, a request with `webhook_url` is refused.
   */
  readonly webhookSecret?: string
  /** How long a task may take before it is given up and its money freed, in milliseconds. Default 24 hours. */
  readonly taskDeadlineMs?: number
  /** How often a task's vendor is asked about it, in milliseconds. Default: what the vendor recommends. */
  readonly taskPollIntervalMs?: number
  /**
   * How many days a task is kept after its end, with the messages about it; then its id is unknown. Default 90, at least 1, for
   * as long as an Idempotency-Key names its task; `Infinity`: for ever.
   */
  readonly taskRetentionDays?: number
  /** Lets the gateway fetch caller-given URLs from private addresses. For tests on one machine only. */
  readonly allowPrivateUrls?: boolean
  readonly onEvent?: EventListener
  /** Default: silent. */
  readonly logger?: Logger
  /** How vendors are reached. Default: undici. */
  readonly transport?: Transport
  readonly clock?: Clock
  readonly ids?: Ids
}
