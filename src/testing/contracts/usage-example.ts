import type { GatewayStore } from '../../stores/gateway-store.ts'
import { type UsageDraft, type UsageRecord, usageRecord } from '../../usage/usage-record.ts'
import { DAY_MS, type UsageRow, type UsageSeriesQuery, type UsageStore } from '../../usage/usage-store.ts'
import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import {
  EXAMPLE_NOW_MS,
  exampleDraft,
  exampleReservation,
  fundedLedger,
  type TaskContractStore,
} from './store-example.ts'

/** The parts of a driver that the suite of usage needs. */
export type UsageContractStore = TaskContractStore & Pick<GatewayStore, 'usage'>

/** A driver under test. */
export type UsageSubject = TaskContractStore & { readonly usage: UsageStore }

/** The UTC day of the examples. */
export const DAY_START_MS = Math.floor(EXAMPLE_NOW_MS / DAY_MS) * DAY_MS
export const RANGE = { fromMs: DAY_START_MS, untilMs: DAY_START_MS + DAY_MS }

export const DRAFT: UsageDraft = exampleDraft()

/** Runs a case on a driver of its own. */
export function usageCheck(it: ContractRunner['it'], subject: ContractSubject<UsageContractStore>) {
  return (name: string, body: (store: UsageSubject) => Promise<void>) =>
    it(name, () =>
      withDriver(subject, async (store) => {
        const { usage } = store
        if (usage === undefined) throw new TypeError('the driver keeps no usage')
        // Written out: a driver may be an object of a class.
        const { ledger, idempotency, keys, tasks, webhooks, responses } = store
        await body({ ledger, idempotency, keys, tasks, webhooks, responses, usage })
      }),
    )
}

export const SETTLEMENT = { holdId: 'hold_1', amount: 60n, description: 'chat gp-5.4' }

/** Charges the example's hold of an account with 1,000. */
export async function charge(
  store: UsageSubject,
  { amount, record = DRAFT }: { readonly amount: bigint; readonly record?: UsageDraft },
): Promise<void> {
  await fundedLedger(store, 1_000n)
  await store.ledger.reserve(exampleReservation(), EXAMPLE_NOW_MS)
  await store.ledger.settle({ ...SETTLEMENT, amount, record }, EXAMPLE_NOW_MS)
}

/** The record of a call that cost nothing. */
export function free(overrides: Partial<UsageDraft>, endedAtMs: number): UsageRecord {
  return usageRecord({ ...DRAFT, ...overrides }, { endedAtMs, dueNanoDollars: 0n, chargedNanoDollars: 0n })
}

export async function allRecords({ usage }: UsageSubject): Promise<readonly UsageRecord[]> {
  const range = { accountId: undefined, fromMs: 0, untilMs: EXAMPLE_NOW_MS * 2 }
  return (await usage.records({ ...range, after: undefined, limit: 1_000 })).records
}

export async function countAll({ usage }: UsageSubject): Promise<void> {
  while ((await usage.rollUp(1_000, EXAMPLE_NOW_MS)).added > 0);
}

export async function series({ usage }: UsageSubject, query: Partial<UsageSeriesQuery>): Promise<readonly UsageRow[]> {
  return usage.series({
    source: 'days',
    ...RANGE,
    step: undefined,
    groupBy: [],
    filter: {},
    limit: 1_000,
    ...query,
  })
}
