import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { withCors } from '../adapters/cors.ts'
import { nodeHandler } from '../adapters/node.ts'
import { BUILT_IN_MODELS } from '../catalog/models/built-in-models.ts'
import { systemClock } from '../core/clock.ts'
import { GatewayError, textOfError } from '../core/errors.ts'
import type { EventListener, GatewayEvent } from '../core/events.ts'
import type { ExchangeHandler } from '../core/exchange.ts'
import type { Logger } from '../core/logger.ts'
import { formatDollars } from '../core/money.ts'
import { accessLog } from '../gateway/access-log.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { ListedModel } from '../gateway/model-list.ts'
import { type GatewayMetrics, type MetricsHandlerOptions, metricsHandler, prometheus } from '../metrics/index.ts'
import type { UnpricedModels } from '../pipeline/model-notices.ts'
import { sandboxVendors } from '../testing/index.ts'
import { variablesOf } from './check-command.ts'
import type { ActionDefinition, CommandArguments } from './command.ts'
import { CONFIG_OPTION, readConfiguration } from './configuration.ts'
import { type ConfiguredVendor, configuredVendors } from './configured-vendors.ts'
import { EXAMPLE_CALLS, EXAMPLE_CHATS, makeExampleCalls, optionsWithExamples, withExamples } from './example-run.ts'
import type { FileOnlyOptions } from './file-only-options.ts'
import {
  DEFAULT_STORE,
  describeStore,
  describeUrl,
  ENGINE_COMMAND,
  loadOptionalPackage,
  missingEngine,
  openRedisLimits,
  openStore,
  type StoreSetting,
  storeError,
} from './open-store.ts'
import {
  readServeFlags,
  readServeSettings,
  SERVE_FLAGS,
  type ServeFlags,
  type ServeSettings,
  type StartKeys,
  startKeys,
} from './serve-settings.ts'
import {
  consoleKey,
  memoryInstead,
  namedVendors,
  type ServedOperatorKey,
  servedGateway,
  withConsole,
} from './served-gateway.ts'
import { SettingError } from './setting-values.ts'
import { misspeltVariables, SETTING_OPTIONS, secretLines } from './settings.ts'
import { dollarsText, type Environment, processLogger, type Terminal } from './terminal.ts'

/** Packages that some settings need. */
const PACKAGES = `Packages to install when a store asks for them: pg (postgres://…), ioredis (REDIS_URL),
@photostructure/sqlite (sqlite:PATH on a Node whose own SQLite is missing or too old)`

/** Command `signalbox serve`. */
export function serveCommand(version: string): ActionDefinition {
  const options = {
    ...SERVE_FLAGS,
    ...CONFIG_OPTION,
    ...SETTING_OPTIONS,
  }
  return {
    summary: 'serve the gateway on http://127.0.0.1:8787',
    options,
    after: `${secretLines()}\n\n${PACKAGES}`,
    run: (given, terminal) => startServer(given, terminal, version, options),
  }
}

/**
 * Returns once the server listens. SIGTERM or SIGINT end the process after the requests in progress; a second one ends it
 * immediately. SIGHUP reads the price file again.
 * @throws SettingError for a setting that cannot be used.
 */
async function startServer(
  given: CommandArguments,
  terminal: Terminal,
  version: string,
  options: object,
): Promise<void> {
  const configuration = await readConfiguration(given, terminal.environment, (name) => Object.hasOwn(options, name))
  const { environment, documents, gateway, named } = configuration
  const starting = serve({
    ...terminal,
    environment,
    documents,
    gateway,
    ...readServeFlags(given, configuration),
    version,
  }).catch((error: unknown) => {
    throw named(error)
  })
  // Comes first, because a signal may arrive as soon as the server has printed that it listens.
  stopOnSignal(starting)
  reloadOnSignal(environment, starting)
  await starting
}

