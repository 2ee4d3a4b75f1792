import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { parseDollars } from '../../../src/core/money.ts'
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'

const CALLS = 60
const ACCOUNT = 'acct_documents'
const KEY = 'sk-documents-0123456789'
/** Final cost of each call: 156,000 tokens of a document whose size the gateway does not know. */
const CALL_COST = parseDollars('0.39')

let cleanUp: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const step of cleanUp.reverse()) await step()
  cleanUp = []
})

/** A vendor that answers once so many calls are under way. */
async function billingVendor(callsAtOnce: number): Promise<string> {
  const waiting: ServerResponse[] = []
  let isFull = false
  const answer = (response: ServerResponse): void => {
    const message = { role: 'assistant', content: 'read' }
    const usage = { prompt_tokens: 156_000, completion_tokens: 0, total_tokens: 156_000 }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
  }
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      waiting.push(response)
      isFull ||= waiting.length >= callsAtOnce
      if (isFull) for (const each of waiting.splice(0)) answer(each)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp.push(async () => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Options of a test. */
interface Drill {
  readonly events?: GatewayEvent[]
  readonly callsAtOnce?: number
  readonly balance?: string
  /** Tokens that a document of unknown size is held for. */
  readonly document?: number
}

async function startOn(store: GatewayStore, drill: Drill = {}): Promise<Gateway> {
  const { events = [], callsAtOnce = 1, balance = '0.05', document } = drill
  const gateway = createGateway({
    vendors: [openai({ apiKey: 'vendor-key', baseURL: await billingVendor(callsAtOnce), allowVendorObjects: true })],
    models: [{ id: 'reader', kind: 'chat', vendor: 'openai', upstream: 'reader', limits: { maxOutputTokens: 10 } }],
    prices: {
      currency: 'USD',
      prices: [
        { model: 'reader', meter: 'input_token', amount: '2.50', per: 1_000_000 },
        { model: 'reader', meter: 'output_token', amount: '10.00', per: 1_000_000 },
      ],
    },
    store,
    ...(document === undefined ? {} : { unknownInputTokens: { document } }),
    keys: [{ key: KEY, account: ACCOUNT }],
    onEvent: (event) => events.push(event),
  })
  await gateway.start()
  cleanUp.push(() => gateway.close())
  await gateway.accounts.credit(ACCOUNT, balance)
  return gateway
}

async function ask(gateway: Gateway): Promise<Response> {
  const content = [
    { type: 'text', text: 'Read it.' },
    { type: 'file', file: { file_id: 'file-large' } },
  ]
  return gateway.fetch(
    new Request('http://gateway.invalid/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'reader', max_tokens: 1, messages: [{ role: 'user', content }] }),
    }),
  )
}

const askAll = (gateway: Gateway): Promise<Response[]> => Promise.all(Array.from({ length: CALLS }, () => ask(gateway)))

/** Returns what the vendor billed for the answered calls, and the unpaid part. */
async function lossOf(gateway: Gateway, answers: readonly Response[]): Promise<{ bill: bigint; loss: bigint }> {
  const bill = CALL_COST * BigInt(answers.filter(({ status }) => status === 200).length)
  return { bill, loss: (await gateway.accounts.get(ACCOUNT))?.owed ?? 0n }
}

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
])('60 documents at once on a balance of 5 cents, on %s', (_name, openStore) => {
  // Before: 60 answers, a bill of $23.40, and a loss of $23.35, on any balance above $0.0001.
  test.each([
    ['0.05', 0],
    ['0.60', 1],
    ['1.20', 2],
  ])('are held for the context of the model, so that a balance of $%s pays for %i of them', async (balance, count) => {
    const gateway = await startOn(openStore(), { balance, callsAtOnce: count })

    const answers = await askAll(gateway)

    expect(answers.filter(({ status }) => status === 402)).toHaveLength(CALLS - count)
    expect(await lossOf(gateway, answers)).toEqual({ bill: BigInt(count) * CALL_COST, loss: 0n })
  })

  test('lose less than one call where the operator bounds documents below what they turn out to be', async () => {
    const gateway = await startOn(openStore(), { document: 15_000 })

    const answers = await askAll(gateway)

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await lossOf(gateway, answers)).toEqual({ bill: CALL_COST, loss: CALL_COST - parseDollars('0.05') })
  })

  test('are charged and owed to the nano-dollar, and the account must pay before its next request', async () => {
    const events: GatewayEvent[] = []
    const gateway = await startOn(openStore(), { events, callsAtOnce: CALLS, document: 1 })

    const answers = await askAll(gateway)
    const account = await gateway.accounts.get(ACCOUNT)
    const shortfalls = events.flatMap((event) => (event.type === 'charge-shortfall' ? [event] : []))
    const bill = BigInt(CALLS) * CALL_COST

    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: CALLS }, () => 200))
    // Before: $0.05 of a bill of $23.40 was charged, $23.35 were lost, and no event told of it.
    expect(bill).toBe(parseDollars('23.40'))
    expect(account).toMatchObject({ balance: 0n, held: 0n, owed: bill - parseDollars('0.05') })
    expect(shortfalls.reduce((sum, event) => sum + event.owedNanoDollars, 0n)).toBeGreaterThanOrEqual(
      account?.owed ?? 0n,
    )
    expect(shortfalls.every((event) => event.accountId === ACCOUNT && event.dueNanoDollars === CALL_COST)).toBe(true)
    expect(new Set(shortfalls.map((event) => event.requestId)).size).toBe(shortfalls.length)

    const refused = await ask(gateway)
    expect(refused.status).toBe(402)
    expect(events).toContainEqual(expect.objectContaining({ type: 'request-refused', code: 'account_in_arrears' }))
    const seen = await gateway.fetch(
      new Request('http://gateway.invalid/v1/account', { headers: { authorization: `Bearer ${KEY}` } }),
    )
    expect(await seen.json()).toMatchObject({ balance: '0', owed: '23.35' })

    await gateway.accounts.credit(ACCOUNT, '24.00')
    expect(await gateway.accounts.get(ACCOUNT)).toMatchObject({ balance: parseDollars('0.65'), owed: 0n })
    expect((await ask(gateway)).status).toBe(200)
    const lines = await gateway.accounts.ledger(ACCOUNT, { limit: 1_000 })
    expect(lines.reduce((sum, line) => sum + line.amount, 0n)).toBe(parseDollars('0.26'))
    expect(lines.reduce((sum, line) => sum + line.owed, 0n)).toBe(0n)
  })

  test('header, event, journal and record say the same of what a call costs and what was charged', async () => {
    const events: GatewayEvent[] = []
    const gateway = await startOn(openStore(), { events, document: 1 })

    const answer = await ask(gateway)
    const { headers } = answer
    const ended = events.find((event) => event.type === 'request-ended')
    const charge = (await gateway.accounts.ledger(ACCOUNT)).find(({ kind }) => kind === 'charge')
    const { records } = await gateway.usage.records({ accountId: ACCOUNT })
    const [charged, due] = [parseDollars('0.05'), CALL_COST]

    expect([headers.get('x-signalbox-cost'), headers.get('x-signalbox-cost-due')]).toEqual(['0.05', '0.39'])
    expect(ended).toMatchObject({ costNanoDollars: charged, dueNanoDollars: due })
    expect(charge).toMatchObject({ amount: -charged, due })
    expect(records).toMatchObject([{ chargedNanoDollars: charged, dueNanoDollars: due }])
  })
})
