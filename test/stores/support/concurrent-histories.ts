import fc from 'fast-check'
import { expect } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { Ledger } from '../../../src/stores/ledger.ts'
import { NOTHING_SPENT, type SpendingCounts, spendingAt, spendingPeriod } from '../../../src/stores/spending.ts'
import { exampleDraft } from '../../../src/testing/contracts/contract-runner.ts'
import { brokenLinesOf, expectRecordsOf, journalOf } from '../postgres/support/exact-money.ts'
import { CAP, LedgerModel } from './ledger-model.ts'

const ACCOUNTS = 4
/** Histories begin shortly before midnight, so that some holds end on another day than they began. */
const START_MS = 86_400_000 - 100
/** Bound of the search for an order: there are as many states as subsets of the calls of one account. */
const MAX_CALLS_OF_ACCOUNT = 10

/** One of several calls that are made at the same time. */
export type ConcurrentCall = { readonly account: number } & (
  | { readonly kind: 'credit'; readonly id: number; readonly amount: bigint }
  | { readonly kind: 'reserve'; readonly id: number }
  | { readonly kind: 'settle'; readonly id: number; readonly amount: bigint }
  | { readonly kind: 'void'; readonly id: number }
)

/** Calls that are made at the same time, after a wait and perhaps a sweep of expired holds. */
export interface ConcurrentStep {
  readonly waitMs: number
  readonly sweeps: boolean
  readonly calls: readonly ConcurrentCall[]
}

const account = fc.nat({ max: ACCOUNTS - 1 })
const id = fc.integer({ min: 1, max: 12 })
const amount = fc.bigInt({ min: 0n, max: 10n ** 12n })

/** Random histories of at most `maxSteps` steps. */
export function concurrentHistories(maxSteps: number): fc.Arbitrary<ConcurrentStep[]> {
  const kind = <Kind extends string>(name: Kind) => fc.constant(name)
  const reserve = fc.record({ account, kind: kind('reserve'), id })
  const settle = fc.record({ account, kind: kind('settle'), id, amount })
  const calls = fc.oneof<fc.Arbitrary<ConcurrentCall>[]>(
    fc.record({ account, kind: kind('credit'), id, amount: fc.bigInt({ min: 1n, max: 4n * 10n ** 12n }) }),
    ...[reserve, reserve, settle, settle],
    fc.record({ account, kind: kind('void'), id }),
  )
  const step = fc.record({
    waitMs: fc.integer({ min: 0, max: 40 }),
    sweeps: fc.boolean(),
    calls: fc.array(calls, { maxLength: 30, size: 'max' }),
  })
  return fc.array(step, { maxLength: maxSteps, size: 'max' })
}

const accountIdOf = (number: number): string => `account_${number}`
const holdIdOf = (call: { readonly account: number; readonly id: number }): string => `hold_${call.account}_${call.id}`
/** All accounts share one key. Each also has a key with a cap. */
const keyIdOf = (number: number, isLimited: boolean): string => (isLimited ? `limited_${number}` : 'shared')

/** Returns the content of a reservation. It depends on the id alone, because callers repeat a reservation unchanged. */
function wantedOf(id: number): { amount: bigint; larger: bigint | undefined; isLimited: boolean; ttlMs: number } {
  return {
    amount: BigInt(id % 5) * 250_000_000_000n,
    larger: id % 3 === 0 ? 2_000_000_000_000n : undefined,
    isLimited: id % 2 === 0,
    ttlMs: (id % 7) * 8 + 1,
  }
}

/** Makes a call, and returns its outcome as a string. */
async function callLedger(ledger: Ledger, call: ConcurrentCall, nowMs: number): Promise<string> {
  const accountId = accountIdOf(call.account)
  const holdId = holdIdOf(call)
  switch (call.kind) {
    case 'credit': {
      const creditId = `credit_${call.account}_${call.id}`
      return `${await ledger.credit({ creditId, accountId, amount: call.amount, description: 'x' }, nowMs)}`
    }
    case 'reserve': {
      const { amount: held, larger, isLimited, ttlMs } = wantedOf(call.id)
      const outcome = await ledger.reserve(
        {
          ...{
            holdId,
            accountId,
            keyId: keyIdOf(call.account, isLimited),
            amount: held,
            expiresAtMs: nowMs + ttlMs,
          },
          ...(larger === undefined ? {} : { larger: { amount: larger, requiredFree: larger } }),
          caps: isLimited ? { key: CAP } : undefined,
        },
        nowMs,
      )
      return outcome.status === 'held' && outcome.isLarger === true ? 'held larger' : outcome.status
    }
    case 'settle': {
      const record = exampleDraft({ id: holdId, accountId })
      const settlement = { holdId, amount: call.amount, description: 'chat', record }
      const { resolved, charged, shortfall, endedBy } = await ledger.settle(settlement, nowMs)
      return `${resolved} ${charged} ${shortfall} ${endedBy}`
    }
    case 'void':
      return `${(await ledger.void(holdId, nowMs)).resolved}`
  }
}

