import { createHook } from 'node:async_hooks'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { silentLogger } from '../../../src/core/logger.ts'
import { contextOf } from '../../../src/gateway/context.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { firstOf, gatewayKeys } from '../../../src/gateway/keys.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import type { Authenticate, Credentials, Principal } from '../../../src/stores/principal.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const HELLO = chatBody('chat-relayed', 'hello', { max_tokens: 16 })
const USER: Principal = { accountId: TEST_ACCOUNT, keyId: 'session:ada', tier: 'paid' }

let started: StartedGateway

afterEach(() => started?.close())

/** Identifies every caller that sends the cookie. */
const sessionCookie =
  (principal: unknown = USER): Authenticate =>
  ({ header }) =>
    header('cookie') === 'session=ada' ? (principal as Principal) : undefined

const COOKIE = { authorization: '', cookie: 'session=ada' }

async function start(authenticate: Authenticate, options: Partial<GatewayOptions> = {}): Promise<void> {
  started = await startGateway({ authenticate, ...options })
  await started.gateway.accounts.create({ id: TEST_ACCOUNT })
  await started.gateway.accounts.credit(TEST_ACCOUNT, '100')
}

const chat = (headers: Record<string, string>, body: object = HELLO): Promise<Response> =>
  started.post(CHAT, body, headers)

/** Logged errors, by their reasons. */
function reasonsOf(logger: { error: { mock: { calls: unknown[][] } } }): unknown[] {
  return logger.error.mock.calls.map(([, fields]) => (fields as { reason?: unknown }).reason)
}

describe('firstOf', () => {
  test('accepts both sessions and keys of gateway.keys, and nobody else', async () => {
    await start(firstOf(sessionCookie(), gatewayKeys()))
    const { key, record } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT })
    const bySession = await chat(COOKIE)
    const byKey = await chat({ authorization: `Bearer ${key}` })
    const byBoth = await chat({ ...COOKIE, authorization: `Bearer ${key}` })
    const byNobody = await chat({ authorization: 'Bearer sk-guess' })

    expect([bySession.status, byKey.status, byBoth.status, byNobody.status]).toEqual([200, 200, 200, 401])
    const keyIds = await Promise.all(
      [bySession, byKey, byBoth].map(async (answer) => (await started.ended(answer)).keyId),
    )
    expect(keyIds).toEqual([USER.keyId, record.id, USER.keyId])
    expect(await byNobody.json()).toMatchObject({ error: { code: 'invalid_api_key' } })
  })

  test('takes keys of the option keys too', async () => {
    await start(firstOf(sessionCookie(), gatewayKeys()), { keys: [{ key: TEST_KEY, account: TEST_ACCOUNT }] })

    expect([(await chat({})).status, (await chat(COOKIE)).status]).toEqual([200, 200])
    expect(() => createGateway({ vendors: [], billing: 'off', keys: [], authenticate: sessionCookie() })).toThrow(
      'firstOf(authenticate, gatewayKeys())',
    )
  })

  test.each([
    ['null', null],
    ['undefined', undefined],
    ['a promise of null', Promise.resolve(null)],
    ['a promise of undefined', Promise.resolve(undefined)],
  ])('tries the next one after %s, which alone gets 401', async (_name, nothing) => {
    await start((credentials) =>
      credentials.header('x-alone') === 'yes' ? nothing : firstOf(() => nothing, sessionCookie())(credentials),
    )

    expect([(await chat(COOKIE)).status, (await chat({ ...COOKIE, 'x-alone': 'yes' })).status]).toEqual([200, 401])
    expect((await chat({ authorization: '' })).status).toBe(401)
  })

  test('ends with an error, and asks nobody after it', async () => {
    const last = vi.fn(() => USER)
    await start(
      firstOf(({ header }) => {
        throw new Error(header('cookie'))
      }, last),
    )
    const response = await chat(COOKIE)

    expect(response.status).toBe(500)
    expect(await response.json()).toMatchObject({ error: { code: 'internal_error' } })
    expect(last).not.toHaveBeenCalled()
  })

  test('refuses what is no way to sign in', () => {
    expect(() => firstOf()).toThrow('firstOf: give at least one way to sign in')
    expect(() => firstOf(gatewayKeys(), undefined as never)).toThrow('firstOf: argument 2 must be a function')
  })
})

