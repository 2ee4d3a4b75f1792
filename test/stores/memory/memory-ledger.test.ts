import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Account, Ledger, LedgerEntry, ReserveResult, Resolution } from '../../../src/stores/ledger.ts'
import { memoryLedger } from '../../../src/stores/memory/memory-ledger.ts'

type Operation =
  | { readonly kind: 'credit'; readonly id: number; readonly amount: bigint }
  | { readonly kind: 'reserve'; readonly id: number; readonly amount: bigint; readonly ttlMs: number }
  | { readonly kind: 'settle'; readonly id: number; readonly amount: bigint }
  | { readonly kind: 'void'; readonly id: number }
  | { readonly kind: 'expire'; readonly limit: number }
  | { readonly kind: 'wait'; readonly ms: number }

const ids = fc.integer({ min: 1, max: 12 })
const amounts = fc.bigInt({ min: 0n, max: 10n ** 12n })
const operations = fc.array(
  fc.oneof<fc.Arbitrary<Operation>[]>(
    fc.record({ kind: fc.constant('credit' as const), id: ids, amount: fc.bigInt({ min: 1n, max: 10n ** 13n }) }),
    fc.record({
      kind: fc.constant('reserve' as const),
      id: ids,
      amount: amounts,
      ttlMs: fc.integer({ min: 1, max: 50 }),
    }),
    fc.record({ kind: fc.constant('settle' as const), id: ids, amount: amounts }),
    fc.record({ kind: fc.constant('void' as const), id: ids }),
    fc.record({ kind: fc.constant('expire' as const), limit: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 40 }) }),
  ),
  { maxLength: 120 },
)

/** The ledger as a list of facts, with no thought for speed. */
class LedgerModel {
  credited = 0n
  charged = 0n
  readonly creditIds = new Set<number>()
  readonly open = new Map<number, { amount: bigint; expiresAtMs: number }>()
  readonly outcomes = new Map<number, string>()

  get held(): bigint {
    return [...this.open.values()].reduce((sum, hold) => sum + hold.amount, 0n)
  }

  get balance(): bigint {
    return this.credited - this.charged - this.held
  }

  credit(id: number, amount: bigint): boolean {
    if (this.creditIds.has(id)) return false
    this.creditIds.add(id)
    this.credited += amount
    return true
  }

  reserve(id: number, amount: bigint, expiresAtMs: number): string {
    const known = this.outcomes.get(id)
    if (known !== undefined) return known
    const outcome = amount <= this.balance ? 'held' : 'insufficient_balance'
    if (outcome === 'held') this.open.set(id, { amount, expiresAtMs })
    this.outcomes.set(id, outcome)
    return outcome
  }

  settle(id: number, amount: bigint): bigint | undefined {
    if (!this.open.delete(id)) return undefined
    const charged = amount <= this.balance ? amount : this.balance
    this.charged += charged
    return charged
  }

  expire(nowMs: number, limit: number): number {
    const over = [...this.open].filter(([, hold]) => hold.expiresAtMs <= nowMs).slice(0, limit)
    for (const [id] of over) this.open.delete(id)
    return over.length
  }
}

function apply(operation: Operation, ledger: Ledger, model: LedgerModel, nowMs: number): void {
  switch (operation.kind) {
    case 'credit': {
      const credit = {
        creditId: `credit_${operation.id}`,
        accountId: 'account_1',
        amount: operation.amount,
        description: 'x',
      }
      expect(ledger.credit(credit, nowMs)).toBe(model.credit(operation.id, operation.amount))
      return
    }
    case 'reserve': {
      const { id, amount, ttlMs } = operation
      const reservation = {
        holdId: `${id}`,
        accountId: 'account_1',
        keyId: 'key_1',
        amount,
        expiresAtMs: nowMs + ttlMs,
      }
      const outcome = ledger.reserve(reservation, nowMs) as ReserveResult
      expect(outcome.status).toBe(model.reserve(id, amount, nowMs + ttlMs))
      return
    }
    case 'settle': {
      const { id, amount } = operation
      const end = ledger.settle({ holdId: `${id}`, amount, description: 'chat' }, nowMs) as Resolution
      const charged = model.settle(id, amount)
      const expected = charged === undefined ? undefined : { resolved: true, charged, shortfall: amount - charged }
      expect(end).toEqual(expected ?? { resolved: false, charged: 0n, shortfall: 0n })
      return
    }
    case 'void':
      expect((ledger.void(`${operation.id}`, nowMs) as Resolution).resolved).toBe(model.open.delete(operation.id))
      return
    case 'expire':
      expect(ledger.expire(nowMs, operation.limit)).toBe(model.expire(nowMs, operation.limit))
  }
}

describe('memory ledger', () => {
  it('A15, B1, C6: agrees with a simple model over random histories, to the nano-dollar, with or without a short journal', () => {
    fc.assert(
      fc.property(operations, fc.constantFrom(2, 10_000), (history, maxJournalLines) => {
        const ledger = memoryLedger({ maxJournalLines })
        const model = new LedgerModel()
        let nowMs = 1_000
        ledger.createAccount({ id: 'account_1' }, nowMs)
        for (const operation of history) {
          if (operation.kind === 'wait') nowMs += operation.ms
          else apply(operation, ledger, model, nowMs)

          const account = ledger.account('account_1') as Account
          const lines = ledger.entries('account_1', 1_000) as readonly LedgerEntry[]
          expect(account.balance).toBe(model.balance)
          expect(account.held).toBe(model.held)
          expect(account.balance >= 0n).toBe(true)
          expect(lines.reduce((sum, line) => sum + line.amount, 0n)).toBe(account.balance + account.held)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('refuses amounts below zero before anything is changed', () => {
    const ledger = memoryLedger()
    ledger.createAccount({ id: 'account_1' }, 1)
    ledger.credit({ creditId: 'credit_1', accountId: 'account_1', amount: 500n, description: 'start' }, 1)
    const reservation = { holdId: 'hold_1', accountId: 'account_1', keyId: 'key_1', amount: 100n, expiresAtMs: 1_000 }
    ledger.reserve(reservation, 1)

    expect(() => ledger.reserve({ ...reservation, holdId: 'hold_2', amount: -1n }, 1)).toThrow(RangeError)
    expect(() => ledger.settle({ holdId: 'hold_1', amount: -1n, description: 'chat' }, 1)).toThrow(RangeError)
    expect(ledger.account('account_1')).toMatchObject({ balance: 400n, held: 100n })
  })

  it('G1: sums old journal lines up in one, so that a busy account does not grow for ever', () => {
    const ledger = memoryLedger({ maxJournalLines: 10, maxOutcomes: 10 })
    ledger.createAccount({ id: 'account_1' }, 1)
    ledger.credit({ creditId: 'credit_1', accountId: 'account_1', amount: 1_000_000n, description: 'start' }, 1)
    for (let count = 0; count < 1_000; count++) {
      const holdId = `hold_${count}`
      ledger.reserve({ holdId, accountId: 'account_1', keyId: 'key_1', amount: 10n, expiresAtMs: 1_000 }, 1)
      ledger.settle({ holdId, amount: 7n, description: 'chat' }, 1)
    }
    const lines = ledger.entries('account_1', 1_000) as readonly LedgerEntry[]

    expect(lines.length).toBeLessThanOrEqual(20)
    expect(lines.at(-1)).toMatchObject({ kind: 'credit', description: 'carried forward' })
    expect(lines.reduce((sum, line) => sum + line.amount, 0n)).toBe(1_000_000n - 7_000n)
  })
})
