import { servingVendors } from '../catalog/model.ts'
import { createGateway, type Gateway } from '../gateway/gateway.ts'
import type { GatewayOptions } from '../gateway/gateway-options.ts'
import { billingOptions } from './billing-settings.ts'
import type { ConfiguredVendor } from './configured-clouds.ts'
import type { FurtherOptions } from './further-options.ts'
import { fixedKeys } from './serve-keys.ts'
import type { ServeSettings } from './serve-settings.ts'
import { SettingError } from './setting-values.ts'

/**
 * Creates the gateway of the settings, without starting it.
 * @throws SettingError for an option that the gateway rejects.
 */
export function servedGateway(
  settings: ServeSettings,
  vendors: readonly ConfiguredVendor[],
  further: FurtherOptions | undefined,
  parts: Pick<GatewayOptions, 'store' | 'rateLimiter' | 'concurrencyLimiter' | 'logger' | 'onEvent' | 'observe'>,
): Gateway {
  try {
    return createGateway({
      ...further,
      vendors: vendors.map(({ vendor }) => vendor),
      models: settings.models,
      catalog: settings.catalog,
      ...billingOptions(settings),
      ...(settings.unknownModels === undefined ? {} : { unknownModels: settings.unknownModels }),
      plans: settings.plans,
      ...(settings.spendingThresholds === undefined ? {} : { spendingThresholds: settings.spendingThresholds }),
      keys: fixedKeys(settings),
      limits: settings.limits,
      timeouts: settings.timeouts,
      ...(settings.holdTtlMs === undefined ? {} : { holdTtlMs: settings.holdTtlMs }),
      ...(settings.webhookSecret === undefined ? {} : { webhookSecret: settings.webhookSecret }),
      ...(settings.taskDeadlineMs === undefined ? {} : { taskDeadlineMs: settings.taskDeadlineMs }),
      ...(settings.taskPollIntervalMs === undefined ? {} : { taskPollIntervalMs: settings.taskPollIntervalMs }),
      ...(settings.taskRetentionDays === undefined ? {} : { taskRetentionDays: settings.taskRetentionDays }),
      ...(settings.operatorKey === undefined ? {} : { operatorKey: settings.operatorKey }),
      clientAddress: settings.clientAddress,
      ...(settings.allowPrivateUrls === undefined ? {} : { allowPrivateUrls: settings.allowPrivateUrls }),
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
