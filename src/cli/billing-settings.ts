import { billingModeOf } from '../gateway/billing-mode.ts'
import type { GatewayOptions } from '../gateway/gateway-options.ts'
import { limitSetOf, type Plan, planLimitsOf } from '../gateway/limit-options.ts'
import type { BillingMode } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import { parseBillingMode, parseCount, parsePairs, SettingError } from './setting-values.ts'

/** Limits of the variables, by scope. */
export interface ServeLimits {
  readonly perKey: RateLimits
  readonly perAccount: RateLimits
  readonly perEndUser: RateLimits
}

/**
 * Reads `rpm=600,tpm=1000000,concurrency=50`.
 * @throws SettingError naming the variable.
 */
export function parseLimits(setting: string, text: string): RateLimits {
  const pairs = parsePairs(setting, text, ['rpm', 'tpm', 'concurrency'])
  const count = (name: 'rpm' | 'tpm' | 'concurrency'): number | undefined => {
    const value = pairs.get(name)
    return value === undefined ? undefined : parseCount(`${setting}: ${name}`, value)
  }
  return { requestsPerMinute: count('rpm'), tokensPerMinute: count('tpm'), concurrency: count('concurrency') }
}

/**
 * Reads `prepaid`, `metered` or `off`.
 * @throws SettingError naming the variable.
 */
export function parseServeBilling(setting: string, text: string): BillingMode | 'off' {
  if (text === 'off') return text
  try {
    return parseBillingMode(setting, text)
  } catch {
    throw new SettingError(`${setting}: must be prepaid, metered or off`)
  }
}

/**
 * Checks the plans of a file: `{ "free": { "limits": { "perAccount": { "requestsPerMinute": 10 } } } }`.
 * @throws TypeError naming the member.
 */
export function checkPlans(content: unknown): Readonly<Record<string, Plan>> {
  if (!isObject(content) || !Object.values(content).every(isObject))
    throw new TypeError(
      'must be an object of plans by name, such as {"free":{"limits":{"perKey":{"requestsPerMinute":10}}}}',
    )
  const plans = content as Readonly<Record<string, Plan>>
  for (const [name, { limits }] of Object.entries(plans))
    if (limits !== undefined && (!isObject(limits) || Object.values(limits).some((value) => value === null)))
      throw new TypeError(`plans.${name}.limits must be an object of limits`)
  try {
    planLimitsOf(plans, limitSetOf(undefined, 'limits'))
  } catch (error) {
    throw new TypeError((error as TypeError).message.replace(/^createGateway: /, ''))
  }
  return plans
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Reads `50,80,100` for caps and balances, or `caps=80/100,balance=50/90` for each.
 * @throws SettingError naming the variable.
 */
export function parseThresholds(setting: string, text: string): GatewayOptions['spendingThresholds'] & object {
  if (!text.includes('=')) {
    const percents = parsePercents(setting, text, ',')
    return { caps: percents, balance: percents }
  }
  const pairs = parsePairs(setting, text, ['caps', 'balance'])
  const of = (name: 'caps' | 'balance') => {
    const given = pairs.get(name)
    return given === undefined ? {} : { [name]: parsePercents(`${setting}: ${name}`, given, '/') }
  }
  return { ...of('caps'), ...of('balance') }
}

function parsePercents(setting: string, text: string, separator: string): readonly number[] {
  return text.split(separator).map((part) => {
    const percent = Number(part.trim())
    if (/^\s*\d{1,3}(?:\.\d{1,3})?\s*$/.test(part) && percent > 0 && percent <= 100) return percent
    throw new SettingError(`${setting}: ${JSON.stringify(part)} is not a percent above 0 and at most 100`)
  })
}

/** Billing settings of `serve`. */
export interface BillingSettings {
  readonly prices: { readonly prices: NonNullable<GatewayOptions['prices']> } | undefined
  /** Billing mode. If `undefined`, it is `prepaid` if there are prices, else `off`. */
  readonly billing: BillingMode | 'off' | undefined
}

/** Returns the gateway's options for the billing settings. */
export function billingOptions({ prices, billing }: BillingSettings): Pick<GatewayOptions, 'billing' | 'prices'> {
  if (prices === undefined || billing === 'off') return { billing: 'off' }
  return { prices: prices.prices, billing: { mode: billingModeOf(billing && { mode: billing }) } }
}
