import { formatDollars } from '../../../src/core/money.ts'
import type { ExitPlan } from './exit-plan.ts'

/** Result of one call, in nano-dollars. */
export interface ExitResult {
  readonly plan: ExitPlan
  readonly account: string
  /** Vendors' bill for the call. */
  readonly billed: bigint
  readonly charged: bigint
  /** Amount that `unbilled-usage` reports to the operator, who can claim it back from the vendor. */
  readonly told: bigint
  /** Calls that the vendors bill and that were neither charged nor told. */
  readonly untoldCalls: number
  /** Whether the vendor has sent a report for each call that it bills. */
  readonly hasReport: boolean
  /** Whether each call was charged by a report of its vendor. */
  readonly isReported: boolean
}

interface Row {
  calls: number
  billed: bigint
  charged: bigint
  told: bigint
  /** Billed, neither charged nor told. Below zero: more was charged than billed. */
  lost: bigint
  /** Loss of only those calls that lost something. */
  lostAlone: bigint
  /** Billed and not charged, told or not, of those calls only that were charged less than was billed. */
  unpaidAlone: bigint
  /** Charged above the bill, of calls whose vendor reported usage. */
  overchargedReported: bigint
  /** Charged above the bill, of calls that were charged by an estimate. */
  overchargedEstimated: bigint
  untoldCalls: number
}

/** The report of a call counts up to its loss, so that no estimate pays for the loss of another call. */
function lossOf({ billed, charged, told }: ExitResult): bigint {
  const unpaid = billed - charged
  if (unpaid <= 0n) return unpaid
  return told < unpaid ? unpaid - told : 0n
}

/** The loss of every kind of exit, of all of them, and of each account. */
export interface LossTable {
  readonly text: string
  readonly total: Readonly<Row>
  /** The rows of the text, by name. */
  readonly rows: ReadonlyMap<string, Readonly<Row>>
  readonly accounts: readonly AccountLoss[]
}

/** Loss of the calls of one account. */
interface AccountLoss {
  readonly account: string
  readonly lost: bigint
  readonly dearestCall: bigint
}

export function lossTable(results: readonly ExitResult[]): LossTable {
  const rows = new Map<string, Row>()
  const accounts = new Map<string, { lost: bigint; dearestCall: bigint }>()
  for (const result of results) {
    const { kind, form, isStream, policy } = result.plan
    const left = kind.startsWith('caller leaves') ? `, ${policy ?? 'default'}` : ''
    add(rows, `${kind}: ${form}, ${isStream ? 'streamed' : 'whole'}${left}`, result)
    add(rows, kind, result)
    add(rows, 'all', result)
    const account = accounts.get(result.account) ?? { lost: 0n, dearestCall: 0n }
    account.lost += lossOf(result)
    if (result.billed > account.dearestCall) account.dearestCall = result.billed
    accounts.set(result.account, account)
  }
  const sorted = [...rows].sort(([one], [other]) => (one < other ? -1 : 1))
  const lines = sorted.map(([name, { calls, billed, charged, told, lost, lostAlone, unpaidAlone, ...row }]) =>
    [
      name.padEnd(60),
      String(calls).padStart(6),
      ...[billed, charged, told, lost].map(amount),
      share(lost, billed),
      amount(lostAlone),
      amount(unpaidAlone),
      share(unpaidAlone, billed),
      amount(row.overchargedReported),
      amount(row.overchargedEstimated),
      share(row.overchargedEstimated, billed),
      String(row.untoldCalls).padStart(7),
    ].join(' '),
  )
  const losses = ['billed', 'charged', 'told', 'lost', 'lost, of bill', 'losses alone', 'unpaid alone', 'of bill']
  const names = [...losses, 'over, reported', 'over, estimate', 'of bill']
  const head = ['exit'.padEnd(60), ' calls', ...names.map((name) => name.padStart(14)), ' untold']
  return {
    text: [head.join(' '), ...lines].join('\n'),
    total: rows.get('all') ?? emptyRow(),
    rows,
    accounts: [...accounts].map(([account, figures]) => ({ account, ...figures })),
  }
}

function emptyRow(): Row {
  const money = { billed: 0n, charged: 0n, told: 0n, lost: 0n, lostAlone: 0n, unpaidAlone: 0n }
  return { calls: 0, ...money, overchargedReported: 0n, overchargedEstimated: 0n, untoldCalls: 0 }
}

function add(rows: Map<string, Row>, name: string, result: ExitResult): void {
  const { billed, charged, told } = result
  const lost = lossOf(result)
  const row = rows.get(name) ?? emptyRow()
  row.calls += 1
  row.billed += billed
  row.charged += charged
  row.told += told
  row.lost += lost
  if (lost > 0n) row.lostAlone += lost
  if (billed > charged) row.unpaidAlone += billed - charged
  if (charged > billed) row[result.isReported ? 'overchargedReported' : 'overchargedEstimated'] += charged - billed
  row.untoldCalls += result.untoldCalls
  rows.set(name, row)
}

function amount(nanoDollars: bigint): string {
  const sign = nanoDollars < 0n ? '-' : ''
  return `${sign}${formatDollars(nanoDollars < 0n ? -nanoDollars : nanoDollars)}`.padStart(14)
}

function share(lost: bigint, billed: bigint): string {
  return (billed === 0n ? '' : `${((Number(lost) / Number(billed)) * 100).toFixed(2)} %`).padStart(14)
}
