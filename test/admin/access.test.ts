import { Validator } from '@seriousme/openapi-schema-validator'
import { afterEach, describe, expect, test } from 'vitest'
import { nodeHandler } from '../../src/adapters/node.ts'
import { adminHandler } from '../../src/admin/admin-handler.ts'
import type { Operator } from '../../src/admin/admin-route.ts'
import { ADMIN_ROUTES } from '../../src/admin/routes/admin-routes.ts'
import { forwardedAddress } from '../../src/core/exchange.ts'
import { silentLogger } from '../../src/core/logger.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { MOUNTS } from '../adapters/support/mounts.ts'
import { listen } from '../support/listen.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { OPERATOR_KEY, type StartedAdmin, startAdmin } from './support/start-admin.ts'

let closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.toReversed()) await close()
  closers = []
})

async function admin(...options: Parameters<typeof startAdmin>): Promise<StartedAdmin> {
  const started = await startAdmin(...options)
  closers.push(() => started.close())
  return started
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const DOLLAR = JSON.stringify({ amount: '1' })

describe('without an operator', () => {
  test('no handler is made', async () => {
    const started: StartedGateway = await startGateway()
    closers.push(() => started.close())

    expect(() => adminHandler(started.gateway)).toThrow(/operatorKeys or authorize/)
    expect(() => adminHandler(started.gateway, { operatorKeys: [{ name: 'a', key: 'short' }] })).toThrow(
      /24 characters/,
    )
    expect(() => adminHandler(started.gateway, { operatorKeys: [{ name: 'a\nb', key: OPERATOR_KEY }] })).toThrow(/name/)
    expect(() =>
      adminHandler(started.gateway, { operatorKeys: [{ name: 'a', key: OPERATOR_KEY, can: ['all' as never] }] }),
    ).toThrow(/the scope "all" is unknown/)
  })

  test('closes every route and the document, and reveals nothing about routes', async () => {
    const { admin: url } = await admin()
    const answers: string[] = []
    for (const { method, path } of [
      ...ADMIN_ROUTES,
      { method: 'GET', path: '/openapi.json' },
      { method: 'GET', path: '/x' },
    ]) {
      const response = await fetch(`${url}${path}`, { method })
      answers.push(`${response.status} ${response.headers.get('x-signalbox-error-code')}`)
      expect(response.headers.get('cache-control')).toBe('no-store')
    }

    expect(new Set(answers)).toEqual(new Set(['401 invalid_api_key']))
  })

  test("a caller's own key opens nothing", async () => {
    const { ask } = await admin()

    expect(await ask('GET', '/accounts', undefined, bearer('sk-test-0123456789'))).toMatchObject({ status: 401 })
  })
})

describe('wrong keys', () => {
  test('are limited to five a minute and address, and never keep out a right key', async () => {
    const clock = fakeClock()
    const { ask } = await admin({}, { clock })
    const wrong = () => ask('GET', '/session', undefined, bearer('operator-key-that-is-wrong-00'))
    const statuses: number[] = []
    for (let turn = 0; turn < 5; turn++) statuses.push((await wrong()).status)
    const limited = await wrong()
    const right = await ask('GET', '/session')
    clock.advance(60_000)
    const later = await wrong()

    expect(statuses).toEqual([401, 401, 401, 401, 401])
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '60'])
    expect(right.status).toBe(200)
    expect(later.status).toBe(401)
  })

  test('are limited for a minute, also where the clock is set back by an hour meanwhile', async () => {
    const clock = fakeClock()
    let backMs = 0
    const { ask } = await admin({}, { clock: { now: () => clock.now() - backMs, schedule: clock.schedule } })
    const wrong = () => ask('GET', '/session', undefined, bearer('operator-key-that-is-wrong-00'))
    for (let turn = 0; turn < 5; turn++) await wrong()
    backMs = 3_600_000
    const limited = await wrong()
    clock.advance(60_000)

    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '60'])
    expect((await wrong()).status).toBe(401)
  })

  test('limit only the address that sent them', async () => {
    const clock = fakeClock()
    const { ask } = await admin({}, { clock, clientAddress: forwardedAddress(['127.0.0.1', '::1']) })
    const wrongFrom = async (forwarded: string) => {
      const headers = { ...bearer('operator-key-that-is-wrong-00'), 'x-forwarded-for': forwarded }
      return (await ask('GET', '/session', undefined, headers)).status
    }
    for (let turn = 0; turn < 5; turn++) await wrongFrom(`198.51.100.${turn}, 203.0.113.1`)

    expect(await wrongFrom('198.51.100.9, 203.0.113.1')).toBe(429)
    expect(await wrongFrom('203.0.113.2')).toBe(401)
  })
})

