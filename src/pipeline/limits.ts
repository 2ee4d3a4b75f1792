import { GatewayError } from '../core/errors.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Principal } from '../stores/principal.ts'
import { type LimitSet, type PipelineContext, withDefaults } from './pipeline-context.ts'

/**
 * Returns the limits of a caller: those of its key, then of its account's plan, then of the gateway.
 * @throws GatewayError `plan_not_configured`, and `store_unavailable` if the plan cannot be read.
 */
export function limitsOf(
  context: Pick<PipelineContext, 'limits' | 'plans' | 'accountPlans'>,
  principal: Principal,
): MaybePromise<LimitSet> {
  const { limits, plans, accountPlans } = context
  if (principal.plan === undefined && plans.size > 0) {
    const plan = accountPlans.planOf(principal.accountId)
    return isPending(plan)
      ? limitsLater(context, principal, plan)
      : withOwn(principal, planLimits(plans, plan) ?? limits)
  }
  return withOwn(principal, planLimits(plans, principal.plan ?? undefined) ?? limits)
}

// Separate from its caller, because a function that may create closures allocates for them in every call.
function limitsLater(
  { limits, plans }: Pick<PipelineContext, 'limits' | 'plans'>,
  principal: Principal,
  plan: PromiseLike<string | undefined>,
): PromiseLike<LimitSet> {
  return plan.then((found) => withOwn(principal, planLimits(plans, found) ?? limits))
}

function planLimits(plans: ReadonlyMap<string, LimitSet>, name: string | undefined): LimitSet | undefined {
  if (name === undefined) return undefined
  const plan = plans.get(name)
  if (plan !== undefined) return plan
  const cause = new Error(`createGateway({ plans }) has no plan ${JSON.stringify(name)}`)
  throw new GatewayError('plan_not_configured', { cause })
}

function withOwn({ limits: own }: Principal, set: LimitSet): LimitSet {
  return own === undefined ? set : { ...set, perKey: withDefaults(own, set.perKey) }
}
