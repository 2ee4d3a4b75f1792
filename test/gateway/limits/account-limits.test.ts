import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { Principal } from '../../../src/stores/principal.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

const CHAT = '/v1/chat/completions'
const HELLO = chatBody('chat-relayed', 'hello', { max_tokens: 16 })

/** Returns the statuses of `count` chats, one after the other. */
async function statuses(count: number, ask: (index: number) => Promise<Response>): Promise<number[]> {
  const all: number[] = []
  for (let index = 0; index < count; index++) {
    const response = await ask(index)
    await response.text()
    all.push(response.status)
  }
  return all
}

async function newKeys(count: number, more: { readonly namesEndUsers?: boolean } = {}): Promise<string[]> {
  const made = Array.from({ length: count }, () => started.gateway.keys.create({ accountId: TEST_ACCOUNT, ...more }))
  return (await Promise.all(made)).map(({ key }) => key)
}

const asKey = (key: string, body: object = HELLO): Promise<Response> =>
  started.post(CHAT, body, { authorization: `Bearer ${key}` })

describe('limits per account', () => {
  test('admit two requests of five keys of a plan of 2 requests a minute, where limits per key admit ten', async () => {
    started = await startGateway({
      limits: { requestsPerMinute: 2 },
      plans: { free: { limits: { perAccount: { requestsPerMinute: 2 } } } },
    })
    const before = await newKeys(5)
    expect((await statuses(10, (index) => asKey(before[index % 5]!))).filter((status) => status === 200)).toHaveLength(
      10,
    )

    await started.gateway.accounts.update(TEST_ACCOUNT, { plan: 'free' })
    const keys = await newKeys(5)
    const answered = (await statuses(10, (index) => asKey(keys[index % 5]!))).filter((status) => status === 200)

    expect(answered).toHaveLength(2)
  })

  test('count the tokens and places of all keys, and give them back', async () => {
    started = await startGateway({ limits: { perAccount: { concurrency: 1, tokensPerMinute: 100_000 } } })
    const [one = '', other = ''] = await newKeys(2)
    const open = await asKey(one, {
      ...HELLO,
      stream: true,
      messages: [{ role: 'user', content: '[[fault:hang-body=3]] hi' }],
    })
    const refused = await asKey(other)
    const ended = started.nextEnded()
    await open.body?.cancel()
    await ended
    const later = await asKey(other)

    expect([open.status, refused.status, later.status]).toEqual([200, 429, 200])
    expect(refused.headers.get('x-signalbox-error-code')).toBe('rate_limited')
    expect(later.headers.get('x-ratelimit-limit-tokens')).toBe('100000')
    expect(Number(later.headers.get('x-ratelimit-remaining-tokens'))).toBeGreaterThan(99_000)
  })

  test('keep the limits of a key, and headers show the limit that is reached first', async () => {
    started = await startGateway({ limits: { perKey: { requestsPerMinute: 3 }, perAccount: { requestsPerMinute: 5 } } })
    const [one = '', other = ''] = await newKeys(2)
    expect(await statuses(4, () => asKey(one))).toEqual([200, 200, 200, 429])
    const response = await asKey(other)
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('1')
    expect(await statuses(2, () => asKey(other))).toEqual([200, 429])
  })
})

