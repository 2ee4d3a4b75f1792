import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { AnyHook, Denial, HookAnswer } from '../../../src/hooks/hook.ts'
import { redact } from '../../../src/hooks/redact.ts'
import { pii } from '../../../src/hooks/redaction-rules.ts'
import { memoryCache } from '../../../src/stores/memory/memory-cache.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'
import { completion, type HookedGateway, hookedGateway, type Script, spoken } from '../hooks/hooked-gateway.ts'
import { vendorEvents } from '../responses/responses-vendor.ts'
import { eventStream } from '../streams/answering-vendor.ts'

const CHAT = '/v1/chat/completions'
const SECRET = 'jane.doe@example.com'
const RULES = [{ sampling: 'any' as const }]
/** No chunk contains the whole secret. */
const PIECES = ['write to jane', '.doe@exam', 'ple.com soon']

const gateways: HookedGateway[] = []

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close()
})

type Json = Record<string, unknown>

/** Says the secret in the form that is asked for. */
const telling: Script = (response, body) => {
  if (body['stream'] === true) spoken(PIECES)(response, body)
  else completion(PIECES.join(''))(response, body)
}

/** Script of the same answer as a stream of Responses. */
const tellingResponse: Script = (response) => {
  eventStream(response)
  for (const event of vendorEvents())
    response.write(
      event
        .replaceAll(/,"encrypted_content":(?:"gAAAA"|null)/g, '')
        .replaceAll('hello there', PIECES.join(''))
        .replace('"delta":"hello "', `"delta":"${PIECES[0]}${PIECES[1]}"`)
        .replace('"delta":"there"', `"delta":"${PIECES[2]}"`),
    )
  response.end()
}

/** Starts gateways of one store. They share its entries, like a gateway that is restarted with other hooks. */
async function start(
  hooks: readonly AnyHook[],
  { cache, script = telling, ...options }: Partial<GatewayOptions> & { script?: Script } = {},
): Promise<HookedGateway> {
  const gateway = await hookedGateway(hooks, script, { cache: { rules: RULES, ...cache }, ...options })
  gateways.push(gateway)
  return gateway
}

async function ask(gateway: HookedGateway, content = 'hi', rest: Json = {}, headers: Record<string, string> = {}) {
  const response = await gateway.post(CHAT, chatBody('chat-relayed', content, rest), headers)
  const text = await response.text()
  return { status: response.status, cache: response.headers.get('x-signalbox-cache'), response, text, said: said(text) }
}

/** The words of a whole or a streamed chat. */
function said(text: string): string {
  if (!text.startsWith('data:')) return (JSON.parse(text) as Answer).choices?.[0]?.message?.content ?? ''
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Answer)
  return events.map(({ choices }) => choices?.[0]?.delta?.content ?? '').join('')
}

interface Answer {
  readonly choices?: {
    readonly message?: { readonly content?: string | null }
    readonly delta?: { readonly content?: string }
  }[]
}

const denying = (deny: Denial, rest: Partial<AnyHook> = {}): AnyHook => ({
  name: 'no',
  answer: () => ({ deny }),
  ...rest,
})

