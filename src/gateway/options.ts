import type { ModelDefinition, PromptCaching } from '../catalog/model.ts'
import type { UnknownModels } from '../catalog/prices/check-prices.ts'
import type { CatalogPrices } from '../catalog/prices/list-prices.ts'
import type { PriceFile, Prices } from '../catalog/prices/prices.ts'
import type { Clock } from '../core/clock.ts'
import type { EventListener } from '../core/events.ts'
import type { ClientAddress } from '../core/exchange.ts'
import type { Ids } from '../core/ids.ts'
import type { Logger } from '../core/logger.ts'
import type { Observer } from '../core/observer.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { UnknownInputTokens } from '../endpoints/media-input.ts'
import type { TokenEstimator } from '../endpoints/token-estimate.ts'
import type { DisconnectPolicies } from '../pipeline/abort-scope.ts'
import type { Timeouts } from '../pipeline/pipeline-context.ts'
import type { RoutingOptions } from '../routing/candidate.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Authenticate, BillingMode, Tier } from '../stores/principal.ts'
import type { ConcurrencyLimiter, RateLimiter, RateLimits } from '../stores/rate-limiter.ts'
import type { SpendingThresholds } from '../stores/spending.ts'
import type { Transport } from '../transport/transport.ts'
import type { UsageRetentionDays } from '../usage/usage-recorder.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { AccountStorageOptions } from './accounts.ts'
import type { CacheOptions } from './cache-options.ts'
import type { BatchOptions, CatalogOptions, LimitOptions, Plan } from './catalog-options.ts'
import type { GivenHook } from './hook-host.ts'
import type { OverloadOptions } from './overload-guard.ts'

/** API key in the host's configuration. */
export interface FixedKey {
  /** Key in the form that callers send. */
  readonly key: string
  /** Account that pays. It is created at start if it does not exist. */
  readonly account: string
  /** Tier of its account. Default `paid`. */
  readonly tier?: Tier | undefined
  /** Limits of the key. Defaults to those of the account's plan, then of the gateway. */
  readonly limits?: RateLimits | undefined
  /** Whether requests with this key may name their end user. Default false. */
  readonly namesEndUsers?: boolean | undefined
}

/** Options of stored answers, which callers can continue by their id. */
export interface ResponsesOptions {
  /**
   * With `caller`, the default, prompts and answers are stored unless a request has `store: false`. With `never`, nothing is stored,
   * and requests that refer to earlier answers are rejected.
   */
  readonly store?: 'caller' | 'never' | undefined
  /** How many days answers are kept. At least 1; default 30. */
  readonly retentionDays?: number | undefined
  /**
   * Signs the state of vendors that callers receive in `encrypted_content`, so that they cannot change it. At least 24 characters. If
   * omitted, each process has its own secret, so it drops state from other processes and from before a restart.
   */
  readonly stateSecret?: string | undefined
}

