import { describe, expect, test, vi } from 'vitest'
import { type AnyHook, defineHook, type HookCall, type HookWire } from '../../../src/hooks/hook.ts'
import { chatBody, TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { closedAfterEach, hookedGateway, USAGE, VENDOR_KEY } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'

const start = closedAfterEach()

describe('a request hook', () => {
  test('receives the call, and cannot change its body', async () => {
    let seen: HookCall<'chat'> | undefined
    let fault: unknown
    const hook = defineHook({
      name: 'look',
      endpoints: ['chat'],
      request(call) {
        seen = call
        try {
          ;(call.body as { temperature?: number }).temperature = 2
        } catch (error) {
          fault = error
        }
        return undefined
      },
    })
    const { post, received } = await start([hook])
    const headers = { 'x-own': 'mine', 'x-signalbox-tags': 'team-a' }
    const response = await post(CHAT, chatBody('chat-relayed', 'good morning'), headers)

    expect(response.status).toBe(200)
    expect(fault).toBeInstanceOf(TypeError)
    expect(received[0]).not.toHaveProperty('temperature')
    expect(seen?.requestId).toBe(response.headers.get('x-request-id'))
    expect(seen).toMatchObject({ endpoint: 'chat', model: 'chat-relayed', isStream: false, tags: ['team-a'] })
    expect(seen?.principal.accountId).toBe(TEST_ACCOUNT)
    expect(seen?.header('x-own')).toBe('mine')
    expect(seen?.header('authorization')).toBeUndefined()
    expect(seen?.texts()).toMatchObject([
      { id: 'messages[0].content', kind: 'text', role: 'user', index: 0, text: 'good morning' },
    ])
  })

  test('replaces texts and bodies in order: each one reads what the one before has made', async () => {
    const order: string[] = []
    const texts: AnyHook = {
      name: 'texts',
      request(call) {
        order.push(call.texts()[0]?.text ?? '')
        return { texts: new Map(call.texts().map(({ id, text }) => [id, text.toUpperCase()])) }
      },
    }
    const body = defineHook({
      name: 'body',
      endpoints: ['chat'],
      request(call) {
        order.push(String(call.body.messages[0]?.content))
        return { body: { ...call.body, max_tokens: 9 } }
      },
    })
    const { post, received } = await start([texts, body])
    await post(CHAT, chatBody('chat-relayed', 'good morning', { unknown_member: 1 }))

    expect(order).toEqual(['good morning', 'GOOD MORNING'])
    expect(received[0]).toMatchObject({
      messages: [{ role: 'user', content: 'GOOD MORNING' }],
      max_completion_tokens: 9,
      unknown_member: 1,
    })
  })

  test('makes the hold and the price follow a rewrite to another model and bound', async () => {
    const hook = defineHook({
      name: 'route',
      endpoints: ['chat'],
      request: ({ body }) => ({ body: { ...body, model: 'chat-relayed', max_tokens: 3 } }),
    })
    const { post, ended } = await start([hook])
    const response = await post(CHAT, chatBody('cl-sonnet-4-6', 'hi', { max_tokens: 2000 }))
    const event = await ended(response)

    expect(event.model).toBe('chat-relayed')
    expect((await response.json()).model).toBe('chat-relayed')
    expect(event.usage).toMatchObject({ inputTokens: USAGE.prompt_tokens })
  })

  test('denies before anything is held or sent, with its own status, code and text', async () => {
    const later = vi.fn()
    const hooks: AnyHook[] = [
      { name: 'deny', request: () => ({ deny: { status: 451, code: 'closed', message: 'Closed at night.' } }) },
      { name: 'later', request: later },
    ]
    const { post, account, vendor, eventsOf } = await start(hooks)
    const before = await account()
    const response = await post(CHAT, chatBody('chat-relayed', 'hi'))

    expect(response.status).toBe(451)
    expect(response.headers.get('x-signalbox-error-code')).toBe('request_denied')
    expect(await response.json()).toMatchObject({ error: { message: 'Closed at night.', code: 'closed' } })
    expect(later).not.toHaveBeenCalled()
    expect(vendor.calls).toBe(0)
    expect(await account()).toEqual(before)
    expect(eventsOf('hook-denied')).toMatchObject([{ hook: 'deny', point: 'request', endpoint: 'chat' }])
    expect(eventsOf('request-refused')).toMatchObject([{ code: 'request_denied', status: 451 }])
  })

  test('denies with 400 by default, even if the denial has unusable members', async () => {
    const { post } = await start([
      { name: 'deny', onFailure: 'allow', request: () => ({ deny: { status: 200 }, body: 3 }) },
    ])
    const response = await post(CHAT, chatBody('chat-relayed', 'hi'))

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'request_denied' } })
  })

  test('is not asked about requests that the limits refuse', async () => {
    const request = vi.fn()
    const { post } = await start([{ name: 'paid', request }], undefined, { limits: { requestsPerMinute: 1 } })
    await post(CHAT, chatBody('chat-relayed', 'one'))
    const second = await post(CHAT, chatBody('chat-relayed', 'two'))

    expect(second.status).toBe(429)
    expect(request).toHaveBeenCalledTimes(1)
  })
})

