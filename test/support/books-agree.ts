import { expect } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { timeOrderedIds } from '../../src/core/ids.ts'
import { accountBooksOf } from '../../src/gateway/account-books.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { ENTRY_KINDS, type EntryKind, entryNumber, type LedgerEntry } from '../../src/stores/journal.ts'
import type { UsageRecord } from '../../src/usage/usage-record.ts'
import { DAY_MS, type UsagePlace, type UsageRow, type UsageStore } from '../../src/usage/usage-store.ts'

const END_MS = 9_000_000_000_000
const PAGE = 1_000
/** Everything. */
const ALL = { fromMs: 0, untilMs: Math.ceil(END_MS / DAY_MS) * DAY_MS, groupBy: [], filter: {}, limit: 100_000 }

/**
 * The three books of an account say the same, month by month: statement = Σ journal = Σ records of calls = their sums by day; and
 * the last closing balance is what the account has. The journal must be whole, and no charge made by hand.
 */
export async function expectBooksAgree(store: GatewayStore, accountId: string): Promise<void> {
  const { usage, ledger } = store
  if (usage === undefined) throw new TypeError('the store keeps no usage')
  const lines = await linesOf(store, accountId)
  const records = await recordsOf(store, accountId)
  // In PostgreSQL, a transaction of another client may delay the sums for a moment.
  await expect
    .poll(async () => (await usage.rollUp(PAGE, END_MS)).asOfMs, { timeout: 20_000, interval: 5 })
    .toBe(END_MS)
  const differences = async () => {
    while ((await usage.rollUp(PAGE, END_MS)).added > 0);
    const all = await usage.verify({ fromMs: 0, untilMs: ALL.untilMs })
    return all.filter((difference) => difference.accountId === accountId)
  }
  await expect.poll(differences, { timeout: 20_000 }).toEqual([])

  const books = accountBooksOf(store, systemClock, timeOrderedIds, async () => undefined)
  const months = [...new Set([...lines, ...records.map(inTime)].map(({ createdAtMs }) => monthOf(createdAtMs)))].sort()
  let opening = { balance: 0n, owed: 0n }
  for (const month of months) {
    const statement = await books.statement(accountId, month)
    const ownLines = lines.filter(({ createdAtMs }) => monthOf(createdAtMs) === month)
    const ownRecords = records.filter(({ endedAtMs }) => monthOf(endedAtMs) === month)
    expect({ balance: statement.openingBalance, owed: statement.openingOwed }, month).toEqual(opening)
    expect(statement.sums, month).toEqual(sumsOf(ownLines))
    const charges = ownLines.filter(({ kind }) => kind === 'charge')
    expect(sumOf(ownRecords.map((record) => record.chargedNanoDollars)), month).toBe(
      -sumOf(charges.map(({ amount }) => amount)),
    )
    expect(sumOf(ownRecords.map((record) => record.dueNanoDollars)), month).toBe(
      sumOf(charges.map(({ due = 0n }) => due)),
    )
    const range = { fromMs: statement.fromMs, untilMs: statement.untilMs }
    const days = await usage.series({
      ...{ ...range, source: 'days', step: undefined, groupBy: [] },
      ...{ filter: { account: accountId }, limit: 1 },
    })
    expect(sumOf(days.map((row) => row.chargedNanoDollars)), month).toBe(
      sumOf(ownRecords.map((record) => record.chargedNanoDollars)),
    )
    expect(
      days.reduce((sum, { requests }) => sum + requests, 0),
      month,
    ).toBe(ownRecords.length)
    opening = { balance: statement.closingBalance, owed: statement.closingOwed }
  }
  await expectSumsAgree(usage)
  const account = await ledger.account(accountId)
  expect(opening).toEqual({ balance: (account?.balance ?? 0n) + (account?.held ?? 0n), owed: account?.owed })
}

/** The sums of all accounts together say the same by hour, by UTC day and by account. */
async function expectSumsAgree(usage: UsageStore): Promise<void> {
  const totals = await Promise.all(
    (['hour', 'day', undefined] as const).map(async (step) =>
      totalOf(await usage.series({ ...ALL, source: step === undefined ? 'days' : 'hours', step })),
    ),
  )
  expect(totals[1]).toEqual(totals[0])
  expect(totals[2]).toEqual(totals[0])
}

function totalOf(rows: readonly UsageRow[]) {
  const requests = rows.reduce((sum, row) => sum + row.requests, 0)
  return [requests, sumOf(rows.map((row) => row.dueNanoDollars)), sumOf(rows.map((row) => row.chargedNanoDollars))]
}

async function linesOf({ ledger }: GatewayStore, accountId: string): Promise<LedgerEntry[]> {
  const lines: LedgerEntry[] = []
  for (;;) {
    const last = lines.at(-1)
    const after = last && { createdAtMs: last.createdAtMs, number: entryNumber(last.id)! }
    const query = { accountId, fromMs: 0, untilMs: END_MS, order: 'oldest', after, limit: PAGE } as const
    const page = await ledger.lines(query)
    lines.push(...page)
    if (page.length < PAGE) return lines
  }
}

async function recordsOf({ usage }: GatewayStore, accountId: string): Promise<UsageRecord[]> {
  const records: UsageRecord[] = []
  let after: UsagePlace | undefined
  do {
    const page = await usage!.records({ accountId, fromMs: 0, untilMs: END_MS, after, limit: PAGE })
    records.push(...page.records)
    after = page.end
  } while (after !== undefined)
  return records
}

function inTime({ endedAtMs }: UsageRecord): { readonly createdAtMs: number } {
  return { createdAtMs: endedAtMs }
}

function monthOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 7)
}

function sumOf(amounts: readonly bigint[]): bigint {
  return amounts.reduce((sum, amount) => sum + amount, 0n)
}

function sumsOf(lines: readonly LedgerEntry[]) {
  return ENTRY_KINDS.flatMap((kind: EntryKind) => {
    const own = lines.filter((line) => line.kind === kind)
    if (own.length === 0) return []
    const [amount, owed] = [sumOf(own.map((line) => line.amount)), sumOf(own.map((line) => line.owed))]
    return [{ kind, lines: own.length, amount, owed }]
  })
}
