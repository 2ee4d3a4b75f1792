import type { ModelDefinition, PromptCaching } from '../catalog/model.ts'
import type { CatalogPrices } from '../catalog/prices/list-prices.ts'
import type { PriceFile, Prices } from '../catalog/prices/prices.ts'
import type { UnknownModels } from '../catalog/prices/unknown-model-prices.ts'
import type { Clock } from '../core/clock.ts'
import type { EventListener } from '../core/events.ts'
import type { ClientAddress } from '../core/forwarded-address.ts'
import type { Ids } from '../core/ids.ts'
import type { MemberNames } from '../core/known-members.ts'
import type { Logger } from '../core/logger.ts'
import type { Observer } from '../core/observer.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { UnknownInputTokens } from '../endpoints/media-input.ts'
import type { TokenEstimator } from '../endpoints/token-estimate.ts'
import type { DisconnectPolicies } from '../pipeline/abort-scope.ts'
import type { Timeouts } from '../pipeline/pipeline-context.ts'
import type { RoutingOptions } from '../routing/routing-options.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Authenticate, Tier } from '../stores/principal.ts'
import type { ConcurrencyLimiter, RateLimiter, RateLimits } from '../stores/rate-limiter.ts'
import type { SpendingThresholds } from '../stores/spending.ts'
import type { Transport } from '../transport/transport.ts'
import type { UsageRetentionDays } from '../usage/usage-recorder.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { AccountStorageOptions } from './account-storage.ts'
import type { BatchOptions } from './batch-options.ts'
import type { BillingOption } from './billing-mode.ts'
import type { CacheOptions } from './cache-options.ts'
import type { CatalogOptions } from './catalog-options.ts'
import type { GivenHook } from './hook-host.ts'
import type { LimitOptions, Plan } from './limit-options.ts'
import type { OverloadOptions } from './overload-guard.ts'

/** A key that the host fixes in its configuration. */
export interface FixedKey {
  /** The key itself, as callers send it. */
  readonly key: string
  /** The account that pays; created at start if it does not exist. */
  readonly account: string
  /** Of its account; default `paid`. */
  readonly tier?: Tier | undefined
  /** Default: those of the account's plan, then of the gateway. */
  readonly limits?: RateLimits | undefined
  /** May requests with this key name their end user? Default false. */
  readonly namesEndUsers?: boolean | undefined
}

export const FIXED_KEY_MEMBERS = {
  key: true,
  account: true,
  tier: true,
  limits: true,
  namesEndUsers: true,
} satisfies MemberNames<FixedKey>

/** What is kept of answers that callers may continue by their id. */
export interface ResponsesOptions {
  /**
   * `caller`, the default: prompts and answers are kept unless a request has `store: false`. `never`: nothing is kept, and
   * requests that refer to earlier answers are refused.
   */
  readonly store?: 'caller' | 'never' | undefined
  /** How many days they are kept; 30 by default. At least 1. */
  readonly retentionDays?: number | undefined
  /**
   * Signs the state of vendors that callers carry in `encrypted_content`, so that they cannot change it; at least 24 characters. If
   * omitted, each process has a secret of its own: state of another process, or of before a restart, is dropped.
   */
  readonly stateSecret?: string | undefined
}

export const RESPONSES_OPTIONS = {
  store: true,
  retentionDays: true,
  stateSecret: true,
} satisfies MemberNames<ResponsesOptions>

