import { expect, test } from 'vitest'
import { memoryResponses } from '../../../src/stores/memory/memory-responses.ts'
import type { StoredResponse } from '../../../src/stores/response-store.ts'

const NOW_MS = 1_750_000_000_000

function turn(number: number, text = 'x'): StoredResponse {
  return {
    id: `resp_${number}`,
    accountId: 'account_1',
    previousId: undefined,
    vendor: 'v',
    credentialId: 'c',
    upstreamId: undefined,
    model: 'm',
    input: [{ id: `msg_${number}`, text }],
    response: { output: [] },
    createdAtMs: NOW_MS + number,
    expiresAtMs: NOW_MS + 1_000_000,
  }
}

test('100,000 answers leave the newest, within the bound of their number', async () => {
  const store = memoryResponses({ maxResponses: 1_000 })
  for (let number = 0; number < 100_000; number++) await store.save(turn(number))
  expect(await store.find('account_1', 'resp_98999', NOW_MS)).toBe(undefined)
  expect((await store.find('account_1', 'resp_99000', NOW_MS))?.id).toBe('resp_99000')
  expect(await store.findByItems('account_1', ['msg_98999', 'msg_99999'], NOW_MS)).toHaveLength(1)
})

test('large answers leave the newest, within the bound of their bytes', async () => {
  const store = memoryResponses({ maxResponseBytes: 10_000 })
  for (let number = 0; number < 20; number++) await store.save(turn(number, 'x'.repeat(2_000)))
  expect(await store.find('account_1', 'resp_15', NOW_MS)).toBe(undefined)
  expect((await store.find('account_1', 'resp_19', NOW_MS))?.id).toBe('resp_19')
  await store.save(turn(20, 'x'.repeat(20_000)))
  expect(await store.find('account_1', 'resp_20', NOW_MS)).toBe(undefined)
})

test('expired answers are deleted incrementally', async () => {
  const store = memoryResponses({ maxResponses: 100 })
  for (let number = 0; number < 50; number++) await store.save({ ...turn(number), expiresAtMs: NOW_MS + 100 })
  for (let number = 200; number < 280; number++) await store.save(turn(number))
  // None of the 80 was dropped to make room, so the 50 are gone.
  expect((await store.find('account_1', 'resp_200', NOW_MS))?.id).toBe('resp_200')
  expect(await store.find('account_1', 'resp_49', NOW_MS)).toBe(undefined)
})