describe('scopes', () => {
  test('limit a key route by route', async () => {
    const key = 'reader-key-0123456789abcdef'
    const { admin: url } = await admin(
      {},
      {
        operatorKeys: [
          { name: 'ops', key: OPERATOR_KEY },
          { name: 'reader', key, can: ['read'] },
        ],
      },
    )
    const wrong: string[] = []
    for (const { method, path, scope, id } of ADMIN_ROUTES) {
      const response = await fetch(`${url}${path.replaceAll(/\{\w+\}/g, 'x')}`, {
        method,
        headers: { ...bearer(key), 'content-type': 'application/json' },
        body: method === 'GET' ? null : '{}',
      })
      const isRefused = response.status === 403
      if (isRefused !== (scope !== 'read')) wrong.push(`${id}: ${response.status}`)
    }

    expect(wrong).toEqual([])
  })

  test('"write" alone changes no money, not by a credit limit either', async () => {
    const key = 'writer-key-0123456789abcdef'
    const { ask } = await admin({}, { operatorKeys: [{ name: 'writer', key, can: ['read', 'write'] }] })
    const headers = bearer(key)
    const made = await ask('POST', '/accounts', { id: 'acct_w' }, headers)
    const limit = await ask('PATCH', '/accounts/acct_w', { credit_limit: '1000' }, headers)
    const metered = await ask('POST', '/accounts', { id: 'acct_m', billing: 'metered' }, headers)

    expect(made.status).toBe(200)
    expect([limit.status, metered.status]).toEqual([403, 403])
    expect((await ask('GET', '/accounts/acct_w', undefined, headers)).body).toMatchObject({ credit_limit: null })
  })

  test('readOnly refuses every change with 405, a secret that would be made by reading it included', async () => {
    const { admin: url, ask } = await admin({}, { readOnly: true })
    expect((await ask('GET', '/accounts/acct_test/webhook_secret')).status).toBe(405)
    for (const { method, path } of ADMIN_ROUTES.filter((route) => route.method !== 'GET')) {
      const response = await fetch(`${url}${path.replaceAll(/\{\w+\}/g, 'x')}`, {
        method,
        headers: { ...bearer(OPERATOR_KEY), 'content-type': 'application/json' },
        body: '{}',
      })
      expect(response.status, path).toBe(405)
    }
  })
})

test('reports a change that is rejected before its body is read, too', async () => {
  const reader = 'reader-key-0123456789abcdef'
  const started = await admin(
    {},
    {
      operatorKeys: [
        { name: 'ops', key: OPERATOR_KEY },
        { name: 'reader', key: reader, can: ['read'] },
      ],
      authorize: () => ({ name: 'alice', can: ['money'] }),
    },
  )
  const path = '/accounts/acct_test/credits'
  await started.ask('POST', path, { amount: '1' }, bearer(reader))
  await started.ask('POST', path, { amount: '1' }, { authorization: '' })
  await started.ask('POST', path, { amount: '1' }, { 'content-type': 'text/plain' })
  await started.ask('POST', path, { amount: '1' }, { 'idempotency-key': 'a b' })

  const told = started.actions.map(({ operator, action, target, status }) => [operator, action, target, status])
  expect(told).toEqual([
    ['reader', 'credit_account', 'acct_test', 403],
    ['alice', 'credit_account', 'acct_test', 403],
    ['ops', 'credit_account', 'acct_test', 415],
    ['ops', 'credit_account', 'acct_test', 400],
  ])
})

