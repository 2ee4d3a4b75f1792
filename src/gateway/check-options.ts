import { checkModelRows, checkWholeRows } from '../catalog/check-model-rows.ts'
import { checkGivenMembers, checkMembers, type MemberNames, unknownMember } from '../core/known-members.ts'
import type { Observer } from '../core/observer.ts'
import { MEDIA_KINDS } from '../endpoints/media-input.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { TIMEOUTS_MEMBERS } from '../pipeline/pipeline-context.ts'
import { MIN_CHOSEN_TOKENS } from '../pipeline/reserve.ts'
import { type FallbackPolicy, ROUTING_OPTIONS, ROUTING_STRATEGIES, type RoutingOptions } from '../routing/candidate.ts'
import { SPENDING_THRESHOLDS_MEMBERS, type SpendingThresholds } from '../stores/spending.ts'
import { SHORTEST_TASK_RETENTION_DAYS } from '../tasks/task-worker.ts'
import { checkWebhookSecret } from '../tasks/webhook-payload.ts'
import { USAGE_RETENTION_MEMBERS } from '../usage/usage-recorder.ts'
import { SHORTEST_OPERATOR_KEY } from './authenticate.ts'
import { checkCatalog, checkRateLimits, limitSetOf, planLimitsOf } from './catalog-options.ts'
import { asksGatewayKeys } from './keys.ts'
import {
  type BillingOption,
  billingModeOf,
  DEFAULT_DRAIN_MS,
  DEFAULT_TIMEOUTS,
  FIXED_KEY_MEMBERS,
  GATEWAY_OPTIONS,
  type GatewayOptions,
  RESPONSES_OPTIONS,
} from './options.ts'

/**
 * Checks options at start, so that a configuration error is found before the first request.
 * @throws TypeError naming the option.
 */
