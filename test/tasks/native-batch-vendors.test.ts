import OpenAI, { toFile } from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../src/gateway/options.ts'
import type { SandboxOptions } from '../../src/testing/index.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'

const CHAT = '/v1/chat/completions'
const CREDIT = 100_000_000_000n
const USAGE = { inputTokens: 11, outputTokens: 7 }
const LINE_COST = 11n * 500n + 7n * 2_000n

const VENDORS = [
  ['openai', 'chat-relayed'],
  ['dashscope', 'chat-qwen'],
  ['anthropic', 'cl-sonnet-4-6'],
  ['gemini', 'gmn-2.5-flash'],
] as const

const prices = {
  ...testPrices,
  prices: [
    ...testPrices.prices,
    ...VENDORS.flatMap(([, model]) => [
      { model, meter: 'input_token', amount: '0.50', per: 1_000_000, when: { batch: 'true' } } as const,
      { model, meter: 'output_token', amount: '2.00', per: 1_000_000, when: { batch: 'true' } } as const,
    ]),
  ],
} as const

const open: StartedGateway[] = []
afterEach(async () => {
  for (const started of open.splice(0)) await started.close()
})

interface Started extends StartedGateway {
  readonly client: OpenAI
}

/** A gateway in front of stand-ins whose models answer with a usage of 11 and 7 tokens. */
async function start(times: SandboxOptions, options: Partial<GatewayOptions> = {}): Promise<Started> {
  const started = await startGateway({ batches: {}, prices, taskPollIntervalMs: 20, ...options }, times)
  open.push(started)
  started.sandbox.reply({ when: { text: 'Say' }, usage: USAGE, times: Infinity })
  return { ...started, client: new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 }) }
}

async function submit(client: OpenAI, model: string, texts: readonly string[]): Promise<OpenAI.Batch> {
  const lines = texts.map((content, index) => ({
    custom_id: `mine/${index}`,
    method: 'POST',
    url: CHAT,
    body: { model, max_tokens: 50, messages: [{ role: 'user', content }] },
  }))
  const bytes = Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'))
  const file = await client.files.create({ file: await toFile(bytes, 'requests.jsonl'), purpose: 'batch' })
  return await client.batches.create({ input_file_id: file.id, endpoint: CHAT, completion_window: '24h' })
}

interface OutputLine {
  readonly custom_id: string
  readonly response: { readonly status_code: number; readonly body: OpenAI.ChatCompletion } | null
  readonly error: { readonly code: string } | null
}

async function linesOf(client: OpenAI, id: string | null | undefined): Promise<OutputLine[]> {
  if (id === null || id === undefined) return []
  const text = await (await client.files.content(id)).text()
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as OutputLine)
}

const QUICK: SandboxOptions = { batchPendingMs: 5, batchRunningMs: 5 }