test('answers a change in a compressed body with 415', async () => {
  const { admin: url } = await admin()
  const headers = { ...bearer(OPERATOR_KEY), 'content-type': 'application/json', 'content-encoding': 'gzip' }
  const response = await fetch(`${url}/accounts/acct_test/credits`, { method: 'POST', headers, body: '\u001f' })

  expect(response.status).toBe(415)
  expect(await response.text()).toContain('Content-Encoding \\"gzip\\"')
})

describe("the host's own check", () => {
  const operator: Operator = { name: 'alice@example.com', can: ['read', 'money'] }
  const session = { cookie: 'session=alice', authorization: '' }
  const authorize = (request: { header(name: string): string | undefined }) =>
    request.header('cookie') === 'session=alice' ? operator : undefined

  test('lets in whom it knows', async () => {
    const { ask } = await admin({}, { operatorKeys: [], authorize })

    expect((await ask('GET', '/session', undefined, session)).body).toMatchObject({ operator: operator.name })
    expect((await ask('GET', '/session', undefined, { authorization: '' })).status).toBe(401)
  })

  test.each([
    ['a form post', { 'content-type': 'application/x-www-form-urlencoded' }, 403],
    ['no header of ours', {}, 403],
    ['another site', { 'x-signalbox-console': '1', 'sec-fetch-site': 'cross-site' }, 403],
    ['a sibling of the site', { 'x-signalbox-console': '1', 'sec-fetch-site': 'same-site' }, 403],
    ['another origin', { 'x-signalbox-console': '1', origin: 'https://evil.example' }, 403],
    ['an opaque origin', { 'x-signalbox-console': '1', origin: 'null' }, 403],
    ['a form with our header', { 'x-signalbox-console': '1', 'content-type': 'text/plain' }, 415],
    ['the same origin', { 'x-signalbox-console': '1', 'sec-fetch-site': 'same-origin' }, 200],
    ['a program', { 'x-signalbox-console': '1' }, 200],
  ])('checks a change with a cookie from %s', async (_name, headers, status) => {
    const { admin: url, gateway } = await admin({}, { operatorKeys: [], authorize })
    await gateway.accounts.create({ id: 'acct_c' })
    const response = await rawPost(`${url}/accounts/acct_c/credits`, { ...session, ...headers }, DOLLAR)
    const account = await gateway.accounts.get('acct_c')

    expect(response).toBe(status)
    expect(account?.balance).toBe(status === 200 ? 1_000_000_000n : 0n)
  })

  test.each(['olga+ops@example.com', 'Olga Smith', 'Jörg', '王芳 👩\u200d💻'])(
    'accepts the name %s in reads and changes',
    async (name) => {
      const { ask, actions } = await admin(
        {},
        { operatorKeys: [], authorize: () => ({ name, can: ['read', 'money'] }) },
      )
      const credit = { ...session, 'x-signalbox-console': '1', 'idempotency-key': 'k-1' }
      const credited = await ask('POST', '/accounts/acct_test/credits', { amount: '1' }, credit)

      expect((await ask('GET', '/session', undefined, session)).body).toMatchObject({ operator: name })
      expect(credited).toMatchObject({ status: 200, body: { balance: '101' } })
      expect(actions.at(-1)).toMatchObject({ operator: name, status: 200 })
    },
  )

  test('answers 401 if it returns null', async () => {
    const { ask } = await admin({}, { operatorKeys: [], authorize: () => null })

    expect((await ask('GET', '/session', undefined, session)).status).toBe(401)
  })

  test.each<[unknown, string]>([
    [{ name: 'a\nb', can: ['read'] }, 'authorize: the name of an operator must be 1 to 200 characters on one line'],
    [{ name: ' ', can: ['read'] }, 'authorize: the name of an operator must be 1 to 200 characters on one line'],
    [{ can: ['read'] }, 'authorize: the name of an operator must be 1 to 200 characters on one line'],
    [{ name: 'olga' }, 'authorize: "can" must be a list of scopes: read, write, money, play, content'],
    [{ name: 'olga', can: 'read' }, 'authorize: "can" must be a list of scopes: read, write, money, play, content'],
    [
      { name: 'olga', can: ['all'] },
      'authorize: the scope "all" is unknown. The scopes are read, write, money, play, content',
    ],
    [true, 'authorize: the name of an operator must be 1 to 200 characters on one line'],
  ])('refuses with 503 and logs the reason if it returns %j', async (found, reason) => {
    const errors: unknown[] = []
    const logger = { ...silentLogger, error: (_text: string, facts?: object) => errors.push(facts) }
    const { ask } = await admin({}, { operatorKeys: [], logger, authorize: () => found as Operator })

    expect(await ask('GET', '/session', undefined, session)).toMatchObject({
      status: 503,
      body: { error: { code: 'store_unavailable', message: 'The operator could not be identified.' } },
    })
    expect(errors[0]).toMatchObject({ error: { message: reason } })
  })

  test('rejects with 503 if it fails or is late, and never grants access', async () => {
    const failing = await admin(
      {},
      {
        operatorKeys: [],
        authorize: () => {
          throw new Error('the session store is down')
        },
      },
    )
    expect((await failing.ask('GET', '/session', undefined, session)).status).toBe(503)
    const clock = fakeClock()
    const late = await admin({}, { operatorKeys: [], clock, authorize: () => new Promise(() => undefined) })
    const asked = late.ask('GET', '/session', undefined, session)
    while (clock.pending === 0) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(10_000)

    expect((await asked).status).toBe(503)
  })
})

