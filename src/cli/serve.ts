import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { nodeHandler } from '../adapters/node.ts'
import { GatewayError } from '../core/errors.ts'
import type { ExchangeHandler } from '../core/exchange.ts'
import { createGateway, type Gateway } from '../gateway/gateway.ts'
import { SqliteStoreError } from '../stores/sqlite/sqlite-store.ts'
import { sandboxVendors } from '../testing/index.ts'
import { announce } from './announce.ts'
import { configuredVendors } from './configured-vendors.ts'
import { openRedisLimits } from './open-redis-limits.ts'
import { DEFAULT_STORE, loadOptionalPackage, openStore, type StoreSetting, storeError } from './open-store.ts'
import { fixedKeys, startKeys } from './serve-keys.ts'
import { readServeSettings, type ServeSettings } from './serve-settings.ts'
import { SettingError } from './setting-values.ts'
import { consoleLogger, type Terminal } from './terminal.ts'

/** Dollars on the account of a key that is made for one run with stand-ins. */
const DEMONSTRATION_CREDIT = '10'

/** How long requests in progress may continue after SIGTERM. */
const DRAIN_MS = 30_000

/** A running server. */
export interface RunningServer {
  /** `http://127.0.0.1:8787` */
  readonly url: string
  /**
   * Reads the price file again; undefined when there is none.
   * @throws SettingError naming the bad row; the last good prices stay in force then.
   */
  readonly reloadPrices: (() => void) | undefined
  /** Refuses new connections, waits for requests in progress, and closes everything. */
  close(): Promise<void>
}

/** How to serve. */
export interface ServeOptions extends Terminal {
  /** Offline stand-ins take the place of vendors without a key. */
  readonly useStandIns: boolean
  readonly version: string
}

/**
 * `signalbox serve`: the gateway as a server of its own.
 * @throws SettingError for a setting that cannot be used.
 */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  const settings = readServeSettings(options.environment)
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

/** Closes everything in reverse order, even when something fails. */
async function closeAll(closers: readonly (() => Promise<void>)[]): Promise<void> {
  const faults: unknown[] = []
  for (const close of closers.toReversed()) await close().catch((fault: unknown) => faults.push(fault))
  if (faults.length > 0) throw faults[0]
}

/** Starts everything, and adds to `closers` what must be closed. */
async function started(
  options: ServeOptions,
  settings: ServeSettings,
  closers: (() => Promise<void>)[],
): Promise<Omit<RunningServer, 'close'>> {
  // A trial run with stand-ins leaves no files behind.
  const storeSetting = settings.store ?? (options.useStandIns ? { kind: 'memory' } : DEFAULT_STORE)
  const opened = await openStore('SIGNALBOX_STORE', storeSetting)
  closers.push(opened.release)
  const limits =
    settings.redisUrl === undefined
      ? undefined
      : await openRedisLimits(settings.redisUrl, settings.expectedInstances, consoleLogger)
  if (limits !== undefined) closers.push(limits.close)
  const standIns = options.useStandIns ? sandboxVendors() : undefined
  if (standIns !== undefined) closers.push(() => standIns.close())
  const vendors = configuredVendors(options.environment, (await standIns?.listen(0))?.origin, namedVendors(settings))

  const gateway = createGateway({
    vendors: vendors.map(({ vendor }) => vendor),
    models: settings.models,
    ...(settings.prices === undefined ? { billing: 'off' } : { prices: settings.prices.prices }),
    store: opened.store,
    keys: fixedKeys(settings),
    limits: settings.limits,
    ...(limits === undefined ? {} : { rateLimiter: limits.rateLimiter, concurrencyLimiter: limits.concurrencyLimiter }),
    timeouts: settings.timeouts,
    ...(settings.holdTtlMs === undefined ? {} : { holdTtlMs: settings.holdTtlMs }),
    ...(settings.webhookSecret === undefined ? {} : { webhookSecret: settings.webhookSecret }),
    ...(settings.taskDeadlineMs === undefined ? {} : { taskDeadlineMs: settings.taskDeadlineMs }),
    ...(settings.taskPollIntervalMs === undefined ? {} : { taskPollIntervalMs: settings.taskPollIntervalMs }),
    ...(settings.taskRetentionDays === undefined ? {} : { taskRetentionDays: settings.taskRetentionDays }),
    ...(settings.operatorKey === undefined ? {} : { operatorKey: settings.operatorKey }),
    ...(settings.allowPrivateUrls === undefined ? {} : { allowPrivateUrls: settings.allowPrivateUrls }),
    logger: consoleLogger,
  })
  closers.push(() => gateway.close({ drainMs: DRAIN_MS }))
  await startGateway(gateway, storeSetting)
  const isDemonstration = options.useStandIns && settings.apiKeys.length === 0 && storeSetting.kind === 'memory'
  const keys = await startKeys(
    gateway,
    settings,
    settings.credit ?? (isDemonstration ? DEMONSTRATION_CREDIT : undefined),
  )

  const server = createServer(nodeHandler(await withMcp(gateway, settings, closers)))
  await listen(server, settings)
  closers.push(() => closeServer(server, gateway))
  const url = urlOf(server, settings.host)
  const { print, version } = options
  await announce({ print, version, url, vendors, gateway, settings, store: storeSetting, keys })
  const { prices } = settings
  return { url, reloadPrices: prices === undefined ? undefined : () => prices.reload() }
}

