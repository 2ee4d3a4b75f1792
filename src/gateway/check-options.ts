// See docs/decisions/0022-sign-in-and-options.md.

import * as z from 'zod'
import { checkModelRows, checkWholeRows } from '../catalog/parse-model-definitions.ts'
import { memberNames } from '../core/known-members.ts'
import type { Observer } from '../core/observer.ts'
import { whileUsed } from '../core/on-demand.ts'
import {
  anyObject,
  anything,
  atLeast,
  callable,
  checkBySchema,
  flag,
  oneOf,
  positive,
  secret,
  texts,
  wholeNumber,
  withMembers,
  withMethods,
} from '../core/option-schema.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { MEDIA_KINDS } from '../endpoints/media-input.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { MIN_CHOSEN_TOKENS } from '../pipeline/reserve.ts'
import { ROUTING_STRATEGIES, type RouteOverride } from '../routing/candidate.ts'
import { STORED_KINDS } from '../stores/sql-rows.ts'
import { MIN_TASK_RETENTION_DAYS } from '../tasks/task-worker.ts'
import { checkWebhookSecret } from '../tasks/webhook-payload.ts'
import { egressRoute } from '../transport/egress.ts'
import { MIN_OPERATOR_KEY } from './authenticate.ts'
import { limitSchemas, limitSetOf, planLimitsOf } from './catalog-options.ts'
import { asksGatewayKeys } from './keys.ts'
import { billingModeOf, DEFAULT_DRAIN_MS, DEFAULT_TIMEOUTS, type GatewayOptions } from './options.ts'

const OWNER = 'createGateway'
const MIN_STATE_SECRET_LENGTH = 24
const SOURCE = 'must be the path or the http(s) address of a snapshot'

/** An observer without any of these methods would receive nothing. */
const OBSERVER_METHODS = Object.keys(
  memberNames<Observer>()(
    'attached detached toolCallStarted toolCallEnded requestStarted requestEnded attemptStarted attemptEnded',
    'runSend attemptHeaders store event',
  ),
)

/** Routing of a gateway, and of a host's requests in its process. */
function routingSchemas() {
  return {
    strategy: z.enum(ROUTING_STRATEGIES, `must be one of ${ROUTING_STRATEGIES.join(', ')}`).optional(),
    fallback: z
      .union(
        [
          z.enum(['on-failure', 'never']),
          z.strictObject({ statuses: z.array(z.int('must be an HTTP status'), 'must be a list of HTTP statuses') }),
        ],
        'must be on-failure, never, or { statuses }',
      )
      .optional(),
  }
}

/** Ids of endpoints, including those of shapes, and `default` for all others. */
function disconnectSchema(endpoints: readonly Endpoint[]) {
  const shapes = endpoints.flatMap((endpoint) => [endpoint, ...(endpoint.shapes?.values() ?? [])])
  const policy = oneOf('cancel', 'drain')
  const byEndpoint = Object.fromEntries(['default', ...shapes.map(({ id }) => id)].map((id) => [id, policy]))
  return z.union([z.enum(['cancel', 'drain']), z.strictObject(byEndpoint)], 'must be cancel or drain').optional()
}

