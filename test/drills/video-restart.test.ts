import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../src/core/events.ts'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'
import { startReceiver, verify, type WebhookReceiver } from '../tasks/support/webhook-receiver.ts'
import { VIDEO_BODIES, videoBody } from './support/video-bodies.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const MODELS = Object.keys(VIDEO_BODIES)
const newPath = temporaryPaths()

let sandbox: Sandbox
let receiver: WebhookReceiver

beforeEach(async () => {
  sandbox = sandboxVendors({ videoPendingMs: 0, videoRunningMs: 1_000 })
  receiver = await startReceiver()
})
afterEach(async () => {
  await receiver.close()
  await sandbox.close()
})

async function startOn(store: GatewayStore, origin: string, events: GatewayEvent[]): Promise<Gateway> {
  const gateway = createGateway({
    vendors: [dashscope({ apiKey: 'vendor-key', baseURL: origin })],
    prices: testPrices,
    keys: [{ key: TEST_KEY, account: TEST_ACCOUNT }],
    webhookSecret: SECRET,
    allowPrivateUrls: true,
    taskPollIntervalMs: 200,
    onEvent: (event) => events.push(event),
    store,
  })
  await gateway.start()
  return gateway
}

describe('a task of each kind in both protocols outlives a restart of the gateway', () => {
  const kept = memoryStore()
  const path = newPath()
  const stores: readonly (readonly [string, () => GatewayStore])[] = [
    ['memory', () => kept],
    ['SQLite', () => sqliteStore({ path })],
  ]

  test.each(stores)('ends with its charge and its webhook on %s', async (_name, openStore) => {
    const { origin } = await sandbox.listen()
    const before: GatewayEvent[] = []
    const after: GatewayEvent[] = []
    const first = await startOn(openStore(), origin, before)
    await first.accounts.credit(TEST_ACCOUNT, '100')
    const ids: string[] = []
    for (const model of MODELS) {
      const answer = await first.fetch(
        new Request('http://gateway.example/v1/videos/generations', {
          method: 'POST',
          headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
          body: JSON.stringify(videoBody(model, { webhook_url: `${receiver.origin}/${model}` })),
        }),
      )
      expect(answer.status).toBe(202)
      ids.push(((await answer.json()) as { task_id: string }).task_id)
    }
    const held = await first.accounts.get(TEST_ACCOUNT)
    await first.close()

    const second = await startOn(openStore(), origin, after)
    const messages = await receiver.received(MODELS.length)
    const account = await second.accounts.get(TEST_ACCOUNT)
    const entries = await second.accounts.ledger(TEST_ACCOUNT, { limit: 100 })
    await second.close()

    expect(held).toMatchObject({ held: BigInt(MODELS.length) * 400_000_000n })
    expect(before.filter(({ type }) => type === 'task-ended')).toEqual([])
    expect(after.flatMap((event) => (event.type === 'task-ended' ? [event.taskId] : [])).sort()).toEqual(
      [...ids].sort(),
    )
    const told = messages.map(
      (message) => verify(SECRET, message) as { data: { id: string; model: string; status: string } },
    )
    expect(told.map(({ data }) => data.id).sort()).toEqual([...ids].sort())
    expect(new Set(told.map(({ data }) => data.model))).toEqual(new Set(MODELS))
    expect(told.every(({ data }) => data.status === 'completed')).toBe(true)
    expect(account).toMatchObject({ balance: 100_000_000_000n - BigInt(MODELS.length) * 400_000_000n, held: 0n })
    expect(entries.filter(({ kind }) => kind === 'charge')).toHaveLength(MODELS.length)
  })
})
