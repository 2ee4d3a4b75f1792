import { DAY_MS, HOUR_MS, type UsageRow } from '../../usage/usage-store.ts'
import { type ContractRunner, type ContractSubject, failureName } from './contract-runner.ts'
import { ACCOUNT_ID, EXAMPLE_NOW_MS, exampleReservation } from './store-example.ts'
import {
  allRecords,
  charge,
  countAll,
  DAY_START_MS,
  DRAFT,
  free,
  RANGE,
  SETTLEMENT,
  series,
  type UsageContractStore,
  usageCheck,
} from './usage-example.ts'

/** The cases of sums by hour and by day. */
export function describeUsageSums(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<UsageContractStore>,
): void {
  const check = usageCheck(it, subject)

  describe('usage store contract: sums', () => {
    check('adds up each record once, in steps and by several at once', async (store) => {
      const records = Array.from({ length: 40 }, (_, index) => free({ id: `request_${index}` }, EXAMPLE_NOW_MS + index))
      for (const record of records) await store.usage.write([record])
      await Promise.all(Array.from({ length: 4 }, async () => store.usage.rollUp(7, EXAMPLE_NOW_MS)))
      await countAll(store)
      await countAll(store)
      const [row] = await series(store, {})
      expect([row?.requests, row?.usage.inputTokens, row?.usage.videoSeconds]).toEqual([40, 4_000, 60])
    })

    check('says up to when the sums are complete', async (store) => {
      for (const at of [1, 2, 3]) await store.usage.write([free({}, EXAMPLE_NOW_MS + at)])
      const first = await store.usage.rollUp(1, EXAMPLE_NOW_MS + 10)
      expect([first.added, first.asOfMs < EXAMPLE_NOW_MS + 3]).toEqual([1, true])
      await countAll(store)
      expect((await store.usage.rollUp(100, EXAMPLE_NOW_MS + 20)).asOfMs).toEqual(EXAMPLE_NOW_MS + 20)
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
      const hoursByDay = await series(store, { ...two, source: 'hours', step: 'day', groupBy: ['model'] })
      expect(hoursByDay).toEqual(byDay)
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
      await store.usage.write(calls.map((call) => free(call, EXAMPLE_NOW_MS)))
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
      await store.usage.write([1, 2].map(() => ({ ...free({}, EXAMPLE_NOW_MS), dueNanoDollars })))
      await countAll(store)
      for (const source of ['days', 'hours', 'records'] as const) {
        const [row] = await series(store, { source })
        expect([row?.dueNanoDollars, row?.chargedNanoDollars]).toEqual([2n ** 61n + 2n, 0n])
      }
    })

    check('refuses an answer of more rows than are wanted', async (store) => {
      await store.usage.write(['a', 'b', 'c'].map((model) => free({ model }, EXAMPLE_NOW_MS)))
      await countAll(store)
      const wide = { groupBy: ['model'] as const, limit: 2 }
      expect(await failureName(() => series(store, wide))).toEqual('RangeError')
      expect((await series(store, { ...wide, limit: 3 })).length).toEqual(3)
    })

    check('finds no difference between records, sums and journal, and tells one', async (store) => {
      await charge(store, { amount: 1_400n })
      await store.ledger.credit(
        { creditId: 'credit_2', accountId: ACCOUNT_ID, amount: 900n, description: 'more' },
        EXAMPLE_NOW_MS,
      )
      await countAll(store)
      expect(await store.usage.verify(RANGE)).toEqual([])
      await store.ledger.reserve(exampleReservation({ holdId: 'hold_2' }), EXAMPLE_NOW_MS)
      await store.ledger.settle({ ...SETTLEMENT, holdId: 'hold_2', amount: 5n }, EXAMPLE_NOW_MS)
      expect(await store.usage.verify(RANGE)).toEqual([
        { accountId: ACCOUNT_ID, records: 1_000n, days: 1_000n, journal: 1_005n },
      ])
    })

    check('makes sums again from the records, and counts none of them twice', async (store) => {
      await store.usage.write([free({}, EXAMPLE_NOW_MS), free({ id: 'request_2' }, EXAMPLE_NOW_MS + DAY_MS)])
      await countAll(store)
      await store.usage.write([free({ id: 'request_3' }, EXAMPLE_NOW_MS)])
      await store.usage.rebuild(RANGE)
      expect((await series(store, {}))[0]?.requests).toEqual(1)
      await countAll(store)
      expect((await series(store, {}))[0]?.requests).toEqual(2)
      expect((await series(store, { source: 'hours' }))[0]?.requests).toEqual(2)
    })

    check('deletes what is old, but no record that is not in the sums', async (store) => {
      await store.usage.write([free({}, EXAMPLE_NOW_MS - DAY_MS)])
      const old = { hoursUntilMs: undefined, daysUntilMs: undefined, limit: 100 }
      expect(await store.usage.forget({ ...old, recordsUntilMs: EXAMPLE_NOW_MS })).toEqual(0)
      await countAll(store)
      await store.usage.write([free({ id: 'request_2' }, EXAMPLE_NOW_MS)])
      await countAll(store)
      expect(await store.usage.forget({ ...old, recordsUntilMs: EXAMPLE_NOW_MS })).toEqual(1)
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