describe.each(VENDORS)('a batch at %s', (vendor, model) => {
  test('has the answers and errors of single calls, in the order of its lines, and costs what was answered', async () => {
    const { client, sandbox, taskEnded, account } = await start(QUICK)
    const { id } = await submit(client, model, ['Say one', '[[fault:status=400]]', 'Say two', '[[fault:status=429]]'])
    await taskEnded(id)

    const ended = await client.batches.retrieve(id)
    const answers = await linesOf(client, ended.output_file_id)
    const errors = await linesOf(client, ended.error_file_id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { total: 4, completed: 2, failed: 2 } })
    expect(answers).toMatchObject([
      {
        custom_id: 'mine/0',
        response: {
          status_code: 200,
          body: { model, choices: [{ message: { content: 'You said: Say one' } }], usage: { completion_tokens: 7 } },
        },
      },
      { custom_id: 'mine/2', response: { body: { choices: [{ message: { content: 'You said: Say two' } }] } } },
    ])
    expect(errors.map((line) => [line.custom_id, line.response?.status_code])).toEqual([
      ['mine/1', 400],
      ['mine/3', expect.any(Number)],
    ])
    expect(await account()).toEqual({ balance: CREDIT - 2n * LINE_COST, held: 0n })
    const asked = sandbox.requests.filter(({ operation }) => operation === 'chat')
    expect(new Set(asked.map((call) => `${call.vendor} ${call.batchId === undefined}`))).toEqual(
      new Set([`${vendor} false`]),
    )
  })

  test('is charged for what was answered before its caller cancelled it', async () => {
    const { client, sandbox, taskEnded, account } = await start({ batchPendingMs: 5, batchRunningMs: 60_000 })
    const texts = Array.from({ length: 400 }, (_, index) => `Say ${index}`)
    const { id } = await submit(client, model, texts)
    await expect
      .poll(() => sandbox.requests.filter(({ batchId }) => batchId !== undefined).length, { timeout: 10_000 })
      .toBeGreaterThan(0)
    await client.batches.cancel(id)
    await taskEnded(id)

    const ended = await client.batches.retrieve(id)
    const answers = await linesOf(client, ended.output_file_id)
    const errors = await linesOf(client, ended.error_file_id)
    expect(ended.status).toBe('cancelled')
    expect(answers.length).toBeGreaterThan(0)
    expect(answers.length + errors.length).toBe(400)
    expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(['batch_cancelled']))
    expect(await account()).toEqual({ balance: CREDIT - BigInt(answers.length) * LINE_COST, held: 0n })
  })

  test('ends as expired if the vendor let it expire, and charges the answered requests', async () => {
    const { client, taskEnded, account } = await start(QUICK)
    const { id } = await submit(client, model, ['Say one', 'Say two [[batch:expired]]'])
    await taskEnded(id)

    const ended = await client.batches.retrieve(id)
    const answers = await linesOf(client, ended.output_file_id)
    const errors = await linesOf(client, ended.error_file_id)
    expect(ended.status).toBe('expired')
    // One vendor gives nothing of a batch that has expired.
    expect(answers.map((line) => line.custom_id)).toEqual(vendor === 'gemini' ? [] : ['mine/0'])
    expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(['batch_expired']))
    expect(await account()).toEqual({ balance: CREDIT - BigInt(answers.length) * LINE_COST, held: 0n })
  })

  test('leaves nothing at the vendor that can be deleted, and no id of the vendor with its caller', async () => {
    const { client, sandbox, taskEnded } = await start(QUICK)
    const { id } = await submit(client, model, ['Say one'])
    await taskEnded(id)

    const deletions = sandbox.requests.filter(({ method }) => method === 'DELETE').map(({ operation }) => operation)
    expect(deletions).toEqual(
      {
        openai: ['file-delete', 'file-delete'],
        dashscope: ['file-delete', 'file-delete'],
        anthropic: ['batch-delete'],
        gemini: ['file-delete', 'batch-delete'],
      }[vendor],
    )
    const ended = await client.batches.retrieve(id)
    const shown = JSON.stringify([ended, await linesOf(client, ended.output_file_id)])
    const ids = sandbox.requests.map(({ batchId }) => batchId).filter((batchId) => batchId !== undefined)
    expect(ids).toHaveLength(1)
    expect(shown).not.toContain(ids[0])
  })
})

test.each([
  ['gemini', 'gmn-2.5-flash'],
  ['anthropic', 'cl-sonnet-4-6'],
] as const)(
  'a batch at %s whose submission got no answer is never submitted again',
  { timeout: 60_000 },
  async (vendor, model) => {
    const { client, sandbox, taskEnded, account } = await start(QUICK)
    // The vendor has the batch; half of its answer comes.
    sandbox.fault({ kind: 'reset-mid-stream', vendor, operation: 'batches' })
    const { id } = await submit(client, model, ['Say one', 'Say two'])
    await taskEnded(id)

    const ended = await client.batches.retrieve(id)
    const isFound = vendor === 'gemini'
    expect(sandbox.requests.filter(({ operation }) => operation === 'batches')).toHaveLength(1)
    expect(sandbox.requests.filter(({ operation, batchId }) => operation === 'chat' && batchId === undefined)).toEqual(
      [],
    )
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: isFound ? { completed: 2, failed: 0 } : { completed: 0, failed: 2 },
    })
    expect(await account()).toEqual({ balance: CREDIT - (isFound ? 2n : 0n) * LINE_COST, held: 0n })
  },
)

test.each([['anthropic', 'cl-sonnet-4-6']] as const)(
  'requests to %s in the format of Messages go into a batch, too',
  async (vendor, model) => {
    const { client, sandbox, taskEnded } = await start(QUICK)
    const line = {
      custom_id: 'm',
      method: 'POST',
      url: '/v1/messages',
      body: { model, max_tokens: 50, messages: [{ role: 'user', content: 'Say one' }] },
    }
    const file = await client.files.create({
      file: await toFile(Buffer.from(JSON.stringify(line)), 'in.jsonl'),
      purpose: 'batch',
    })
    const endpoint = '/v1/messages' as '/v1/chat/completions'
    const { id } = await client.batches.create({ input_file_id: file.id, endpoint, completion_window: '24h' })
    await taskEnded(id)

    const ended = await client.batches.retrieve(id)
    expect(await linesOf(client, ended.output_file_id)).toMatchObject([
      {
        custom_id: 'm',
        response: { body: { type: 'message', model, content: [{ type: 'text', text: 'You said: Say one' }] } },
      },
    ])
    expect(sandbox.requests.filter(({ operation }) => operation === 'chat')).toMatchObject([
      { vendor, batchId: expect.any(String) },
    ])
  },
)
