import { afterEach, describe, expect, test } from 'vitest'
import { fetchHandler, nextHandlers } from '../../../src/adapters/fetch.ts'
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { fakeClock, sandboxVendors } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { defaultEngine } from '../../stores/sqlite/support/sqlite-engines.ts'
import { temporaryPaths } from '../../stores/sqlite/support/temporary-folder.ts'
import { TEST_ACCOUNT, TEST_KEY, TEST_MODELS } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

const newPath = temporaryPaths()
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function gatewayOn(
  store: NonNullable<GatewayOptions['store']>,
  options: Partial<GatewayOptions> = {},
): Promise<Gateway> {
  const sandbox = sandboxVendors()
  const { origin } = await sandbox.listen()
  const gateway = createGateway({
    vendors: [openai({ apiKey: 'vendor-key', baseURL: origin })],
    models: TEST_MODELS,
    prices: testPrices,
    keys: [{ key: TEST_KEY, account: TEST_ACCOUNT }],
    store,
    ...options,
  })
  closers.push(
    () => sandbox.close(),
    () => gateway.close({ drainMs: 100 }),
  )
  await gateway.start()
  await gateway.accounts.credit(TEST_ACCOUNT, '5')
  return gateway
}

const chat = (members: object = {}, path = '/v1/chat/completions'): Request =>
  new Request(`https://host.example${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'chat-relayed', messages: [{ role: 'user', content: 'hello' }], ...members }),
  })

/** Reads the body with a second connection, synchronously: nothing else can run between the end of a body and this. */
function booksAt(path: string): { readonly holds: number; readonly charges: number } {
  const database = defaultEngine.open(path)
  const count = (sql: string): number => Number((database.prepare(sql).get() as { readonly n: number }).n)
  const holds = count('SELECT count(*) AS n FROM signalbox_holds WHERE ended_at_ms IS NULL')
  const charges = count("SELECT count(*) AS n FROM signalbox_entries WHERE kind = 'charge'")
  database.close()
  return { holds, charges }
}

describe('a process that is frozen when a body has been read', () => {
  test.each([
    ['whole answers', {}],
    ['streams', { stream: true }],
  ])('has charged 10 of 10 %s', async (_name, members) => {
    const path = newPath()
    const handler = fetchHandler(await gatewayOn(sqliteStore({ path })))

    for (let index = 1; index <= 10; index++) {
      const reader = (await handler(chat(members))).body!.getReader()
      while (!(await reader.read()).done);
      expect(booksAt(path)).toEqual({ holds: 0, charges: index })
    }
  })
})

test('ends a stream after 2 seconds if the store does not answer, and charges it when the store does', async () => {
  const clock = fakeClock()
  const store = memoryStore()
  let goOn = (): void => undefined
  const hung = new Promise<void>((resolve) => {
    goOn = resolve
  })
  let isSettling = (): void => undefined
  const settling = new Promise<void>((resolve) => {
    isSettling = resolve
  })
  const { settle } = store.ledger
  store.ledger.settle = async (...input) => {
    isSettling()
    await hung
    return await settle.apply(store.ledger, input)
  }
  const gateway = await gatewayOn(store, { clock })
  const response = await gateway.fetch(chat({ stream: true }))
  let hasEnded = false
  const body = response.text().finally(() => {
    hasEnded = true
  })

  await settling
  clock.advance(1_999)
  await new Promise((resolve) => setImmediate(resolve))
  expect(hasEnded).toBe(false)
  clock.advance(1)

  expect(await body).toContain('data: [DONE]')
  const heldBefore = (await gateway.accounts.get(TEST_ACCOUNT))?.held
  goOn()
  await gateway.close()
  const { balance, held } = (await store.ledger.account(TEST_ACCOUNT))!
  expect([heldBefore === 0n, held, balance < 5_000_000_000n]).toEqual([false, 0n, true])
})

describe('waitUntil', () => {
  test('resolves when the request is settled, as an option and as a member of the context', async () => {
    const gateway = await gatewayOn(memoryStore())
    const promises: Promise<void>[] = []
    const waitUntil = (promise: Promise<void>): void => void promises.push(promise)

    await (await fetchHandler(gateway, { waitUntil })(chat({ stream: true }))).text()
    await (await nextHandlers(gateway, { waitUntil, cors: { origins: '*' } }).POST(chat())).text()
    await (await fetchHandler(gateway)(chat(), { waitUntil })).text()
    await (await fetchHandler(gateway)(chat(), { params: Promise.resolve({}) } as object)).text()

    expect(promises).toHaveLength(3)
    expect(await Promise.all(promises)).toEqual([undefined, undefined, undefined])
  })

  test('waits for a background answer', async () => {
    const gateway = await gatewayOn(memoryStore())
    const promises: Promise<void>[] = []
    const handler = fetchHandler(gateway, { waitUntil: (promise) => void promises.push(promise) })
    const request = chat({ background: true, store: true, input: 'hello', messages: undefined }, '/v1/responses')

    const receipt = (await (await handler(request)).json()) as { readonly id: string; readonly status: string }
    await Promise.all(promises)
    const read = new Request(`https://host.example/v1/responses/${receipt.id}`, { headers: request.headers })
    const answer = (await (await gateway.fetch(read)).json()) as { readonly status: string }

    expect([receipt.status, answer.status]).toEqual(['queued', 'completed'])
  })

  test('waits for a settlement that the store refused at first', async () => {
    const store = memoryStore()
    const { settle } = store.ledger
    let failures = 1
    store.ledger.settle = (...input) => {
      if (failures-- > 0) throw new Error('the store is down')
      return settle.apply(store.ledger, input)
    }
    const gateway = await gatewayOn(store)
    const promises: Promise<void>[] = []
    const handler = fetchHandler(gateway, { waitUntil: (promise) => void promises.push(promise) })

    await (await handler(chat({ stream: true }))).text()
    const heldBefore = (await gateway.accounts.get(TEST_ACCOUNT))?.held
    await Promise.all(promises)

    expect([heldBefore === 0n, (await gateway.accounts.get(TEST_ACCOUNT))?.held]).toEqual([false, 0n])
  })

  test('refuses an option that is not a function', async () => {
    const gateway = await gatewayOn(memoryStore())

    expect(() => fetchHandler(gateway, { waitUntil: true as never })).toThrow('waitUntil must be a function')
  })
})
