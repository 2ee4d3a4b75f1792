import { beforeEach, describe, expect, test } from 'vitest'
import { batchSandbox } from './support/batch-sandbox.ts'
import type { Json } from './support/running-sandbox.ts'

const vendor = batchSandbox()

beforeEach(() => vendor.sandbox.reset())

interface Asked {
  readonly status: number
  readonly text: string
  readonly json: Json
}

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Asked> {
  const response = await fetch(vendor.origin + path, {
    method,
    headers: { 'x-goog-api-key': 'test-1234', 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, text, json: text.startsWith('{') ? parsed(text) : undefined }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const linesIn = (text: string): Json[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const request = (text: string) => ({ contents: [{ role: 'user', parts: [{ text }] }] })
const MODEL = '/v1beta/models/gemini-2.5-flash:batchGenerateContent'

async function upload(lines: readonly object[]): Promise<string> {
  const metadata = JSON.stringify({ file: { displayName: 'in', mimeType: 'application/jsonl' } })
  const content = lines.map((entry) => JSON.stringify(entry)).join('\n')
  const body = `--b\r\ncontent-type: application/json\r\n\r\n${metadata}\r\n--b\r\ncontent-type: application/jsonl\r\n\r\n${content}\r\n--b--\r\n`
  const { json } = await ask('POST', '/upload/v1beta/files?uploadType=multipart', body, {
    'content-type': 'multipart/related; boundary=b',
  })
  return json.file.name as string
}

async function submitFile(lines: readonly object[], displayName = 'mine'): Promise<string> {
  const fileName = await upload(lines)
  const { json } = await ask('POST', MODEL, { batch: { displayName, inputConfig: { fileName } } })
  return json.name as string
}

describe('batches of the Gemini stand-in', () => {
  test('answer a file of requests with a file of answers, with its keys and in its order', async () => {
    vendor.sandbox.reply({ when: { text: 'rain' }, text: 'It rains.', usage: { inputTokens: 7, outputTokens: 3 } })
    const name = await submitFile([
      { key: 'a', request: request('Hello') },
      { key: 'b', request: request('Will it rain?') },
      { key: 'c', request: request('[[fault:status=503]]') },
    ])
    const pending = await ask('GET', `/v1beta/${name}`)
    vendor.clock.advance(1_500)
    const running = await ask('GET', `/v1beta/${name}`)
    vendor.clock.advance(1_500)
    const { json: ended } = await ask('GET', `/v1beta/${name}`)
    const output = ended.response.responsesFile as string
    const { text } = await ask('GET', `/download/v1beta/${output}:download?alt=media`)

    expect([pending, running].map(({ json }) => [json.metadata.state, json.done])).toEqual([
      ['BATCH_STATE_PENDING', undefined],
      ['BATCH_STATE_RUNNING', undefined],
    ])
    expect(ended).toMatchObject({
      name,
      done: true,
      metadata: {
        state: 'BATCH_STATE_SUCCEEDED',
        displayName: 'mine',
        output: { responsesFile: output },
        batchStats: { requestCount: '3', successfulRequestCount: '2', failedRequestCount: '1' },
      },
    })
    expect(linesIn(text)).toMatchObject([
      { key: 'a', response: { candidates: [{ content: { parts: [{ text: 'You said: Hello' }] } }] } },
      {
        key: 'b',
        response: {
          candidates: [{ content: { parts: [{ text: 'It rains.' }] } }],
          usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3 },
        },
      },
      { key: 'c', error: { code: 14 } },
    ])
    expect(vendor.sandbox.requests.filter(({ batchId }) => batchId !== undefined)).toMatchObject([
      { vendor: 'gemini', operation: 'chat', path: '/v1beta/models/gemini-2.5-flash:generateContent' },
      {},
      {},
    ])
  })

  test('answer inline requests inline, embeddings too', async () => {
    const requests = { requests: [{ request: request('Hello'), metadata: { key: 'a' } }] }
    const chats = await ask('POST', MODEL, { batch: { displayName: 'x', inputConfig: { requests } } })
    const content = { model: 'models/gemini-embedding-2', content: { parts: [{ text: 'red' }] } }
    const vectors = await ask('POST', '/v1beta/models/gemini-embedding-2:asyncBatchEmbedContent', {
      batch: { displayName: 'y', inputConfig: { requests: { requests: [{ request: content }] } } },
    })
    vendor.clock.advance(3_000)
    const [answered, embedded] = await Promise.all(
      [chats, vectors].map(async ({ json }) => (await ask('GET', `/v1beta/${json.name}`)).json.response),
    )

    expect(answered.inlinedResponses.inlinedResponses).toMatchObject([
      { metadata: { key: 'a' }, response: { candidates: [{}] } },
    ])
    expect(embedded.inlinedResponses.inlinedResponses[0].response.embedding.values).toHaveLength(3072)
  })

  test('end without answers when they are cancelled before they run, and with the answered ones after', async () => {
    const lines = [
      { key: 'a', request: request('one') },
      { key: 'b', request: request('two') },
    ]
    const early = await submitFile(lines)
    expect((await ask('POST', `/v1beta/${early}:cancel`)).json).toEqual({})
    vendor.clock.advance(1_000)
    const late = await submitFile(lines)
    vendor.clock.advance(2_000)
    await ask('POST', `/v1beta/${late}:cancel`)
    vendor.clock.advance(1_000)
    const [first, second] = await Promise.all(
      [early, late].map(async (name) => (await ask('GET', `/v1beta/${name}`)).json),
    )
    const { text } = await ask('GET', `/download/v1beta/${second.response.responsesFile}:download?alt=media`)

    expect(first).toMatchObject({ done: true, metadata: { state: 'BATCH_STATE_CANCELLED' }, error: { code: 13 } })
    expect(second).toMatchObject({ done: true, metadata: { state: 'BATCH_STATE_SUCCEEDED' } })
    expect(linesIn(text)).toMatchObject([
      { key: 'a', response: {} },
      { key: 'b', error: { code: 1 } },
    ])
  })

  test('expire and fail without answers', async () => {
    const expired = await submitFile([{ key: 'a', request: request('[[batch:expired]]') }])
    const failed = await submitFile([{ key: 'a', request: request('[[batch:failed]]') }])
    const broken = await submitFile([{ contents: [] }])
    vendor.clock.advance(3_000)
    const states = await Promise.all(
      [expired, failed, broken].map(async (name) => {
        const { metadata, response, error } = (await ask('GET', `/v1beta/${name}`)).json
        return [metadata.state, response, error.code]
      }),
    )

    expect(states).toEqual([
      ['BATCH_STATE_EXPIRED', undefined, 4],
      ['BATCH_STATE_FAILED', undefined, 3],
      ['BATCH_STATE_FAILED', undefined, 3],
    ])
  })

  test('are listed page by page, deleted, and seen by their own key only', async () => {
    const headers = { 'x-goog-api-key': 'test-lists' }
    const inline = (displayName: string) => ({
      batch: { displayName, inputConfig: { requests: { requests: [{ request: request('x') }] } } },
    })
    for (const name of ['one', 'two', 'three']) await ask('POST', MODEL, inline(name), headers)
    const first = await ask('GET', '/v1beta/batches?pageSize=2', undefined, headers)
    const token = encodeURIComponent(first.json.nextPageToken)
    const second = await ask('GET', `/v1beta/batches?pageSize=2&pageToken=${token}`, undefined, headers)
    const names = [...first.json.operations, ...second.json.operations].map((entry: Json) => entry.metadata.displayName)
    const { name } = second.json.operations[0]

    expect(names).toEqual(['three', 'two', 'one'])
    expect(second.json.nextPageToken).toBeUndefined()
    expect((await ask('GET', `/v1beta/${name}`)).status).toBe(404)
    expect((await ask('DELETE', `/v1beta/${name}`, undefined, headers)).json).toEqual({})
    expect((await ask('GET', `/v1beta/${name}`, undefined, headers)).status).toBe(404)
  })

  test('files can be read and deleted, but results have ids that only downloads take', async () => {
    const file = await upload([{ key: 'a', request: request('x') }])
    const name = await submitFile([{ key: 'a', request: request('x') }])
    vendor.clock.advance(3_000)
    const { response } = (await ask('GET', `/v1beta/${name}`)).json

    expect((await ask('GET', `/v1beta/${file}`)).json).toMatchObject({ name: file, displayName: 'in', state: 'ACTIVE' })
    expect((await ask('DELETE', `/v1beta/${file}`)).status).toBe(200)
    expect((await ask('GET', `/v1beta/${file}`)).status).toBe(403)
    expect((await ask('DELETE', `/v1beta/${response.responsesFile}`)).status).toBe(400)
  })
})