export function checkOptions(options: GatewayOptions): void {
  checkGivenMembers(options, GATEWAY_OPTIONS, OWNER)
  checkParts(options)
  checkNames(options)
  if (!Array.isArray(options.vendors)) throw new TypeError('createGateway: vendors must be a list')
  const seen = new Set<string>()
  for (const { id, apiKeys, keyWeights } of options.vendors) {
    if (seen.has(id)) throw new TypeError(`createGateway: the vendor ${JSON.stringify(id)} is listed twice`)
    seen.add(id)
    if (keyWeights !== undefined && keyWeights.length !== apiKeys.length)
      throw new TypeError(
        `createGateway: the vendor ${JSON.stringify(id)} has ${keyWeights.length} keyWeights and ${apiKeys.length} ${apiKeys.length === 1 ? 'key that is' : 'keys that are'} set`,
      )
    for (const weight of keyWeights ?? []) positive(`keyWeights of the vendor ${JSON.stringify(id)}`, weight)
  }
  const mode = billingModeOf(options.billing)
  if (options.prices === undefined && mode !== 'off') {
    throw new TypeError("createGateway: give prices, or billing: 'off' to charge nothing")
  }
  if (options.prices !== undefined && mode === 'off') {
    throw new TypeError("createGateway: prices and billing: 'off' contradict each other")
  }
  if (options.authenticate !== undefined && options.keys !== undefined && !asksGatewayKeys(options.authenticate)) {
    throw new TypeError(
      'createGateway: keys has no effect with an authenticate that does not check them. Remove one, or use firstOf(authenticate, gatewayKeys())',
    )
  }
  const { unpricedFeatures = [] } = options
  if (
    !Array.isArray(unpricedFeatures) ||
    !unpricedFeatures.every((name) => /^[a-z][a-z0-9_]*(?:=.+)?$/.test(String(name)))
  )
    throw new TypeError('createGateway: unpricedFeatures must be a list of names such as "web_search" or "beta=*"')
  checkUsage(options.usage)
  const accounts = new Map<string, string>()
  for (const { key, account } of options.keys ?? []) {
    if (typeof key !== 'string' || key === '')
      throw new TypeError('createGateway: every key must be a non-empty string')
    if (typeof account !== 'string' || account === '') throw new TypeError('createGateway: every key needs an account')
    if ((accounts.get(key) ?? account) !== account)
      throw new TypeError(`createGateway: the same key is listed for the accounts ${accounts.get(key)} and ${account}`)
    accounts.set(key, account)
  }
  checkRouting(options.routing ?? {})
  const { operatorKey } = options
  if (operatorKey !== undefined && !(typeof operatorKey === 'string' && operatorKey.length >= SHORTEST_OPERATOR_KEY))
    throw new TypeError(`createGateway: operatorKey must have at least ${SHORTEST_OPERATOR_KEY} characters`)
  positive('bodyLimitBytes', options.bodyLimitBytes)
  positive('fetchedBytesPerAccount', options.fetchedBytesPerAccount)
  positive('holdTtlMs', options.holdTtlMs)
  const { defaultMaxOutputTokens = MIN_CHOSEN_TOKENS } = options
  if (!(Number.isSafeInteger(defaultMaxOutputTokens) && defaultMaxOutputTokens >= MIN_CHOSEN_TOKENS))
    throw new TypeError(`createGateway: defaultMaxOutputTokens must be a whole number from ${MIN_CHOSEN_TOKENS} on`)
  checkUnknownInputs(options.unknownInputTokens ?? {})
  positive('drainMs', options.drainMs)
  positive('taskDeadlineMs', options.taskDeadlineMs)
  positive('taskPollIntervalMs', options.taskPollIntervalMs)
  // A replayed answer contains a task id, which must still exist.
  const { taskRetentionDays = SHORTEST_TASK_RETENTION_DAYS } = options
  if (!(typeof taskRetentionDays === 'number' && taskRetentionDays >= SHORTEST_TASK_RETENTION_DAYS))
    throw new TypeError(
      `createGateway: taskRetentionDays must be at least ${SHORTEST_TASK_RETENTION_DAYS}, because an Idempotency-Key returns its task for 24 hours`,
    )
  if (options.webhookSecret !== undefined) secret(options.webhookSecret)
  checkResponses(options.responses)
  for (const [name, value] of Object.entries(options.timeouts ?? {})) positive(`timeouts.${name}`, value)
  spendingThresholdsOf(options.spendingThresholds)
  planLimitsOf(options.plans, limitSetOf(options.limits, 'limits'))
  checkHoldTtl(options)
}

const OWNER = 'createGateway'
const USAGE_MEMBERS = { retention: true } satisfies MemberNames<Exclude<GatewayOptions['usage'], 'off' | undefined>>
const BILLING_MEMBERS = { mode: true } satisfies MemberNames<Extract<BillingOption, object>>

/** Rejects unknown members at any level: such an option would have no effect. */
function checkNames(options: GatewayOptions): void {
  const { billing, usage, keys, timeouts, responses, models, vendors, promptCaching } = options
  if (promptCaching !== undefined && promptCaching !== 'auto' && promptCaching !== 'off')
    throw new TypeError('createGateway: promptCaching must be auto or off')
  if (typeof billing === 'object') checkMembers(billing, BILLING_MEMBERS, OWNER, 'billing')
  if (typeof usage === 'object') {
    checkMembers(usage, USAGE_MEMBERS, OWNER, 'usage')
    checkMembers(usage?.retention, USAGE_RETENTION_MEMBERS, OWNER, 'usage.retention')
  }
  for (const [index, key] of (keys ?? []).entries()) {
    checkMembers(key, FIXED_KEY_MEMBERS, OWNER, `keys[${index}]`)
    checkRateLimits(key.limits, OWNER, `keys[${index}].limits`)
  }
  checkMembers(timeouts, TIMEOUTS_MEMBERS, OWNER, 'timeouts')
  checkMembers(options.routing, ROUTING_OPTIONS, OWNER, 'routing')
  checkMembers(responses, RESPONSES_OPTIONS, OWNER, 'responses')
  checkCatalog(options.catalog, OWNER)
  checkDisconnect(options)
  checkModelRows(models, OWNER)
  checkWholeRows(models ?? [], OWNER)
  for (const [index, vendor] of (vendors ?? []).entries()) {
    checkModelRows(vendor.models, OWNER, `vendors[${index}].models`)
    checkWholeRows(vendor.models, OWNER, `vendors[${index}].models`)
  }
}