/** Schemas of the options, by their names. */
export const optionSchemas = whileUsed(() => {
  const { rateLimits, plans } = limitSchemas()
  const infinitePositive = z
    .custom((value) => typeof value === 'number' && value > 0, 'must be a positive number')
    .optional()
  const tokens = Object.fromEntries(
    MEDIA_KINDS.map((kind) => [kind, wholeNumber(0, 'must be a whole number from 0 on')]),
  )
  const storedNumber = wholeNumber(0)
  const batchNumber = wholeNumber(1)
  const percents = z
    .custom(
      (list) => Array.isArray(list) && list.every((percent) => percent > 0 && percent <= 100),
      'must be percents above 0 and at most 100',
    )
    .optional()
  const retention = atLeast(1, 'must be at least 1 day, or Infinity')

  return {
    vendors: z.array(
      withMembers({ id: 'string', apiKeys: 'list' }, ({ input }) =>
        typeof input === 'function'
          ? `is a function; call it: ${input.name}({ apiKey })`
          : 'must be a vendor from one of the factories',
      ),
      'must be a list',
    ),
    endpoints: z
      .array(
        withMembers(
          { id: 'string', path: 'string', parse: 'function' },
          'must be an endpoint with id, path and parse, for example from defineEndpoint',
        ),
        'must be a list',
      )
      .optional(),
    models: z.array(anyObject, 'must be a list').optional(),
    catalog: z
      .strictObject({
        from: z.string(SOURCE).min(1, SOURCE),
        refreshMs: positive,
        proxy: anything,
      })
      .optional(),
    prices: anything,
    showPrices: flag,
    billing: z
      .union(
        [z.enum(['prepaid', 'metered', 'off']), z.strictObject({ mode: anything })],
        "must be 'prepaid', 'metered' or 'off'",
      )
      .optional(),
    unknownModels: anything,
    unpricedFeatures: z
      .custom(
        (names) => Array.isArray(names) && names.every((name) => /^[a-z][a-z0-9_]*(?:=.+)?$/.test(String(name))),
        'must be a list of names such as "web_search" or "beta=*"',
      )
      .optional(),
    store: withMethods(['start', 'close'], "such as sqliteStore({ path: 'signalbox.db' })"),
    usage: z
      .union(
        [
          z.literal('off'),
          z.strictObject({
            retention: z.strictObject({ recordDays: retention, hourDays: retention, dayDays: retention }).optional(),
          }),
        ],
        "must be 'off' or { retention }",
      )
      .optional(),
    keys: z
      .array(
        z.strictObject({
          key: anything,
          account: anything,
          tier: anything,
          limits: rateLimits.optional(),
          namesEndUsers: flag,
        }),
        'must be a list',
      )
      .optional(),
    authenticate: callable,
    limits: anything,
    plans: plans.optional(),
    rateLimiter: withMethods(['take', 'adjust'], 'such as redisLimits({ client }).rateLimiter'),
    concurrencyLimiter: withMethods(
      ['acquire', 'renew', 'release'],
      'such as redisLimits({ client }).concurrencyLimiter',
    ),
    timeouts: z
      .strictObject({ connectMs: positive, firstByteMs: positive, idleMs: positive, totalMs: positive })
      .optional(),
    routing: z.strictObject({ ...routingSchemas(), retryAfterTimeout: flag }).optional(),
    operatorKey: secret(MIN_OPERATOR_KEY),
    clientAddress: anything,
    bodyLimitBytes: positive,
    fetchedBytesPerAccount: positive,
    holdTtlMs: positive,
    disconnect: disconnectSchema(ENDPOINTS),
    drainMs: positive,
    defaultMaxOutputTokens: wholeNumber(MIN_CHOSEN_TOKENS, `must be a whole number from ${MIN_CHOSEN_TOKENS} on`),
    showBalanceInErrors: flag,
    unknownInputTokens: z
      .strictObject({ ...tokens, models: z.record(z.string(), z.strictObject(tokens)).optional() })
      .optional(),
    spendingThresholds: z.strictObject({ caps: percents, balance: percents }).optional(),
    estimateTokens: callable,
    responses: z
      .strictObject({
        store: oneOf('caller', 'never'),
        retentionDays: atLeast(1),
        stateSecret: secret(MIN_STATE_SECRET_LENGTH),
      })
      .optional(),
    cache: z
      .strictObject({
        store: withMembers(
          { get: 'function', generation: 'function' },
          'must be a response cache, such as memoryCache()',
        ).optional(),
        rules: z
          .array(
            z.strictObject({
              endpoints: texts,
              models: texts,
              sampling: oneOf('deterministic', 'any'),
              partition: oneOf('account', 'key', 'user', 'gateway'),
              ttlMs: positive,
            }),
            'must be a list',
          )
          .optional(),
        callers: oneOf('may-ask', 'ignored'),
        partition: oneOf('account', 'key', 'user'),
        ttlMs: positive,
        maxTtlMs: positive,
        collapse: flag,
      })
      .optional(),
    batches: z
      .strictObject({
        blobs: anything,
        maxFileBytes: batchNumber,
        retentionDays: batchNumber,
        maxRequests: batchNumber,
        maxOpenBatches: batchNumber,
        requestsAtOnce: batchNumber,
        native: flag,
      })
      .optional(),
    accountStorage: z
      .strictObject(
        Object.fromEntries(
          Object.keys(STORED_KINDS).map((kind) => [
            kind,
            z.strictObject({ count: storedNumber, byteLength: storedNumber }).optional(),
          ]),
        ),
      )
      .optional(),
    overload: z
      .strictObject({
        maxInFlight: infinitePositive,
        maxHeldBytes: infinitePositive,
        maxEventLoopDelayMs: infinitePositive,
      })
      .optional(),
    webhookSecret: anything,
    taskDeadlineMs: positive,
    taskPollIntervalMs: positive,
    // A replayed answer contains a task id, which must still exist.
    taskRetentionDays: atLeast(
      MIN_TASK_RETENTION_DAYS,
      `must be at least ${MIN_TASK_RETENTION_DAYS}, because an Idempotency-Key returns its task for 24 hours`,
    ),
    allowPrivateUrls: flag,
    promptCaching: oneOf('auto', 'off'),
    hooks: z.array(anything, 'must be a list').optional(),
    onEvent: callable,
    observe: z
      .array(
        z
          .looseObject(Object.fromEntries(OBSERVER_METHODS.map((name) => [name, callable])), 'must be an object')
          .refine(
            (observer) => OBSERVER_METHODS.some((name) => observer[name] !== undefined),
            `has none of ${OBSERVER_METHODS.join(', ')}`,
          ),
        'must be a list',
      )
      .optional(),
    logger: withMethods(['debug', 'info', 'warn', 'error'], 'such as console'),
    transport: withMethods(['send', 'close']),
    clock: withMethods(['now', 'schedule']),
    ids: withMethods(['next']),
  } satisfies { readonly [Name in keyof Required<GatewayOptions>]: z.ZodType }
})

