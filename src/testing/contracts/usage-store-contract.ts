import type { GatewayStore } from '../../stores/gateway-store.ts'
import { type UsageDraft, type UsageRecord, usageRecord } from '../../usage/usage-record.ts'
import { DAY_MS, HOUR_MS, type UsageRow, type UsageSeriesQuery, type UsageStore } from '../../usage/usage-store.ts'
import {
  ACCOUNT_ID,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleDraft,
  exampleTask,
  failureName,
  fundedLedger,
  NOW_MS,
  placeHold,
  type TaskContractStore,
} from './contract-runner.ts'

/** Tests each guarantee of the records of calls and their sums, and of their shared changes with the ledger. */
export function describeUsageStore(runner: ContractRunner, subject: ContractSubject<UsageContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject as ContractSubject<UsageSubject>)

  describe('usage store contract: records', () => {
    check('writes the record of a charge with what was charged and when', async (store) => {
      await charge(store, { amount: 60n })
      const [record] = await allRecords(store)
      expect(record).toEqual(usageRecord(DRAFT, { endedAtMs: NOW_MS, dueNanoDollars: 60n, chargedNanoDollars: 60n }))
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
        await placeHold(store, { holdId, amount })
        const record = { ...DRAFT, id: holdId }
        await store.ledger.settle({ ...SETTLEMENT, holdId, amount, record }, NOW_MS)
      }
      const records = await allRecords(store)
      const sumOf = (amounts: readonly bigint[]) => amounts.reduce((sum, amount) => sum + amount, 0n)
      expect(sumOf(records.map(({ dueNanoDollars }) => dueNanoDollars))).toEqual(1_300n)
      expect(sumOf(records.map(({ chargedNanoDollars }) => chargedNanoDollars))).toEqual(1_000n)
      const { sums } = await store.ledger.sums({ accountId: ACCOUNT_ID, fromMs: 0, untilMs: NOW_MS + 1 })
      expect(sums.filter(({ kind }) => kind === 'charge' || kind === 'owed')).toEqual([
        { kind: 'charge', lines: 2, amount: -1_000n, owed: 0n },
        { kind: 'owed', lines: 1, amount: 0n, owed: 300n },
      ])
    })

    check('writes one record for a hold that is settled twice, and none for one that was voided', async (store) => {
      await charge(store, { amount: 60n })
      await store.ledger.settle({ ...SETTLEMENT, record: DRAFT }, NOW_MS)
      await placeHold(store, { holdId: 'hold_2' })
      await store.ledger.void('hold_2', NOW_MS)
      await store.ledger.settle({ ...SETTLEMENT, holdId: 'hold_2', record: DRAFT }, NOW_MS)
      expect((await allRecords(store)).length).toEqual(1)
    })

    check('writes one record for each of many settlements at once', async (store) => {
      await fundedLedger(store, 100_000n)
      const holds = Array.from({ length: 50 }, (_, index) => `hold_${index}`)
      await Promise.all(holds.map(async (holdId) => placeHold(store, { holdId })))
      await Promise.all(
        holds.map(async (holdId, index) =>
          store.ledger.settle(
            { ...SETTLEMENT, holdId, amount: BigInt(index), record: { ...DRAFT, id: holdId } },
            NOW_MS,
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
      await placeHold(store, { task })
      const end = { id: task.id, from: ['queued' as const], set: { state: 'completed' as const } }
      const resolve = { kind: 'settle' as const, amount: 70n, description: 'videos', record: DRAFT }
      await store.tasks.change({ ...end, resolve }, NOW_MS)
      await store.tasks.change({ ...end, resolve }, NOW_MS)
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
      await store.usage.write([free({ id: 'many', attempts }, NOW_MS - 1)])
      await store.usage.write([free({ id: 'plain' }, NOW_MS - 2)])
      const records = await allRecords(store)
      expect(records.map(({ attempts: kept }) => kept)).toEqual([attempts.slice(0, 2), attempts, undefined])
    })

    check('gives an account its own records, newest first, a page at a time', async (store) => {
      const ids = Array.from({ length: 25 }, (_, index) => `request_${String(index).padStart(2, '0')}`)
      // Several of them at the same moment.
      for (const [index, id] of ids.entries()) {
        await store.usage.write([
          free({ id }, NOW_MS + Math.floor(index / 4)),
          free({ id: 'other', accountId: 'account_2' }, NOW_MS + Math.floor(index / 4)),
        ])
      }
      const range = { accountId: ACCOUNT_ID, fromMs: 0, untilMs: NOW_MS * 2, limit: 7 }
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
      await store.usage.write([1, 2, 3].map((at) => free({ id: `request_${at}` }, NOW_MS + at)))
      const range = { accountId: undefined, fromMs: NOW_MS + 1, untilMs: NOW_MS + 3 }
      const { records } = await store.usage.records({ ...range, after: undefined, limit: 10 })
      expect(records.map(({ id }) => id)).toEqual(['request_2', 'request_1'])
    })
  })

  describeUsageSums(runner, subject)
}

/** The cases of sums by hour and by day. */
function describeUsageSums(runner: ContractRunner, subject: ContractSubject<UsageContractStore>): void {
  const { describe, check, expect } = contractCases(runner, subject as ContractSubject<UsageSubject>)

  describe('usage store contract: sums', () => {
    check('adds up each record once, in steps and by several at once', async (store) => {
      const records = Array.from({ length: 40 }, (_, index) => free({ id: `request_${index}` }, NOW_MS + index))
      for (const record of records) await store.usage.write([record])
      await Promise.all(Array.from({ length: 4 }, async () => store.usage.rollUp(7, NOW_MS)))
      await countAll(store)
      await countAll(store)
      const [row] = await series(store, {})
      expect([row?.requests, row?.usage.inputTokens, row?.usage.videoSeconds]).toEqual([40, 4_000, 60])
    })

    check('says up to when the sums are complete', async (store) => {
      for (const at of [1, 2, 3]) await store.usage.write([free({}, NOW_MS + at)])
      const first = await store.usage.rollUp(1, NOW_MS + 10)
      expect([first.added, first.asOfMs < NOW_MS + 3]).toEqual([1, true])
      await countAll(store)
      expect((await store.usage.rollUp(100, NOW_MS + 20)).asOfMs).toEqual(NOW_MS + 20)
    })

    check('groups by time and every dimension', async (store) => {
      await store.usage.write([
        free({ model: 'a' }, DAY_START_MS),
        free({ model: 'a', vendor: undefined, ending: 'failed' }, DAY_START_MS + DAY_MS - 1),
        free({ model: 'b', ending: 'abandoned', isEstimated: true }, DAY_START_MS + DAY_MS),
        free({ model: 'b', accountId: 'account_2', keyId: 'key_2' }, DAY_START_MS + HOUR_MS),
      ])
      await countAll(store)
      const two = { fromMs: DAY_START_MS, untilMs: DAY_START_MS + 2 * DAY_MS }
      const byDay = await series(store, { ...two, step: 'day', groupBy: ['model'] })
      expect(byDay.map(({ atMs, model, requests, failed }) => [atMs, model, requests, failed])).toEqual([
        [DAY_START_MS, 'a', 2, 1],
        [DAY_START_MS, 'b', 1, 0],
        [DAY_START_MS + DAY_MS, 'b', 1, 0],
      ])
      const byHour = await series(store, { ...two, source: 'hours', step: 'hour', groupBy: [] })
      expect(byHour.map(({ atMs, requests }) => [atMs, requests])).toEqual([
        [DAY_START_MS, 1],
        [DAY_START_MS + HOUR_MS, 1],
        [DAY_START_MS + 23 * HOUR_MS, 1],
        [DAY_START_MS + DAY_MS, 1],
      ])
      expect(await series(store, { ...two, source: 'hours', step: 'day', groupBy: ['model'] })).toEqual(byDay)
      const whole = await series(store, { ...two, groupBy: ['account', 'key', 'endpoint', 'vendor'] })
      expect(
        whole.map(({ account, key, endpoint, vendor, requests }) => [account, key, endpoint, vendor, requests]),
      ).toEqual([
        ['account_1', 'key_1', 'chat', '', 1],
        ['account_1', 'key_1', 'chat', 'openai', 2],
        ['account_2', 'key_2', 'chat', 'openai', 1],
      ])
      const filter = { account: 'account_1', model: 'b' }
      const [row] = await series(store, { ...two, filter })
      expect([row?.requests, row?.abandoned, row?.estimated, row?.durationMs]).toEqual([1, 1, 1, 1_200])
      expect(await series(store, { ...two, filter: { vendor: 'no\u0000ne' } })).toEqual([])
    })

    check('gives the top rows by charge and calls, of more than the limit', async (store) => {
      for (const [name, calls] of Object.entries({ a: 1, b: 3, c: 2 }))
        for (let call = 0; call < calls; call++) await store.usage.write([free({ model: name }, DAY_START_MS)])
      await charge(store, { amount: 60n, record: { ...DRAFT, model: 'paid' } })
      await countAll(store)
      for (const source of ['days', 'records'] as const) {
        const rows = await series(store, { ...RANGE, source, groupBy: ['model'], limit: 1, top: 3 })
        expect(rows.map(({ model, requests }) => [model, requests])).toEqual([
          ['paid', 1],
          ['b', 3],
          ['c', 2],
        ])
      }
    })

    check('groups records by end user and tag, an account and the rest included', async (store) => {
      const [one, other] = ['user_1', 'user_2']
      await store.usage.write([
        free({ endUser: one, tags: ['a', 'b'], model: 'm' }, DAY_START_MS),
        free({ endUser: one, tags: ['b'], vendor: undefined, ending: 'failed' }, DAY_START_MS + HOUR_MS),
        free({ endUser: other, tags: [], isEstimated: true }, DAY_START_MS + DAY_MS),
        free({ endUser: undefined, tags: ['a'], accountId: 'account_2', keyId: 'key_2' }, DAY_START_MS + HOUR_MS),
        free({ endUser: one, tags: ['b'] }, DAY_START_MS + 2 * DAY_MS),
      ])
      const two = { source: 'records' as const, fromMs: DAY_START_MS, untilMs: DAY_START_MS + 2 * DAY_MS }
      // None of them is counted yet.
      const byUser = await series(store, { ...two, groupBy: ['endUser'] })
      expect(byUser.map(({ endUser, requests, failed, estimated }) => [endUser, requests, failed, estimated])).toEqual([
        ['', 1, 0, 0],
        [one, 2, 1, 0],
        [other, 1, 0, 1],
      ])
      const byTag = await series(store, { ...two, groupBy: ['tag'] })
      expect(byTag.map(({ tag, requests, durationMs }) => [tag, requests, durationMs])).toEqual([
        ['', 1, 1_200],
        ['a', 2, 2_400],
        ['b', 2, 2_400],
      ])
      const byAll = await series(store, { ...two, step: 'hour', groupBy: ['tag', 'vendor'], filter: { endUser: one } })
      expect(byAll.map(({ atMs, tag, vendor, requests }) => [atMs, tag, vendor, requests])).toEqual([
        [DAY_START_MS, 'a', 'openai', 1],
        [DAY_START_MS, 'b', 'openai', 1],
        [DAY_START_MS + HOUR_MS, 'b', '', 1],
      ])
      const ofTag = await series(store, { ...two, step: 'day', groupBy: ['account'], filter: { tag: 'a' } })
      expect(ofTag.map(({ atMs, account, requests }) => [atMs, account, requests])).toEqual([
        [DAY_START_MS, 'account_1', 1],
        [DAY_START_MS, 'account_2', 1],
      ])
      const filter = { account: 'account_1', endUser: other, tag: '' }
      const [row, ...more] = await series(store, { ...two, groupBy: ['model'], filter })
      expect([row?.requests, row?.usage.inputTokens, more.length]).toEqual([1, 100, 0])
      expect(await series(store, { ...two, filter: { endUser: 'no\u0000ne' } })).toEqual([])
      const wide = { ...two, groupBy: ['endUser'] as const, limit: 2 }
      expect(await failureName(() => series(store, wide))).toEqual('RangeError')
    })

    check('keeps the sums of hours and of whole days alike, made again and in part deleted', async (store) => {
      await store.usage.write(
        [0, 1, 23, 24, 47].map((hour) => free({ durationMs: 10 * (hour + 1) }, DAY_START_MS + hour * HOUR_MS)),
      )
      await countAll(store)
      const range = { fromMs: DAY_START_MS, untilMs: DAY_START_MS + 2 * DAY_MS }
      const ofHours = { ...range, source: 'hours' as const, withLatency: true }
      const sumOf = (rows: readonly UsageRow[]) => rows.reduce((sum, { durationMs }) => sum + durationMs, 0)
      const compare = async (requests: number) => {
        const [whole] = await series(store, ofHours)
        const byHour = await series(store, { ...ofHours, step: 'hour' })
        const byDay = await series(store, { ...ofHours, step: 'day' })
        expect([whole?.requests, byHour.length, byDay.length]).toEqual([requests, requests, requests > 2 ? 2 : 1])
        expect([sumOf(byHour), sumOf(byDay)]).toEqual([whole?.durationMs, whole?.durationMs])
        expect(whole?.latency?.duration.reduce((sum, count) => sum + count)).toEqual(requests)
      }
      await compare(5)
      await store.usage.rebuild(range)
      await compare(5)
      const old = { recordsUntilMs: undefined, daysUntilMs: undefined, limit: 100 }
      expect(await store.usage.forget({ ...old, hoursUntilMs: DAY_START_MS + DAY_MS })).toEqual(3)
      await compare(2)
    })

    check('counts durations and times to the first content by hour', async (store) => {
      const calls = [
        { durationMs: 10, firstByteMs: 11 },
        { durationMs: 900, firstByteMs: undefined },
        { durationMs: 1_000, firstByteMs: 250 },
        { durationMs: 500_000, firstByteMs: 250 },
      ]
      await store.usage.write(calls.map((call) => free(call, NOW_MS)))
      await countAll(store)
      const [row] = await series(store, { source: 'hours', withLatency: true })
      expect(row?.latency).toEqual({
        duration: [1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1],
        firstByte: [0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      })
      expect((await series(store, { source: 'hours' }))[0]?.latency).toEqual(undefined)
      await store.usage.rebuild(RANGE)
      expect((await series(store, { source: 'hours', withLatency: true }))[0]?.latency).toEqual(row?.latency)
    })

    check('keeps every digit of sums of money', async (store) => {
      const dueNanoDollars = 2n ** 60n + 1n
      await store.usage.write([1, 2].map(() => ({ ...free({}, NOW_MS), dueNanoDollars })))
      await countAll(store)
      for (const source of ['days', 'hours', 'records'] as const) {
        const [row] = await series(store, { source })
        expect([row?.dueNanoDollars, row?.chargedNanoDollars]).toEqual([2n ** 61n + 2n, 0n])
      }
    })

    check('refuses an answer of more rows than are wanted', async (store) => {
      await store.usage.write(['a', 'b', 'c'].map((model) => free({ model }, NOW_MS)))
      await countAll(store)
      const wide = { groupBy: ['model'] as const, limit: 2 }
      expect(await failureName(() => series(store, wide))).toEqual('RangeError')
      expect((await series(store, { ...wide, limit: 3 })).length).toEqual(3)
    })

    check('finds no difference between records, sums and journal, and tells one', async (store) => {
      await charge(store, { amount: 1_400n })
      await store.ledger.credit(
        { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 900n, description: 'more' },
        NOW_MS,
      )
      await countAll(store)
      expect(await store.usage.verify(RANGE)).toEqual([])
      await placeHold(store, { holdId: 'hold_2' })
      await store.ledger.settle({ ...SETTLEMENT, holdId: 'hold_2', amount: 5n }, NOW_MS)
      expect(await store.usage.verify(RANGE)).toEqual([
        { accountId: ACCOUNT_ID, records: 1_000n, days: 1_000n, journal: 1_005n },
      ])
    })

    check('makes sums again from the records, and counts none of them twice', async (store) => {
      await store.usage.write([free({}, NOW_MS), free({ id: 'request_2' }, NOW_MS + DAY_MS)])
      await countAll(store)
      await store.usage.write([free({ id: 'request_3' }, NOW_MS)])
      await store.usage.rebuild(RANGE)
      expect((await series(store, {}))[0]?.requests).toEqual(1)
      await countAll(store)
      expect((await series(store, {}))[0]?.requests).toEqual(2)
      expect((await series(store, { source: 'hours' }))[0]?.requests).toEqual(2)
    })

    check('deletes what is old, but no record that is not in the sums', async (store) => {
      await store.usage.write([free({}, NOW_MS - DAY_MS)])
      const old = { hoursUntilMs: undefined, daysUntilMs: undefined, limit: 100 }
      expect(await store.usage.forget({ ...old, recordsUntilMs: NOW_MS })).toEqual(0)
      await countAll(store)
      await store.usage.write([free({ id: 'request_2' }, NOW_MS)])
      await countAll(store)
      expect(await store.usage.forget({ ...old, recordsUntilMs: NOW_MS })).toEqual(1)
      expect((await allRecords(store)).map(({ id }) => id)).toEqual(['request_2'])
      const range = { fromMs: DAY_START_MS - 2 * DAY_MS, untilMs: DAY_START_MS + DAY_MS }
      expect((await series(store, range))[0]?.requests).toEqual(2)
      const sums = { recordsUntilMs: undefined, hoursUntilMs: DAY_START_MS, daysUntilMs: DAY_START_MS, limit: 100 }
      expect(await store.usage.forget(sums)).toEqual(2)
      expect((await series(store, range))[0]?.requests).toEqual(1)
      expect((await series(store, { ...range, source: 'hours' }))[0]?.requests).toEqual(1)
    })
  })
}

/** The parts of a driver that the suite of usage needs. */
export type UsageContractStore = TaskContractStore & Pick<GatewayStore, 'usage'>

/** A driver under test, which must have a store of usage. */
type UsageSubject = TaskContractStore & { readonly usage: UsageStore }

/** The UTC day of the examples. */
const DAY_START_MS = Math.floor(NOW_MS / DAY_MS) * DAY_MS
const RANGE = { fromMs: DAY_START_MS, untilMs: DAY_START_MS + DAY_MS }

const DRAFT: UsageDraft = exampleDraft()

const SETTLEMENT = { holdId: 'hold_1', amount: 60n, description: 'chat gp-5.4' }

/** Charges the example's hold of an account with 1,000. */
async function charge(
  store: UsageSubject,
  { amount, record = DRAFT }: { readonly amount: bigint; readonly record?: UsageDraft },
): Promise<void> {
  await fundedLedger(store, 1_000n)
  await placeHold(store)
  await store.ledger.settle({ ...SETTLEMENT, amount, record }, NOW_MS)
}

/** The record of a call that cost nothing. */
function free(overrides: Partial<UsageDraft>, endedAtMs: number): UsageRecord {
  return usageRecord({ ...DRAFT, ...overrides }, { endedAtMs, dueNanoDollars: 0n, chargedNanoDollars: 0n })
}

async function allRecords({ usage }: UsageSubject): Promise<readonly UsageRecord[]> {
  const range = { accountId: undefined, fromMs: 0, untilMs: NOW_MS * 2 }
  return (await usage.records({ ...range, after: undefined, limit: 1_000 })).records
}

async function countAll({ usage }: UsageSubject): Promise<void> {
  while ((await usage.rollUp(1_000, NOW_MS)).added > 0);
}

async function series({ usage }: UsageSubject, query: Partial<UsageSeriesQuery>): Promise<readonly UsageRow[]> {
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
