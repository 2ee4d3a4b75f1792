import { Buffer } from 'node:buffer'
import OpenAI, { toFile } from 'openai'
import { beforeEach, describe, expect, test } from 'vitest'
import { batchSandbox } from './support/batch-sandbox.ts'

const vendor = batchSandbox()
const client = (apiKey = 'sk-test'): OpenAI => new OpenAI({ apiKey, baseURL: `${vendor.origin}/v1`, maxRetries: 0 })
const compatible = (): OpenAI =>
  new OpenAI({ apiKey: 'sk-dash', baseURL: `${vendor.origin}/compatible-mode/v1`, maxRetries: 0 })

beforeEach(() => vendor.sandbox.reset())

/** Returns a line with a chat request. */
const line = (customId: string, content: string, model = 'gpt-5.4') => ({
  custom_id: customId,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model, messages: [{ role: 'user', content }] },
})

async function submitted(openai: OpenAI, lines: readonly (object | string)[]): Promise<OpenAI.Batch> {
  const text = lines.map((entry) => (typeof entry === 'string' ? entry : JSON.stringify(entry))).join('\n')
  const file = await openai.files.create({ file: await toFile(Buffer.from(text), 'in.jsonl'), purpose: 'batch' })
  return await openai.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  })
}

async function linesOf(openai: OpenAI, fileId: string | null | undefined) {
  const text = await (await openai.files.content(fileId ?? '')).text()
  return text
    .split('\n')
    .filter((entry) => entry !== '')
    .map((entry) => JSON.parse(entry))
}