/** Options of `createGateway`. */
export interface GatewayOptions {
  /** Vendors. Models of a vendor that is missing here, or that has no key, are listed as unavailable. */
  readonly vendors: readonly Vendor[]
  /** Endpoints of the host, in addition to the built-in ones, from `defineEndpoint`. */
  readonly endpoints?: readonly Endpoint[] | undefined
  /** Rows that are added to the catalog, or replace rows with the same id. */
  readonly models?: readonly ModelDefinition[] | undefined
  /**
   * Newer snapshot of the vendors' models and list prices than the built-in one: `{ from: 'catalog.json' }`. It is read at start and
   * every 10 minutes, and takes effect without a restart. If it cannot be used, a warning contains the reason, and the catalog in
   * force stays. If omitted, the built-in snapshot is used.
   */
  readonly catalog?: CatalogOptions | undefined
  /** Prices per model and meter, or `listPrices()`. Required unless billing is off. */
  readonly prices?: PriceFile | Prices | CatalogPrices | undefined
  /** Whether `GET /v1/models` shows prices if billing is on. Default false. */
  readonly showPrices?: boolean | undefined
  /**
   * When accounts pay that have no billing mode of their own. With `prepaid`, the default, a call needs a balance, which holds its
   * money. With `metered`, charges are recorded without a balance check and owed, up to the account's `creditLimit`. With `off`,
   * nothing is held or charged, and balances are ignored.
   */
  readonly billing?: BillingOption | undefined
  /**
   * Rule for model ids that no catalog knows, but that match a pattern of a vendor, such as `gpt-*`. With `'refuse'`, such an id gets
   * 404, unless a price names it. With `{ pricedAs: 'newest of its family' }`, it costs as much as the newest priced model with the
   * same words in its id. With `{ pricedAs: rows }`, it costs what these price rows define. Defaults to `'refuse'` if billing is on.
   * With `billing: 'off'` such ids are sent to their vendor.
   */
  readonly unknownModels?: UnknownModels | undefined
  /**
   * Features that callers may use without a price while billing is on: a surcharge (`web_search`), or an unknown feature
   * (`server_tool=translate_20270101`, `beta=fast-lane-2027-01-01`, `beta=*`). The vendor may bill for them. By default none: such
   * requests fail with 400, which names the field.
   */
  readonly unpricedFeatures?: readonly string[] | undefined
  /** Store of accounts, keys, holds and the ledger. By default in memory, and lost when the process ends. */
  readonly store?: GatewayStore | undefined
  /**
   * Stored data of each call: a record, and sums by hour and by day, read by `gateway.usage`. `'off'`: nothing. Default: records
   * for 30 days, sums by hour for 400 days, sums by day and account indefinitely. The store keeps the retention that was named last, and
   * all of its processes use it.
   */
  readonly usage?: 'off' | { readonly retention?: UsageRetentionDays } | undefined
  /** Keys known from the start, in addition to those in the store. */
  readonly keys?: readonly FixedKey[] | undefined
  /**
   * Authentication of callers. Defaults to the keys of `keys` and of `gateway.keys`. A function of the host replaces them, unless it
   * includes them: `firstOf(sessionCookie, gatewayKeys())`.
   */
  readonly authenticate?: Authenticate | undefined
  /** Limits per key, account and end user, if keys and plans set none. Limits without a scope apply per key. Default: none. */
  readonly limits?: LimitOptions | undefined
  /** Plans of accounts by name: `{ free: { limits: { perAccount: { requestsPerMinute: 10 } } } }`. */
  readonly plans?: Readonly<Record<string, Plan>> | undefined
  /** Counts requests and tokens per minute. Default: in this process; `redisLimits` shares the counts. */
  readonly rateLimiter?: RateLimiter | undefined
  /** Counts concurrent requests. Default: in this process; `redisLimits` shares the counts. */
  readonly concurrencyLimiter?: ConcurrencyLimiter | undefined
  /** Timeouts of a call. Defaults: connect 5 s, first byte 120 s (of streams), idle 60 s, total 600 s. */
  readonly timeouts?: Partial<Timeouts> | undefined
  /** How requests choose among several candidates. */
  readonly routing?: RoutingOptions | undefined
  /**
   * Enables `GET /readyz?verbose`, which shows the state of store, vendors and keys, for requests with this bearer token: at least 24
   * characters. Disabled by default.
   */
  readonly operatorKey?: string | undefined
  /**
   * Returns the address of a request's client, for the limit of 5 wrong operator keys a minute. By default the peer of the
   * connection. Behind a proxy that is the proxy, so use `forwardedAddress(['10.0.0.0/8'])`.
   */
  readonly clientAddress?: ClientAddress | undefined
  /** Maximum size of a request body. Default 32 MiB. */
  readonly bodyLimitBytes?: number | undefined
  /**
   * Maximum number of bytes of images that the gateway fetches for the requests of one account at the same time. Above it, the
   * request gets 429. Default 64 MiB.
   */
  readonly fetchedBytesPerAccount?: number | undefined
  /**
   * Lifetime of a hold that nothing ends, in milliseconds. It must exceed `timeouts.totalMs`, plus `drainMs` if calls are drained.
   * Default 15 minutes, or a minute more than both together if that is longer. An Idempotency-Key in progress without a hold lives as
   * long. With `billing: 'off'` the default applies.
   */
  readonly holdTtlMs?: number | undefined
  /**
   * Action at the vendor when a caller disconnects: `cancel` stops the call, `drain` reads it to its end, for at most `drainMs` and
   * at most 100 calls at the same time. One policy, or one per endpoint: `{ default: 'cancel', embeddings: 'drain' }`. Default
   * `cancel`, but `drain` during hidden reasoning, because only the vendor's report contains its cost. With `cancel`, a whole answer
   * that is charged by tokens is still read for 10 seconds, or for `drainMs` if that is less.
   */
  readonly disconnect?: DisconnectPolicies | undefined
  /** Maximum time that a disconnected call is read under the policy `drain`, in milliseconds. Default 30,000. */
  readonly drainMs?: number | undefined
  /**
   * Output limit of one answer, in tokens, if its request sets none and the model's longest answer costs more than 2 % of the free
   * money. Default 16,384. If that costs too much, the free money determines the limit.
   */
  readonly defaultMaxOutputTokens?: number | undefined
  /** Whether a 402 shows callers the amount that a request needs, and the available amount. Default true. */
  readonly showBalanceInErrors?: boolean | undefined
  /**
   * Tokens to hold for inputs whose size only the vendor knows: an image, audio, video or document by URL or file id, and a
   * conversation that the vendor stores. By kind, and by public model id: `{ document: 50_000, models: { 'cl-opus-4-7': { document:
   * 20_000 } } }`. Defaults to the vendor's largest image; for other inputs to the model's context window (`limits.contextTokens`,
   * else the vendor's published size, else 200,000).
   */
  readonly unknownInputTokens?: UnknownInputTokens | undefined
  /**
   * Shares in percent at which the events `cap-reached` (share of `caps`) and `balance-low` (share of `balance`: the balance after
   * the latest credit, or the credit limit of a metered account) are emitted. Default: 50, 80 and 100 of both.
   */
  readonly spendingThresholds?: Partial<SpendingThresholds> | undefined
  /**
   * Returns an upper estimate of a request's tokens, before a vendor has counted them. By default one per three bytes, and more for
   * dense text.
   */
  readonly estimateTokens?: TokenEstimator | undefined
  /** Storage of answers that callers can continue by their id. */
  readonly responses?: ResponsesOptions | undefined
  /**
   * Caches answers for equal requests: `{}` for embeddings, and for texts with `temperature: 0`. By default every request calls a
   * vendor.
   */
  readonly cache?: CacheOptions | undefined
  /** Lets callers store files and submit batches of requests, at batch prices: `{}`. Disabled by default. */
  readonly batches?: BatchOptions | undefined
  /** Limits of one account's stored objects: `{ conversations: { count: 1_000, byteLength: 2 ** 26 } }`. */
  readonly accountStorage?: AccountStorageOptions | undefined
  /** Load above which this process rejects requests to models with 503 `overloaded`, before it reads their bodies. Default: never. */
  readonly overload?: OverloadOptions | undefined
  /**
   * Secret that signs webhooks of accounts without their own secret: `whsec_` and base64 of 24 to 64 bytes. By default such an
   * account gets its own secret when it first needs one, and `gateway.webhooks.secret` returns it.
   */
  readonly webhookSecret?: string | undefined
  /** Maximum duration of a task, in milliseconds; then it fails and its hold is released. Default 24 hours. */
  readonly taskDeadlineMs?: number | undefined
  /** Interval between polls of a task at its vendor, in milliseconds. Defaults to the vendor's recommendation. */
  readonly taskPollIntervalMs?: number | undefined
  /**
   * How many days a task and its webhook messages are kept after its end; then its id is unknown. Default 90, at least 1,
   * because an Idempotency-Key returns its task id for that long; `Infinity`: indefinitely. The store keeps the value that was named
   * last, and all of its processes use it.
   */
  readonly taskRetentionDays?: number | undefined
  /**
   * Whether callers may use URLs with private addresses, which the gateway or a vendor then fetches. For tests on one machine, and
   * for networks whose callers are trusted.
   */
  readonly allowPrivateUrls?: boolean | undefined
  /**
   * With `auto`, long prompts without cache marks of their callers are marked for vendors that cache by marks, if the calls of a
   * conversation reach the same key. A model's own `promptCaching` takes precedence. Default `off`.
   */
  readonly promptCaching?: PromptCaching | undefined
  /** Hooks of the host, in this order for requests and in reverse for answers: redaction, guards, custom rules. Default: none. */
  readonly hooks?: readonly GivenHook[] | undefined
  /** Called synchronously with each event; errors that it throws are logged. Default: none. */
  readonly onEvent?: EventListener | undefined
  /** Metrics and traces: the results of `prometheus()` and `otel()`, or custom observers. Default: none. */
  readonly observe?: readonly Observer[] | undefined
  /** Logger. Silent by default. */
  readonly logger?: Logger | undefined
  /** Transport to the vendors. Default: undici. */
  readonly transport?: Transport | undefined
  /** Clock. Defaults to the system clock. Tests can set `fakeClock()` of `signalbox/testing` manually. */
  readonly clock?: Clock | undefined
  /** Generates the ids of requests, tasks and accounts. By default from the time and 80 random bits. */
  readonly ids?: Ids | undefined
}