describe.each([
  ['a whole answer', {}],
  ['a stream', { stream: true }],
])('%s from the cache', (_name, form) => {
  test('is screened by a hook that came after it was kept', async () => {
    const store = memoryCache()
    const before = await start([], { cache: { store } })
    const first = await ask(before, 'hi', form)
    const after = await start([redact([pii.email], { on: ['answer'] })], { cache: { store } })
    const second = await ask(after, 'hi', form)

    expect([first.cache, first.said]).toEqual(['miss', `write to ${SECRET} soon`])
    expect([second.cache, second.said]).toEqual(['hit', 'write to [EMAIL] soon'])
    expect(second.text).not.toContain(SECRET)
    expect(after.received).toEqual([])
  })

  test('is stored in the form before hooks', async () => {
    const store = memoryCache()
    const hooked = await start([redact([pii.email], { on: ['answer'] })], { cache: { store } })
    const first = await ask(hooked, 'hi', form)
    const again = await ask(hooked, 'hi', form)
    const plain = await start([], { cache: { store } })
    const second = await ask(plain, 'hi', form)

    expect([first.cache, first.said]).toEqual(['miss', 'write to [EMAIL] soon'])
    expect([again.cache, again.said]).toEqual(['hit', 'write to [EMAIL] soon'])
    expect([second.cache, second.said]).toEqual(['hit', `write to ${SECRET} soon`])
  })

  test('is denied as a refusal of the dialect, and is asked about each time', async () => {
    const store = memoryCache()
    await ask(await start([], { cache: { store } }), 'hi', form)
    const after = await start([denying({ message: 'Withheld.' })], { cache: { store } })
    const second = await ask(after, 'hi', form)
    const third = await ask(after, 'hi', form)

    expect([second.status, second.cache, second.said]).toEqual([200, 'hit', ''])
    expect(second.text).toContain('"finish_reason":"content_filter"')
    expect(second.text).toContain('Withheld.')
    expect(second.text.endsWith('data: [DONE]\n\n')).toBe('stream' in form)
    expect([third.status, third.cache]).toEqual([200, 'hit'])
    expect(after.eventsOf('hook-denied')).toHaveLength(2)
    expect(after.received).toEqual([])
  })

  test('is denied as an error with its own status, and nothing is held any more', async () => {
    const store = memoryCache()
    await ask(await start([], { cache: { store } }), 'hi', form)
    const after = await start([denying({ as: 'error', status: 422, message: 'Withheld.' })], { cache: { store } })
    const balance = await after.account()
    const second = await ask(after, 'hi', form)

    expect([second.status, second.response.headers.get('x-signalbox-error-code')]).toEqual([422, 'answer_denied'])
    expect(second.text).toContain('Withheld.')
    expect(await after.account()).toEqual(balance)
    expect(after.eventsOf('request-ended')).toMatchObject([{ status: 422, code: 'answer_denied', ending: 'failed' }])
  })

  test('withholds an answer if a hook fails, free of charge', async () => {
    const store = memoryCache()
    await ask(await start([], { cache: { store } }), 'hi', form)
    const broken: AnyHook = {
      name: 'broken',
      answer() {
        throw new Error('no')
      },
    }
    const after = await start([broken], { cache: { store }, prices: hitsCost('0.5') })
    const balance = await after.account()
    const second = await ask(after, 'hi', form)

    expect([second.status, second.response.headers.get('x-signalbox-error-code')]).toEqual([503, 'hook_failed'])
    expect(second.text).not.toContain('write to')
    expect(await after.account()).toEqual(balance)
  })

  test.each([
    ['refusal', true],
    ['refusal', false],
    ['error', true],
    ['error', false],
  ] as const)(
    'charges an answer with a price that is denied as %s as the hook decides (%s)',
    async (as, chargeDenied) => {
      const store = memoryCache()
      await ask(await start([], { cache: { store } }), 'hi', form)
      const after = await start([denying({ as }, { chargeDenied })], { cache: { store }, prices: hitsCost('0.5') })
      const before = await after.account()
      await ask(after, 'hi', form)
      const account = await after.account()

      expect(before.balance - account.balance).toBe(chargeDenied ? 500_000_000n : 0n)
      expect(account.held).toBe(0n)
    },
  )

  test('repeats an answer under an Idempotency-Key as it was sent', async () => {
    const clock = fakeClock()
    const hooked = await start([redact([pii.email], { on: ['answer'] })], { clock, cache: { ttlMs: 1_000 } })
    await ask(hooked, 'hi', form)
    const headers = { 'idempotency-key': 'order-1' }
    const hit = await ask(hooked, 'hi', form, headers)
    clock.advance(10_000)
    const replayed = await ask(hooked, 'hi', form, headers)

    expect([hit.cache, hit.said]).toEqual(['hit', 'write to [EMAIL] soon'])
    expect(replayed.response.headers.get('idempotent-replayed')).toBe('true')
    expect(replayed.text).toBe(hit.text)
  })

  test('tells hooks who made it, and what it had used', async () => {
    const seen: unknown[] = []
    const reading: AnyHook = {
      name: 'reading',
      answer({ vendor, model, usage, isStream }: HookAnswer) {
        seen.push({ vendor, model, inputTokens: usage?.inputTokens, isStream })
        return undefined
      },
    }
    const hooked = await start([reading])
    await ask(hooked, 'hi', form)
    await ask(hooked, 'hi', form)

    expect(seen).toHaveLength(2)
    expect(seen[1]).toEqual({ vendor: 'openai', model: 'chat-relayed', inputTokens: 7, isStream: 'stream' in form })
    expect(seen[1]).toEqual(seen[0])
  })
})