/** `fetch` sets some of these headers itself. */
async function rawPost(url: string, headers: Record<string, string>, body: string): Promise<number | undefined> {
  const { request } = await import('node:http')
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method: 'POST', headers: { 'content-type': 'application/json', ...headers } },
      (response) => {
        response.resume()
        resolve(response.statusCode)
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:', clock: 'caller' })],
] as const)('an Idempotency-Key on %s', (_name, store) => {
  test('makes a change once, and the answer that is sent again has nothing secret', async () => {
    const { ask, gateway, actions } = await admin({ store: store() })
    await gateway.accounts.create({ id: 'acct_i' })
    const headers = { 'idempotency-key': 'k-1' }
    const first = await ask('POST', '/keys', { account: 'acct_i' }, headers)
    const again = await ask('POST', '/keys', { account: 'acct_i' }, headers)
    const other = await ask('POST', '/keys', { account: 'acct_i', label: 'other' }, headers)
    const credited = await ask('POST', '/accounts/acct_i/credits', { amount: '2' }, { 'idempotency-key': 'k-2' })
    await ask('POST', '/accounts/acct_i/credits', { amount: '2' }, { 'idempotency-key': 'k-2' })

    expect(first.body['key']).toMatch(/^sk-/)
    expect(again.body).toEqual({ ...first.body, key: null })
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(other.status).toBe(422)
    expect(await gateway.keys.list('acct_i')).toHaveLength(1)
    expect(credited.body).toMatchObject({ balance: '2' })
    expect((await gateway.accounts.get('acct_i'))?.balance).toBe(2_000_000_000n)
    // A repeated request has changed nothing.
    expect(actions.map(({ action, status }) => [action, status])).toEqual([
      ['create_key', 200],
      ['create_key', 422],
      ['credit_account', 200],
    ])
  })

  test('lets one of many concurrent changes through', async () => {
    const { ask, gateway } = await admin({ store: store() })
    await gateway.accounts.create({ id: 'acct_p' })
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => ask('POST', '/keys', { account: 'acct_p' }, { 'idempotency-key': 'k-parallel' })),
    )

    expect(await gateway.keys.list('acct_p')).toHaveLength(1)
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true)
    expect(answers.filter(({ body }) => typeof body['key'] === 'string')).toHaveLength(1)
  })

  test('beyond the number of one operator is refused with 429, and known ones are replayed', async () => {
    const { ask, gateway } = await admin({ store: store(), accountStorage: { idempotencyKeys: { count: 2 } } })
    await gateway.accounts.create({ id: 'acct_b' })
    const credit = (key: string) => ask('POST', '/accounts/acct_b/credits', { amount: '1' }, { 'idempotency-key': key })
    await credit('k-1')
    await credit('k-2')
    const refused = await credit('k-3')

    expect([refused.status, refused.body['error']]).toMatchObject([429, { code: 'storage_limit_reached' }])
    expect(JSON.stringify(refused.body)).toContain('This operator has no room for more Idempotency-Keys')
    expect((await credit('k-1')).headers.get('idempotent-replayed')).toBe('true')
    expect((await gateway.accounts.get('acct_b'))?.balance).toBe(2_000_000_000n)
    expect((await ask('POST', '/accounts/acct_b/credits', { amount: '1' })).status).toBe(200)
  })

  test('may be used again after a failed change', async () => {
    const { ask, gateway } = await admin({ store: store() })
    const headers = { 'idempotency-key': 'k-3' }
    const failed = await ask('POST', '/accounts/acct_late/credits', { amount: '1' }, headers)
    await gateway.accounts.create({ id: 'acct_late' })
    const made = await ask('POST', '/accounts/acct_late/credits', { amount: '1' }, headers)

    expect(failed.status).toBe(404)
    expect(made.body).toMatchObject({ is_new: true, balance: '1' })
  })
})

