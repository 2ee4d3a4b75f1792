import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventsOf, type StreamedBlock } from '../../endpoints/messages/stream-events.ts'
import { type StartedGateway, startGateway, TEST_KEY, TEST_MODELS } from '../../support/start-gateway.ts'
import { messagesLoop } from './messages-loop.ts'
import { CODING_CLIENT_HEADERS, codingClientRequest } from './messages-requests.ts'

/** A model that refuses a call of the current turn without its signature. */
const SIGNING = { id: 'signing', kind: 'chat', vendor: 'gemini', upstream: 'gemini-3-pro-preview' } as const

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ billing: 'off', models: [...TEST_MODELS, SIGNING] })
})
afterAll(() => started.close())

const PATH = '/v1/messages?beta=true'

/** The contents of the answers to a request of the client, until one calls no tool. */
async function loop(model: string, text: string, later = model): Promise<StreamedBlock[][]> {
  const rounds = await messagesLoop(started, codingClientRequest(model, text), CODING_CLIENT_HEADERS, later)
  return rounds.map(({ blocks }) => blocks)
}

describe.each(['cl-sonnet-4-6', 'gmn-2.5-flash', 'gmn-2.5-pro', 'signing', 'chat-relayed', 'chat-qwen'])(
  'works with %s',
  (model) => {
    test('thinking, calls and results go round until the answer', async () => {
      const rounds = await loop(model, 'call Bash and Read')

      expect(rounds).toHaveLength(2)
      expect(rounds[0]?.filter(({ type }) => type === 'tool_use').map((block) => block['name'])).toEqual([
        'Bash',
        'Read',
      ])
      expect(rounds[1]?.at(-1)).toEqual({ type: 'text', text: 'The tools answered: done | done' })
    })
  },
)

test('the signature of a call comes back to the vendor that made it', async () => {
  started.sandbox.reset()
  const rounds = await loop('signing', 'call Bash')

  const [, second] = started.sandbox.requests
  const signature = /"thoughtSignature":"([^"]+)"/.exec(JSON.stringify(second?.body))?.[1]
  expect(rounds[0]?.map(({ type }) => type)).toContain('thinking')
  expect(signature).toMatch(/.{8}/)
  expect(signature).not.toBe('skip_thought_signature_validator')
})

test.each([
  ['signing', 'cl-sonnet-4-6'],
  ['cl-sonnet-4-6', 'gmn-2.5-flash'],
  ['chat-relayed', 'cl-sonnet-4-6'],
])('a conversation that %s began can go on at %s', async (first, second) => {
  const rounds = await loop(first, 'call Bash', second)

  expect(rounds[1]?.at(-1)).toEqual({ type: 'text', text: 'The tools answered: done' })
})

test('passes the bytes unchanged to a model of the same dialect, except the model', async () => {
  started.sandbox.reset()
  const request = codingClientRequest('cl-sonnet-4-6', 'fix the test')
  const response = await started.post(PATH, request, CODING_CLIENT_HEADERS)
  const given = eventsOf(new Uint8Array(await response.arrayBuffer()))

  const call = await started.sandbox.nextRequest()
  const sent = JSON.stringify(request)
  expect(Buffer.from(call.bytes).toString('utf8')).toBe(sent.replace('"cl-sonnet-4-6"', '"claude-sonnet-4-6"'))
  expect(call.headers).toMatchObject({
    'anthropic-version': '2023-06-01',
    'anthropic-beta': CODING_CLIENT_HEADERS['anthropic-beta'],
  })
  expect(call.headers['x-claude-code-session-id']).toBeUndefined()
  expect(Object.values(call.headers)).not.toContain(`Bearer ${TEST_KEY}`)
  expect(response.headers.get('x-signalbox-dropped')).toBeNull()
  expect(given.some(({ type }) => type === 'ping')).toBe(true)
  expect(given[0]).toMatchObject({ message: { model: 'cl-sonnet-4-6', usage: { input_tokens: expect.any(Number) } } })
})

test('names unsupported fields for a model of another dialect', async () => {
  started.sandbox.reset()
  const response = await started.post(PATH, codingClientRequest('gmn-2.5-flash', 'fix the test'), CODING_CLIENT_HEADERS)
  await response.text()

  const { body } = await started.sandbox.nextRequest()
  expect(response.headers.get('x-signalbox-dropped')?.split(', ').sort()).toEqual([
    'cache_control',
    'context_management',
    'metadata.user_id',
    'safeguards',
    'system[0]',
  ])
  expect(JSON.stringify(body)).not.toContain('billing-header')
  expect(JSON.stringify(body)).not.toContain('device_id')
})

describe('an instruction that changes nothing but the effort', () => {
  const turns = [
    { role: 'user', content: 'good morning' },
    { role: 'system', output_config: { effort: 'low' } },
  ]
  const seen: string[] = []
  let hooked: StartedGateway
  beforeAll(async () => {
    hooked = await startGateway({
      billing: 'off',
      hooks: [{ name: 'reader', request: (call) => void seen.push(...call.texts().map(({ text }) => text)) }],
    })
  })
  afterAll(() => hooked.close())

  test.each(['cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-relayed', 'chat-qwen'])('is taken, also by %s', async (model) => {
    const message = await hooked.post('/v1/messages', { model, max_tokens: 9, messages: turns })
    const count = await hooked.post('/v1/messages/count_tokens', { model, messages: turns })

    expect([message.status, count.status]).toEqual([200, 200])
    expect(message.headers.get('x-signalbox-dropped')).toBe(model.startsWith('cl-') ? null : 'messages.output_config')
    expect(seen.splice(0)).toContain('good morning')
  })

  test('reaches a vendor of the dialect as it is', async () => {
    await hooked.post('/v1/messages', { model: 'cl-sonnet-4-6', max_tokens: 9, messages: turns })

    expect(hooked.sandbox.requests.at(-1)?.body).toMatchObject({ messages: turns })
  })

  test.each([
    { role: 'system' },
    { role: 'system', output_config: null },
    { role: 'user', output_config: { effort: 'low' } },
    { role: 'user', content: null },
  ])('is no excuse for a turn without content: %j', async (turn) => {
    const response = await hooked.post('/v1/messages', {
      model: 'gmn-2.5-flash',
      max_tokens: 9,
      messages: [turns[0], turn],
    })

    expect(response.status).toBe(400)
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain('messages[1].content')
  })
})

test('it warms its connection up without a credential', async () => {
  const [head, get, post] = await Promise.all(
    ['HEAD', 'GET', 'POST'].map((method) => fetch(`${started.url}/api/hello`, { method })),
  )

  expect(head?.status).toBe(200)
  expect(await head?.text()).toBe('')
  expect(get?.status).toBe(200)
  expect(await get?.json()).toEqual({ message: 'hello' })
  expect(post?.status).toBe(405)
})