describe('gatewayKeys', () => {
  test('asks the gateway that the request came to, where two gateways share it', async () => {
    const shared = firstOf(sessionCookie(), gatewayKeys())
    await start(shared)
    const other = await startGateway({ authenticate: shared })
    await other.gateway.accounts.create({ id: TEST_ACCOUNT })
    const { key } = await other.gateway.keys.create({ accountId: TEST_ACCOUNT })
    const here = await chat({ authorization: `Bearer ${key}` })
    const there = await fetch(`${other.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
    await other.close()

    expect([here.status, there.status]).toEqual([401, 200])
  })

  test('can be called by a function of the host, which changes what it finds', async () => {
    const keys = gatewayKeys()
    await start(async (credentials) => {
      const found = await keys(credentials)
      return found && { ...found, tags: ['from-host'] }
    })
    const { key } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT })
    const response = await chat({ authorization: `Bearer ${key}` })
    await started.ended(response)

    const { records } = await started.gateway.usage.records()
    expect(records.map(({ tags }) => tags)).toEqual([['from-host']])
  })

  test('says what is wrong where no gateway asks', () => {
    const credentials: Credentials = { apiKey: TEST_KEY, header: () => undefined, request: undefined }

    expect(() => gatewayKeys()(credentials)).toThrow('pass the credentials with which the gateway called authenticate')
  })
})

describe('a principal of the host', () => {
  test('has its scopes, plan, limits per end user and tags in force', async () => {
    const users: Record<string, Partial<Principal>> = {
      ada: { endUser: 'ada', plan: 'team', tags: ['web', 'beta'] },
      bob: { endUser: 'bob', plan: 'team' },
      eve: { endUser: 'eve', plan: null, scopes: { endpoints: ['chat'], models: ['chat-qwen'] } },
    }
    await start(
      firstOf(({ header }) => {
        const name = header('x-user') ?? ''
        const user = users[name]
        return user === undefined ? null : { ...USER, keyId: `session:${name}`, ...user }
      }, gatewayKeys()),
      { plans: { team: { limits: { perEndUser: { requestsPerMinute: 2 } } } } },
    )
    const as = (name: string, body?: object): Promise<Response> => chat({ authorization: '', 'x-user': name }, body)
    const statuses: number[] = []
    for (const name of ['ada', 'ada', 'ada', 'bob', 'eve']) statuses.push((await as(name)).status)
    for (let count = 0; count < 3; count++) statuses.push((await as('eve', { ...HELLO, model: 'chat-qwen' })).status)
    const embedded = await started.post('/v1/embeddings', { model: 'vy-4', input: 'one' }, { 'x-user': 'eve' })

    expect(statuses).toEqual([200, 200, 429, 200, 403, 200, 200, 200])
    expect(embedded.status).toBe(403)
    const { records } = await started.gateway.usage.records()
    const ofAda = records.filter(({ endUser }) => endUser === 'ada')
    expect(ofAda).toHaveLength(2)
    expect(ofAda[0]).toMatchObject({ tags: ['web', 'beta'], keyId: 'session:ada' })
    expect(records.filter(({ endUser }) => endUser === 'eve').map(({ model }) => model)).toEqual(
      Array.from({ length: 3 }, () => 'chat-qwen'),
    )
  })

  test.each<[name: string, principal: unknown, reason: string]>([
    ['a misspelt member', { ...USER, enduser: 'ada' }, 'authenticate: enduser is unknown; did you mean endUser?'],
    [
      'a misspelt scope',
      { ...USER, scopes: { model: [] } },
      'authenticate: scopes.model is unknown; did you mean models?',
    ],
    [
      'a misspelt limit',
      { ...USER, limits: { rpm: 1 } },
      'authenticate: limits.rpm is unknown; did you mean requestsPerMinute?',
    ],
    ['a limit as text', { ...USER, limits: { concurrency: '5' } }, 'authenticate: limits.concurrency must be a number'],
    [
      'a limit of NaN',
      { ...USER, limits: { concurrency: Number.NaN } },
      'limits.concurrency must be a number from 0 on',
    ],
    ['no account', { keyId: 'k', tier: 'paid' }, 'authenticate: accountId must be a non-empty string'],
    ['no key id', { accountId: 'a', tier: 'paid' }, 'authenticate: keyId must be a non-empty string'],
    ['another tier', { ...USER, tier: 'gold' }, "authenticate: tier must be 'free' or 'paid'"],
    ['a number as end user', { ...USER, endUser: 42 }, 'authenticate: endUser must be a non-empty string'],
    ['tags as text', { ...USER, tags: 'a,b' }, 'authenticate: tags must be a list of strings'],
    ['a number as plan', { ...USER, plan: 3 }, 'authenticate: plan must be a string, or null for none'],
    ['scopes of null', { ...USER, scopes: null }, 'authenticate: scopes must be an object'],
    [
      'a scope as text',
      { ...USER, scopes: { models: 'vy-4' } },
      'authenticate: scopes.models must be a list of strings',
    ],
    [
      'a cap in dollars',
      { ...USER, keySpendingCap: { amount: 5, period: 'day' } },
      'authenticate: keySpendingCap must be',
    ],
    ['a text for trust', { ...USER, namesEndUsers: 'yes' }, 'authenticate: namesEndUsers must be true or false'],
    ['true', true, 'authenticate: a principal must be an object, not a boolean'],
    ['a list', [USER], 'authenticate: a principal must be an object, not a list'],
  ])('answers %s with a 500 that names no reason, logged once with it', async (_name, principal, reason) => {
    const logger = { ...silentLogger, error: vi.fn() }
    await start(firstOf(sessionCookie(principal), gatewayKeys()), { logger })
    const answers = [await chat(COOKIE), await chat(COOKIE)]
    const listed = await fetch(`${started.url}/v1/models`, { headers: { cookie: 'session=ada' } })

    expect([...answers, listed].map(({ status }) => status)).toEqual([500, 500, 500])
    const text = await answers[0]?.text()
    expect(text).toContain('invalid_principal')
    expect(text).not.toContain(reason)
    expect(reasonsOf(logger)).toEqual([expect.stringContaining(reason)])
    expect(started.events.filter(({ type }) => type === 'internal-error')).toEqual([
      expect.objectContaining({ where: 'authenticate', error: expect.any(TypeError) }),
    ])
    expect(started.events).toContainEqual(
      expect.objectContaining({ type: 'request-refused', status: 500, code: 'invalid_principal' }),
    )
    expect(started.sandbox.requests).toHaveLength(0)
  })

  test.each(['prepaid', 'metered'] as const)('returns the same for an account that no %s store has', async (mode) => {
    const logger = { ...silentLogger, error: vi.fn() }
    await start(sessionCookie({ ...USER, accountId: 'acct_typo' }), { logger, billing: { mode } })
    const answers = [await chat(COOKIE), await chat(COOKIE)]
    const account = await fetch(`${started.url}/v1/account`, { headers: { cookie: 'session=ada' } })

    expect([...answers, account].map(({ status }) => status)).toEqual([500, 500, 500])
    expect(answers[0]?.headers.get('x-signalbox-error-code')).toBe('invalid_principal')
    expect(reasonsOf(logger)).toEqual([
      'there is no account "acct_typo": create it with gateway.accounts.create before its first call',
    ])
    expect(started.sandbox.requests).toHaveLength(0)
  })

  test.each(['requestsPerMinute', 'tokensPerMinute', 'concurrency'])(
    'may have a limit of 0, which refuses every request: %s',
    async (limit) => {
      await start(sessionCookie({ ...USER, limits: { [limit]: 0 } }))

      expect((await chat(COOKIE)).status).toBe(429)
      expect(started.sandbox.requests).toHaveLength(0)
    },
  )

  test('needs no account where billing is off', async () => {
    await start(sessionCookie({ ...USER, accountId: 'acct_elsewhere' }), { billing: 'off' })

    expect((await chat(COOKIE)).status).toBe(200)
  })

  test('may have members that are undefined, and be of a class with getters', async () => {
    class Session {
      readonly accountId = TEST_ACCOUNT
      readonly keyId = 'session'
      readonly tier = 'paid'
      readonly plan = undefined
      get email(): string {
        return 'ada@example.com'
      }
    }
    await start(sessionCookie(new Session()))

    expect((await chat(COOKIE)).status).toBe(200)
  })

  test('is checked at once where the host calls in process', async () => {
    await start(gatewayKeys())
    const misspelt = { ...USER, enduser: 'ada' } as Principal

    expect(() => started.gateway.client(misspelt)).toThrow('enduser is unknown; did you mean endUser?')
    expect(() => started.gateway.exchangeAs(misspelt)).toThrow(TypeError)
    await expect(started.gateway.estimate(misspelt, { endpoint: 'chat', body: HELLO })).rejects.toThrow(TypeError)
  })
})

describe('the framework request', () => {
  test('reaches authenticate', async () => {
    await start(({ request }) => ((request as { url?: string }).url === CHAT ? USER : undefined))

    expect((await chat(COOKIE)).status).toBe(200)
    expect((await fetch(`${started.url}/v1/models`)).status).toBe(401)
  })

  test('is the web request where the gateway is called with one', async () => {
    await start(({ request }) => (request instanceof Request ? USER : undefined), { billing: 'off' })
    const response = await started.gateway.fetch(new Request('http://gateway.example/v1/models'))

    expect(response.status).toBe(200)
  })
})

test('a way to sign in that answers at once costs no promise', async () => {
  await start(gatewayKeys())
  const { authenticate } = contextOf({
    vendors: [],
    billing: 'off',
    store: memoryStore(),
    authenticate: firstOf(() => null, sessionCookie(), gatewayKeys()),
  })
  const credentials: Credentials = { apiKey: undefined, header: () => 'session=ada', request: undefined }
  let promises = 0
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'PROMISE') promises += 1
    },
  }).enable()
  const found = authenticate(credentials)
  hook.disable()

  expect([found, promises]).toEqual([USER, 0])
})