const schemaOfOptions = whileUsed(() => z.strictObject(optionSchemas()))

/**
 * Checks options at start, so that a configuration error is found before the first request.
 * @throws TypeError naming the option.
 */
export function checkOptions(options: GatewayOptions): void {
  const { endpoints } = options ?? {}
  const schema = schemaOfOptions()
  const hasOwn = Array.isArray(endpoints) && endpoints.every((one) => typeof one === 'object' && one !== null)
  checkBySchema(
    hasOwn ? schema.extend({ disconnect: disconnectSchema([...ENDPOINTS, ...endpoints]) }) : schema,
    options,
    OWNER,
  )
  checkModelRows(options.models, OWNER)
  checkWholeRows(options.models ?? [], OWNER)
  checkVendors(options)
  const mode = billingModeOf(options.billing)
  if (options.prices === undefined && mode !== 'off')
    throw new TypeError("createGateway: give prices, or billing: 'off' to charge nothing")
  if (options.prices !== undefined && mode === 'off')
    throw new TypeError("createGateway: prices and billing: 'off' contradict each other")
  if (options.authenticate !== undefined && options.keys !== undefined && !asksGatewayKeys(options.authenticate))
    throw new TypeError(
      'createGateway: keys has no effect with an authenticate that does not check them. Remove one, or use firstOf(authenticate, gatewayKeys())',
    )
  checkKeys(options.keys ?? [])
  if (options.catalog !== undefined) egressRoute({ proxy: options.catalog.proxy })
  if (options.webhookSecret !== undefined) checkSecret(options.webhookSecret)
  planLimitsOf(options.plans, limitSetOf(options.limits, 'limits'))
  checkHoldTtl(options)
}

function checkVendors({ vendors }: GatewayOptions): void {
  const seen = new Set<string>()
  for (const [index, { id, apiKeys, keyWeights, models }] of vendors.entries()) {
    const name = `the vendor ${JSON.stringify(id)}`
    checkModelRows(models, OWNER, `vendors[${index}].models`)
    checkWholeRows(models, OWNER, `vendors[${index}].models`)
    if (seen.has(id)) throw new TypeError(`createGateway: ${name} is listed twice`)
    seen.add(id)
    if (keyWeights !== undefined && keyWeights.length !== apiKeys.length)
      throw new TypeError(
        `createGateway: ${name} has ${keyWeights.length} keyWeights and ${apiKeys.length} ${apiKeys.length === 1 ? 'key that is' : 'keys that are'} set`,
      )
    for (const weight of keyWeights ?? []) checkBySchema(positive, weight, OWNER, `keyWeights of ${name}`)
  }
}

function checkKeys(keys: NonNullable<GatewayOptions['keys']>): void {
  const accounts = new Map<string, string>()
  for (const { key, account } of keys) {
    if (typeof key !== 'string' || key === '')
      throw new TypeError('createGateway: every key must be a non-empty string')
    if (typeof account !== 'string' || account === '') throw new TypeError('createGateway: every key needs an account')
    if ((accounts.get(key) ?? account) !== account)
      throw new TypeError(`createGateway: the same key is listed for the accounts ${accounts.get(key)} and ${account}`)
    accounts.set(key, account)
  }
}

/** Whether any endpoint continues calls of callers that have disconnected. */
function mayDrain(disconnect: GatewayOptions['disconnect'] = 'cancel'): boolean {
  return typeof disconnect === 'string' ? disconnect === 'drain' : Object.values(disconnect).includes('drain')
}

/** A hold that expires before its call releases the money that the call is still spending. */
function checkHoldTtl({ holdTtlMs, timeouts, disconnect, drainMs, billing }: GatewayOptions): void {
  if (holdTtlMs === undefined || billingModeOf(billing) === 'off') return
  const longestMs =
    (timeouts?.totalMs ?? DEFAULT_TIMEOUTS.totalMs) + (mayDrain(disconnect) ? (drainMs ?? DEFAULT_DRAIN_MS) : 0)
  if (holdTtlMs > longestMs) return
  throw new TypeError(
    `createGateway: holdTtlMs (${holdTtlMs}) must be above timeouts.totalMs, plus drainMs if calls are drained (${longestMs}), so that no hold expires before its call ends`,
  )
}

function checkSecret(text: string): void {
  try {
    checkWebhookSecret(text)
  } catch (cause) {
    throw new TypeError(`createGateway: webhookSecret: ${(cause as Error).message}`)
  }
}

/**
 * Checks the routing of a request in the host's process.
 * @throws TypeError naming the member.
 */
export function checkRoute(route: RouteOverride): void {
  checkBySchema(z.strictObject({ vendor: anything, ...routingSchemas() }), route, 'gateway', 'route')
}