/** Ids of the vendors that the operator's own models name. */
function namedVendors({ models }: ServeSettings): ReadonlySet<string> {
  return new Set(models.flatMap(({ vendor, routes = [] }) => [vendor, ...routes.map((route) => route.vendor)]))
}

/** The SDK of the Model Context Protocol, an optional peer dependency. */
const MCP_PACKAGE = '@modelcontextprotocol/server'

/** The gateway with its MCP server at `/mcp`, or the gateway alone when the SDK is not installed. */
async function withMcp(
  gateway: Gateway,
  { host }: ServeSettings,
  closers: (() => Promise<void>)[],
): Promise<ExchangeHandler> {
  try {
    await loadOptionalPackage(MCP_PACKAGE, '/mcp')
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    consoleLogger.info(`${error.message}, and restart; everything else is served`)
    return gateway
  }
  const { gatewayWithMcp } = await import('../mcp/index.ts')
  // A server on all addresses is reached by unknown names; the key is required in any case.
  const allowedHosts = LOOPBACK_HOSTS.includes(host) ? [] : ('any' as const)
  const handler = gatewayWithMcp(gateway, { allowedHosts, logger: consoleLogger })
  closers.push(() => handler.close())
  return handler
}

/** Addresses that only this machine can reach. */
const LOOPBACK_HOSTS: readonly string[] = ['127.0.0.1', '::1', 'localhost']

/** Refuses new connections, and closes the others once their requests have ended. */
async function closeServer(server: Server, gateway: Gateway): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  await gateway.close({ drainMs: DRAIN_MS })
  server.closeAllConnections()
  await closed
}

async function startGateway(gateway: Gateway, store: StoreSetting): Promise<void> {
  try {
    await gateway.start()
  } catch (error) {
    if (!GatewayError.isInstance(error) || error.code !== 'store_unavailable') throw error
    const fault = storeError('SIGNALBOX_STORE', store, error.cause)
    if (!isEngineMissing(error.cause)) throw fault
    throw new SettingError(`${fault.message}; or set SIGNALBOX_STORE=memory: to keep nothing`)
  }
}

/** Not a reason to continue in memory: money is kept there only on request. */
function isEngineMissing(cause: unknown): boolean {
  return cause instanceof SqliteStoreError && (cause.fault === 'engine_missing' || cause.fault === 'engine_too_old')
}

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
