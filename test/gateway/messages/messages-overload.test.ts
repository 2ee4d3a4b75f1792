import { afterEach, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { messagesBody } from './messages-requests.ts'

const PATH = '/v1/messages'

let started: StartedGateway

afterEach(() => started.close())

test.each([
  ['cl-sonnet-4-6', 'anthropic', 529],
  ['chat-relayed', 'openai', 503],
  ['gmn-2.5-flash', 'gemini', 503],
])(
  'a vendor that is overloaded: callers of %s read it in the words of their dialect, streamed or not',
  async (model, vendor, status) => {
    started = await startGateway()
    for (const stream of [false, true]) {
      started.sandbox.fault({ kind: 'status', status, vendor, times: 2 })
      const response = await started.post(PATH, messagesBody(model, 'hello', { stream }))

      expect(response.status).toBe(529)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } })
    }
  },
)

test.each([
  ['cl-sonnet-4-6', 'of their own dialect'],
  ['gmn-2.5-flash', 'that are translated'],
])('reports an overload within a stream of %s in events %s', async (model) => {
  started = await startGateway()
  const text = '[[fault:error-event=6]] one two three four five'
  const response = await started.post(PATH, messagesBody(model, text, { stream: true }))
  const events = await response.text()

  expect(response.status).toBe(200)
  expect(events).toContain('content_block_delta')
  expect(events).toMatch(/event: error\ndata: \{"type":"error","error":\{"type":"overloaded_error".*\n\n$/)
})

test('a vendor that fails for another reason is not said to be overloaded', async () => {
  started = await startGateway()
  started.sandbox.fault({ kind: 'status', status: 500, vendor: 'anthropic', times: 2 })
  const response = await started.post(PATH, messagesBody('cl-sonnet-4-6', 'hello'))

  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({ error: { type: 'api_error' } })
})

test('callers of chat see an overload as before', async () => {
  started = await startGateway()
  const body = { model: 'cl-sonnet-4-6', messages: [{ role: 'user', content: 'hello' }] }
  started.sandbox.fault({ kind: 'status', status: 529, vendor: 'anthropic', times: 2 })
  const response = await started.post('/v1/chat/completions', body)
  const text = '[[fault:error-event=6]] one two three four five'
  const streamed = { ...body, stream: true, messages: [{ role: 'user', content: text }] }
  const events = await (await started.post('/v1/chat/completions', streamed)).text()

  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({ error: { type: 'server_error', code: 'upstream_unavailable' } })
  expect(events).toMatch(/"type":"server_error","param":null,"code":"upstream_unavailable"\}\}\n\n$/)
})

test.each([
  ['cl-sonnet-4-6', 'anthropic'],
  ['gmn-2.5-flash', 'gemini'],
])('an overload within a Responses stream of %s has a code after which Codex reconnects', async (model) => {
  started = await startGateway()
  const input = '[[fault:error-event=6]] one two three four five'
  const events = await (await started.post('/v1/responses', { model, input, stream: true })).text()

  expect(events).toContain('event: response.output_text.delta')
  expect(events).toMatch(/"type":"response.failed".*"error":\{"code":"server_error","message":"[^"]*overloaded/)
  expect(events).not.toContain('server_is_overloaded')
})

test.each([
  ['/v1/chat/completions', 'reset-mid-stream'],
  ['/v1/messages', 'reset-mid-stream'],
  ['/v1/responses', 'reset-mid-stream'],
  ['/v1/chat/completions', 'end-early'],
  ['/v1/messages', 'end-early'],
  ['/v1/responses', 'end-early'],
] as const)('a stream of %s that is cut (%s) has a text by which coding clients retry', async (path, kind) => {
  started = await startGateway()
  started.sandbox.fault({ kind, events: 6, times: 1 })
  const text = 'one two three four five six seven eight'
  const asked =
    path === '/v1/responses' ? { input: text } : { messages: [{ role: 'user', content: text }], max_tokens: 99 }
  const events = await (await started.post(path, { model: 'cl-sonnet-4-6', ...asked, stream: true })).text()

  expect(events).toMatch(/"message":"Premature close: the model vendor's stream ended without a complete answer\."/)
})
