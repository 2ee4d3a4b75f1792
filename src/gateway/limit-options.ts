import { checkGivenMembers, checkMembers, type MemberNames } from '../core/known-members.ts'
import { type LimitSet, withDefaults } from '../pipeline/limit-set.ts'
import { RATE_LIMITS_MEMBERS, type RateLimits } from '../stores/rate-limiter.ts'

/** Limits by whom they count for. An absent member limits nothing. */
export interface LimitScopes {
  /** Each key by itself, unless it sets the limit itself. */
  readonly perKey?: RateLimits | undefined
  /** All keys of an account together. */
  readonly perAccount?: RateLimits | undefined
  /** Each end user of an account: of `authenticate`, or named by a key with `namesEndUsers`. */
  readonly perEndUser?: RateLimits | undefined
}

/** Limits alone are those per key. */
export type LimitOptions = RateLimits | LimitScopes

/** What accounts of a plan have. */
export interface Plan {
  /** In place of the gateway's own, each by itself. */
  readonly limits?: LimitOptions | undefined
}

const SCOPES = { perKey: true, perAccount: true, perEndUser: true } satisfies MemberNames<LimitScopes>
const LIMIT_OPTIONS = { ...SCOPES, ...RATE_LIMITS_MEMBERS } satisfies MemberNames<LimitOptions>
const PLAN_MEMBERS = { limits: true } satisfies MemberNames<Plan>

/**
 * Checks limits and fills in what they leave open.
 * @param name of the option, for errors.
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
 * Checks limits alone.
 * @param owner what was called, for the message.
 * @throws TypeError naming the member.
 */
export function checkRateLimits(limits: unknown, owner: string, path: string): void {
  checkMembers(limits, RATE_LIMITS_MEMBERS, owner, path)
  const bad = badLimitOf(limits)
  if (bad !== undefined) throw new TypeError(`${owner}: ${path}.${bad} must be a positive number`)
}

/** A limit that limits nothing, or everything, in place of what was meant: NaN, a text, zero or less. Undefined: all are right. */
export function badLimitOf(limits: unknown): string | undefined {
  return Object.entries(limits ?? {}).find(
    ([, value]) => value !== undefined && !(Number.isFinite(value) && value > 0),
  )?.[0]
}

/**
 * The limits of each plan, with the gateway's for what a plan leaves open.
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
