import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LedgerEntry } from '../../../src/stores/journal.ts'
import { memoryLedger } from '../../../src/stores/memory/memory-ledger.ts'
import { expectLikeModel, ledgerHistories } from '../support/ledger-model.ts'

describe('memory ledger', () => {
  it('agrees with a simple model over random histories, to the nano-dollar, with or without a short journal', async () => {
    await fc.assert(
      fc.asyncProperty(
        ledgerHistories({ maxLength: 120 }),
        fc.constantFrom(2, 10_000),
        async (history, maxJournalLines) => expectLikeModel(memoryLedger({ maxJournalLines }), history),
      ),
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

  it('sums old journal lines up in one, so that a busy account does not grow indefinitely', () => {
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
