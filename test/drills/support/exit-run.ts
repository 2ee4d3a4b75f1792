import { startBillingVendor } from './billing-vendor.ts'
import { ask, isKeyed, postExit, submitExit } from './exit-calls.ts'
import { formOf } from './exit-forms.ts'
import { costOf, GUARDED_MODEL, HOOK_UNITS, type PolicyGateway, startPolicyGateway } from './exit-gateways.ts'
import type { ExitPlan, ExitPolicy } from './exit-plan.ts'
import type { ExitResult } from './loss-table.ts'

const AT_ONCE = 36
const CALLS_PER_ACCOUNT = 40
/** Money of an account whose only call sets no bound: less than twice what a longest answer costs. */
const POOR_DOLLARS = '0.01'
const POLL_MS = 50
const NO_FIELDS = {}

/** Gateways with every policy before one vendor. */
export interface ExitRun {
  makeAll(): Promise<ExitResult[]>
  /** Money that is held or owed in the end. */
  openMoney(): Promise<{ readonly held: bigint; readonly owed: bigint }>
  close(): Promise<void>
}

interface Caller {
  readonly key: string
  readonly account: string
}

/** Result of one call. */
interface Outcome {
  readonly requestId: string
  readonly charged: bigint
  /** Calls of vendors that were charged for. */
  readonly paidCalls: number
  readonly isCacheHit: boolean
}

