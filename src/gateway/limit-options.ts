import { type LimitSet, withDefaults } from '../pipeline/limit-set.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'

/** Limits by whom they count for. An absent member limits nothing. */
export interface LimitScopes {
  /** Each key by itself, unless it sets the limit itself. */
  readonly perKey?: RateLimits
  /** All keys of an account together. */
  readonly perAccount?: RateLimits
  /** Each end user of an account: of `authenticate`, or named by a key with `namesEndUsers`. */
  readonly perEndUser?: RateLimits
}

/** Limits alone are those per key. */
export type LimitOptions = RateLimits | LimitScopes

/** What accounts of a plan have. */
export interface Plan {
  /** In place of the gateway's own, each by itself. */
  readonly limits?: LimitOptions
}

const SCOPES: readonly string[] = ['perKey', 'perAccount', 'perEndUser'] satisfies (keyof LimitScopes)[]
const LIMITS: readonly string[] = ['requestsPerMinute', 'tokensPerMinute', 'concurrency'] satisfies (keyof RateLimits)[]

/**
 * Checks limits and fills in what they leave open.
 * @param name of the option, for errors.
 * @throws TypeError naming the member.
 */
export function limitSetOf(options: LimitOptions | undefined, name: string): LimitSet {
  const given: object = options ?? {}
  const isScoped = Object.keys(given).some((member) => SCOPES.includes(member))
  const scopes: Readonly<Record<string, unknown>> = isScoped ? { ...given } : { perKey: given }
  for (const [scope, limits] of Object.entries(scopes)) {
    const label = isScoped ? `${name}.${scope}` : name
    if (!SCOPES.includes(scope))
      throw new TypeError(`createGateway: ${label} must be in one of ${SCOPES.map((known) => `${name}.${known}`)}`)
    checkLimits((limits ?? {}) as object, label)
  }
  const { perKey = {}, perAccount = {}, perEndUser = {} } = scopes as LimitScopes
  return { perKey, perAccount, perEndUser }
}

function checkLimits(limits: object, label: string): void {
  for (const [member, value] of Object.entries(limits)) {
    if (!LIMITS.includes(member)) throw new TypeError(`createGateway: unknown option ${label}.${member}`)
    if (value !== undefined && !(Number.isFinite(value) && value > 0))
      throw new TypeError(`createGateway: ${label}.${member} must be a positive number`)
  }
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
    const unknown = Object.keys(plan).find((member) => member !== 'limits')
    if (unknown !== undefined) throw new TypeError(`createGateway: unknown option plans.${name}.${unknown}`)
    const { perKey, perAccount, perEndUser } = limitSetOf(plan.limits, `plans.${name}.limits`)
    sets.set(name, {
      perKey: withDefaults(perKey, defaults.perKey),
      perAccount: withDefaults(perAccount, defaults.perAccount),
      perEndUser: withDefaults(perEndUser, defaults.perEndUser),
    })
  }
  return sets
}