/** Applies a call to the model, and returns its outcome as a string. */
function callModel(model: LedgerModel, call: ConcurrentCall, nowMs: number): string {
  switch (call.kind) {
    case 'credit':
      return `${model.credit(call.id, call.amount)}`
    case 'reserve': {
      const { amount: held, larger, isLimited, ttlMs } = wantedOf(call.id)
      const hold = { amount: held, larger, isLimited, expiresAtMs: nowMs + ttlMs, period: spendingPeriod(nowMs) }
      return model.reserve(call.id, hold)
    }
    case 'settle': {
      const endedBy = model.ends.get(call.id)
      const charged = model.settle(call.id, call.amount)
      return charged === undefined ? `false 0 0 ${endedBy}` : `true ${charged} ${call.amount - charged} undefined`
    }
    case 'void':
      return `${model.void(call.id)}`
  }
}

interface Answered {
  readonly call: ConcurrentCall
  readonly outcome: string
}

/** Returns the model after the calls, in an order that explains all outcomes; undefined if there is no such order. */
function inSomeOrder(model: LedgerModel, calls: readonly Answered[], nowMs: number): LedgerModel | undefined {
  // The outcomes determine the state after a set of calls, whatever their order.
  const deadEnds = new Set<number>()
  const all = 2 ** calls.length - 1
  const search = (state: LedgerModel, done: number): LedgerModel | undefined => {
    if (done === all) return state
    if (deadEnds.has(done)) return undefined
    for (const [index, { call, outcome }] of calls.entries()) {
      if ((done & (1 << index)) !== 0) continue
      const next = state.copy()
      const end = callModel(next, call, nowMs) === outcome ? search(next, done | (1 << index)) : undefined
      if (end !== undefined) return end
    }
    deadEnds.add(done)
    return undefined
  }
  return search(model, 0)
}

/** Drops the calls of an account that has too many of them in one step. */
function withinBound(calls: readonly ConcurrentCall[]): ConcurrentCall[] {
  const counts = new Map<number, number>()
  return calls.filter((call) => {
    const count = (counts.get(call.account) ?? 0) + 1
    counts.set(call.account, count)
    return count <= MAX_CALLS_OF_ACCOUNT
  })
}

/**
 * Plays a history on an empty store. After each step, the calls of each account must have had the outcomes of some sequential
 * order, and the balances, the journal, the spending and the records must be those of that order.
 */
export async function expectSomeOrder(store: GatewayStore, history: readonly ConcurrentStep[]): Promise<void> {
  const { ledger } = store
  const models = Array.from({ length: ACCOUNTS }, () => new LedgerModel())
  let nowMs = START_MS
  await Promise.all(models.map(async (_, number) => ledger.createAccount({ id: accountIdOf(number) }, nowMs)))
  for (const { waitMs, sweeps, calls } of history) {
    nowMs += waitMs
    const timeMs = nowMs
    if (sweeps) {
      await ledger.expire(timeMs, 1_000)
      for (const model of models) for (const id of model.overdue(timeMs)) model.expire(id)
    }
    const sent = withinBound(calls).map(async (call) => ({ call, outcome: await callLedger(ledger, call, timeMs) }))
    const answered = await Promise.all(sent)
    for (const [number, model] of models.entries()) {
      const own = answered.filter(({ call }) => call.account === number)
      const after = inSomeOrder(model, own, timeMs)
      if (after === undefined) expect({ number, inNoOrder: own }).toBeUndefined()
      else models[number] = after
    }
    await expectBooks(store, models, timeMs)
  }
  const journals = await Promise.all(models.map((_, number) => journalOf(store, accountIdOf(number))))
  await expectRecordsOf(
    store,
    journals.flat().filter(({ kind }) => kind === 'charge'),
  )
}

async function expectBooks(store: GatewayStore, models: readonly LedgerModel[], nowMs: number): Promise<void> {
  const { ledger } = store
  const today = spendingPeriod(nowMs)
  const shared = countsOf(models, today, ({ isLimited }) => !isLimited)
  for (const [number, model] of models.entries()) {
    const accountId = accountIdOf(number)
    const stored = (await ledger.account(accountId))!
    expect(stored).toMatchObject({ balance: model.balance, held: model.held, owed: model.owed })
    expect(brokenLinesOf(stored, await journalOf(store, accountId))).toEqual([])
    const spending = (await ledger.spending(accountId, [keyIdOf(number, false), keyIdOf(number, true)]))!
    expect({
      account: spendingAt(spending.account, today),
      keys: spending.keys.map((counts) => spendingAt(counts, today)),
    }).toEqual({
      account: countsOf([model], today),
      keys: [shared, countsOf([model], today, ({ isLimited }) => isLimited)],
    })
  }
}

type ModelHold = LedgerModel['charges'][number]['hold']

/** Charges and open holds of a day and its month. */
function countsOf(
  models: readonly LedgerModel[],
  period: number,
  isCounted: (hold: ModelHold) => boolean = () => true,
): SpendingCounts {
  const isToday = (hold: ModelHold): boolean => hold.period === period
  const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, next) => total + next, 0n)
  const charges = models.flatMap((model) => model.charges).filter(({ hold }) => isCounted(hold))
  const open = models.flatMap((model) => [...model.open.values()]).filter(isCounted)
  return {
    ...{ ...NOTHING_SPENT, period },
    chargedDay: sum(charges.filter(({ hold }) => isToday(hold)).map((charge) => charge.amount)),
    chargedMonth: sum(charges.map((charge) => charge.amount)),
    heldDay: sum(open.filter(isToday).map((hold) => hold.amount)),
    heldMonth: sum(open.map((hold) => hold.amount)),
  }
}
