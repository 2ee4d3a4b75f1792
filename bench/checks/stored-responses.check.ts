import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createGateway } from '../../src/gateway/gateway.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { StoredResponse } from '../../src/stores/response-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { sandboxVendors } from '../../src/testing/index.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { usedBytes } from './used-bytes.ts'

const ANSWERS = 100_000
const NOW_MS = 1_750_000_000_000
const KEY = 'sk-check-0123456789'
const TURNS = 50
const WORDS = 'a sentence of some length, as people write them. '.repeat(10)

function turn(number: number): StoredResponse {
  const id = `resp_${number}`
  return {
    id,
    accountId: 'account_1',
    previousId: number % 5 === 0 ? undefined : `resp_${number - 1}`,
    vendor: 'anthropic',
    credentialId: 'anthropic:0123456789abcdef',
    upstreamId: undefined,
    model: 'cl-sonnet-4-6',
    input: [{ id: `msg_in${number}`, type: 'message', role: 'user', content: WORDS }],
    response: {
      id,
      status: 'completed',
      output: [{ id: `msg_${number}`, type: 'message', content: [{ text: WORDS }] }],
    },
    createdAtMs: NOW_MS + number,
    expiresAtMs: NOW_MS + 1_000_000_000,
  }
}

function median(times: readonly number[]): number {
  return [...times].sort((left, right) => left - right)[times.length >> 1] ?? Number.POSITIVE_INFINITY
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await run()
  return performance.now() - startMs
}

test('100,000 answers take no more memory than the bounds of the memory store', async () => {
  const { responses } = memoryStore()
  const bytesBefore = await usedBytes()
  for (let number = 0; number < ANSWERS; number++) await responses.save(turn(number))
  const grownBytes = (await usedBytes()) - bytesBefore
  expect(await responses.find('account_1', `resp_${ANSWERS - 1}`, NOW_MS)).toBeDefined()
  expect(await responses.find('account_1', 'resp_0', NOW_MS)).toBe(undefined)
  console.log(`100,000 answers in memory: ${(grownBytes / 1024 / 1024).toFixed(1)} MiB`)
  // 10,000 of them are kept, of some 1.4 kB; all would take ten times as much.
  expect(grownBytes).toBeLessThan(48 * 1024 * 1024)
})

test('one of 100,000 answers is read from SQLite within a millisecond, at the median', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-check-'))
  const store = sqliteStore({ path: join(folder, 'store.db') })
  try {
    await store.start()
    for (let number = 0; number < ANSWERS; number += 1_000)
      await Promise.all(Array.from({ length: 1_000 }, (_, index) => store.responses.save(turn(number + index))))
    const times: number[] = []
    for (let count = 0; count < 2_000; count++) {
      const id = `resp_${(count * 7_919) % ANSWERS}`
      times.push(await timed(async () => expect((await store.responses.find('account_1', id, NOW_MS))?.id).toBe(id)))
    }
    console.log(`SQLite, one of 100,000 answers: ${median(times).toFixed(3)} ms`)
    expect(median(times)).toBeLessThan(1)
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
})

test.each(['memory', 'sqlite'])(
  'a conversation of 50 turns costs at most 5 ms more by its id than sent whole (%s)',
  async (driver) => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-check-'))
    const store: GatewayStore = driver === 'memory' ? memoryStore() : sqliteStore({ path: join(folder, 'store.db') })
    const sandbox = sandboxVendors()
    const gateway = createGateway({
      vendors: [anthropic({ apiKey: 'vendor-key', baseURL: 'http://vendor.invalid' })],
      transport: sandbox.transport(),
      billing: 'off',
      store,
      keys: [{ key: KEY, account: 'account_1' }],
    })
    const respond = async (body: object): Promise<{ readonly id: string; readonly output: readonly object[] }> => {
      const request = new Request('http://gateway.invalid/v1/responses', {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'cl-sonnet-4-6', ...body }),
      })
      const answer = await gateway.fetch(request)
      expect(answer.status).toBe(200)
      return (await answer.json()) as { readonly id: string; readonly output: readonly object[] }
    }
    try {
      const history: object[] = []
      let previous: string | undefined
      for (let count = 0; count < TURNS; count++) {
        const input = [{ role: 'user', content: `${count} ${WORDS}` }]
        const { id, output } = await respond({
          input,
          ...(previous === undefined ? {} : { previous_response_id: previous }),
        })
        history.push(...input, ...output)
        previous = id
      }
      const last = { role: 'user', content: 'and now' }
      const byId: number[] = []
      const whole: number[] = []
      for (let count = 0; count < 60; count++) {
        byId.push(await timed(() => respond({ input: [last], previous_response_id: previous, store: false })))
        whole.push(await timed(() => respond({ input: [...history, last], store: false })))
      }
      const addedMs = median(byId) - median(whole)
      console.log(`${driver}: ${TURNS} turns by id ${median(byId).toFixed(2)} ms, whole ${median(whole).toFixed(2)} ms`)
      expect(addedMs).toBeLessThan(5)
    } finally {
      await gateway.close()
      rmSync(folder, { recursive: true })
    }
  },
)
