import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { withCors } from '../adapters/cors.ts'
import { nodeHandler } from '../adapters/node.ts'
import { systemClock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { EventListener } from '../core/events.ts'
import type { ExchangeHandler } from '../core/exchange.ts'
import type { Logger } from '../core/logger.ts'
import { accessLog } from '../gateway/access-log.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { type GatewayMetrics, type MetricsHandlerOptions, metricsHandler, prometheus } from '../metrics/index.ts'
import type { UnpricedModels } from '../pipeline/unpriced-models.ts'
import { sandboxVendors } from '../testing/index.ts'
import { announce } from './announce.ts'
import { configuredVendors } from './configured-vendors.ts'
import { makeExampleCalls, optionsWithExamples, withExamples } from './example-run.ts'
import type { FurtherOptions } from './further-options.ts'
import { logMoneyEvents } from './log-money-events.ts'
import { memoryInstead } from './memory-instead.ts'
import { misspeltVariables } from './misspelt-variables.ts'
import { openRedisLimits } from './open-redis-limits.ts'
import {
  DEFAULT_STORE,
  loadOptionalPackage,
  missingEngine,
  openStore,
  type StoreSetting,
  storeError,
} from './open-store.ts'
import { consoleKey, withConsole } from './serve-console.ts'
import type { ServeFlags } from './serve-flags.ts'
import { startKeys } from './serve-keys.ts'
import { readServeSettings, type ServeSettings } from './serve-settings.ts'
import { namedVendors, servedGateway } from './served-gateway.ts'
import { SettingError } from './setting-values.ts'
import type { Terminal } from './terminal.ts'
import { processLogger } from './terminal-logger.ts'

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
  readonly gateway?: FurtherOptions
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
  const opened = await openStore('SIGNALBOX_STORE', storeSetting)
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