export const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 5_000, firstByteMs: 120_000, idleMs: 60_000, totalMs: 600_000 }
export const DEFAULT_DRAIN_MS = 30_000

const MIN_HOLD_TTL_MS = 15 * 60_000
/** Minimum time by which a hold outlives its call, in milliseconds, because settling takes time too. */
const SETTLING_MS = 60_000

/** Returns the default lifetime of a hold: longer than any call, including drained ones. */
export function defaultHoldTtlMs(totalMs: number, drainMs: number): number {
  return Math.max(MIN_HOLD_TTL_MS, totalMs + drainMs + SETTLING_MS)
}

/** Billing mode of a gateway, or `off`. A mode alone, such as `'metered'`, is short for `{ mode: 'metered' }`. */
export type BillingOption = BillingMode | 'off' | { readonly mode: BillingMode | 'off' }

const BILLING_MODES: readonly unknown[] = ['prepaid', 'metered', 'off'] satisfies (BillingMode | 'off')[]

/** @throws TypeError for an invalid option. */
export function billingModeOf(option: BillingOption | undefined): BillingMode | 'off' {
  const mode: unknown =
    option === undefined ? 'prepaid' : typeof option === 'object' && option !== null ? option.mode : option
  if (!BILLING_MODES.includes(mode)) throw new TypeError("createGateway: billing must be 'prepaid', 'metered' or 'off'")
  return mode as BillingMode | 'off'
}
