import { expect, test } from 'vitest'
import { findRecord, type UsageReports } from '../../../src/gateway/usage.ts'
import { exampleDraft } from '../../../src/testing/contracts/contract-runner.ts'
import { type UsageRecord, usageRecord } from '../../../src/usage/usage-record.ts'

const AT_MS = Date.UTC(2026, 10, 27)
const MAX_ON_A_PAGE = 1_000

/** Reports of these records, newest first, in pages as the gateway gives them. */
function reportsOf(times: ReadonlyMap<string, number>) {
  let read = 0
  const records = async ({ from = 0, to = 0, cursor = '0' }: Parameters<UsageReports['records']>[0] = {}) => {
    const within = [...times]
      .filter(([, endedAtMs]) => endedAtMs >= Number(from) && endedAtMs < Number(to))
      .sort(([, one], [, other]) => other - one)
    const page = within.slice(Number(cursor), Number(cursor) + MAX_ON_A_PAGE)
    read += page.length
    const next = Number(cursor) + page.length
    return { records: page.map(recordOf), next: next < within.length ? String(next) : undefined }
  }
  return { usage: { records } as Pick<UsageReports, 'records'>, read: () => read }
}

function recordOf([id, endedAtMs]: readonly [string, number]): UsageRecord {
  return usageRecord(exampleDraft({ id }), { endedAtMs, dueNanoDollars: 0n, chargedNanoDollars: 0n })
}

test.each([
  ['at that time', 0],
  ['after a vendor that took half a minute to tell of its task', 31_000],
  ['by a clock of the store that is behind', -400],
])('a record is found by when its task ended, %s', async (_when, laterMs) => {
  const { usage } = reportsOf(new Map([['req_task', AT_MS + laterMs]]))
  const found = await findRecord(usage, { id: 'req_task', endedAtMs: AT_MS, nowMs: AT_MS + 60_000 })

  expect(found?.id).toBe('req_task')
})

test('a record is found by the time in its id among those of a busy hour, and the search of what there is not is bounded', async () => {
  const id = `req_${AT_MS.toString(16).padStart(12, '0')}${'0'.repeat(20)}`
  const others = Array.from({ length: 50_000 }, (_, index) => [`req_${index}`, AT_MS + index * 15] as const)
  const { usage, read } = reportsOf(new Map([...others, [id, AT_MS + 2_500]]))
  const found = await findRecord(usage, { id, endedAtMs: undefined, nowMs: AT_MS + 3_600_000 })
  const readForOne = read()
  const missing = await findRecord(usage, { id: `${id.slice(0, -1)}1`, endedAtMs: undefined, nowMs: AT_MS + 3_600_000 })

  expect(found?.id).toBe(id)
  expect(readForOne).toBeLessThan(1_000)
  expect(missing).toBeUndefined()
  expect(read() - readForOne).toBeLessThan(25_000)
})

test('reads nothing for an id without a time, or with a future one', async () => {
  const { usage, read } = reportsOf(new Map([['mine', AT_MS]]))
  const future = `req_${(AT_MS + 1).toString(16).padStart(12, '0')}${'0'.repeat(20)}`

  expect(await findRecord(usage, { id: 'mine', endedAtMs: undefined, nowMs: AT_MS })).toBeUndefined()
  expect(await findRecord(usage, { id: future, endedAtMs: undefined, nowMs: AT_MS })).toBeUndefined()
  expect(read()).toBe(0)
})