/** Without a price file SIGHUP ends the process, as usual. */
function reloadOnSignal(environment: Environment, starting: Promise<RunningServer>): void {
  if ((environment['SIGNALBOX_PRICES']?.trim() ?? '') === '') return
  process.on('SIGHUP', () => void starting.then(reload, ignoreFailedStart))
}

/** `main` reports the error. */
function ignoreFailedStart(): void {}

function reload({ reloadPrices, logger }: RunningServer): void {
  try {
    const counted = reloadPrices?.()
    logger.info('the prices were read again', { ...counted })
  } catch (error) {
    logger.error('the prices were not replaced; the last good ones stay', {
      fault: textOfError(error),
    })
  }
}

function stopOnSignal(starting: Promise<RunningServer>): void {
  let isStopping = false
  const stop = (): void => {
    if (isStopping) process.exit(1)
    isStopping = true
    void starting.then(stopped, ignoreFailedStart)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

async function stopped({ close, logger }: RunningServer): Promise<never> {
  try {
    await close()
    process.exit(0)
  } catch (error) {
    logger.error('not everything could be closed', { error })
    process.exit(1)
  }
}

/** Dollars on the account of a key that is created for one run with stand-ins. */
const DEMONSTRATION_CREDIT = '10'

/** Minimum time for a request's headers after the longest pause of a connection, in milliseconds. */
const HEADERS_MARGIN_MS = 5_000

/** How long requests in progress may continue after SIGTERM. */
const DRAIN_MS = 30_000

export interface RunningServer {
  /** Address: `http://127.0.0.1:8787`. */
  readonly url: string
  /**
   * Reads the price file again, and counts the models without a price; `undefined` if there is no file.
   * @throws SettingError naming the invalid row; the last valid prices then stay in force.
   */
  readonly reloadPrices: (() => UnpricedModels | undefined) | undefined
  readonly logger: Logger
  /** Rejects new connections, waits for requests in progress, and closes everything. */
  close(): Promise<void>
}

export interface ServeOptions
  extends Terminal,
    Partial<Omit<ServeFlags, 'useStandIns'>>,
    Pick<ServeFlags, 'useStandIns'> {
  readonly version: string
  /** Options of the gateway that have no variable. */
  readonly gateway?: FileOnlyOptions
  /** Logger. By default standard error, in the format of `SIGNALBOX_LOG`. */
  readonly logger?: Logger
}

/**
 * Runs `signalbox serve`: the gateway as a separate server.
 * @throws SettingError for a setting that cannot be used.
 */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  const settings = withExamples(readServeSettings(options.environment, options.documents), options)
  const closers: (() => Promise<void>)[] = []
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    closing ??= closeAll(closers)
    return closing
  }
  try {
    return { ...(await started(options, settings, closers)), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Closes everything in reverse order, even if something fails. */
async function closeAll(closers: readonly (() => Promise<void>)[]): Promise<void> {
  const faults: unknown[] = []
  for (const close of closers.toReversed()) await close().catch((fault: unknown) => faults.push(fault))
  if (faults.length > 0) throw faults[0]
}

/** Starts everything, and adds a function to `closers` for everything to close. */
async function started(
  options: ServeOptions,
  settings: ServeSettings,
  closers: (() => Promise<void>)[],
): Promise<Omit<RunningServer, 'close'>> {
  const logger = options.logger ?? processLogger(settings.log)
  for (const text of misspeltVariables(options.environment)) logger.warn(text)
  // A trial run with stand-ins creates no files.
  const fallback = settings.store === undefined && !options.useStandIns ? await memoryInstead(settings) : undefined
  if (fallback !== undefined) logger.warn(MEMORY_WARNING, { reason: fallback.reason })
  const storeSetting =
    settings.store ?? (options.useStandIns || fallback !== undefined ? { kind: 'memory' } : DEFAULT_STORE)
  const opened = await openStore('SIGNALBOX_STORE', storeSetting, settings.migrate)
  closers.push(opened.release)
  // Without a key nobody could read the metrics.
  const metrics = settings.operatorKey === undefined ? undefined : prometheus()
  const limits =
    settings.redisUrl === undefined
      ? undefined
      : await openRedisLimits(settings.redisUrl, settings.expectedInstances, logger, (event) => metrics?.event(event))
  if (limits !== undefined) closers.push(limits.close)
  const standIns = options.useStandIns ? sandboxVendors() : undefined
  if (standIns !== undefined) closers.push(() => standIns.close())
  const vendors = configuredVendors(
    options.environment,
    (await standIns?.listen(0))?.origin,
    namedVendors(settings),
    options.documents,
  )

  const gateway = servedGateway(settings, vendors, optionsWithExamples(options.gateway, options), {
    store: opened.store,
    ...(limits === undefined ? {} : { rateLimiter: limits.rateLimiter, concurrencyLimiter: limits.concurrencyLimiter }),
    logger,
    ...(metrics === undefined ? {} : { observe: [metrics] }),
    ...listenerOf(settings, logger),
  })
  closers.push(() => gateway.close({ drainMs: DRAIN_MS }))
  await startGateway(gateway, storeSetting)
  const isDemonstration = options.useStandIns && settings.apiKeys.length === 0 && storeSetting.kind === 'memory'
  const keys = await startKeys(
    gateway,
    settings,
    settings.credit ?? (isDemonstration ? DEMONSTRATION_CREDIT : undefined),
  )

  const isTrial = options.useStandIns && storeSetting.kind === 'memory'
  const operator = options.serveConsole === true ? consoleKey(settings.operatorKey, isTrial) : undefined
  // The console and the admin API are only for pages of this origin.
  const gatewayHandler = withCors(
    await withMcp(gateway, { ...settings, logger }, closers),
    settings.corsOrigins === undefined ? undefined : { origins: settings.corsOrigins },
  )
  const { operatorKey, clientAddress } = settings
  const access = { clientAddress, logger }
  const inner =
    metrics === undefined || operatorKey === undefined
      ? gatewayHandler
      : withMetrics(gatewayHandler, metrics, { operatorKey, ...access })
  const handle = nodeHandler(operator === undefined ? inner : withConsole(gateway, inner, { ...operator, ...access }))
  let isClosing = false
  const server = createServer((request, response) => {
    // A load balancer must not reuse a connection on which the next request would meet a closed server.
    if (isClosing) response.shouldKeepAlive = false
    handle(request, response)
  })
  server.keepAliveTimeout = settings.keepAliveMs
  // With a smaller value, Node could close a connection whose next request has just begun.
  server.headersTimeout = Math.max(server.headersTimeout, settings.keepAliveMs + HEADERS_MARGIN_MS)
  await listen(server, settings)
  closers.push(() => {
    isClosing = true
    return closeServer(server, gateway, settings.shutdownDelayMs)
  })
  const url = urlOf(server, settings.host)
  const { print, version } = options
  const hasExamples = options.showExamples === true
  if (hasExamples) {
    logger.info('example calls are made; two of them fail on purpose')
    await makeExampleCalls(gateway)
  }
  const isUnasked = fallback !== undefined
  const store = storeSetting
  await announce({ print, version, url, vendors, gateway, settings, store, isUnasked, keys, operator, hasExamples })
  const { prices } = settings
  const reloadPrices = (): UnpricedModels | undefined => {
    prices?.reload()
    return gateway.unpricedModels()
  }
  return { url, logger, reloadPrices: prices === undefined ? undefined : reloadPrices }
}

/** Listener for additional log lines: money, and each request if enabled. */
function listenerOf({ prices, billing, accessLogShare }: ServeSettings, logger: Logger): { onEvent?: EventListener } {
  const listeners: EventListener[] = []
  if (prices !== undefined && billing !== 'off') listeners.push(logMoneyEvents(logger))
  if (accessLogShare !== undefined) listeners.push(accessLog(logger, { sample: accessLogShare }))
  if (listeners.length === 0) return {}
  return {
    onEvent: (event) => {
      for (const listener of listeners) listener(event)
    },
  }
}

/** SDK of the Model Context Protocol, an optional peer dependency. */
const MCP_PACKAGE = '@modelcontextprotocol/server'

/** Returns the gateway with its MCP server at `/mcp`, or the gateway alone if the SDK is not installed. */
async function withMcp(
  gateway: Gateway,
  { host, corsOrigins, logger }: Pick<ServeSettings, 'host' | 'corsOrigins'> & { readonly logger: Logger },
  closers: (() => Promise<void>)[],
): Promise<ExchangeHandler> {
  try {
    await loadOptionalPackage(MCP_PACKAGE, '/mcp')
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    logger.info(`${error.message}, and restart; everything else is served`)
    return gateway
  }
  const { gatewayWithMcp } = await import('../mcp/index.ts')
  // A server on all addresses is reached by unknown names. A key is required in any case.
  const allowedHosts = LOOPBACK_HOSTS.includes(host) ? [] : ('any' as const)
  const allowedOrigins = corsOrigins === '*' ? ('any' as const) : (corsOrigins ?? [])
  const handler = gatewayWithMcp(gateway, { allowedHosts, allowedOrigins, logger })
  closers.push(() => handler.close())
  return handler
}

/** Addresses that only this machine can reach. */
const LOOPBACK_HOSTS: readonly string[] = ['127.0.0.1', '::1', 'localhost']

/** How long a request is still accepted after the listener has closed, on an existing connection, in milliseconds. */
const LAST_REQUEST_MS = 500

/** Reports not ready, and after the delay rejects new connections and closes the others once their requests have ended. */
async function closeServer(server: Server, gateway: Gateway, delayMs: number): Promise<void> {
  const closing = gateway.close({ drainMs: DRAIN_MS, delayMs: delayMs === 0 ? 0 : delayMs + LAST_REQUEST_MS })
  if (delayMs > 0) {
    await new Promise<void>((resolve) => systemClock.schedule(delayMs, resolve))
    // Waits until pending connections are accepted: the kernel resets those that are pending when the listener closes.
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  await closing
  server.closeAllConnections()
  await closed
}

async function startGateway(gateway: Gateway, store: StoreSetting): Promise<void> {
  try {
    await gateway.start()
  } catch (error) {
    if (!GatewayError.isInstance(error) || error.code !== 'store_unavailable') throw error
    const fault = storeError('SIGNALBOX_STORE', store, error.cause)
    if (missingEngine(error.cause) === undefined) throw fault
    throw new SettingError(`${fault.message}; or set SIGNALBOX_STORE=memory: to keep nothing`)
  }
}

const MEMORY_WARNING =
  'nothing survives a restart: there is no SQLite engine here, so accounts, keys and usage are in memory only'

function listen(server: Server, { host, port }: ServeSettings): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const METRICS_PATH = '/metrics'

/** Returns the gateway with its metrics at `/metrics`, for the operator. */
function withMetrics(inner: ExchangeHandler, metrics: GatewayMetrics, options: MetricsHandlerOptions): ExchangeHandler {
  const scrapes = metricsHandler(metrics, options)
  return {
    handle(request, sink) {
      ;(request.path === METRICS_PATH ? scrapes : inner).handle(request, sink)
    },
  }
}

/** Facts that are printed when a server listens. */
export interface Announcement {
  readonly print: (line: string) => void
  readonly version: string
  readonly url: string
  readonly vendors: readonly ConfiguredVendor[]
  readonly gateway: Gateway
  readonly settings: ServeSettings
  readonly store: StoreSetting
  /** Whether the store is in memory because there is no engine for SQLite. */
  readonly isUnasked: boolean
  readonly keys: StartKeys
  /** Key of the operator, or `undefined` if no console is served. */
  readonly operator: ServedOperatorKey | undefined
  /** Whether example calls were made. */
  readonly hasExamples: boolean
}

/** Prints the address, the configured and unconfigured vendors, and an example call. */
async function announce(announcement: Announcement): Promise<void> {
  const { print, version, url, vendors, settings, store } = announcement
  print(`signalbox ${version} listening on ${url}`)
  print(`vendors   ${vendors.map(vendorText).join(', ')}`)
  const loss = store.kind === 'memory' ? ' (accounts, keys and balances are gone when this process ends)' : ''
  print(`store     ${describeStore(store)}${loss}`)
  if (announcement.isUnasked) {
    print('          NOTHING SURVIVES A RESTART: this Node has no SQLite engine that can be used')
    print(`          to keep accounts, keys and usage: ${ENGINE_COMMAND}, then start again`)
  }
  if (settings.redisUrl !== undefined) print(`limits    shared through ${describeUrl(settings.redisUrl)}`)
  print(`billing   ${billingText(settings)}`)
  const { unpriced = 0, models = 0 } = announcement.gateway.unpricedModels() ?? {}
  if (unpriced > 0)
    print(`prices    ${unpriced} of ${models} models have no price, and are refused; name them in SIGNALBOX_PRICES`)
  const { date, ageDays, isOld } = (await announcement.gateway.health()).catalog
  print(`catalog   models and list prices of ${date}${isOld ? `, ${ageDays} days old: update signalbox` : ''}`)
  await announceKeys(announcement)
  const { corsOrigins } = settings
  if (corsOrigins !== undefined)
    print(`cors      pages of ${corsOrigins === '*' ? 'every origin' : corsOrigins.join(', ')} may call`)
  announceConsole(announcement)
  await announceCall(announcement)
}

function billingText({ prices, billing }: ServeSettings): string {
  if (billing === 'off') return 'off, as SIGNALBOX_BILLING says'
  if (prices === undefined)
    return 'off: set SIGNALBOX_PRICES to a price file, or SIGNALBOX_LIST_PRICES=1, to charge for calls'
  return `${billing === 'metered' ? 'metered' : 'on'}, by ${prices.source}${prices.isReloadable ? ' (SIGHUP reads it again)' : ''}`
}

/** Keys from the settings are not printed in logs. */
function announceConsole({ print, url, operator, hasExamples }: Announcement): void {
  if (operator === undefined) return
  const key = operator.isMade ? 'the operator key below' : 'SIGNALBOX_OPERATOR_KEY'
  print(`console   ${url}/console/   open it in a browser, and enter ${key}`)
  if (operator.isMade) print(`operator  ${operator.key}   (made for this run)`)
  if (hasExamples) print(`examples  ${EXAMPLE_CALLS}`)
}

function vendorText({ vendor, state }: ConfiguredVendor): string {
  return `${vendor.id} (${state === 'not configured' ? `not configured: set ${variablesOf(vendor.configuredBy)}` : state})`
}

async function announceKeys({ print, gateway, settings, store, keys }: Announcement): Promise<void> {
  if (keys.source === 'stored') {
    print(
      `keys      ${keys.hasMore ? 'more than ' : ''}${keys.count} in the store; signalbox keys create makes another`,
    )
    return
  }
  // Keys from the settings are not printed; only a key that was created here is shown whole.
  if (keys.source === 'given') print(`key       ${keys.first.key.slice(0, 6)}…`)
  else print(`key       ${keys.key}   (${store.kind === 'memory' ? 'made for this run' : 'made now, shown this once'})`)
  const id = keys.source === 'given' ? keys.first.account : keys.account
  const balance = (await gateway.accounts.get(id))?.balance ?? 0n
  print(`balance   ${dollarsText(balance)}${balance > 0n || !isPrepaid(settings) ? '' : creditText(store, id)}`)
}

function isPrepaid({ prices, billing }: ServeSettings): boolean {
  return prices !== undefined && (billing ?? 'prepaid') === 'prepaid'
}

/** Another process cannot reach the memory of this one. */
function creditText({ kind }: StoreSetting, account: string): string {
  const way = kind === 'memory' ? 'start with --credit 10' : `signalbox accounts credit ${account} 10`
  return `: calls that cost are refused until it has money; ${way}`
}

async function announceCall({ print, url, gateway, settings, keys }: Announcement): Promise<void> {
  const models = callableChats(gateway)
  if (models.length === 0) {
    print('models    no chat model is available: configure a vendor, or start with --sandbox')
    return
  }
  const body = await exampleChat(gateway, models, settings)
  if (body === undefined) {
    print('models    no chat model of the configured vendors has a price: name one in SIGNALBOX_PRICES')
    return
  }
  const key = keys.source === 'made' ? keys.key : '<your key>'
  print('')
  print(
    `curl ${url}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '${JSON.stringify(body)}'`,
  )
}

/** Ids of chat models: the operator's rows first, then the models of the examples, built-in rows, and the newest model. */
function callableChats(gateway: Gateway): readonly string[] {
  const builtIn = new Set(BUILT_IN_MODELS.map(({ id }) => id))
  const rows = new Set(gateway.catalog.rows.map(({ id }) => id))
  const examples: readonly string[] = EXAMPLE_CHATS
  const rankOf = ({ id }: ListedModel): number =>
    rows.has(id) && !builtIn.has(id) ? 0 : examples.includes(id) ? 1 : rows.has(id) ? 2 : 3
  return gateway
    .models()
    .filter((model) => model.unavailable_reason !== 'model_not_configured' && model.kinds.includes('chat'))
    .map((model) => ({ id: model.id, rank: rankOf(model), created: rows.has(model.id) ? 0 : model.created }))
    .sort((one, other) => one.rank - other.rank || other.created - one.created)
    .map(({ id }) => id)
}

/** Enough for a model that reasons before it answers. */
const EXAMPLE_MAX_TOKENS = 1_000

/** Writes a chat with the first priced model. Returns `undefined` if the gateway would reject all of them. */
async function exampleChat(
  gateway: Gateway,
  models: readonly string[],
  { tier = 'paid' }: ServeSettings,
): Promise<object | undefined> {
  const rows = gateway.prices()
  // Thousands of models may have no price.
  const priced = rows === undefined ? undefined : new Set(rows.map(({ model }) => model))
  for (const model of models) {
    if (priced?.has(model) === false) continue
    const body = { model, max_tokens: EXAMPLE_MAX_TOKENS, messages: [{ role: 'user', content: 'Say hello' }] }
    try {
      await gateway.estimate({ accountId: 'example', keyId: 'example', tier }, { endpoint: 'chat', body })
      return body
    } catch (error) {
      if (!GatewayError.isInstance(error)) throw error
    }
  }
  return undefined
}

/** Log messages about money for the operator of `signalbox serve`, by event. */
const MESSAGES: { readonly [Type in GatewayEvent['type']]?: string } = {
  'balance-low': 'a balance is low',
  'cap-reached': 'a spending cap is reached',
  'charge-shortfall': 'a charge was above the balance; the account owes the rest',
  'account-frozen': 'an account was frozen',
  'usage-missing': 'a vendor reported no usage; the call was charged by an estimate',
  'usage-implausible': 'a vendor reported usage that cannot be right; it was estimated or cut',
  'unbilled-usage': 'a vendor may bill a call that nobody is charged for',
}

/** Logs the events that concern money; all others are left to the logger's own lines and to hosts that listen. */
export function logMoneyEvents(logger: Logger): (event: GatewayEvent) => void {
  return (event) => {
    const message = MESSAGES[event.type]
    if (message !== undefined) logger.warn(message, loggable(event))
  }
}

/** Loggers write JSON, which has no bigint: amounts become dollars, and `totalNanoDollars` becomes `total`. */
function loggable(event: GatewayEvent): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(event).map(([name, value]: [string, unknown]) =>
      typeof value === 'bigint' ? [name.replace(/NanoDollars$/, ''), formatDollars(value)] : [name, value],
    ),
  )
}
