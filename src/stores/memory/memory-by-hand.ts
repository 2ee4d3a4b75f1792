import {
  assertAdjustment,
  assertRefund,
  assertRepeated,
  entryNumber,
  type Journal,
  type Refund,
  type RefundResult,
} from '../journal.ts'
import { type Account, MAX_AMOUNT } from '../ledger.ts'
import type { MemoryCredits } from './memory-credits.ts'
import type { JournalLine, MemoryJournal } from './memory-journal.ts'

/** An account of a memory ledger. */
export interface MutableAccount {
  readonly id: string
  balance: bigint
  held: bigint
  owed: bigint
  tier: Account['tier']
  spendingCap: Account['spendingCap']
  readonly createdAtMs: number
  readonly journal: MemoryJournal
  readonly credits: MemoryCredits
}

/** What changes by hand share with the rest of a memory ledger. */
interface ByHandParts {
  readonly accounts: ReadonlyMap<string, MutableAccount>
  write(account: MutableAccount, line: Omit<JournalLine, 'number' | 'balanceAfter'>): void
  repay(account: MutableAccount, nowMs: number): void
  expireDue(account: MutableAccount, nowMs: number): void
}

interface MadeRefund {
  readonly accountId: string
  readonly number: bigint
  readonly amount: bigint
}

/** Changes by hand, and the journal, in this process. */
export function byHand({ accounts, write, repay, expireDue }: ByHandParts): Omit<Journal, 'openHolds'> {
  const adjustments = new Map<string, { readonly accountId: string; readonly amount: bigint }>()
  const refunds = new Map<string, MadeRefund>()

  function findCharge(chargeId: string): { account: MutableAccount; line: JournalLine } | undefined {
    const number = entryNumber(chargeId)
    if (number === undefined) return undefined
    for (const account of accounts.values()) {
      const line = account.journal.find(number)
      if (line !== undefined) return line.kind === 'charge' ? { account, line } : undefined
    }
    return undefined
  }

  function repeated({ refundId, chargeId, amount }: Refund, made: MadeRefund): RefundResult {
    assertRepeated('refund', refundId, entryNumber(chargeId) === made.number && (amount ?? made.amount) === made.amount)
    return { status: 'repeated', accountId: made.accountId, amount: made.amount }
  }

  return {
    adjust({ adjustmentId, accountId, amount, description }, nowMs) {
      assertAdjustment(amount)
      const account = accounts.get(accountId)
      if (account === undefined) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
      const made = adjustments.get(adjustmentId)
      if (made !== undefined) {
        assertRepeated('adjustment', adjustmentId, made.accountId === accountId && made.amount === amount)
        return 'repeated'
      }
      expireDue(account, nowMs)
      if (account.balance + amount < 0n) return 'insufficient_balance'
      assertRoom(account, amount)
      adjustments.set(adjustmentId, { accountId, amount })
      account.balance += amount
      if (amount < 0n) account.credits.spend(-amount, nowMs)
      const line = { amount, owed: 0n, holdId: undefined, operationId: adjustmentId, createdAtMs: nowMs }
      write(account, { kind: 'adjustment', description, ...line })
      repay(account, nowMs)
      return 'adjusted'
    },

    refund(refund, nowMs) {
      assertRefund(refund.amount)
      const { refundId, chargeId, description } = refund
      const made = refunds.get(refundId)
      if (made !== undefined) return repeated(refund, made)
      const found = findCharge(chargeId)
      if (found === undefined) return { status: 'unknown_charge' }
      const { account, line } = found
      const number = BigInt(line.number)
      const before = [...refunds.values()].filter((other) => other.number === number)
      const left = before.reduce((sum, other) => sum - other.amount, line.due ?? 0n)
      const amount = refund.amount ?? left
      if (amount > left || left === 0n) return { status: 'above_charge', left }
      assertRoom(account, amount)
      refunds.set(refundId, { accountId: account.id, number, amount })
      account.balance += amount
      for (const counter of line.counters ?? []) counter.spent -= amount
      const { holdId } = line
      const about = { amount, owed: 0n, holdId, operationId: refundId, chargeId, createdAtMs: nowMs }
      write(account, { kind: 'refund', description, ...about })
      repay(account, nowMs)
      return { status: 'refunded', accountId: account.id, amount }
    },

    lines: ({ accountId, ...query }) => accounts.get(accountId)?.journal.query(query) ?? [],

    sums: ({ accountId, ...range }) =>
      accounts.get(accountId)?.journal.sums(range) ?? { openingBalance: 0n, openingOwed: 0n, sums: [] },

    expireCredits(nowMs, limit) {
      const due = [...accounts.values()]
        .filter(({ credits }) => credits.firstExpiryMs !== undefined && credits.firstExpiryMs <= nowMs)
        .slice(0, Math.max(0, limit))
      for (const account of due) expireDue(account, nowMs)
      return due.length
    },
  }
}

function assertRoom({ balance, held }: MutableAccount, amount: bigint): void {
  if (balance + held + amount > MAX_AMOUNT)
    throw new RangeError('the account cannot hold more than 2^63 - 1 nano-dollars')
}
