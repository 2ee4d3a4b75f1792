import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ENDPOINTS } from '../../../src/endpoints/registry.ts'
import type { AnyHook, HookCall } from '../../../src/hooks/hook.ts'
import { redact } from '../../../src/hooks/redact.ts'
import { pii } from '../../../src/hooks/redaction-rules.ts'
import { videoBody } from '../../drills/support/video-bodies.ts'
import { type StartedMcp, startMcp } from '../../mcp/support/start-mcp.ts'
import { chatBody, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { SPEECH_PRICES, speech } from '../audio/speech-gateway.ts'
import { EDITS, editBody, editForm, everyShape, png, postForm } from '../images/image-requests.ts'

const SECRET = 'jane.doe@example.com'

/** A request of every endpoint whose text holds the secret: name, path, body. */
const REQUESTS: readonly (readonly [string, string, Readonly<Record<string, unknown>>])[] = [
  ...['chat-relayed', 'chat-qwen', 'cl-sonnet-4-6', 'gmn-2.5-flash'].flatMap(
    (model): (readonly [string, string, Record<string, unknown>])[] => [
      [`chat with ${model}`, '/v1/chat/completions', chatBody(model, `Write to ${SECRET}`)],
      [`messages with ${model}`, '/v1/messages', { ...chatBody(model, `Write to ${SECRET}`), max_tokens: 50 }],
      [`responses with ${model}`, '/v1/responses', { model, input: `Write to ${SECRET}` }],
    ],
  ),
  ['embeddings', '/v1/embeddings', { model: 'embedding-relayed', input: ['one', `Write to ${SECRET}`] }],
  ...['vy-rerank-2.5', 'qw3-rerank', 'gte-rerank-v2', 'rerank-v3.5'].map(
    (model) =>
      [
        `rerank with ${model}`,
        '/v1/rerank',
        { model, query: `Who is ${SECRET}?`, documents: ['one', { text: `Write to ${SECRET}` }, { to: SECRET }] },
      ] as const,
  ),
  ['rerank by the path of version 2', '/v2/rerank', { model: 'rerank-v3.5', query: SECRET, documents: ['one'] }],
  ['moderations', '/v1/moderations', { model: 'omni-moderation-latest', input: ['one', `Write to ${SECRET}`] }],
  [
    'a count of tokens of Messages',
    '/v1/messages/count_tokens',
    { model: 'cl-sonnet-4-6', messages: [{ role: 'user', content: `Write to ${SECRET}` }] },
  ],
  [
    'a count of tokens of Responses',
    '/v1/responses/input_tokens',
    { model: 'chat-relayed', input: `Write to ${SECRET}` },
  ],
  ...everyShape(`a letter to ${SECRET}`),
  ['speech', '/v1/audio/speech', speech(`Write to ${SECRET}`)],
  ['a video', '/v1/videos/generations', videoBody('wv2.7-t2v', { input: { prompt: `for ${SECRET}` } })],
]

/** Paths whose hooks are tested in the file named here: `transcriptions` takes forms, and few models write completions. */
const ELSEWHERE = new Map([
  ['/v1/audio/transcriptions', 'test/gateway/audio/transcription-stages.test.ts'],
  ['/v1/completions', 'test/gateway/endpoints/completions.test.ts'],
])

test('every endpoint whose texts hooks read is covered here', () => {
  const covered = [...REQUESTS.map(([, path]) => path), EDITS, ...ELSEWHERE.keys()]
  const missing = ENDPOINTS.flatMap((endpoint) => [endpoint, ...(endpoint.shapes?.values() ?? [])])
    .filter(({ texts, path }) => texts !== undefined && !covered.includes(path))
    .map(({ path }) => path)

  expect([...new Set(missing)]).toEqual([])
  for (const file of ELSEWHERE.values()) expect(readFileSync(file, 'utf8')).toContain('hooks: [')
})

let started: StartedMcp
const asked: string[] = []
const watch: AnyHook = {
  name: 'watch',
  request(call: HookCall) {
    asked.push(...call.texts().map(({ text }) => text))
    return undefined
  },
}

beforeAll(async () => {
  started = await startMcp({ gateway: { hooks: [redact([pii.email]), watch], prices: SPEECH_PRICES } })
})
afterAll(() => started.close())

/** All that the vendors got since the last look. */
function sentToVendors(): string {
  const calls = started.sandbox.requests.map((call) => JSON.stringify(call) + String(call.bytes ?? ''))
  started.sandbox.reset()
  return calls.join('\n')
}

describe.each(REQUESTS)('a secret in a request of %s', (_name, path, body) => {
  const streams = ['/v1/chat/completions', '/v1/messages', '/v1/responses'].includes(path) ? [false, true] : [false]

  test.each(streams)('never reaches its vendor, nor its caller (streamed: %s)', async (stream) => {
    sentToVendors()
    const reply = await started.post(path, stream ? { ...body, stream } : body)
    const text = await reply.text()
    const sent = sentToVendors()

    expect(reply.ok, text).toBe(true)
    expect(sent).toContain('[EMAIL]')
    expect(sent).not.toContain(SECRET)
    expect(text).not.toContain(SECRET)
    expect(asked.join()).not.toContain(SECRET)
  })
})

test.each([
  [
    'the description of a tool of its own form, in a chat',
    '/v1/chat/completions',
    chatBody('chat-relayed', 'hi', {
      tools: [{ type: 'custom', custom: { name: 'write', description: `Writes to ${SECRET}` } }],
    }),
  ],
  [
    'the description of a function in the old form, in a chat',
    '/v1/chat/completions',
    chatBody('chat-relayed', 'hi', {
      functions: [{ name: 'write', description: `Writes to ${SECRET}`, parameters: {} }],
    }),
  ],
  [
    'what a shell has printed, in Responses',
    '/v1/responses',
    {
      model: 'chat-relayed',
      input: [
        { type: 'shell_call', call_id: 'c1', status: 'completed', action: { commands: [`mail ${SECRET}`] } },
        {
          type: 'shell_call_output',
          call_id: 'c1',
          output: [{ stdout: `to ${SECRET}`, stderr: SECRET, outcome: { type: 'exit', exit_code: 0 } }],
        },
        {
          type: 'apply_patch_call',
          call_id: 'c2',
          status: 'completed',
          operation: { type: 'update_file', path: 'a', diff: `+${SECRET}` },
        },
        { type: 'apply_patch_call_output', call_id: 'c2', status: 'failed', output: SECRET },
        {
          type: 'local_shell_call',
          call_id: 'c3',
          status: 'completed',
          action: { type: 'exec', command: ['echo', SECRET] },
        },
        { type: 'local_shell_call_output', call_id: 'c3', output: SECRET },
      ],
    },
  ],
])('a secret in %s never reaches its vendor', async (_name, path, body) => {
  sentToVendors()
  const reply = await started.post(path, body)
  const sent = sentToVendors()

  expect(reply.ok, await reply.text()).toBe(true)
  expect(sent).toContain('[EMAIL]')
  expect(sent).not.toContain(SECRET)
})

test('does not reach a vendor in a form, whose own field is replaced', async () => {
  sentToVendors()
  const form = editForm({ model: 'gp-image-2', prompt: `a letter to ${SECRET}` }, [
    { name: 'image', bytes: png(64), type: 'image/png', filename: 'a.png' } as never,
  ])
  const reply = await postForm(started.url, form)
  const sent = sentToVendors()

  expect(reply.status, await reply.text()).toBe(200)
  expect(sent).toContain('[EMAIL]')
  expect(sent).not.toContain(SECRET)
  expect(EDITS).toBe('/v1/images/edits')
  expect(editBody('x')).toHaveProperty('prompt')
})

test('does not reach a vendor by MCP, or within the process', async () => {
  sentToVendors()
  const client = await started.connect()
  const messages = [{ role: 'user', content: `Write to ${SECRET}` }]
  const result = await client.callTool({ name: 'chat_complete', arguments: { model: 'chat-relayed', messages } })
  const own = started.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'own', tier: 'paid' })
  const answer = await own.chat.completions.create({
    model: 'chat-relayed',
    messages: [{ role: 'user', content: `Write to ${SECRET}` }],
  })
  const sent = sentToVendors()

  expect(JSON.stringify(result) + JSON.stringify(answer) + sent).not.toContain(SECRET)
  expect(sent.match(/\[EMAIL\]/g)?.length).toBeGreaterThanOrEqual(2)
})

test('a response in the background is asked about once, when it is submitted, and is kept as it was rewritten', async () => {
  const before = asked.length
  const reply = await started.post('/v1/responses', {
    model: 'chat-relayed',
    input: `Write to ${SECRET}`,
    background: true,
  })
  const { id } = (await reply.json()) as { id: string }
  await started.taskEnded(id)
  const headers = { authorization: 'Bearer sk-test-0123456789' }
  const kept = await (await fetch(`${started.url}/v1/responses/${id}`, { headers })).json()

  expect(kept.status).toBe('completed')
  expect(JSON.stringify(kept)).not.toContain(SECRET)
  expect(JSON.stringify(kept)).toContain('[EMAIL]')
  expect(asked.slice(before)).toEqual(['Write to [EMAIL]'])
})

test('a turn that is kept is the rewritten one', async () => {
  const first = (await (
    await started.post('/v1/responses', { model: 'chat-qwen', input: `I am ${SECRET}` })
  ).json()) as { id: string }
  sentToVendors()
  const body = { model: 'chat-qwen', input: 'Who am I?', previous_response_id: first.id }
  const second = await started.post('/v1/responses', body)

  expect(second.status).toBe(200)
  expect(sentToVendors()).not.toContain(SECRET)
})
