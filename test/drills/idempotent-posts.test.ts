import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { type Schemas, schemasOn } from '../stores/postgres/support/fresh-schema.ts'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { realServer } from '../support/real-servers.ts'
import { chatBody, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { sendCrowd } from './support/crowd.ts'
import { GATED_ANSWER_COST, type GatedVendor, gatedVendor } from './support/gated-vendor.ts'

const POSTS = 50
const ROUNDS = process.env['DRILL'] === 'long' ? 40 : 2

const newPath = temporaryPaths()
const postgres = await realServer('postgres')

let vendor: GatedVendor

beforeEach(async () => {
  vendor = await gatedVendor()
})
afterEach(() => vendor.close())

/** Sends 50 equal requests, answers at the vendor once all others were refused, and sends the request once more. */
async function drill(store: GatewayStore): Promise<void> {
  const started = await startGateway({ store, vendors: [openai({ apiKey: 'vendor-key', baseURL: vendor.origin })] })
  const post = (round: number, count: number) =>
    sendCrowd([`${started.url}/v1/chat/completions`], {
      count,
      headers: { authorization: `Bearer ${TEST_KEY}`, 'idempotency-key': `order-${round}` },
      body: chatBody('chat-relayed', 'count to three'),
    })

  const first = post(0, POSTS)
  await new Promise<void>((resolve) => {
    const look = (): void => {
      if (vendor.received + first.statuses.length >= POSTS) resolve()
    }
    vendor.onArrival = look
    first.onAnswer = look
  })
  const receivedAtOnce = vendor.received
  vendor.release()
  const statuses = await first.all
  const replayed = await post(0, POSTS).all
  // From now on the vendor answers at once, so that requests meet the first one at every point of its way.
  for (let round = 1; round <= ROUNDS; round++) await post(round, POSTS).all
  const { balance, held } = await started.account()
  const entries = await started.gateway.accounts.ledger(TEST_ACCOUNT, { limit: 1000 })
  await started.close()

  expect(receivedAtOnce).toBe(1)
  expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  expect(statuses.filter((status) => status === 409)).toHaveLength(POSTS - 1)
  expect(replayed).toEqual(new Array(POSTS).fill(200))
  expect(vendor.received).toBe(1 + ROUNDS)
  const charges = entries.filter(({ kind }) => kind === 'charge').map(({ amount }) => amount)
  expect(charges).toEqual(new Array(1 + ROUNDS).fill(-GATED_ANSWER_COST))
  expect(held).toBe(0n)
  expect(balance).toBe(entries.reduce((sum, { amount }) => sum + amount, 0n))
}

const NAME = '50 equal POSTs with one Idempotency-Key at the same time have one effect'
const LIMIT = { timeout: 120_000 }

describe('through a gateway on memory', () => {
  test(NAME, LIMIT, () => drill(memoryStore()))
})

describe('through a gateway on SQLite', () => {
  test(NAME, LIMIT, () => drill(sqliteStore({ path: newPath() })))
})

describe.skipIf(postgres.missing !== undefined)('through a gateway on PostgreSQL', () => {
  let schemas: Schemas
  let store: GatewayStore

  beforeEach(async () => {
    schemas = schemasOn(postgres.url)
    store = await schemas.create()
  })
  afterEach(async () => {
    await schemas.dispose(store)
    await schemas.end()
  })

  test(NAME, LIMIT, () => drill(store))
})