/** Options of `createGateway`. */
export interface GatewayOptions {
  /** The vendors. Models of a vendor that is missing here, or that has no key, are listed as unavailable. */
  readonly vendors: readonly Vendor[]
  /** The host's own endpoints, in addition to the built-in ones; made by `defineEndpoint`. */
  readonly endpoints?: readonly Endpoint[] | undefined
  /** Rows added to the catalog, or replacing rows of the same id. */
  readonly models?: readonly ModelDefinition[] | undefined
  /**
   * A newer snapshot of the vendors' models and list prices than the built-in one: `{ from: 'catalog.json' }`. It is looked for at
   * start and every 10 minutes, and taken without a restart. If it cannot be used, a warning says why, and the catalog in force
   * stays. If omitted, the built-in snapshot is used.
   */
  readonly catalog?: CatalogOptions | undefined
  /** Prices per model and meter, or `listPrices()`. Required unless billing is off. */
  readonly prices?: PriceFile | Prices | CatalogPrices | undefined
  /** Does `GET /v1/models` say prices, where billing is on? Default false. */
  readonly showPrices?: boolean | undefined
  /**
   * When accounts pay that do not say so themselves. `prepaid`, the default: a call needs a balance, which holds its money.
   * `metered`: charges are written without a balance check and owed, up to the account's `creditLimit`. `off`: nothing is held
   * or charged; balances are ignored.
   */
  readonly billing?: BillingOption | undefined
  /**
   * Rule for model ids that no catalog knows, but a vendor claims by its pattern, such as `gpt-*`. `'refuse'`: such an id gets 404,
   * except while a price names it. `{ pricedAs: 'newest of its family' }`: it costs what the newest priced model with the same words in
   * its id costs. `{ pricedAs: rows }`: it costs what these price rows say. Default: `'refuse'` while billing is on. With
   * `billing: 'off'` such ids are sent to their vendor.
   */
  readonly unknownModels?: UnknownModels | undefined
  /**
   * What callers may use although no price names it, while billing is on: a surcharge (`web_search`), or an unknown feature
   * (`server_tool=translate_20270101`, `beta=fast-lane-2027-01-01`, `beta=*`). The vendor may bill for it. Default: nothing; such
   * requests are refused with 400, which names the field.
   */
  readonly unpricedFeatures?: readonly string[] | undefined
  /**
   * Charges for the parts of a batch of embeddings that the vendor answered before another part failed; the caller reads the
   * error all the same. Default false: they are told by the event `unbilled-usage`.
   */
  readonly chargePartialBatches?: boolean | undefined
  /**
   * Charges for what a vendor may bill although the caller gets none of it: an answer that breaks off before any of it was
   * delivered (by its announced size), one that does not come in time (a whole answer's output as held), and usage that the vendor
   * reported before it failed. An answer that broke off is then not asked for again, because the caller would pay twice. Default
   * false: the caller pays nothing, and the event `unbilled-usage` tells.
   */
  readonly chargeBrokenAnswers?: boolean | undefined
  /** Accounts, keys, holds, ledger. Default: in memory, gone when the process ends. */
  readonly store?: GatewayStore | undefined
  /**
   * What is kept of each call: a record, and sums by hour and by day, read by `gateway.usage`. `'off'`: nothing. Default: records
   * for 30 days, sums by hour for 400 days, sums by day and account indefinitely. The store keeps the retention that was named last, and
   * all of its processes use it.
   */
  readonly usage?: 'off' | { readonly retention?: UsageRetentionDays } | undefined
  /** Keys known from the start, in addition to those in the store. */
  readonly keys?: readonly FixedKey[] | undefined
  /**
   * How callers sign in; the keys of `keys` and of `gateway.keys` when absent. One of the host's own replaces them, unless it asks
   * for them too: `firstOf(sessionCookie, gatewayKeys())`.
   */
  readonly authenticate?: Authenticate | undefined
  /** Limits per key, account and end user, for what keys and plans do not set. Limits alone are those per key. Default: none. */
  readonly limits?: LimitOptions | undefined
  /** Plans by name, which accounts have: `{ free: { limits: { perAccount: { requestsPerMinute: 10 } } } }`. */
  readonly plans?: Readonly<Record<string, Plan>> | undefined
  /** Counts requests and tokens per minute. Default: in this process; `redisLimits` shares the counts. */
  readonly rateLimiter?: RateLimiter | undefined
  /** Counts concurrent requests. Default: in this process; `redisLimits` shares the counts. */
  readonly concurrencyLimiter?: ConcurrencyLimiter | undefined
  /** Defaults: connect 5 s, first byte 120 s (of streams), idle 60 s, total 600 s. */
  readonly timeouts?: Partial<Timeouts> | undefined
  /** How requests choose among several candidates. */
  readonly routing?: RoutingOptions | undefined
  /**
   * Opens `GET /readyz?verbose`, which shows the state of store, vendors and keys, to requests with this bearer token: at least
   * 24 characters. Default: closed.
   */
  readonly operatorKey?: string | undefined
  /**
   * Address of the client of a request, for the limit of 5 wrong operator keys a minute. Default: the other end of the connection.
   * Behind a proxy that is the proxy, so give `forwardedAddress(['10.0.0.0/8'])`.
   */
  readonly clientAddress?: ClientAddress | undefined
  /** Largest request body. Default 32 MiB. */
  readonly bodyLimitBytes?: number | undefined
  /**
   * Maximum number of bytes of images that the gateway fetches for the requests of one account at the same time; above it the
   * request gets 429. Default 64 MiB.
   */
  readonly fetchedBytesPerAccount?: number | undefined
  /**
   * How long a hold lives when nothing ends it, in milliseconds; must be above `timeouts.totalMs`, and above it and
   * `drainMs` together where calls are drained. Default 15 minutes, or a minute above both together where that is more. An
   * Idempotency-Key in progress without a hold lives as long. With `billing: 'off'` the default holds.
   */
  readonly holdTtlMs?: number | undefined
  /**
   * What happens at the vendor when a caller leaves: `cancel` stops the call, `drain` reads it to its end, for at most
   * `drainMs` and at most 100 calls at once. One policy, or one per endpoint: `{ default: 'cancel', embeddings: 'drain' }`.
   * Default: `cancel`, but `drain` while a model reasons unseen, because only the vendor's report tells what that costs.
   * A whole answer of tokens that is paid for is read on for 10 seconds, or `drainMs` if that is less, under `cancel` too.
   */
  readonly disconnect?: DisconnectPolicies | undefined
  /** Longest time that an abandoned call is read under the policy `drain`. Default 30,000. */
  readonly drainMs?: number | undefined
  /**
   * Bound of one answer, in output tokens, if its request sets none and the model's longest answer costs more than 2 % of the free
   * money. Default 16,384. If they cost too much, the call gets a bound that the free money pays for.
   */
  readonly defaultMaxOutputTokens?: number | undefined
  /**
   * Part of the free money that a call without a bound may cost: above 0, at most 1. Default 0.5, so that calls at the same time
   * share it.
   */
  readonly balanceSharePerCall?: number | undefined
  /** Do callers read in a 402 how much a request needs, and how much there is? Default true. */
  readonly showBalanceInErrors?: boolean | undefined
  /**
   * Tokens that a call is held for where only the vendor knows the size of an input: a picture, sound, video or document by URL or
   * file id, and a conversation that the vendor keeps. By kind, and by public model id for some: `{ document: 50_000, models: {
   * 'cl-opus-4-7': { document: 20_000 } } }`. Default: the vendor's largest picture; the model's context window for everything else
   * (`limits.contextTokens`, else what the vendor publishes, else 200,000).
   */
  readonly unknownInputTokens?: UnknownInputTokens | undefined
  /**
   * At which shares, in percent, the events `cap-reached` (of `caps`) and `balance-low` (of `balance`: the balance after the latest
   * credit, or the credit limit of a metered account) are emitted. Default: 50, 80 and 100 of both.
   */
  readonly spendingThresholds?: Partial<SpendingThresholds> | undefined
  /** Tokens in a request, from above, before a vendor has counted. Default: one for every three bytes, and more for dense text. */
  readonly estimateTokens?: TokenEstimator | undefined
  /** What is kept of answers that callers may continue by their id. */
  readonly responses?: ResponsesOptions | undefined
  /** Gives answers again to equal requests: `{}` for embeddings, and for texts with `temperature: 0`. Default: every request asks a vendor. */
  readonly cache?: CacheOptions | undefined
  /** Lets callers keep files and send batches of requests, at prices of their own: `{}`. Default: they cannot. */
  readonly batches?: BatchOptions | undefined
  /** Bounds of what one account may have stored: `{ conversations: { count: 1_000, byteLength: 2 ** 26 } }`. */
  readonly accountStorage?: AccountStorageOptions | undefined
  /**
   * When this process refuses further requests to models with 503 `overloaded`, before it reads their bodies. Default: never.
   */
  readonly overload?: OverloadOptions | undefined
  /**
   * Signs webhooks of accounts without their own secret: `whsec_` and base64 of 24 to 64 bytes. Default: such an
   * account gets a secret of its own when it first needs one, which `gateway.webhooks.secret` reads.
   */
  readonly webhookSecret?: string | undefined
  /** Longest time for a task, in milliseconds; then it fails and its hold is released. Default 24 hours. */
  readonly taskDeadlineMs?: number | undefined
  /** How often a task is polled at its vendor, in milliseconds. Default: as the vendor recommends. */
  readonly taskPollIntervalMs?: number | undefined
  /**
   * How many days a task and its webhook messages are kept after its end; then its id is unknown. Default 90, at least 1,
   * because an Idempotency-Key returns its task id for that long; `Infinity`: indefinitely. The store keeps the value that was named
   * last, and all of its processes use it.
   */
  readonly taskRetentionDays?: number | undefined
  /**
   * Lets callers give URLs with private addresses, which the gateway or a vendor then fetches. For tests on one machine, and for
   * networks whose callers are trusted.
   */
  readonly allowPrivateUrls?: boolean | undefined
  /**
   * `auto`: long prompts without marks of their callers are marked for the prompt cache of vendors that cache by marks, where calls of a
   * conversation reach the same key. A model's own `promptCaching` goes first. Default `off`.
   */
  readonly promptCaching?: PromptCaching | undefined
  /**
   * The host's say in calls, in this order for requests and reversed for answers: redaction, guards, rules of its own. Default: none.
   */
  readonly hooks?: readonly GivenHook[] | undefined
  /** Is called with each event, synchronously; what it throws is logged. Default: none. */
  readonly onEvent?: EventListener | undefined
  /** Metrics and traces: what `prometheus()` and `otel()` make, or observers of your own. Default: none. */
  readonly observe?: readonly Observer[] | undefined
  /** Default: silent. */
  readonly logger?: Logger | undefined
  /** How vendors are reached. Default: undici. */
  readonly transport?: Transport | undefined
  /** Default: the machine's. `fakeClock()` of `signalbox/testing` is moved by hand. */
  readonly clock?: Clock | undefined
  /** Makes the ids of requests, tasks and accounts. Default: of the time and 80 random bits. */
  readonly ids?: Ids | undefined
}

