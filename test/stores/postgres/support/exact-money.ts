import { expect } from 'vitest'
import type { GatewayStore } from '../../../../src/stores/gateway-store.ts'
import { entryNumber, type LedgerEntry } from '../../../../src/stores/journal.ts'
import type { Account } from '../../../../src/stores/ledger.ts'
import { NOTHING_SPENT, type SpendingCounts, spendingAt, spendingPeriod } from '../../../../src/stores/spending.ts'
import { DAY_MS } from '../../../../src/usage/usage-store.ts'

const END_MS = Math.ceil(9_000_000_000_000 / DAY_MS) * DAY_MS
const PAGE = 5_000

/** Journal lines of an account, oldest first. */
export async function journalOf({ ledger }: GatewayStore, accountId: string): Promise<LedgerEntry[]> {
  const lines: LedgerEntry[] = []
  for (;;) {
    const last = lines.at(-1)
    const after = last && { createdAtMs: last.createdAtMs, number: entryNumber(last.id)! }
    const page = await ledger.lines({ accountId, fromMs: 0, untilMs: END_MS, order: 'oldest', after, limit: PAGE })
    lines.push(...page)
    if (page.length < PAGE) return lines
  }
}

/**
 * Checks all accounts of a store without open holds: journal = balances = records of calls = spending counts. Every charge must
 * name its key. Returns the journal.
 */
export async function expectExactMoney(store: GatewayStore): Promise<LedgerEntry[]> {
  const accounts = await store.ledger.listAccounts({ limit: 1_000 })
  const journals = await Promise.all(accounts.map(({ id }) => journalOf(store, id)))
  const wrong: unknown[] = []
  for (const [index, account] of accounts.entries()) {
    const lines = journals[index]!
    wrong.push(...brokenLinesOf(account, lines))
    if (account.held !== 0n || account.creditHeld !== 0n) wrong.push({ account })
    const keyIds = [...new Set(chargesOf(lines).map(({ details }) => details!.keyId))]
    const stored = (await store.ledger.spending(account.id, keyIds))!
    const now = stored.account.period
    wrong.push(...countsThatDiffer(account.id, spendingOf(lines, now), stored.account))
  }
  const all = journals.flat()
  const keyIds = [...new Set(chargesOf(all).map(({ details }) => details!.keyId))]
  const stored = (await store.ledger.spending(accounts[0]!.id, keyIds))!
  for (const [index, keyId] of keyIds.entries()) {
    const counts = stored.keys[index]!
    wrong.push(...countsThatDiffer(keyId, spendingOf(all, counts.period, keyId), counts))
  }
  expect(wrong).toEqual([])
  expect(await store.ledger.openHolds({ accountId: undefined, after: undefined, limit: 10 })).toEqual([])
  await expectRecordsOf(store, chargesOf(all))
  return all
}

function chargesOf(lines: readonly LedgerEntry[]): LedgerEntry[] {
  return lines.filter(({ kind }) => kind === 'charge')
}

/** Lines whose sums differ from their predecessors', and the account if it differs from its last line. */
export function brokenLinesOf(account: Account, lines: readonly LedgerEntry[]): unknown[] {
  const broken: unknown[] = []
  let balance = 0n
  let owed = 0n
  let atMs = 0
  for (const line of lines) {
    balance += line.amount
    owed += line.owed
    if (line.balanceAfter !== balance || line.createdAtMs < atMs || owed < 0n) broken.push({ line, balance, owed })
    atMs = line.createdAtMs
  }
  if (account.balance + account.held !== balance || account.owed !== owed) broken.push({ account, balance, owed })
  return broken
}

/** Charges minus refunds of a day and its month. */
function spendingOf(lines: readonly LedgerEntry[], today: number, keyId?: string): SpendingCounts {
  const charges = new Map(chargesOf(lines).map((line) => [line.id, line]))
  let [chargedDay, chargedMonth] = [0n, 0n]
  for (const line of lines) {
    const charge = line.kind === 'refund' ? charges.get(line.chargeId!)! : line
    if (charge.kind !== 'charge' || (keyId !== undefined && charge.details!.keyId !== keyId)) continue
    const amount = line.kind === 'refund' ? -line.amount : line.due!
    const period = spendingPeriod(charge.createdAtMs)
    if (period === today) chargedDay += amount
    if (Math.floor(period / 100) === Math.floor(today / 100)) chargedMonth += amount
  }
  return { ...NOTHING_SPENT, period: today, chargedDay, chargedMonth }
}

function countsThatDiffer(owner: string, expected: SpendingCounts, stored: SpendingCounts): unknown[] {
  const counts = spendingAt(stored, expected.period)
  const isSame = (Object.keys(expected) as (keyof SpendingCounts)[]).every((name) => expected[name] === counts[name])
  return isSame ? [] : [{ owner, expected, stored }]
}

/** Each charge has one record with its amounts, and all sums of records agree. */
export async function expectRecordsOf({ usage, ledger }: GatewayStore, charges: readonly LedgerEntry[]): Promise<void> {
  if (usage === undefined) throw new TypeError('the store keeps no usage')
  const recorded = new Map<string, readonly bigint[]>()
  let count = 0
  for (const { id: accountId } of await ledger.listAccounts({ limit: 1_000 })) {
    const page = await usage.records({ accountId, fromMs: 0, untilMs: END_MS, after: undefined, limit: 100_000 })
    count += page.records.length
    for (const { id, dueNanoDollars, chargedNanoDollars } of page.records)
      recorded.set(id, [dueNanoDollars, chargedNanoDollars])
  }
  const differing = charges.filter(({ holdId, due, amount }) => {
    const [recordedDue, charged] = recorded.get(holdId!) ?? []
    return recordedDue !== due || charged !== -amount
  })
  expect(differing).toEqual([])
  expect(count).toBe(charges.length)
  // Transactions of clients that were killed hold the sums back until the server has ended them.
  await expect
    .poll(async () => (await usage.rollUp(100_000, END_MS)).asOfMs, { timeout: 20_000, interval: 5 })
    .toBe(END_MS)
  const differences = async () => {
    while ((await usage.rollUp(100_000, END_MS)).added > 0);
    return usage.verify({ fromMs: 0, untilMs: END_MS })
  }
  await expect.poll(differences, { timeout: 20_000 }).toEqual([])
}