const FAULTS: Record<string, () => unknown> = {
  throws: () => {
    throw new Error('the secret of the hook')
  },
  rejects: () => Promise.reject(new Error('the secret of the hook')),
  hangs: () => new Promise(() => undefined),
  'returns a promise that throws at once': () => ({
    then() {
      throw new Error('the secret of the hook')
    },
  }),
  'returns a promise that cannot be looked at': () =>
    Object.defineProperty({}, 'then', {
      get() {
        throw new Error('the secret of the hook')
      },
    }),
  'returns a text': () => 'no',
  'returns an unknown member': () => ({ denied: true }),
  'returns a body that is invalid': () => ({ body: { model: 'chat-relayed', messages: 'none' } }),
  'returns a body of an unknown model': () => ({ body: chatBody('no-such-model', 'hi') }),
  'returns a text that is not there': () => ({ texts: new Map([['messages[7].content', 'x']]) }),
  'makes it a stream': () => ({ body: chatBody('chat-relayed', 'hi', { stream: true }) }),
}

describe.each(Object.entries(FAULTS))('a request hook that %s', (_name, request) => {
  test('gets 503 without its text, and nothing is held or sent', async () => {
    const { post, account, vendor, eventsOf } = await start([{ name: 'bad', timeoutMs: 20, request: request as never }])
    const before = await account()
    const response = await post(CHAT, chatBody('chat-relayed', 'hi'))
    const text = await response.text()

    expect(response.status).toBe(503)
    expect(response.headers.get('x-signalbox-error-code')).toBe('hook_failed')
    expect(text).not.toContain('secret')
    expect(vendor.calls).toBe(0)
    expect(await account()).toEqual(before)
    expect(eventsOf('internal-error')).toHaveLength(1)
  })

  test("is passed over where it says `onFailure: 'allow'`, with one event", async () => {
    const { post, received, eventsOf } = await start([
      { name: 'bad', timeoutMs: 20, onFailure: 'allow', request: request as never },
    ])
    const response = await post(CHAT, chatBody('chat-relayed', 'hi'))

    expect(response.status).toBe(200)
    expect(received[0]).toMatchObject({ messages: [{ content: 'hi' }] })
    expect(eventsOf('hook-bypassed')).toMatchObject([{ hook: 'bad', point: 'request' }])
  })
})

test('a hook that never settles is answered at its deadline, and its signal is aborted', async () => {
  let signal: AbortSignal | undefined
  const hang: AnyHook = {
    name: 'hang',
    timeoutMs: 30,
    request(call) {
      signal = call.signal
      return new Promise(() => undefined)
    },
  }
  const { post } = await start([hang])
  const startedAt = performance.now()
  const response = await post(CHAT, chatBody('chat-relayed', 'hi'))

  expect(response.status).toBe(503)
  expect(performance.now() - startedAt).toBeLessThan(1_000)
  expect(signal?.aborted).toBe(true)
})

test('a rewrite cannot leave the scopes of its key', async () => {
  const { post, gateway: own } = await start([
    { name: 'route', request: ({ body }: HookCall) => ({ body: { ...body, model: 'chat-relayed' } }) },
  ])
  const { key } = await own.keys.create({ accountId: TEST_ACCOUNT, scopes: { models: ['cl-sonnet-4-6'] } })
  const response = await post(CHAT, chatBody('cl-sonnet-4-6', 'hi'), { authorization: `Bearer ${key}` })

  expect(response.status).toBe(503)
})

