import type { MemberNames } from '../core/known-members.ts'
import type { Observer } from '../core/observer.ts'
import type { GatewayOptions } from './gateway-options.ts'

const OWNER = 'createGateway'

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
  'chargePartialBatches',
  'chargeBrokenAnswers',
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
export function checkParts(options: GatewayOptions): void {
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