test.each([
  ['/v1/messages', { max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }, 'message_stop'],
  ['/v1/responses', { input: 'hi', store: false }, 'response.completed'],
])('a streamed hit of %s is screened by a hook that came after it was kept', async (path, fields, lastEvent) => {
  const store = memoryCache()
  const question = async (gateway: HookedGateway) => {
    const response = await gateway.post(path, { model: 'chat-relayed', stream: true, ...fields })
    return { cache: response.headers.get('x-signalbox-cache'), text: await response.text() }
  }
  const script: Script = path === '/v1/messages' ? telling : tellingResponse
  const first = await question(await start([], { cache: { store }, script }))
  const after = await start([redact([pii.email], { on: ['answer'] })], { cache: { store }, script })
  const second = await question(after)
  const denied = await question(await start([denying({ message: 'Withheld.' })], { cache: { store }, script }))

  expect([first.cache, second.cache, denied.cache]).toEqual(['miss', 'hit', 'hit'])
  // The address is cut over several events.
  expect(first.text).toContain('.doe@exam')
  expect(second.text).not.toMatch(/jane|doe@|exam|ple\.com/)
  expect(second.text).toContain('[EMAIL]')
  expect(second.text).toContain(lastEvent)
  expect(denied.text).not.toMatch(/jane|doe@/)
  expect(denied.text).toContain('Withheld.')
  expect(after.received).toEqual([])
})

test('a streamed hit is shown to a text hook, which ends it before a byte is sent', async () => {
  const store = memoryCache()
  await ask(await start([], { cache: { store } }), 'hi', { stream: true })
  const windows: string[] = []
  const hook: AnyHook = {
    name: 'windows',
    text: {
      holdBack: { chars: 20 },
      async check({ held, fresh }) {
        windows.push(held + fresh)
        await Promise.resolve()
        return (held + fresh).includes(SECRET) ? { deny: { as: 'error', status: 451 } } : undefined
      },
    },
  }
  const after = await start([hook], { cache: { store } })
  const second = await ask(after, 'hi', { stream: true })

  expect(windows.some((window) => window.includes(SECRET))).toBe(true)
  expect([second.status, second.response.headers.get('content-type')]).toEqual([451, 'application/json'])
})

test('does not count a denied answer as a failure for waiting requests: the vendor is called once', async () => {
  const pending: (() => void)[] = []
  const script: Script = (response, body) => void pending.push(() => telling(response, body))
  const hooked = await start([denying({ as: 'error', status: 422 })], { script })
  const all = [ask(hooked), ask(hooked), ask(hooked)]
  await expect.poll(() => hooked.gateway.cache.stats().misses).toBe(3)
  await expect.poll(() => pending.length).toBe(1)
  pending[0]!()
  const answers = await Promise.all(all)

  expect(answers.map(({ status }) => status)).toEqual([422, 422, 422])
  expect(hooked.vendor.calls).toBe(1)
  expect(hooked.eventsOf('hook-denied')).toHaveLength(3)
  expect((await hooked.account()).held).toBe(0n)
})

