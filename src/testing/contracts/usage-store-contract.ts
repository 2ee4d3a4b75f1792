import { usageRecord } from '../../usage/usage-record.ts'
import type { UsageStore } from '../../usage/usage-store.ts'
import type { ContractRunner, ContractSubject } from './contract-runner.ts'
import { ACCOUNT_ID, EXAMPLE_NOW_MS, exampleReservation, exampleTask, fundedLedger } from './store-example.ts'
import { allRecords, charge, DRAFT, free, SETTLEMENT, type UsageContractStore, usageCheck } from './usage-example.ts'
import { describeUsageSums } from './usage-sums-contract.ts'

export type { UsageContractStore } from './usage-example.ts'

/** Tests each guarantee of the records of calls and their sums, and of their shared changes with the ledger. */
export function describeUsageStore(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<UsageContractStore>,
): void {
  const check = usageCheck(it, subject)

  describe('usage store contract: records', () => {
    check('writes the record of a charge with what was charged and when', async (store) => {
      await charge(store, { amount: 60n })
      const [record] = await allRecords(store)
      expect(record).toEqual(
        usageRecord(DRAFT, { endedAtMs: EXAMPLE_NOW_MS, dueNanoDollars: 60n, chargedNanoDollars: 60n }),
      )
    })

    check('tells what was due from what the balance paid', async (store) => {
      await charge(store, { amount: 1_400n })
      const [record] = await allRecords(store)
      expect([record?.dueNanoDollars, record?.chargedNanoDollars]).toEqual([1_400n, 1_000n])
    })

    check('sums up with the journal for a metered account: charged is what its balance paid', async (store) => {
      await fundedLedger(store, 1_000n)
      await store.ledger.updateAccount(ACCOUNT_ID, { billing: 'metered' })
      for (const [holdId, amount] of [
        ['hold_1', 700n],
        ['hold_2', 600n],
      ] as const) {
        await store.ledger.reserve(exampleReservation({ holdId, amount }), EXAMPLE_NOW_MS)
        const record = { ...DRAFT, id: holdId }
        await store.ledger.settle({ ...SETTLEMENT, holdId, amount, record }, EXAMPLE_NOW_MS)
      }
      const records = await allRecords(store)
      const sumOf = (amounts: readonly bigint[]) => amounts.reduce((sum, amount) => sum + amount, 0n)
      expect(sumOf(records.map(({ dueNanoDollars }) => dueNanoDollars))).toEqual(1_300n)
      expect(sumOf(records.map(({ chargedNanoDollars }) => chargedNanoDollars))).toEqual(1_000n)
      const { sums } = await store.ledger.sums({ accountId: ACCOUNT_ID, fromMs: 0, untilMs: EXAMPLE_NOW_MS + 1 })
      expect(sums.filter(({ kind }) => kind === 'charge' || kind === 'owed')).toEqual([
        { kind: 'charge', lines: 2, amount: -1_000n, owed: 0n },
        { kind: 'owed', lines: 1, amount: 0n, owed: 300n },
      ])
    })

    check('writes one record for a hold that is settled twice, and none for one that was voided', async (store) => {
      await charge(store, { amount: 60n })
      await store.ledger.settle({ ...SETTLEMENT, record: DRAFT }, EXAMPLE_NOW_MS)
      await store.ledger.reserve(exampleReservation({ holdId: 'hold_2' }), EXAMPLE_NOW_MS)
      await store.ledger.void('hold_2', EXAMPLE_NOW_MS)
      await store.ledger.settle({ ...SETTLEMENT, holdId: 'hold_2', record: DRAFT }, EXAMPLE_NOW_MS)
      expect((await allRecords(store)).length).toEqual(1)
    })

    check('writes one record for each of many settlements at once', async (store) => {
      await fundedLedger(store, 100_000n)
      const holds = Array.from({ length: 50 }, (_, index) => `hold_${index}`)
      await Promise.all(
        holds.map(async (holdId) => store.ledger.reserve(exampleReservation({ holdId }), EXAMPLE_NOW_MS)),
      )
      await Promise.all(
        holds.map(async (holdId, index) =>
          store.ledger.settle(
            { ...SETTLEMENT, holdId, amount: BigInt(index), record: { ...DRAFT, id: holdId } },
            EXAMPLE_NOW_MS,
          ),
        ),
      )
      const records = await allRecords(store)
      expect(new Set(records.map(({ id }) => id)).size).toEqual(50)
      expect(records.reduce((sum, { chargedNanoDollars }) => sum + chargedNanoDollars, 0n)).toEqual(1_225n)
    })

    check('writes the record of a task in the change that ends it', async (store) => {
      await fundedLedger(store, 1_000n)
      const task = exampleTask({ holdId: 'hold_1' })
      await store.ledger.reserve(exampleReservation({ task }), EXAMPLE_NOW_MS)
      const end = { id: task.id, from: ['queued' as const], set: { state: 'completed' as const } }
      const resolve = { kind: 'settle' as const, amount: 70n, description: 'videos', record: DRAFT }
      await store.tasks.change({ ...end, resolve }, EXAMPLE_NOW_MS)
      await store.tasks.change({ ...end, resolve }, EXAMPLE_NOW_MS)
      const records = await allRecords(store)
      expect(records.map(({ chargedNanoDollars }) => chargedNanoDollars)).toEqual([70n])
    })

    check('charges although the record holds what no column takes', async (store) => {
      const endUser = `a\u0000b\ud800c${'d'.repeat(1_000_000)}`
      const usage = { inputTokens: Number.NaN, outputTokens: 1e30, images: -1 }
      await charge(store, { amount: 60n, record: { ...DRAFT, endUser, requestedModel: '\u0000', usage } })
      expect((await store.ledger.account(ACCOUNT_ID))?.balance).toEqual(940n)
      const [record] = await allRecords(store)
      expect(record?.id).toEqual('request_1')
    })

    check('keeps the attempts of a call, of a charged one as of others', async (store) => {
      const attempts = Array.from({ length: 16 }, (_, index) => {
        const outcome = (['failed', 'abandoned', 'answered'] as const)[index % 3]!
        const failed = outcome === 'failed'
        const why = { reason: failed ? 'unavailable' : undefined, status: failed ? 503 : undefined }
        const times = { startMs: index * 10, durationMs: index + 1 }
        return { vendor: 'openai', credentialId: 'openai:1', model: 'gp-"5.4"', outcome, ...why, ...times }
      })
      await charge(store, { amount: 60n, record: { ...DRAFT, attempts: attempts.slice(0, 2) } })
      await store.usage.write([free({ id: 'many', attempts }, EXAMPLE_NOW_MS - 1)])
      await store.usage.write([free({ id: 'plain' }, EXAMPLE_NOW_MS - 2)])
      const records = await allRecords(store)
      expect(records.map(({ attempts: kept }) => kept)).toEqual([attempts.slice(0, 2), attempts, undefined])
    })

    check('gives an account its own records, newest first, a page at a time', async (store) => {
      const ids = Array.from({ length: 25 }, (_, index) => `request_${String(index).padStart(2, '0')}`)
      // Several of them at the same moment.
      for (const [index, id] of ids.entries()) {
        await store.usage.write([
          free({ id }, EXAMPLE_NOW_MS + Math.floor(index / 4)),
          free({ id: 'other', accountId: 'account_2' }, EXAMPLE_NOW_MS + Math.floor(index / 4)),
        ])
      }
      const range = { accountId: ACCOUNT_ID, fromMs: 0, untilMs: EXAMPLE_NOW_MS * 2, limit: 7 }
      const seen: string[] = []
      let after: Awaited<ReturnType<UsageStore['records']>>['end']
      do {
        const page = await store.usage.records({ ...range, after })
        seen.push(...page.records.map(({ id }) => id))
        after = page.end
      } while (after !== undefined)
      expect(seen).toEqual([...ids].reverse())
    })

    check('gives the records of a range, its end excluded', async (store) => {
      await store.usage.write([1, 2, 3].map((at) => free({ id: `request_${at}` }, EXAMPLE_NOW_MS + at)))
      const range = { accountId: undefined, fromMs: EXAMPLE_NOW_MS + 1, untilMs: EXAMPLE_NOW_MS + 3 }
      const { records } = await store.usage.records({ ...range, after: undefined, limit: 10 })
      expect(records.map(({ id }) => id)).toEqual(['request_2', 'request_1'])
    })
  })

  describeUsageSums({ describe, it, expect }, subject)
}
