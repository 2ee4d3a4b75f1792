import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { Hook } from '../../../src/hooks/hook.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { batchGateways, batchLine, linesOfFile, submitBatch } from './batch-gateway.ts'

const MAX_ANSWER = 128_000
/** Prices of tokens in a batch, in nano-dollars. */
const NANO_PER_TOKEN = 7_000n
const DOLLAR = 1_000_000_000n

const start = batchGateways()
let server: Server | undefined

afterEach(() => {
  server?.closeAllConnections()
  server?.close()
  server = undefined
})

interface SentBody {
  readonly max_completion_tokens?: number
  readonly max_tokens?: number
  readonly messages: readonly { readonly content: string }[]
  readonly web_search_options?: object
}

/** Starts a vendor whose answers are as long as their bound, and whose tokens have four characters. */
async function startVendor(options: { readonly reportsUsage?: boolean } = {}) {
  const sent: SentBody[] = []
  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as SentBody
    sent.push(body)
    const message = { role: 'assistant', content: 'hi' }
    const choices = [{ index: 0, message, finish_reason: 'length' }]
    const answer = { id: 'chat_1', object: 'chat.completion', created: 1, model: 'm', choices }
    const usage = options.reportsUsage === false ? undefined : usageOf(body)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ ...answer, usage }))
  })
  server = http
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return { origin: `http://127.0.0.1:${port}`, sent }
}

function usageOf({ messages, max_completion_tokens: chat, max_tokens: bound = chat ?? MAX_ANSWER }: SentBody) {
  const characters = messages.reduce((sum, { content }) => sum + content.length, 0)
  const prompt = Math.ceil(characters / 4)
  return { prompt_tokens: prompt, completion_tokens: bound, total_tokens: prompt + bound }
}

const rows = (['input_token', 'output_token'] as const).map((meter) => ({
  model: 'long',
  meter,
  amount: '7',
  per: 1_000_000,
  when: { batch: 'true' },
}))