describe('a wire hook', () => {
  test('sees the request without credentials, and adds headers and members', async () => {
    let seen: HookWire | undefined
    const wire: AnyHook = {
      name: 'wire',
      wire(request) {
        seen = request
        return { headers: { 'x-team': 'a' }, members: { metadata: { team: 'a' } } }
      },
    }
    const { post, received } = await start([wire])
    const response = await post(CHAT, chatBody('chat-relayed', 'hi'))

    expect(response.status).toBe(200)
    expect(received[0]).toMatchObject({ model: 'gpt-5.4', metadata: { team: 'a' } })
    expect(JSON.stringify(seen)).not.toContain(VENDOR_KEY)
    expect(seen).toMatchObject({ vendor: 'openai', endpoint: 'chat', path: '/v1/chat/completions' })
  })

  test.each([
    [{ headers: { authorization: 'Bearer other' } }],
    [{ headers: { host: 'elsewhere' } }],
    [{ headers: { 'x-line': 'a\r\nb: c' } }],
    [{ members: { model: 'gpt-6' } }],
    [{ members: { stream: true } }],
    [{ path: '/elsewhere' }],
    [Promise.resolve(undefined)],
  ])('cannot return %j: the call fails closed and costs nothing', async (result) => {
    const { post, account, vendor, ended } = await start([{ name: 'wire', wire: () => result as never }])
    const before = await account()
    const response = await post(CHAT, chatBody('chat-relayed', 'hi'))
    await ended(response)

    expect(response.status).toBe(503)
    expect(response.headers.get('x-signalbox-error-code')).toBe('hook_failed')
    expect(vendor.calls).toBe(0)
    expect(await account()).toEqual(before)
  })
})

describe('a failed hook', () => {
  test('replaces text and status of an error, and keeps its code', async () => {
    const told: unknown[] = []
    const failed: AnyHook = {
      name: 'words',
      failed({ code, status, message, endpoint }) {
        told.push({ code, status, endpoint, hasMessage: message !== '' })
        return { message: 'Ask the service desk.', status: 418 }
      },
    }
    const { post } = await start([failed])
    const response = await post(CHAT, chatBody('no-such-model', 'hi'))

    expect(response.status).toBe(418)
    expect(response.headers.get('x-signalbox-error-code')).toBe('model_not_found')
    expect(await response.json()).toMatchObject({ error: { message: 'Ask the service desk.' } })
    expect(told).toEqual([{ code: 'model_not_found', status: 404, endpoint: 'chat', hasMessage: true }])
  })

  test('is not asked about callers that nobody knows', async () => {
    const failed = vi.fn()
    const { post } = await start([{ name: 'words', failed }])
    const response = await post(CHAT, chatBody('chat-relayed', 'hi'), { authorization: 'Bearer wrong' })

    expect(response.status).toBe(401)
    expect(failed).not.toHaveBeenCalled()
  })
})

describe('start of the gateway', () => {
  test.each<[string, AnyHook[], RegExp]>([
    ['without a name', [{ name: '', request: () => undefined }], /needs a name/],
    ['without a point', [{ name: 'idle' }], /has none of/],
    [
      'with an unknown member',
      [{ name: 'x', requests: () => undefined } as never],
      /"x": requests is unknown; did you mean request\?/,
    ],
    ['with an unknown endpoint', [{ name: 'x', endpoints: ['chats'], request: () => undefined }], /"chats"/],
    [
      'that reads answers without text',
      [{ name: 'x', endpoints: ['embeddings'], answer: () => undefined }],
      /embeddings/,
    ],
    [
      'that holds back kinds that there are not',
      [{ name: 'x', text: { holdBack: 'all', holdAll: 'reasoning' as never, check: () => undefined } }],
      /text.holdAll must be a list/,
    ],
    [
      'with an unknown member of text',
      [{ name: 'x', text: { holdback: 'all', holdBack: 'all', check: () => undefined } as never }],
      /"x": text.holdback is unknown; did you mean holdBack\?/,
    ],
    ['with a deadline that is none', [{ name: 'x', timeoutMs: 0, request: () => undefined }], /timeoutMs/],
    [
      'twice',
      [
        { name: 'x', request: () => undefined },
        { name: 'x', request: () => undefined },
      ],
      /same name/,
    ],
  ])('a hook %s is an error that names it', async (_name, hooks, message) => {
    await expect(hookedGateway(hooks)).rejects.toThrow(message)
  })

  test('a hook on an endpoint whose texts cannot be read is an error and no silent pass', async () => {
    const { chatEndpoint } = await import('../../../src/endpoints/chat/chat-endpoint.ts')
    const { texts: _texts, ...unreadable } = chatEndpoint
    const own = { ...unreadable, id: 'own', path: '/v1/own' }
    const options = { endpoints: [own] }
    const reading: AnyHook = { name: 'reads', request: () => undefined }

    await expect(hookedGateway([reading], undefined, options)).rejects.toThrow(/cannot read the endpoint "own"/)
    await expect(hookedGateway([{ ...reading, endpoints: ['own'] }], undefined, options)).rejects.toThrow(
      /cannot read the endpoint "own"/,
    )
    await start(
      [
        { ...reading, endpoints: ['chat'] },
        { name: 'errors', failed: () => undefined },
      ],
      undefined,
      options,
    )
  })
})
