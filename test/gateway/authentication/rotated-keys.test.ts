import { afterEach, describe, expect, test } from 'vitest'
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { fakeClock } from '../../../src/testing/index.ts'

const HOUR_MS = 3_600_000
const clock = fakeClock()
let gateway: Gateway

afterEach(() => gateway.close())

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
] as const)('on %s, a key that is rotated again', (_name, open) => {
  const start = async (lifetime?: { readonly expiresAtMs: number }): Promise<string> => {
    gateway = createGateway({ vendors: [], billing: 'off', store: open(), clock })
    await gateway.accounts.create({ id: 'a' })
    return (await gateway.keys.create({ accountId: 'a', ...lifetime })).record.id
  }

  test.each([undefined, clock.now() + 1_000 * HOUR_MS])(
    'while it still overlaps gives a key with its own lifetime (%s; a day before, as the old key has)',
    async (expiresAtMs) => {
      const id = await start(expiresAtMs === undefined ? undefined : { expiresAtMs })
      const first = await gateway.keys.rotate(id, { overlapMs: 24 * HOUR_MS })
      const second = await gateway.keys.rotate(id, { overlapMs: 24 * HOUR_MS })
      const third = await gateway.keys.rotate(first.record.id, { overlapMs: HOUR_MS })
      const fourth = await gateway.keys.rotate(id, { overlapMs: HOUR_MS })

      for (const { record } of [first, second, third, fourth]) expect(record.expiresAtMs).toBe(expiresAtMs)
      expect(third.record.replaces).toBe(first.record.id)
      const expiries = new Map((await gateway.keys.list('a')).map((key) => [key.id, key.expiresAtMs]))
      expect(expiries.get(id)).toBe(clock.now() + HOUR_MS)
      expect(expiries.get(first.record.id)).toBe(clock.now() + HOUR_MS)
      expect(expiries.get(fourth.record.id)).toBe(expiresAtMs)
    },
  )
})