/** Starts a gateway whose model writes 128,000 tokens at most, at $7 for a million, and an account with this balance. */
async function startWith(dollars: string, options: Partial<GatewayOptions> & { reportsUsage?: boolean } = {}) {
  const { reportsUsage = true, ...rest } = options
  const vendor = await startVendor({ reportsUsage })
  const started = await start({
    vendors: [openai({ apiKey: 'vendor-key', baseURL: vendor.origin })],
    models: [
      { id: 'long', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', limits: { maxOutputTokens: MAX_ANSWER } },
    ],
    prices: { currency: 'USD', prices: rows },
    ...rest,
  })
  const { gateway, url } = started
  await gateway.accounts.create({ id: 'acct_b' })
  await gateway.accounts.credit('acct_b', dollars)
  const { key } = await gateway.keys.create({ accountId: 'acct_b' })
  const client = started.client.withOptions({ apiKey: key, baseURL: `${url}/v1` })
  const bill = (): bigint =>
    vendor.sent.reduce((sum, body) => sum + BigInt(usageOf(body).total_tokens) * NANO_PER_TOKEN, 0n)
  const money = async () => (await gateway.accounts.get('acct_b'))!
  return { ...started, client, vendor, bill, money }
}

const unbounded = (count: number): object[] =>
  Array.from({ length: count }, (_, index) => batchLine(index + 1, { model: 'long', max_tokens: undefined }))

describe('a batch whose requests set no bound', () => {
  test.each([
    ['the longest answer where all of them cost at most 2 % of the balance', '1000', MAX_ANSWER],
    ['16,384 tokens where the longest answers cost more', '10', 16_384],
    ['what half of a small balance pays for', '1', 3_571],
  ])('gets %s, and costs the vendor no more than is held', async (_title, dollars, bound) => {
    const { client, taskEnded, vendor, bill, money } = await startWith(dollars)
    const created = await submitBatch(client, unbounded(20))
    const { held } = await money()
    await taskEnded(created.id)
    const after = await money()

    expect(new Set(vendor.sent.map(({ max_completion_tokens: sent }) => sent)).size).toBe(1)
    const [{ max_completion_tokens: sent = 0 } = {}] = vendor.sent
    expect(Math.abs(sent - bound)).toBeLessThan(30)
    expect(bill()).toBeLessThanOrEqual(held)
    expect(after).toMatchObject({ held: 0n, owed: 0n, balance: BigInt(dollars) * DOLLAR - bill() })
  })

  test('is rejected with 402 if the balance pays for no useful answers', async () => {
    const { client, vendor, money } = await startWith('0.02')

    await expect(submitBatch(client, unbounded(20))).rejects.toMatchObject({ status: 402 })
    expect(vendor.sent).toEqual([])
    expect(await money()).toMatchObject({ held: 0n, balance: 20_000_000n })
  })

  test('keeps the bounds that its requests set', async () => {
    const { client, taskEnded, vendor } = await startWith('10')
    const created = await submitBatch(client, [batchLine(9, { model: 'long', max_tokens: 70 }), ...unbounded(1)])
    await taskEnded(created.id)

    const bounds = vendor.sent.map(({ max_completion_tokens: sent }) => sent).sort((one, other) => one! - other!)
    expect(bounds).toEqual([70, 16_384])
  })
})

const REWRITES: readonly (readonly [string, NonNullable<Hook['request']>])[] = [
  [
    'has a longer prompt',
    (call) => ({ body: { ...call.body, messages: [{ role: 'user', content: 'x'.repeat(400_000) }] } }),
  ],
  ['has no bound any more', ({ body }) => ({ body: { ...body, max_tokens: undefined } })],
  ['has a search without a price', (call) => ({ body: { ...call.body, web_search_options: {} } })],
]

describe('a request of a batch that a hook has changed', () => {
  const hook = (request: NonNullable<Hook['request']>): Partial<GatewayOptions> => ({
    hooks: [{ name: 'rewriting', endpoints: ['chat'], request }],
  })
  const lines = Array.from({ length: 5 }, (_, index) => batchLine(index + 1, { model: 'long', max_tokens: 100 }))

  test.each(REWRITES)('is not sent if it %s than the account can pay', async (_title, request) => {
    const { client, taskEnded, vendor, bill, money } = await startWith('0.08', hook(request))
    const created = await submitBatch(client, lines)
    await taskEnded(created.id)
    const batch = await client.batches.retrieve(created.id)
    const failed = batch.error_file_id == null ? [] : await linesOfFile(client, batch.error_file_id)

    expect(bill()).toBeLessThanOrEqual(80_000_000n)
    expect(await money()).toMatchObject({ held: 0n, owed: 0n, balance: 80_000_000n - bill() })
    expect(failed.length).toBe(5 - vendor.sent.length)
    for (const { response } of failed) expect([400, 402]).toContain(response?.status_code)
  })

  test('is held and charged by its new price', async () => {
    const { client, taskEnded, vendor, bill, money } = await startWith('10', hook(REWRITES[0]![1]))
    const created = await submitBatch(client, lines)
    await taskEnded(created.id)

    expect(vendor.sent).toHaveLength(5)
    expect(bill()).toBeGreaterThan(3_000_000_000n)
    expect(await money()).toMatchObject({ held: 0n, owed: 0n, balance: 10n * DOLLAR - bill() })
  })
})

describe('an answer of a batch without usage', () => {
  test('is charged by the rule of a single call, and reported', async () => {
    const { client, taskEnded, money, events } = await startWith('10', { reportsUsage: false })
    const created = await submitBatch(client, [batchLine(1, { model: 'long', max_tokens: 70 })])
    await taskEnded(created.id)
    const missing = events.filter(({ type }) => type === 'usage-missing')

    expect(missing).toHaveLength(1)
    const { balance, held } = await money()
    expect(held).toBe(0n)
    expect(balance).toBeLessThan(10n * DOLLAR)
  })
})
