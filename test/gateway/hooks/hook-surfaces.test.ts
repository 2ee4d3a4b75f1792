import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { AnyHook, HookAnswer, HookCall, HookFailure, HookWire, TextWindow } from '../../../src/hooks/hook.ts'
import { videoBody } from '../../drills/support/video-bodies.ts'
import { type StartedMcp, startMcp } from '../../mcp/support/start-mcp.ts'
import { chatBody, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'
import { SPEECH_PRICES, speech } from '../audio/speech-gateway.ts'
import { editForm, png, postForm } from '../images/image-requests.ts'
import { VENDOR_KEY } from './hooked-gateway.ts'

/** Points that were asked, in order, each once for a call. */
const asked: string[] = []
/** Everything that any point was shown. */
const shown: string[] = []

const HEADERS = ['authorization', 'cookie', 'x-api-key', 'api-key', 'x-goog-api-key', 'proxy-authorization', 'x-own']

type Facts = HookCall | HookAnswer | TextWindow | HookFailure

function see(point: string, facts: Facts | HookWire): undefined {
  if (asked.at(-1) !== point) asked.push(point)
  const members: unknown[] = []
  // Getters of the classes behind the interfaces too.
  for (let object: object | null = facts; object !== null; object = Object.getPrototypeOf(object))
    for (const name of Object.getOwnPropertyNames(object))
      if (!['constructor', 'signal', '__proto__'].includes(name)) {
        const value: unknown = Reflect.get(facts, name)
        if (typeof value !== 'function') members.push([name, value])
      }
  if ('texts' in facts) members.push(facts.texts())
  if ('header' in facts) members.push(HEADERS.map((name) => facts.header(name)))
  shown.push(JSON.stringify(members))
  return undefined
}

const watch: AnyHook = {
  name: 'watch',
  request: (call: HookCall) => see('request', call),
  wire: (wire: HookWire) => see('wire', wire),
  answer: (answer: HookAnswer) => see('answer', answer),
  text: { holdBack: { chars: 0 }, check: (window: TextWindow) => see('answer', window) },
  failed: (failure: HookFailure) => see('failed', failure),
}

let started: StartedMcp

beforeAll(async () => {
  started = await startMcp({ gateway: { hooks: [watch], prices: SPEECH_PRICES } })
})
afterAll(() => started.close())
beforeEach(() => {
  asked.length = 0
})

const WITH_ANSWER = ['request', 'wire', 'answer']
const WITHOUT_TEXT = ['request', 'wire']
const MODELS = ['chat-relayed', 'chat-qwen', 'cl-sonnet-4-6', 'gmn-2.5-flash']

const HTTP: readonly (readonly [string, string, Record<string, unknown>, readonly string[]])[] = [
  ...[false, true].flatMap((stream) =>
    MODELS.flatMap((model): (readonly [string, string, Record<string, unknown>, readonly string[]])[] => [
      [`chat with ${model}, stream ${stream}`, '/v1/chat/completions', chatBody(model, 'hi', { stream }), WITH_ANSWER],
      [
        `messages with ${model}, stream ${stream}`,
        '/v1/messages',
        { ...chatBody(model, 'hi', { stream }), max_tokens: 50 },
        WITH_ANSWER,
      ],
      [`responses with ${model}, stream ${stream}`, '/v1/responses', { model, input: 'hi', stream }, WITH_ANSWER],
    ]),
  ),
  ['embeddings', '/v1/embeddings', { model: 'embedding-relayed', input: 'hi' }, WITHOUT_TEXT],
  ['images', '/v1/images/generations', { model: 'gp-image-2', prompt: 'hi' }, WITHOUT_TEXT],
  ['speech', '/v1/audio/speech', speech('hi'), WITHOUT_TEXT],
  ['videos', '/v1/videos/generations', videoBody('wv2.7-t2v'), WITHOUT_TEXT],
]

test.each(HTTP)('runs hooks for %s over HTTP', async (_name, path, body, points) => {
  const reply = await started.post(path, body)
  const text = await reply.text()

  expect(reply.ok, text).toBe(true)
  expect(asked).toEqual(points)
})

test('runs hooks for image edits over HTTP', async () => {
  const form = editForm({ model: 'gp-image-2', prompt: 'hi' }, [
    { name: 'image', bytes: png(64), type: 'image/png', filename: 'a.png' } as never,
  ])
  expect((await postForm(started.url, form)).status).toBe(200)
  expect(asked).toEqual(WITHOUT_TEXT)
})

const messages = [{ role: 'user' as const, content: 'hi' }]

test.each<[string, Record<string, unknown>, readonly string[]]>([
  ['chat_complete', { model: 'chat-relayed', messages }, WITH_ANSWER],
  ['create_embeddings', { model: 'embedding-relayed', input: 'hi' }, WITHOUT_TEXT],
  ['generate_image', { model: 'gp-image-2', prompt: 'hi' }, WITHOUT_TEXT],
  [
    'edit_image',
    {
      model: 'gp-image-2',
      prompt: 'hi',
      images: [{ data: Buffer.from(png(64)).toString('base64'), mime_type: 'image/png' }],
    },
    WITHOUT_TEXT,
  ],
  ['synthesize_speech', speech('hi'), WITHOUT_TEXT],
  ['submit_video', videoBody('wv2.7-t2v'), WITHOUT_TEXT],
])('runs hooks for the MCP tool %s', async (name, given, points) => {
  const client = await started.connect()
  const result = await client.callTool({ name, arguments: given })

  expect(result.isError, JSON.stringify(result)).not.toBe(true)
  expect(asked).toEqual(points)
})

describe('hooks within the process', () => {
  const client = (): ReturnType<StartedMcp['gateway']['client']> =>
    started.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'own', tier: 'paid' })
  const drained = async (events: AsyncIterable<unknown>): Promise<void> => {
    for await (const _event of events);
  }

  test.each<[string, () => Promise<unknown>, readonly string[]]>([
    ['chat', () => client().chat.completions.create({ model: 'chat-relayed', messages }), WITH_ANSWER],
    [
      'streamed chat',
      async () => drained(await client().chat.completions.create({ model: 'chat-relayed', messages, stream: true })),
      WITH_ANSWER,
    ],
    ['messages', () => client().messages.create({ model: 'cl-sonnet-4-6', max_tokens: 9, messages }), WITH_ANSWER],
    [
      'streamed messages',
      async () => drained(await client().messages.stream({ model: 'cl-sonnet-4-6', max_tokens: 9, messages })),
      WITH_ANSWER,
    ],
    ['responses', () => client().responses.create({ model: 'chat-relayed', input: 'hi' }), WITH_ANSWER],
    [
      'streamed responses',
      async () => drained(await client().responses.stream({ model: 'chat-relayed', input: 'hi' })),
      WITH_ANSWER,
    ],
    ['embeddings', () => client().embeddings.create({ model: 'embedding-relayed', input: 'hi' }), WITHOUT_TEXT],
  ])('%s', async (_name, call, points) => {
    await call()

    expect(asked).toEqual(points)
  })
})

test('no hook has seen a key, of the vendor or of the caller, in anything that it was shown', async () => {
  const headers = { cookie: `session=${TEST_KEY}`, 'x-api-key': TEST_KEY, 'x-own': 'mine' }
  await (await started.post('/v1/chat/completions', chatBody('gmn-2.5-flash', 'hi', { stream: true }), headers)).text()
  await started.post('/v1/chat/completions', chatBody('no-such-model', 'hi'), headers)
  const all = shown.join('\n')

  expect(asked).toContain('failed')
  expect(all).toContain('mine')
  expect(shown.length).toBeGreaterThan(HTTP.length * 2)
  expect(all).not.toContain(VENDOR_KEY)
  expect(all).not.toContain(TEST_KEY)
})