test('those who wait for an answer have it screened for themselves', async () => {
  const pending: (() => void)[] = []
  const script: Script = (response, body) => void pending.push(() => telling(response, body))
  // Each caller may read something else.
  const perCaller: AnyHook = {
    name: 'per caller',
    answer: (answer: HookAnswer) => ({
      texts: new Map(answer.texts().map(({ id, text }) => [id, text.replace(SECRET, answer.header('x-who') ?? '-')])),
    }),
  }
  const hooked = await start([perCaller], { script })
  const all = ['ann', 'bob', 'eve'].map((who) => ask(hooked, 'hi', {}, { 'x-who': who }))
  await expect.poll(() => hooked.gateway.cache.stats().misses).toBe(3)
  await expect.poll(() => pending.length).toBe(1)
  pending[0]!()

  expect((await Promise.all(all)).map((answer) => answer.said)).toEqual([
    'write to ann soon',
    'write to bob soon',
    'write to eve soon',
  ])
  expect(hooked.vendor.calls).toBe(1)
})

describe('the key', () => {
  test('is made of the request that hooks have written', async () => {
    const hooked = await start([redact([pii.email], { on: ['request'] })])
    const first = await ask(hooked, 'I am ann@example.com')
    const second = await ask(hooked, 'I am bob@example.com')
    const third = await ask(hooked, 'I am eve')

    expect([first.cache, second.cache, third.cache]).toEqual(['miss', 'hit', 'miss'])
    expect(hooked.received.map(({ messages }) => (messages as { content: string }[])[0]?.content)).toEqual([
      'I am [EMAIL]',
      'I am eve',
    ])
  })

  test('is made of nothing where a hook refuses the request, and its place is given back', async () => {
    let isOpen = true
    const gate: AnyHook = { name: 'gate', request: () => (isOpen ? undefined : { deny: {} }) }
    const hooked = await start([gate], { limits: { concurrency: 1 } })
    await ask(hooked)
    isOpen = false
    const refused = [await ask(hooked), await ask(hooked)]
    isOpen = true
    const third = await ask(hooked)

    expect(refused.map(({ response }) => response.headers.get('x-signalbox-error-code'))).toEqual([
      'request_denied',
      'request_denied',
    ])
    expect([third.status, third.cache]).toEqual([200, 'hit'])
  })

  const request = (): undefined => undefined
  test.each<[string, AnyHook, AnyHook, string]>([
    [
      'a request hook of another version',
      { name: 'a', version: '1', request },
      { name: 'a', version: '2', request },
      'miss',
    ],
    ['another request hook', { name: 'a', request }, { name: 'b', request }, 'miss'],
    [
      'a wire hook of another version',
      { name: 'a', version: '1', wire: request },
      { name: 'a', version: '2', wire: request },
      'miss',
    ],
    ['the same hooks', { name: 'a', version: '1', request }, { name: 'a', version: '1', request }, 'hit'],
    [
      'an answer hook of another version',
      { name: 'a', version: '1', answer: request },
      { name: 'a', version: '2', answer: request },
      'hit',
    ],
    [
      'a hook of another endpoint',
      { name: 'a', request },
      { name: 'a', version: '2', endpoints: ['images'], request },
      'miss',
    ],
  ])('changes with %s', async (_name, before, after, cache) => {
    const store = memoryCache()
    await ask(await start([before], { cache: { store } }))

    expect((await ask(await start([after], { cache: { store } }))).cache).toBe(cache)
  })

  test('does not change with hooks that do not cover the endpoint', async () => {
    const store = memoryCache()
    await ask(await start([], { cache: { store } }))
    const images: AnyHook = { name: 'a', version: '2', endpoints: ['images'], request }

    expect((await ask(await start([images], { cache: { store } }))).cache).toBe('hit')
  })

  test('changes with the order of request hooks', async () => {
    const store = memoryCache()
    const one: AnyHook = { name: 'one', request }
    const two: AnyHook = { name: 'two', request }
    await ask(await start([one, two], { cache: { store } }))

    expect((await ask(await start([two, one], { cache: { store } }))).cache).toBe('miss')
  })
})

function hitsCost(amount: string): GatewayOptions['prices'] & object {
  const row = { model: 'chat-relayed', meter: 'request' as const, amount, when: { cache: 'hit' } }
  return { currency: 'USD', prices: [...testPrices.prices, row] }
}
