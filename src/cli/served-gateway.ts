import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { servingVendors } from '../catalog/model.ts'
import { type ConsoleHandlerOptions, consoleHandler } from '../console/index.ts'
import type { ExchangeHandler } from '../core/exchange.ts'
import { createGateway, type Gateway } from '../gateway/gateway.ts'
import type { GatewayOptions } from '../gateway/options.ts'
import { openWithEngine } from '../stores/sqlite/sqlite-engine.ts'
import type { ConfiguredVendor } from './configured-vendors.ts'
import type { FileOnlyOptions } from './file-only-options.ts'
import { DEFAULT_STORE, missingEngine } from './open-store.ts'
import { billingOptions, fixedKeys, type ServeSettings } from './serve-settings.ts'
import { SettingError } from './setting-values.ts'

/**
 * Creates the gateway of the settings, without starting it.
 * @throws SettingError for an option that the gateway rejects.
 */
export function servedGateway(
  settings: ServeSettings,
  vendors: readonly ConfiguredVendor[],
  further: FileOnlyOptions | undefined,
  parts: Pick<GatewayOptions, 'store' | 'rateLimiter' | 'concurrencyLimiter' | 'logger' | 'onEvent' | 'observe'>,
): Gateway {
  try {
    return createGateway({
      ...further,
      vendors: vendors.map(({ vendor }) => vendor),
      models: settings.models,
      catalog: settings.catalog,
      ...billingOptions(settings),
      unknownModels: settings.unknownModels,
      plans: settings.plans,
      spendingThresholds: settings.spendingThresholds,
      keys: fixedKeys(settings),
      limits: settings.limits,
      timeouts: settings.timeouts,
      holdTtlMs: settings.holdTtlMs,
      webhookSecret: settings.webhookSecret,
      taskDeadlineMs: settings.taskDeadlineMs,
      taskPollIntervalMs: settings.taskPollIntervalMs,
      taskRetentionDays: settings.taskRetentionDays,
      operatorKey: settings.operatorKey,
      clientAddress: settings.clientAddress,
      allowPrivateUrls: settings.allowPrivateUrls,
      ...parts,
    })
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError)
      throw Object.assign(new SettingError(error.message.replace(/^createGateway: /, '')), { cause: error })
    throw error
  }
}

/** Returns the ids of the vendors that the operator's own models name. */
export function namedVendors({ models }: ServeSettings): ReadonlySet<string> {
  return new Set(models.flatMap(servingVendors))
}

/** Key of the operator, and whether it was created for this run. */
export interface ServedOperatorKey {
  readonly key: string
  readonly isMade: boolean
}

const KEY_BYTES = 18

/**
 * Returns the key for the console.
 * @param isTrial Whether only stand-ins and memory are used: then a key is created.
 * @throws SettingError if there is no key.
 */
export function consoleKey(given: string | undefined, isTrial: boolean): ServedOperatorKey {
  if (given !== undefined) return { key: given, isMade: false }
  // Contains only letters and digits, so that a double click in a terminal selects all of it.
  if (isTrial) return { key: randomBytes(KEY_BYTES).toString('hex'), isMade: true }
  throw new SettingError('--console: set SIGNALBOX_OPERATOR_KEY, at least 24 characters, which opens it')
}

/** Returns the gateway with the console at `/console/` and the admin API at `/admin/v1`. */
export function withConsole(
  gateway: Gateway,
  inner: ExchangeHandler,
  { key, clientAddress, logger }: ServedOperatorKey & Pick<ConsoleHandlerOptions, 'clientAddress' | 'logger'>,
): ExchangeHandler {
  const operators = consoleHandler(gateway, { operatorKeys: [{ name: 'operator', key }], clientAddress, logger })
  return {
    handle(request, sink) {
      ;(isOfOperators(request.path) ? operators : inner).handle(request, sink)
    },
  }
}

function isOfOperators(path: string): boolean {
  return path === '/console' || path.startsWith('/console/') || path.startsWith('/admin/')
}

/**
 * Returns why a server without a store setting uses memory, or `undefined` if it does not. It keeps money in memory only on request,
 * and never silently ignores the data of an earlier start.
 */
export async function memoryInstead({
  prices,
  billing,
}: Pick<ServeSettings, 'prices' | 'billing'>): Promise<{ readonly reason: string } | undefined> {
  const isCharging = prices !== undefined && billing !== 'off'
  if (isCharging || existsSync(DEFAULT_STORE.path)) return undefined
  try {
    const probe = await openWithEngine(':memory:')
    probe.close()
    return undefined
  } catch (error) {
    const reason = missingEngine(error)
    if (reason === undefined) throw error
    return { reason }
  }
}
