import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/core/clock.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY, TEST_MODELS } from '../../support/start-gateway.ts'

const DAY_MS = 24 * 60 * 60_000
const HEADER = 'x-signalbox-model-retires'
const dayIn = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10)

const SOON = dayIn(30)
const PAST = dayIn(-400)
const MESSAGE = { max_tokens: 50, messages: [{ role: 'user', content: 'hello' }] }

let offsetMs = 0
const clock: Clock = { ...systemClock, now: () => Date.now() + offsetMs }
let started: StartedGateway

const rows = TEST_MODELS.flatMap((row) => [
  { ...row, retires: SOON },
  { ...row, id: `${row.id}-past`, retires: PAST },
  { ...row, id: `${row.id}-later`, retires: dayIn(90) },
])
const retiring = () => started.events.filter((event) => event.type === 'model-retiring')

beforeAll(async () => {
  started = await startGateway({ models: rows, billing: 'off', clock, cache: { callers: 'may-ask' }, batches: {} })
})
afterAll(() => started.close())
beforeEach(() => {
  // A day on which nothing was reported yet.
  offsetMs += DAY_MS
  ;(started.events as unknown[]).length = 0
})

describe('calls to a model that retires soon', () => {
  test.each([
    ['a chat', '/v1/chat/completions', chatBody('chat-relayed', 'hello')],
    ['a streamed chat', '/v1/chat/completions', { ...chatBody('chat-relayed', 'hello'), stream: true }],
    ['Messages', '/v1/messages', { model: 'chat-relayed', ...MESSAGE }],
    ['streamed Messages', '/v1/messages', { model: 'chat-relayed', ...MESSAGE, stream: true }],
    ['a count of tokens', '/v1/messages/count_tokens', { model: 'chat-relayed', messages: MESSAGE.messages }],
    ['Responses', '/v1/responses', { model: 'chat-relayed', input: 'hello' }],
    ['streamed Responses', '/v1/responses', { model: 'chat-relayed', input: 'hello', stream: true }],
    [
      'an answer in the background',
      '/v1/responses',
      { model: 'chat-relayed', input: 'hello', background: true, store: true },
    ],
    ['embeddings', '/v1/embeddings', { model: 'embedding-relayed', input: 'hello' }],
    ['a batch of embeddings', '/v1/embeddings', { model: 'embedding-relayed', input: ['hello', 'world'] }],
  ])('carry the day in a header of %s', async (_title, path, body) => {
    const answer = await started.post(path, body)

    expect(answer.status, await answer.text()).toBe(200)
    expect(answer.headers.get(HEADER)).toBe(SOON)
  })

  test('carry the day in the header of an answer from the cache', async () => {
    const body = chatBody('chat-relayed', 'asked twice')
    const mayUse = { 'x-signalbox-cache': 'use' }
    await (await started.post('/v1/chat/completions', body, mayUse)).text()
    const again = await started.post('/v1/chat/completions', body, mayUse)

    expect(again.headers.get('x-signalbox-cache')).toBe('hit')
    expect(again.headers.get(HEADER)).toBe(SOON)
  })

  test('carry the day in the header of an error of the vendor', async () => {
    started.sandbox.fault({ kind: 'status', status: 404, times: 1 })
    const answer = await started.post('/v1/chat/completions', chatBody('chat-relayed', 'gone'))

    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.headers.get(HEADER)).toBe(SOON)
  })

  test('reach the vendor after the day too, and carry the header', async () => {
    const answer = await started.post('/v1/chat/completions', chatBody('chat-relayed-past', 'still there'))

    expect(answer.status).toBe(200)
    expect(answer.headers.get(HEADER)).toBe(PAST)
  })

  test('carry no header and emit no event more than 60 days before', async () => {
    const answer = await started.post('/v1/chat/completions', chatBody('chat-relayed-later', 'hello'))

    expect(answer.status).toBe(200)
    expect(answer.headers.has(HEADER)).toBe(false)
    expect(retiring()).toEqual([])
  })
})

describe('the event model-retiring', () => {
  const call = async (model: string): Promise<void> => {
    await (await started.post('/v1/chat/completions', chatBody(model, `hello ${offsetMs}`))).text()
  }

  test('comes once per model and UTC day', async () => {
    await call('chat-relayed')
    await call('chat-relayed')
    await call('chat-qwen')
    const ofOneDay = retiring()
    offsetMs += DAY_MS
    await call('chat-relayed')

    const event = { type: 'model-retiring', model: 'chat-relayed', vendor: 'openai', retires: SOON }
    expect(ofOneDay).toEqual([event, { ...event, model: 'chat-qwen', vendor: 'dashscope' }])
    expect(retiring()).toEqual([...ofOneDay, event])
  })

  test('comes for the requests of a batch', async () => {
    const line = {
      custom_id: 'a',
      method: 'POST',
      url: '/v1/chat/completions',
      body: chatBody('chat-relayed', 'hello'),
    }
    const form = new FormData()
    form.set('purpose', 'batch')
    form.set('file', new Blob([`${JSON.stringify(line)}\n`]), 'requests.jsonl')
    const authorization = `Bearer ${TEST_KEY}`
    const file = await fetch(`${started.url}/v1/files`, { method: 'POST', headers: { authorization }, body: form })
    const { id } = (await file.json()) as { id: string }
    const batch = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }
    const answer = await started.post('/v1/batches', batch)

    expect(answer.status, await answer.text()).toBe(200)
    await expect.poll(() => retiring().length).toBe(1)
  })
})

test('GET /v1/models lists the day as expiration_date, also if it is far away', async () => {
  const answer = await fetch(`${started.url}/v1/models`, { headers: { authorization: `Bearer ${TEST_KEY}` } })
  const { data } = (await answer.json()) as { data: { id: string; expiration_date?: string }[] }
  const dayOf = (id: string) => data.find((model) => model.id === id)?.expiration_date

  expect(dayOf('chat-relayed')).toBe(SOON)
  expect(dayOf('chat-relayed-later')).toBe(dayIn(90))
  expect(data.some((model) => model.id === 'cl-opus-4-7' && !('expiration_date' in model))).toBe(true)
})