describe('bad input', () => {
  test.each([
    ['GET', '/accounts?after=garbage', undefined, 400],
    ['GET', '/accounts?limit=0', undefined, 400],
    ['GET', '/accounts?limit=5000', undefined, 400],
    ['GET', '/accounts?limit=1&limit=2', undefined, 400],
    ['GET', '/accounts?colour=red', undefined, 400],
    ['GET', '/requests?after=garbage', undefined, 400],
    ['GET', '/requests?from=yesterday', undefined, 400],
    ['GET', '/usage?from=2016-01-01&to=2026-01-01&group_by=day', undefined, 400],
    ['GET', '/usage?group_by=colour', undefined, 400],
    ['GET', '/usage?group_by=hour,account', undefined, 400],
    ['GET', '/accounts/acct_test/statements/2026-13', undefined, 400],
    ['GET', '/accounts/acct_test/journal?after=eyJhIjoxfQ', undefined, 400],
    ['GET', '/accounts/acct_test/journal.csv?month=never', undefined, 400],
    ['GET', '/accounts/acct_test/journal?month=never', undefined, 400],
    ['GET', '/accounts/acct_test/journal?month=2026-11&from=2026-11-02', undefined, 400],
    ['GET', '/accounts/nobody/journal', undefined, 404],
    ['GET', '/accounts/nobody/journal.csv', undefined, 404],
    ['GET', '/accounts/nobody/statements/2026-11', undefined, 404],
    ['POST', '/accounts/nobody/credits', { amount: '1' }, 404],
    ['POST', '/accounts/nobody/adjustments', { amount: '1', reason: 'x' }, 404],
    ['POST', '/holds/none/settle', { amount: '1' }, 404],
    ['POST', '/holds/none/void', {}, 404],
    ['POST', '/keys/none/rotate', {}, 404],
    ['GET', '/holds?after=%00', undefined, 400],
    ['GET', '/accounts/%E0%A4%A', undefined, 404],
    ['GET', '/nothing', undefined, 404],
    ['DELETE', '/accounts/acct_test', undefined, 405],
    ['POST', '/accounts/acct_test/credits', { amount: '-1' }, 400],
    ['POST', '/accounts/acct_test/credits', { amount: '1e3' }, 400],
    ['POST', '/accounts/acct_test/credits', { amount: 5 }, 400],
    ['POST', '/accounts/acct_test/credits', { amount: '0.0000000001' }, 400],
    ['POST', '/accounts/acct_test/credits', { amount: '5', typo: true }, 400],
    ['POST', '/accounts/acct_test/adjustments', { amount: '5' }, 400],
    ['POST', '/accounts/acct_test/adjustments', { amount: '-500', reason: 'x' }, 402],
    ['POST', '/accounts', [], 400],
    ['POST', '/accounts', { id: 'with space' }, 400],
    ['POST', '/accounts', { plan: 'no-such-plan' }, 400],
    ['POST', '/keys', { account: 'nobody' }, 400],
    ['POST', '/keys', { account: 'acct_test', expires_at: '2020-01-01' }, 400],
    ['POST', '/playground', { account: 'acct_test', path: '/admin/v1/keys', request: {} }, 400],
    ['POST', '/playground', { account: 'acct_test', path: '/v1/nothing', request: {} }, 404],
    ['POST', '/vendor_keys/x/eject', { for_ms: -1 }, 400],
  ])('%s %s is refused in words, and nothing happens', async (method, path, body, status) => {
    const started = await admin({ plans: {} })
    const before = await started.account()
    const answer = await started.ask(method, path, body)

    expect(answer.status).toBe(status)
    expect(answer.body['error']).toMatchObject({ message: expect.stringMatching(/\S/) })
    expect(JSON.stringify(answer.body)).not.toMatch(/\bat .*\.ts:|SQLITE/)
    expect(await started.account()).toEqual(before)
  })

  test.each([
    ['/accounts?serach=a', 'serach', 'The query: there is no parameter "serach" here; did you mean search?'],
    ['/keys?colour=red', 'colour', 'The query: there is no parameter "colour" here; there are account, after, limit'],
    ['/vendors?colour=red', 'colour', 'The query: there is no parameter "colour" here; it takes none'],
    ['/accounts?limit=1&limit=2', 'limit', 'limit: is given twice'],
    ['/accounts?after=garbage', 'after', 'this cursor is not one that was given'],
    ['/requests?after=garbage', 'after', 'after: is not a cursor; use "next" of the previous page'],
    ['/usage?group_by=day,month', 'group_by', 'group_by: accepts only one of hour, day, month'],
    [
      '/usage.csv?group_by=endUser',
      'group_by',
      'group_by: "endUser" is none of hour, day, month, account, key, model, endpoint, vendor, end_user, tag',
    ],
  ])('GET %s names the parameter as the API does', async (path, param, message) => {
    const { ask } = await admin()

    expect((await ask('GET', path)).body['error']).toMatchObject({ code: 'invalid_request', param, message })
  })

  test.each([
    ['/keys', { account: 'nobody' }, 'account'],
    ['/keys', { account: 'acct_test', expires_at: '1795751255' }, 'expires_at'],
    ['/accounts/acct_test/credits', { amount: '1', expires_at: '2020-01-01' }, 'expires_at'],
    ['/refunds', { charge: 'none', reason: 'x' }, 'charge'],
  ])('POST %s of %j names the field as the API does', async (path, body, param) => {
    const { ask } = await admin()

    expect((await ask('POST', path, body)).body['error']).toMatchObject({ code: 'invalid_request', param })
  })

  test('rejects a body that is not JSON, too large, or nested too deep', async () => {
    const { admin: url } = await admin()
    const send = async (body: string) =>
      (
        await fetch(`${url}/accounts`, {
          method: 'POST',
          headers: { ...bearer(OPERATOR_KEY), 'content-type': 'application/json' },
          body,
        })
      ).status

    expect(await send('{')).toBe(400)
    expect(await send(`{"id":"${'x'.repeat(1024 * 1024)}"}`)).toBe(413)
    expect(await send('['.repeat(100) + ']'.repeat(100))).toBe(400)
    expect(await send('{"__proto__":{"id":"x"}}')).toBe(400)
  })
})

