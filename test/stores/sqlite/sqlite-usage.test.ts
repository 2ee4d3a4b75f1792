import { expect, it } from 'vitest'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import type { UsageRecord } from '../../../src/usage/usage-record.ts'

/** Columns that may be empty, by what a record has in them. */
const OPTIONAL = {
  endUser: 'end-user-1',
  vendor: 'openai',
  credentialId: 'credential-1',
  vendorRequestId: 'vendor-request-1',
  code: 'rate_limited',
  firstByteMs: 12,
} satisfies Partial<UsageRecord>
const NAMES = Object.keys(OPTIONAL) as readonly (keyof typeof OPTIONAL)[]

/** The record whose number says which of these it has. */
function recordOf(number: number): UsageRecord {
  const base: UsageRecord = {
    id: `req_${number}`,
    endedAtMs: 1_750_000_000_000 + number,
    accountId: 'account_1',
    keyId: 'key_1',
    endUser: undefined,
    tags: [],
    endpoint: 'chat',
    model: 'model-1',
    requestedModel: 'model-1',
    vendor: undefined,
    credentialId: undefined,
    vendorRequestId: undefined,
    ending: 'completed',
    status: 200,
    code: undefined,
    isStream: false,
    usage: { inputTokens: number + 1 },
    isEstimated: false,
    durationMs: 30,
    firstByteMs: undefined,
    attempts: undefined,
    dueNanoDollars: BigInt(number),
    chargedNanoDollars: BigInt(number),
  }
  const present = NAMES.filter((_, index) => Math.floor(number / 2 ** index) % 2 === 1)
  return { ...base, ...Object.fromEntries(present.map((name) => [name, OPTIONAL[name]])) }
}

it('records are read as they were written, whichever of their columns are empty', async () => {
  const store = sqliteStore({ path: ':memory:' })
  await store.start()
  const usage = store.usage!
  const written = Array.from({ length: 2 ** NAMES.length }, (_, number) => recordOf(number))
  // More sets of columns than have statements of their own, each twice, and several of a set together.
  await usage.write(written)
  await usage.write(
    written.map((record) => ({ ...record, id: `${record.id}_again`, endedAtMs: record.endedAtMs + 64 })),
  )
  const query = { accountId: 'account_1', fromMs: 0, untilMs: 2_000_000_000_000, after: undefined, limit: 1_000 }
  const { records } = await usage.records(query)

  expect(records).toHaveLength(2 * written.length)
  expect([...records].reverse().slice(0, written.length)).toEqual(written)
  await store.close()
})