export async function startExits(plans: readonly ExitPlan[]): Promise<ExitRun> {
  const vendor = await startBillingVendor(plans)
  const accounts = Math.ceil(plans.length / CALLS_PER_ACCOUNT / AT_ONCE) * AT_ONCE
  const callers = Array.from({ length: accounts }, (_, index) => ({
    key: `sk-exit-${index}`,
    account: `exit_${index}`,
  }))
  const gateways = new Map<ExitPolicy, PolicyGateway>()
  for (const policy of ['cancel', 'drain', undefined] as const)
    gateways.set(policy, await startPolicyGateway(vendor.origin, policy, callers))
  const requestIds = new Map<ExitPlan, string[]>()

  const poorCaller = async (plan: ExitPlan): Promise<Caller> => {
    const { accounts, keys } = gateways.get(plan.policy)!.started.gateway
    const account = `poor_${plan.id}`
    await accounts.create({ id: account })
    await accounts.credit(account, POOR_DOLLARS)
    return { account, key: (await keys.create({ accountId: account })).key }
  }

  const call = async (plan: ExitPlan, { key, account }: Caller, leaves: boolean): Promise<Outcome | undefined> => {
    const { started, ended } = gateways.get(plan.policy)!
    const end = ended('request-ended', account)
    const head = await postExit(started.url, plan, key, leaves ? () => vendor.arrived(plan) : undefined)
    if (head.includes('idempotent-replayed: true')) return undefined
    const { requestId, costNanoDollars: charged } = await end
    const isCacheHit = head.includes('x-signalbox-cache: hit')
    return { requestId, charged, isCacheHit, paidCalls: charged > 0n && !isCacheHit ? 1 : 0 }
  }

  /** A task whose caller cancels it in place of leaving, and polls it to its end otherwise. */
  const task = async (plan: ExitPlan, { key, account }: Caller, leaves: boolean): Promise<Outcome> => {
    const { started, ended } = gateways.get(plan.policy)!
    const end = ended('task-ended', account)
    const path = await submitExit(started.url, plan, key)
    if (leaves) {
      await vendor.arrived(plan)
      await new Promise((resolve) => setTimeout(resolve, plan.at * 40))
      await ask(started.url, key, 'POST', `${path}/cancel`)
    }
    let read = await ask(started.url, key, 'GET', path)
    while (['queued', 'in_progress', 'validating', 'finalizing', 'cancelling'].includes(String(read['status']))) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      read = await ask(started.url, key, 'GET', path)
    }
    const { requestId, costNanoDollars: charged } = await end
    const counts = read['request_counts'] as { readonly completed: number; readonly failed: number } | undefined
    const paidCalls = counts === undefined ? Number(charged > 0n) : counts.completed
    return { requestId, charged, isCacheHit: false, paidCalls }
  }

  const make = async (plan: ExitPlan, shared: Caller): Promise<ExitResult> => {
    const { told } = gateways.get(plan.policy)!
    const { isUnbounded, isAskedTwice, task: isTask, fields = NO_FIELDS } = formOf(plan)
    const caller = isUnbounded === true ? await poorCaller(plan) : shared
    const before = told(caller.account)
    const once = isTask === undefined ? call : task
    const leaves = plan.kind.startsWith('caller leaves')
    const outcomes = [await once(plan, caller, leaves)]
    if (isKeyed(plan) || isAskedTwice === true) outcomes.push(await once(plan, caller, false))
    const after = told(caller.account)
    const made = outcomes.filter((outcome) => outcome !== undefined)
    const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, amount) => total + amount, 0n)
    const explained = made.reduce((total, { paidCalls }) => total + paidCalls, 0) + after.calls - before.calls
    requestIds.set(
      plan,
      made.map(({ requestId }) => requestId),
    )
    return {
      plan,
      account: `${caller.account}, ${plan.policy ?? 'default'}`,
      billed:
        sum(vendor.billsOf(plan).map((bill) => costOf(bill.model, bill.usage, bill.fields))) +
        // A hook bills its work too, and an answer from the cache has a price of the operator.
        (plan.model === GUARDED_MODEL ? costOf(plan.model, { hookUnits: HOOK_UNITS }, fields) : 0n) +
        sum(made.map(({ isCacheHit }) => (isCacheHit ? costOf(plan.model, NO_FIELDS, { cache: 'hit' }) : 0n))),
      charged: sum(made.map(({ charged }) => charged)),
      told: after.amount - before.amount,
      untoldCalls: Math.max(0, vendor.billedCallsOf(plan) - explained),
      hasReport: vendor.hasReported(plan),
      // A cancelled task is charged by an estimate, also if the report of its vendor was on its way.
      isReported: vendor.hasReported(plan) && !(isTask !== undefined && leaves),
    }
  }

  /** Ids of the requests whose charge is an estimate. */
  const estimatedRequests = async (): Promise<ReadonlySet<string>> => {
    const estimated = new Set<string>()
    const to = Date.now() + 1_000
    for (const { started } of gateways.values()) {
      let page = await started.gateway.usage.records({ limit: 1_000, to })
      for (;;) {
        for (const { id, isEstimated } of page.records) if (isEstimated) estimated.add(id)
        if (page.next === undefined) break
        page = await started.gateway.usage.records({ limit: 1_000, to, cursor: page.next })
      }
    }
    return estimated
  }

  return {
    async makeAll() {
      const results: ExitResult[] = new Array(plans.length)
      let next = 0
      let round = 0
      const free = Array.from({ length: callers.length }, (_, index) => index)
      const worker = async (): Promise<void> => {
        while (next < plans.length) {
          const index = next++
          const callerIndex = free.splice(round++ % free.length, 1)[0]!
          results[index] = await make(plans[index]!, callers[callerIndex]!)
          free.push(callerIndex)
        }
      }
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, callers.length) }, worker))
      const estimated = await estimatedRequests()
      return results.map((result) => ({
        ...result,
        isReported: result.isReported && !requestIds.get(result.plan)!.some((id) => estimated.has(id)),
      }))
    },
    async openMoney() {
      let held = 0n
      let owed = 0n
      for (const { started } of gateways.values()) {
        const { accounts } = started.gateway
        for (
          let page = await accounts.list({ limit: 100 });
          ;
          page = await accounts.list({ limit: 100, cursor: page.next })
        ) {
          for (const account of page.accounts) {
            held += account.held
            owed += account.owed
          }
          if (page.next === undefined) break
        }
      }
      return { held, owed }
    },
    async close() {
      for (const { started } of gateways.values()) await started.close()
      await vendor.close()
    },
  }
}