describe('the openai SDK against the batches of the OpenAI stand-in', () => {
  test('gets the answers of single calls, as scripted and in another order, once the clock has moved', async () => {
    vendor.sandbox.reply({ when: { text: 'rain' }, text: 'It rains.', usage: { inputTokens: 7, outputTokens: 3 } })
    const begun = await submitted(client(), [line('a', 'Hello'), line('b', 'Will it rain?')])
    vendor.clock.advance(1_000)
    const running = await client().batches.retrieve(begun.id)
    vendor.clock.advance(2_000)
    const ended = await client().batches.retrieve(begun.id)
    const answers = await linesOf(client(), ended.output_file_id)

    expect([begun.status, running.status, ended.status]).toEqual(['validating', 'in_progress', 'completed'])
    expect(ended).toMatchObject({ request_counts: { total: 2, completed: 2, failed: 0 }, error_file_id: null })
    expect(answers.map(({ custom_id: customId }) => customId)).toEqual(['b', 'a'])
    expect(answers[0].response).toMatchObject({
      status_code: 200,
      body: { choices: [{ message: { content: 'It rains.' } }], usage: { prompt_tokens: 7, completion_tokens: 3 } },
    })
    expect(answers[1].response.body.choices[0].message.content).toBe('You said: Hello')
  })

  test('records each request as a call that names its batch', async () => {
    const { id } = await submitted(client(), [line('a', 'Hello')])
    vendor.clock.advance(3_000)
    await client().batches.retrieve(id)

    const calls = vendor.sandbox.requests.map(({ operation, batchId }) => [operation, batchId])
    expect(calls).toEqual(
      expect.arrayContaining([
        ['files', undefined],
        ['batches', undefined],
        ['chat', id],
      ]),
    )
    expect(vendor.sandbox.requests.find(({ batchId }) => batchId === id)).toMatchObject({
      vendor: 'openai',
      model: 'gpt-5.4',
      path: '/v1/chat/completions',
      body: { messages: [{ content: 'Hello' }] },
    })
  })

  test('writes errors of requests to a second file, with the status of a single call', async () => {
    const { id } = await submitted(client(), [
      line('a', 'Hello'),
      line('b', '[[fault:status=429]]'),
      line('c', '[[fault:reset]]'),
      { ...line('d', ''), body: { model: 'gpt-5.4' } },
    ])
    vendor.clock.advance(3_000)
    const ended = await client().batches.retrieve(id)

    expect(ended).toMatchObject({ status: 'completed', request_counts: { total: 4, completed: 1, failed: 3 } })
    expect(await linesOf(client(), ended.error_file_id)).toMatchObject([
      { custom_id: 'd', response: { status_code: 400, body: { error: { type: 'invalid_request_error' } } } },
      { custom_id: 'c', response: { status_code: 500 } },
      { custom_id: 'b', response: { status_code: 429, body: { error: { code: 'rate_limit_exceeded' } } } },
    ])
  })

  test('cancelling keeps what was answered before', async () => {
    const { id } = await submitted(client(), [line('a', 'one'), line('b', 'two')])
    vendor.clock.advance(2_000)
    const cancelling = await client().batches.cancel(id)
    vendor.clock.advance(1_000)
    const ended = await client().batches.retrieve(id)

    expect([cancelling.status, ended.status]).toEqual(['cancelling', 'cancelled'])
    expect(await linesOf(client(), ended.output_file_id)).toMatchObject([{ custom_id: 'a' }])
    expect(await linesOf(client(), ended.error_file_id)).toMatchObject([
      { custom_id: 'b', response: null, error: { code: 'batch_cancelled' } },
    ])
    await expect(client().batches.cancel(id)).rejects.toMatchObject({ status: 409 })
  })

  test('requests that no one answers expire with their batch, by the clock or by a mark', async () => {
    const stuck = await submitted(client(), [line('a', 'one'), line('b', 'two [[batch:stuck]]')])
    const marked = await submitted(client(), [line('a', 'one'), line('b', 'two [[batch:expired]]')])
    vendor.clock.advance(3_000)
    expect((await client().batches.retrieve(stuck.id)).status).toBe('in_progress')
    const early = await client().batches.retrieve(marked.id)
    vendor.clock.advance(24 * 3_600_000)
    const late = await client().batches.retrieve(stuck.id)

    for (const ended of [early, late]) {
      expect(ended.status).toBe('expired')
      expect(await linesOf(client(), ended.output_file_id)).toMatchObject([{ custom_id: 'a' }])
      expect(await linesOf(client(), ended.error_file_id)).toMatchObject([{ error: { code: 'batch_expired' } }])
    }
  })

  test.each([
    ['not JSON', [line('a', 'x'), '{'], 'invalid_json_line', 2],
    ['an id twice', [line('a', 'x'), line('a', 'y')], 'duplicate_custom_id', 2],
    ['another model', [line('a', 'x'), line('b', 'y', 'gpt-4o')], 'mismatched_model', 2],
    ['another endpoint', [{ ...line('a', 'x'), url: '/v1/embeddings' }], 'mismatched_url', 1],
    ['a mark that lets it fail', [line('a', 'x [[batch:failed]]')], 'token_limit_exceeded', null],
  ])('a file with %s fails while it is checked, and nothing is asked', async (_, lines, code, number) => {
    const { id } = await submitted(client(), lines)
    vendor.clock.advance(3_000)
    const failed = await client().batches.retrieve(id)

    expect(failed).toMatchObject({ status: 'failed', errors: { data: [{ code, line: number }] } })
    expect([failed.output_file_id, failed.error_file_id]).toEqual([null, null])
    expect(vendor.sandbox.requests.some(({ batchId }) => batchId !== undefined)).toBe(false)
  })

  test('lists page by page, and a key sees its own files and batches only', async () => {
    const openai = client('sk-lists')
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.unshift((await submitted(openai, [line(name, name)])).id)

    const listed: string[] = []
    for await (const batch of openai.batches.list({ limit: 2 })) listed.push(batch.id)

    expect(listed).toEqual(ids)
    expect((await openai.files.list()).data).toHaveLength(3)
    expect((await client('sk-other').files.list()).data).toEqual([])
    await expect(client('sk-other').batches.retrieve(ids[0]!)).rejects.toMatchObject({ status: 404 })
  })

  test('a deleted file is gone', async () => {
    const openai = client()
    const { input_file_id: id } = await submitted(openai, [line('a', 'x')])

    expect(await openai.files.delete(id)).toMatchObject({ id, deleted: true })
    await expect(openai.files.retrieve(id)).rejects.toMatchObject({ status: 404 })
    await expect(
      openai.batches.create({ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }),
    ).rejects.toMatchObject({ status: 400 })
  })

  test('a fault of the batch API itself strikes there', async () => {
    vendor.sandbox.fault({ kind: 'status', status: 503, vendor: 'openai', operation: 'batches' })

    await expect(submitted(client(), [line('a', 'x')])).rejects.toMatchObject({ status: 503 })
    expect((await submitted(client(), [line('a', 'x')])).status).toBe('validating')
  })
})

test('DashScope has the same calls below its own path', async () => {
  vendor.sandbox.reply({ when: { vendor: 'dashscope', model: 'qwen-plus' }, text: 'A noun names a thing.' })
  const { id } = await submitted(compatible(), [line('a', 'What is a noun?', 'qwen-plus')])
  vendor.clock.advance(3_000)
  const ended = await compatible().batches.retrieve(id)

  expect(ended.input_file_id).toMatch(/^file-batch-/)
  expect(await linesOf(compatible(), ended.output_file_id)).toMatchObject([
    { response: { status_code: 200, body: { choices: [{ message: { content: 'A noun names a thing.' } }] } } },
  ])
  expect(vendor.sandbox.requests.find(({ batchId }) => batchId === id)).toMatchObject({
    vendor: 'dashscope',
    path: '/compatible-mode/v1/chat/completions',
  })
})