describe('the document of the admin API', () => {
  test('is valid, has every route and no other, and names no operation twice', async () => {
    const { admin: url } = await admin()
    const document = await (await fetch(url.replace('/v1', '/openapi.json'), { headers: bearer(OPERATOR_KEY) })).json()
    const beside = await (await fetch(`${url}/openapi.json`, { headers: bearer(OPERATOR_KEY) })).json()
    const outcome = await new Validator().validate(structuredClone(document))
    const described = Object.entries<Record<string, { operationId: string }>>(document.paths).flatMap(
      ([path, methods]) =>
        Object.entries(methods).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
    )

    expect(outcome.errors).toBeUndefined()
    expect(described.sort()).toEqual(ADMIN_ROUTES.map(({ id, method, path }) => `${id} ${method} /v1${path}`).sort())
    expect(new Set(described.map((line) => line.split(' ')[0])).size).toBe(described.length)
    expect(JSON.stringify(document)).not.toContain('"$ref":"#/$defs')
    expect(beside).toEqual(document)
  })
})

describe.each(Object.entries(MOUNTS))('mounted in %s', (_name, mount) => {
  test('reads, changes and writes files', async () => {
    const started = await startGateway()
    closers.push(() => started.close())
    const handler = adminHandler(started.gateway, { operatorKeys: [{ name: 'ops', key: OPERATOR_KEY }] })
    const mounted = await mount(handler)
    closers.push(() => mounted.close())
    const headers = { ...bearer(OPERATOR_KEY), 'content-type': 'application/json' }
    const credited = await fetch(`${mounted.origin}/ai/v1/accounts/acct_test/credits`, {
      method: 'POST',
      headers,
      body: DOLLAR,
    })
    const csv = await fetch(`${mounted.origin}/ai/v1/accounts/acct_test/journal.csv`, { headers })
    const document = await fetch(`${mounted.origin}/ai/openapi.json`, { headers })

    expect(await credited.json()).toMatchObject({ balance: '101' })
    expect((await csv.text()).split('\r\n')).toHaveLength(4)
    expect(await document.json()).toMatchObject({ openapi: '3.1.1' })
  })
})