describe('limits per end user', () => {
  const LIMITS = { limits: { perEndUser: { requestsPerMinute: 1 } } } satisfies Partial<GatewayOptions>

  test('count the users that a trusted key names, in each of the fields', async () => {
    started = await startGateway(LIMITS)
    const [key = ''] = await newKeys(1, { namesEndUsers: true })
    const named = [
      { user: 'ann' },
      { user: 'ann' },
      { safety_identifier: 'ann' },
      { user: 'bob' },
      { user: 'eve', safety_identifier: 'bob' },
      {},
      {},
    ]
    expect(await statuses(named.length, (index) => asKey(key, { ...HELLO, ...named[index] }))).toEqual([
      200, 429, 429, 200, 429, 200, 200,
    ])
    const message = { model: 'chat-relayed', max_tokens: 16, messages: [{ role: 'user', content: 'hi' }] }
    const answers = await statuses(2, () =>
      started.post('/v1/messages', { ...message, metadata: { user_id: 'max' } }, { authorization: `Bearer ${key}` }),
    )
    expect(answers).toEqual([200, 429])
  })

  test('ignore the users that other keys name', async () => {
    started = await startGateway(LIMITS)
    const [key = ''] = await newKeys(1)
    expect(await statuses(3, () => asKey(key, { ...HELLO, user: 'ann' }))).toEqual([200, 200, 200])
  })

  test('count the user of authenticate, whatever the body says', async () => {
    started = await startGateway({
      ...LIMITS,
      authenticate: ({ apiKey = '' }): Principal => ({
        accountId: TEST_ACCOUNT,
        keyId: 'session',
        tier: 'paid',
        endUser: apiKey,
        namesEndUsers: true,
      }),
    })
    await started.gateway.accounts.create({ id: TEST_ACCOUNT })
    await started.gateway.accounts.credit(TEST_ACCOUNT, '1')
    const users = ['ann', 'ann', 'bob', 'bob']
    expect(await statuses(4, (index) => asKey(users[index]!, { ...HELLO, user: `${index}` }))).toEqual([
      200, 429, 200, 429,
    ])
  })
})

describe('plans', () => {
  const PLANS = {
    plans: { free: { limits: { requestsPerMinute: 1 } }, pro: { limits: { perAccount: { requestsPerMinute: 2 } } } },
  }

  test('hold for calls in process too, by the account in the store', async () => {
    started = await startGateway(PLANS)
    await started.gateway.accounts.update(TEST_ACCOUNT, { plan: 'pro' })
    const principal = { accountId: TEST_ACCOUNT, keyId: 'worker', tier: 'paid' } as const
    const ask = (): Promise<unknown> =>
      started.gateway
        .client(principal)
        .chat.completions.create({ model: 'chat-relayed', messages: [{ role: 'user', content: 'hi' }] })
    await ask()
    await ask()
    await expect(ask()).rejects.toMatchObject({ status: 429 })
  })

  test('rejects an account with an unknown plan', async () => {
    started = await startGateway(PLANS)
    const { accounts } = started.gateway
    const wrong = {
      code: 'invalid_request',
      param: 'plan',
      message: 'there is no plan "gold" in createGateway({ plans })',
    }
    await expect(accounts.create({ plan: 'gold' })).rejects.toMatchObject(wrong)
    await expect(accounts.update(TEST_ACCOUNT, { plan: 'gold' })).rejects.toMatchObject(wrong)
    expect((await accounts.get(TEST_ACCOUNT))?.plan).toBeUndefined()
  })

  test('answers an account whose plan the gateway does not have with 503 and a separate code', async () => {
    started = await startGateway(PLANS)
    const principal = { accountId: TEST_ACCOUNT, keyId: 'worker', tier: 'paid', plan: 'gold' } as const
    const ask = started.gateway
      .client(principal)
      .chat.completions.create({ model: 'chat-relayed', messages: [{ role: 'user', content: 'hi' }] })
    await expect(ask).rejects.toMatchObject({ status: 503, code: 'plan_not_configured' })
    expect(started.sandbox.requests).toHaveLength(0)
  })
})

describe('limits that make no sense', () => {
  test.each<[string, Partial<GatewayOptions>, string]>([
    [
      'of both shapes',
      { limits: { requestsPerMinute: 1, perAccount: {} } as object },
      'limits.requestsPerMinute must be in one of limits.perKey',
    ],
    [
      'of another name',
      { limits: { perTeam: {} } as object },
      'limits.perTeam is unknown; known: perKey, perAccount, perEndUser',
    ],
    [
      'of zero',
      { limits: { perAccount: { concurrency: 0 } } },
      'limits.perAccount.concurrency must be a positive number',
    ],
    [
      'of a plan',
      { plans: { free: { limits: { perAccount: { rpm: 2 } as object } } } },
      'plans.free.limits.perAccount.rpm is unknown; did you mean requestsPerMinute?',
    ],
    ['beside those of a plan', { plans: { free: { cap: 5 } as object } }, 'plans.free.cap is unknown; known: limits'],
  ])('%s are refused at start', async (_, options, message) => {
    started = await startGateway()
    await expect(startGateway(options)).rejects.toThrow(message)
  })
})