/** Ids of endpoints, including those of shapes, and `default` for all others. */
function disconnectNames({ endpoints = [] }: GatewayOptions): Readonly<Record<string, true>> {
  const shapes = [...ENDPOINTS, ...endpoints].flatMap((endpoint) => [endpoint, ...(endpoint.shapes?.values() ?? [])])
  return Object.fromEntries(['default', ...shapes.map(({ id }) => id)].map((id) => [id, true]))
}

/** A misspelt policy would apply to no endpoint, and calls of disconnected callers would be cancelled. */
function checkDisconnect(options: GatewayOptions): void {
  const { disconnect = 'cancel' } = options
  if (typeof disconnect === 'object') checkMembers(disconnect, disconnectNames(options), OWNER, 'disconnect')
  const policies =
    typeof disconnect === 'object' ? Object.entries(disconnect ?? {}) : [[undefined, disconnect] as const]
  for (const [endpoint, policy] of policies)
    if (policy !== undefined && policy !== 'cancel' && policy !== 'drain')
      throw new TypeError(
        `createGateway: disconnect${endpoint === undefined ? '' : `.${endpoint}`} must be cancel or drain`,
      )
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

const FALLBACK_MEMBERS = { statuses: true } satisfies MemberNames<Extract<FallbackPolicy, object>>

/**
 * Checks the routing options.
 * @throws TypeError naming the member.
 */
export function checkRouting({ strategy, fallback }: Pick<RoutingOptions, 'strategy' | 'fallback'>): void {
  if (typeof fallback === 'object') checkMembers(fallback, FALLBACK_MEMBERS, OWNER, 'routing.fallback')
  if (strategy !== undefined && !ROUTING_STRATEGIES.includes(strategy))
    throw new TypeError(`createGateway: routing.strategy must be one of ${ROUTING_STRATEGIES.join(', ')}`)
  const statuses: readonly unknown[] | undefined = typeof fallback === 'object' ? fallback.statuses : []
  if (fallback !== undefined && typeof fallback !== 'object' && fallback !== 'on-failure' && fallback !== 'never')
    throw new TypeError('createGateway: routing.fallback must be on-failure, never, or { statuses }')
  if (!Array.isArray(statuses) || !statuses.every((status) => Number.isInteger(status)))
    throw new TypeError('createGateway: routing.fallback.statuses must be a list of HTTP statuses')
}

function checkUnknownInputs({ models = {}, ...bounds }: NonNullable<GatewayOptions['unknownInputTokens']>): void {
  for (const [at, byKind] of [
    ['', bounds] as const,
    ...Object.entries(models).map(([id, own]) => [`.models.${id}`, own] as const),
  ]) {
    for (const [kind, tokens] of Object.entries(byKind)) {
      if (!MEDIA_KINDS.some((known) => known === kind))
        throw unknownMember(kind, MEDIA_KINDS, OWNER, `unknownInputTokens${at}`)
      if (tokens !== undefined && !(Number.isSafeInteger(tokens) && tokens >= 0))
        throw new TypeError(`createGateway: unknownInputTokens${at}.${kind} must be a whole number from 0 on`)
    }
  }
}

function secret(text: string): void {
  try {
    checkWebhookSecret(text)
  } catch (cause) {
    throw new TypeError(`createGateway: webhookSecret: ${(cause as Error).message}`)
  }
}

const SHORTEST_STATE_SECRET = 24

function checkResponses(responses: GatewayOptions['responses']): void {
  const { store, retentionDays, stateSecret } = responses ?? {}
  if (store !== undefined && store !== 'caller' && store !== 'never')
    throw new TypeError('createGateway: responses.store must be caller or never')
  if (retentionDays !== undefined && !(typeof retentionDays === 'number' && retentionDays >= 1))
    throw new TypeError('createGateway: responses.retentionDays must be at least 1')
  if (stateSecret !== undefined && !(typeof stateSecret === 'string' && stateSecret.length >= SHORTEST_STATE_SECRET))
    throw new TypeError(`createGateway: responses.stateSecret must have at least ${SHORTEST_STATE_SECRET} characters`)
}

/** Daily sums need a whole day of records, and a record must not be deleted before it is included in them. */
function checkUsage(usage: GatewayOptions['usage']): void {
  if (usage === undefined || usage === 'off') return
  if (typeof usage !== 'object' || usage === null)
    throw new TypeError("createGateway: usage must be 'off' or { retention }")
  for (const [name, days] of Object.entries(usage.retention ?? {})) {
    if (days !== undefined && !(typeof days === 'number' && days >= 1))
      throw new TypeError(`createGateway: usage.retention.${name} must be at least 1 day, or Infinity`)
  }
}

function positive(name: string, value: number | undefined): void {
  if (value !== undefined && !(Number.isFinite(value) && value > 0))
    throw new TypeError(`createGateway: ${name} must be a positive number`)
}

/** Methods that the gateway calls later. If one is missing, the first requests would fail, or events would be lost silently. */
const METHODS = {
  store: ['start', 'close'],
  rateLimiter: ['take', 'adjust'],
  concurrencyLimiter: ['acquire', 'renew', 'release'],
  transport: ['send', 'close'],
  clock: ['now', 'schedule'],
  ids: ['next'],
  logger: ['debug', 'info', 'warn', 'error'],
} satisfies { readonly [Part in keyof GatewayOptions]?: readonly string[] }

const FLAGS = [
  'showPrices',
  'showBalanceInErrors',
  'allowPrivateUrls',
] as const satisfies readonly (keyof GatewayOptions)[]

const OBSERVER_METHODS = Object.keys({
  ...{ attached: true, detached: true, toolCallStarted: true, toolCallEnded: true },
  ...{ requestStarted: true, requestEnded: true, attemptStarted: true, attemptEnded: true },
  ...{ runSend: true, attemptHeaders: true, store: true, event: true },
} satisfies MemberNames<Observer>)

/** Likely intended value if a part has the wrong type. */
const EXAMPLES: { readonly [Part in keyof typeof METHODS]?: string } = {
  store: "such as sqliteStore({ path: 'signalbox.db' })",
  rateLimiter: 'such as redisLimits({ client }).rateLimiter',
  concurrencyLimiter: 'such as redisLimits({ client }).concurrencyLimiter',
  logger: 'such as console',
}

/**
 * Checks the type of each part of the options: lists, flags, functions, and objects with methods. Omitted parts are valid.
 * @throws TypeError naming the part.
 */
function checkParts(options: GatewayOptions): void {
  for (const name of ['vendors', 'keys', 'models', 'endpoints', 'hooks', 'observe'] as const)
    if ((options[name] ?? undefined) !== undefined && !Array.isArray(options[name]))
      throw new TypeError(`${OWNER}: ${name} must be a list`)
  for (const [index, vendor] of options.vendors?.entries() ?? []) checkVendor(vendor, `vendors[${index}]`)
  for (const name of ['keys', 'models', 'endpoints'] as const)
    for (const [index, entry] of options[name]?.entries() ?? [])
      if (!isObject(entry)) throw new TypeError(`${OWNER}: ${name}[${index}] must be an object`)
  for (const [index, endpoint] of options.endpoints?.entries() ?? [])
    if (typeof endpoint.id !== 'string' || typeof endpoint.path !== 'string' || typeof endpoint.parse !== 'function')
      throw new TypeError(
        `${OWNER}: endpoints[${index}] must be an endpoint with id, path and parse, for example from defineEndpoint`,
      )
  for (const [index, observer] of options.observe?.entries() ?? []) checkObserver(observer, `observe[${index}]`)
  // The string `'false'` from a variable would count as true.
  const keys = (options.keys ?? []).map((key, index) => [`keys[${index}].namesEndUsers`, key.namesEndUsers] as const)
  for (const [name, flag] of [
    ...FLAGS.map((flag) => [flag, options[flag]] as const),
    ['routing.retryAfterTimeout', options.routing?.retryAfterTimeout] as const,
    ...keys,
  ])
    if ((flag ?? undefined) !== undefined && typeof flag !== 'boolean')
      throw new TypeError(`${OWNER}: ${name} must be true or false`)
  if ((options.plans ?? undefined) !== undefined && (!isObject(options.plans) || Array.isArray(options.plans)))
    throw new TypeError(`${OWNER}: plans must be an object of plans by name`)
  for (const name of ['authenticate', 'onEvent', 'estimateTokens'] as const)
    if ((options[name] ?? undefined) !== undefined && typeof options[name] !== 'function')
      throw new TypeError(`${OWNER}: ${name} must be a function`)
  for (const [name, methods] of Object.entries(METHODS) as [keyof typeof METHODS, readonly string[]][]) {
    const part: unknown = options[name]
    if (part === undefined || part === null) continue
    const missing = methods.find((method) => typeof Object(part)[method] !== 'function')
    if (missing === undefined) continue
    const example = EXAMPLES[name]
    throw new TypeError(
      `${OWNER}: ${name} must be an object with the method ${missing}${example === undefined ? '' : `, ${example}`}`,
    )
  }
}

/** An observer without any of these methods would receive nothing. */
function checkObserver(observer: unknown, path: string): void {
  if (!isObject(observer)) throw new TypeError(`${OWNER}: ${path} must be an object`)
  const given = OBSERVER_METHODS.filter((name) => observer[name] !== undefined)
  const wrong = given.find((name) => typeof observer[name] !== 'function')
  if (wrong !== undefined) throw new TypeError(`${OWNER}: ${path}.${wrong} must be a function`)
  if (given.length === 0) throw new TypeError(`${OWNER}: ${path} has none of ${OBSERVER_METHODS.join(', ')}`)
}

function checkVendor(vendor: unknown, path: string): void {
  if (typeof vendor === 'function')
    throw new TypeError(`${OWNER}: ${path} is a function; call it: ${vendor.name}({ apiKey })`)
  if (!isObject(vendor) || typeof vendor['id'] !== 'string' || !Array.isArray(vendor['apiKeys']))
    throw new TypeError(`${OWNER}: ${path} must be a vendor from one of the factories`)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

const DEFAULT_PERCENTS: readonly number[] = [50, 80, 100]

/**
 * Checks the thresholds and fills in the defaults.
 * @throws TypeError naming the member.
 */
export function spendingThresholdsOf(options: Partial<SpendingThresholds> | undefined): SpendingThresholds {
  checkMembers(options, SPENDING_THRESHOLDS_MEMBERS, 'createGateway', 'spendingThresholds')
  for (const [member, percents] of Object.entries(options ?? {})) {
    const isList = Array.isArray(percents) && percents.every((percent) => percent > 0 && percent <= 100)
    if (percents !== undefined && !isList)
      throw new TypeError(`createGateway: spendingThresholds.${member} must be percents above 0 and at most 100`)
  }
  return { caps: options?.caps ?? DEFAULT_PERCENTS, balance: options?.balance ?? DEFAULT_PERCENTS }
}