export const GATEWAY_OPTIONS = {
  vendors: true,
  endpoints: true,
  models: true,
  catalog: true,
  prices: true,
  showPrices: true,
  billing: true,
  unknownModels: true,
  unpricedFeatures: true,
  chargePartialBatches: true,
  chargeBrokenAnswers: true,
  store: true,
  usage: true,
  keys: true,
  authenticate: true,
  limits: true,
  plans: true,
  rateLimiter: true,
  concurrencyLimiter: true,
  timeouts: true,
  routing: true,
  operatorKey: true,
  clientAddress: true,
  bodyLimitBytes: true,
  fetchedBytesPerAccount: true,
  holdTtlMs: true,
  disconnect: true,
  drainMs: true,
  defaultMaxOutputTokens: true,
  balanceSharePerCall: true,
  showBalanceInErrors: true,
  unknownInputTokens: true,
  spendingThresholds: true,
  estimateTokens: true,
  responses: true,
  cache: true,
  batches: true,
  accountStorage: true,
  overload: true,
  webhookSecret: true,
  taskDeadlineMs: true,
  taskPollIntervalMs: true,
  taskRetentionDays: true,
  allowPrivateUrls: true,
  promptCaching: true,
  hooks: true,
  onEvent: true,
  observe: true,
  logger: true,
  transport: true,
  clock: true,
  ids: true,
} satisfies MemberNames<GatewayOptions>
