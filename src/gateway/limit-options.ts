import { checkGivenMembers, checkMembers, type MemberNames } from '../core/known-members.ts'
import { type LimitSet, withDefaults } from '../pipeline/limit-set.ts'
import { RATE_LIMITS_MEMBERS, type RateLimits } from '../stores/rate-limiter.ts'

/** Limits by scope. Omitted members limit nothing. */
export interface LimitScopes {
  /** Limits of each key that does not set its own. */
  readonly perKey?: RateLimits | undefined
  /** Limits of all keys of an account together. */
  readonly perAccount?: RateLimits | undefined
  /** Limits of each end user of an account: from `authenticate`, or named by a key with `namesEndUsers`. */
  readonly perEndUser?: RateLimits | undefined
}

/** Limits. Without a scope they apply per key. */
export type LimitOptions = RateLimits | LimitScopes

/** Settings of a plan. */
export interface Plan {
  /** Limits that replace the gateway's, one by one. */
  readonly limits?: LimitOptions | undefined
}

const SCOPES = { perKey: true, perAccount: true, perEndUser: true } satisfies MemberNames<LimitScopes>
const LIMIT_OPTIONS = { ...SCOPES, ...RATE_LIMITS_MEMBERS } satisfies MemberNames<LimitOptions>
const PLAN_MEMBERS = { limits: true } satisfies MemberNames<Plan>

/**
 * Checks limits and fills in omitted ones.
 * @param name Name of the option, for errors.
 * @throws TypeError naming the member.
 */
export function limitSetOf(options: LimitOptions | undefined, name: string): LimitSet {
  checkMembers(options, LIMIT_OPTIONS, 'createGateway', name)
  const given = Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined))
  const isScoped = Object.keys(given).some((member) => Object.hasOwn(SCOPES, member))
  const scopes: Readonly<Record<string, unknown>> = isScoped ? given : { perKey: given }
  for (const [scope, limits] of Object.entries(scopes)) {
    const label = isScoped ? `${name}.${scope}` : name
    if (!Object.hasOwn(SCOPES, scope)) {
      const places = Object.keys(SCOPES).map((known) => `${name}.${known}`)
      throw new TypeError(`createGateway: ${label} must be in one of ${places.join(', ')}`)
    }
    checkRateLimits(limits, 'createGateway', label)
  }
  const { perKey = {}, perAccount = {}, perEndUser = {} } = scopes as LimitScopes
  return { perKey, perAccount, perEndUser }
}

/**
 * Checks limits without a scope.
 * @param owner Called function, for the message.
 * @throws TypeError naming the member.
 */
export function checkRateLimits(limits: unknown, owner: string, path: string): void {
  checkMembers(limits, RATE_LIMITS_MEMBERS, owner, path)
  const bad = badLimitOf(limits)
  if (bad !== undefined) throw new TypeError(`${owner}: ${path}.${bad} must be a positive number`)
}

/**
 * Returns the name of an invalid limit, or `undefined` if all are valid. NaN, a string, zero or less would limit nothing, or
 * everything.
 */
export function badLimitOf(limits: unknown): string | undefined {
  return Object.entries(limits ?? {}).find(
    ([, value]) => value !== undefined && !(Number.isFinite(value) && value > 0),
  )?.[0]
}

/**
 * Returns the limits of each plan; the gateway's limits fill in omitted ones.
 * @throws TypeError naming the plan.
 */
export function planLimitsOf(
  plans: Readonly<Record<string, Plan>> | undefined,
  defaults: LimitSet,
): ReadonlyMap<string, LimitSet> {
  const sets = new Map<string, LimitSet>()
  for (const [name, plan] of Object.entries(plans ?? {})) {
    checkGivenMembers(plan, PLAN_MEMBERS, 'createGateway', `plans.${name}`)
    const { perKey, perAccount, perEndUser } = limitSetOf(plan.limits, `plans.${name}.limits`)
    sets.set(name, {
      perKey: withDefaults(perKey, defaults.perKey),
      perAccount: withDefaults(perAccount, defaults.perAccount),
      perEndUser: withDefaults(perEndUser, defaults.perEndUser),
    })
  }
  return sets
}