test('uses the body that express.json() has parsed', async () => {
  const { default: express } = await import('express')
  const { expressHandler } = await import('../../src/adapters/express.ts')
  const started = await startGateway()
  closers.push(() => started.close())
  const handler = adminHandler(started.gateway, { operatorKeys: [{ name: 'ops', key: OPERATOR_KEY }] })
  const mounted = await listen(express().use(express.json()).use('/admin', expressHandler(handler)))
  closers.push(() => mounted.close())
  const response = await fetch(`${mounted.origin}/admin/v1/accounts`, {
    method: 'POST',
    headers: { ...bearer(OPERATOR_KEY), 'content-type': 'application/json' },
    body: '{"id":"acct_e"}',
  })

  expect(await response.json()).toMatchObject({ id: 'acct_e' })
})

test('whole paths are understood where the host gives them', async () => {
  const started = await startGateway()
  closers.push(() => started.close())
  const handler = adminHandler(started.gateway, { operatorKeys: [{ name: 'ops', key: OPERATOR_KEY }] })
  const mounted = await listen(nodeHandler(handler))
  closers.push(() => mounted.close())

  expect((await fetch(`${mounted.origin}/a/b/admin/v1/session`, { headers: bearer(OPERATOR_KEY) })).status).toBe(200)
})
