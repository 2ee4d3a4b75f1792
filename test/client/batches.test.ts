import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Batch,
  createClient,
  type GatewayClient,
  type MessageBatch,
  type MessageBatchResult,
} from '../../src/client/index.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'

const REQUESTS = ['a noun', 'a verb']
  .map((text, index) =>
    JSON.stringify({
      custom_id: `question-${index}`,
      method: 'POST',
      url: '/v1/chat/completions',
      body: { model: 'chat-relayed', max_tokens: 50, messages: [{ role: 'user', content: `What is ${text}?` }] },
    }),
  )
  .join('\n')

let started: StartedGateway

beforeAll(async () => {
  const batch = (meter: 'input_token' | 'output_token') =>
    ({ model: 'chat-relayed', meter, amount: '0.50', per: 1_000_000, when: { batch: 'true' } }) as const
  const prices = { ...testPrices, prices: [...testPrices.prices, batch('input_token'), batch('output_token')] }
  started = await startGateway({ batches: {}, prices, taskPollIntervalMs: 20 })
})
afterAll(() => started.close())

const overHttp = (): GatewayClient => createClient({ baseURL: `${started.url}/v1`, apiKey: TEST_KEY, maxRetries: 0 })
const inProcess = (): GatewayClient =>
  started.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'key_host', tier: 'paid' })

describe.each([
  ['over HTTP', overHttp],
  ['in process', inProcess],
])('%s the client', (_name, open) => {
  test('sends a batch of messages, and reads how each went', async () => {
    const client = open()
    const requests = ['a noun', 'ein Wörterbuch'].map((text, index) => ({
      custom_id: `question-${index}`,
      params: {
        model: 'chat-relayed',
        max_tokens: 50,
        messages: [{ role: 'user', content: `What is ${text}?` }] as const,
      },
    }))
    const batch = await client.messages.batches.create({ requests })
    await started.taskEnded(batch.id)
    const ended: MessageBatch = await client.messages.batches.retrieve(batch)
    const results: MessageBatchResult[] = []
    for await (const result of client.messages.batches.results(ended)) results.push(result)

    expect(ended).toMatchObject({ processing_status: 'ended', request_counts: { succeeded: 2, errored: 0 } })
    expect(results.map(({ custom_id, result }) => [custom_id, result.type])).toEqual([
      ['question-0', 'succeeded'],
      ['question-1', 'succeeded'],
    ])
    expect(JSON.stringify(results[1])).toContain('ein Wörterbuch')
    expect((await client.messages.batches.list({ limit: 1 })).data).toEqual([ended])
    await expect(client.messages.batches.cancel(batch)).rejects.toMatchObject({ code: 'task_not_cancellable' })
    expect(await client.messages.batches.delete(batch)).toEqual({ id: batch.id, type: 'message_batch_deleted' })
    const gone = client.messages.batches.results(batch)[Symbol.asyncIterator]()
    await expect(gone.next()).rejects.toMatchObject({ code: 'batch_not_found' })
  })

  test('sends a file of requests, follows their batch and reads the answers', async () => {
    const client = open()
    const file = await client.files.create({
      file: Buffer.from(REQUESTS),
      purpose: 'batch',
      expires_after: { anchor: 'created_at', seconds: 3_600 },
    })
    const batch = await client.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
      metadata: { team: 'red' },
    })
    await started.taskEnded(batch.id)
    const ended: Batch = await client.batches.retrieve(batch)
    const content = await client.files.content(ended.output_file_id!)
    const answers = Buffer.from(await content.bytes()).toString()

    expect(file).toMatchObject({ object: 'file', filename: 'batch.jsonl', purpose: 'batch' })
    expect(file.expires_at - file.created_at).toBe(3_600)
    expect(ended).toMatchObject({
      ...{ id: batch.id, status: 'completed', metadata: { team: 'red' } },
      request_counts: { total: 2, completed: 2, failed: 0 },
    })
    expect(
      answers
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).custom_id),
    ).toEqual(['question-0', 'question-1'])
    expect((await client.batches.list({ limit: 1 })).data[0]?.id).toBe(batch.id)
    expect((await client.files.list({ purpose: 'batch' })).data.map(({ id }) => id)).toContain(file.id)
    expect(await client.files.retrieve(file)).toEqual(file)
    expect(await client.files.delete(file)).toMatchObject({ id: file.id, deleted: true })
  })

  test('cancels a batch, and reads what is wrong with a line', async () => {
    const client = open()
    const file = await client.files.create({ file: new File(['{"custom_id":1}'], 'bad.jsonl'), purpose: 'batch' })
    const request = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
    const failed = await client.batches.create(request)
    const fault = await client.batches.cancel('batch_unknown').catch((error: unknown) => error)

    expect(failed).toMatchObject({ status: 'failed', errors: { data: [{ line: 1 }] } })
    expect(fault).toMatchObject({ status: 404 })
  })
})
