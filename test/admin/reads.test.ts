import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeHandler } from '../../src/adapters/node.ts'
import { adminHandler } from '../../src/admin/admin-handler.ts'
import { formatDollars, parseDollars } from '../../src/core/money.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { listen } from '../support/listen.ts'
import { chatBody, TEST_ACCOUNT } from '../support/start-gateway.ts'
import { ADMIN_STORES, OPERATOR_KEY, type StartedAdmin, startAdmin } from './support/start-admin.ts'

/** A call without a charge. */
const RECORD = {
  ...{ accountId: TEST_ACCOUNT, keyId: 'k', endUser: undefined, tags: [], endpoint: 'chat', model: 'm' },
  ...{
    requestedModel: 'm',
    vendor: 'v',
    credentialId: 'c',
    vendorRequestId: undefined,
    status: 200,
    isStream: false,
    code: undefined,
  },
  ...{ usage: {}, isEstimated: false, durationMs: 1, firstByteMs: 1, attempts: undefined },
  ...{ dueNanoDollars: 0n, chargedNanoDollars: 0n, ending: 'completed' as const },
}

describe.each(ADMIN_STORES)('what operators read by the admin API on %s', (_name, store) => {
  let started: StartedAdmin

  beforeAll(async () => {
    started = await startAdmin({ store: store(), plans: { team: {} }, taskPollIntervalMs: 20 })
  })
  afterAll(() => started.close())

  test('returns the signed-in operator', async () => {
    const { body } = await started.ask('GET', '/session')

    expect(body).toMatchObject({ operator: 'ops', can: ['read', 'write', 'money', 'play', 'content'], billing: 'on' })
  })

  test('tells how much of the caps of an account and its keys is used', async () => {
    await started.ask('POST', '/accounts', { id: 'acct_cap', spending_cap: { amount: '30', period: 'month' } })
    await started.ask('POST', '/accounts/acct_cap/credits', { amount: '20' })
    const { body: key } = await started.ask('POST', '/keys', { account: 'acct_cap', label: 'shop' })
    await started.ask('PATCH', `/keys/${key['id']}`, { spending_cap: { amount: '10', period: 'day' } })
    const answer = await started.post('/v1/chat/completions', chatBody('cl-sonnet-4-6', 'hello'), {
      authorization: `Bearer ${key['key']}`,
    })
    await started.ended(answer)
    const cost = parseDollars(answer.headers.get('x-signalbox-cost') ?? '')
    const { body } = await started.ask('GET', '/accounts/acct_cap/spending')
    const missing = await started.ask('GET', '/accounts/nobody/spending')

    expect(cost).toBeGreaterThan(0n)
    const spent = { spent_day: formatDollars(cost), spent_month: formatDollars(cost) }
    const left = (cap: bigint) => formatDollars(cap * 1_000_000_000n - cost)
    expect(body).toEqual({
      object: 'account.spending',
      account: 'acct_cap',
      date: new Date().toISOString().slice(0, 10),
      ...spent,
      spending_cap: { amount: '30', period: 'month' },
      left: left(30n),
      keys: [
        { key: key['id'], label: 'shop', ...spent, spending_cap: { amount: '10', period: 'day' }, left: left(10n) },
      ],
    })
    expect(missing.status).toBe(404)
  })

  test('lists and writes the journal of one month', async () => {
    await started.ask('POST', '/accounts', { id: 'acct_month' })
    await started.ask('POST', '/accounts/acct_month/credits', { amount: '3', description: 'payment' })
    const month = new Date().toISOString().slice(0, 7)
    const kinds = async (asked: string) => {
      const { body } = await started.ask('GET', `/accounts/acct_month/journal?order=oldest&month=${asked}`)
      return (body['data'] as { kind: string }[]).map(({ kind }) => kind)
    }
    const lines = async (asked: string) => {
      const url = `${started.admin}/accounts/acct_month/journal.csv?month=${asked}`
      const response = await fetch(url, { headers: { authorization: `Bearer ${OPERATOR_KEY}` } })
      return (await response.text()).trim().split('\r\n').length
    }

    expect([await kinds(month), await kinds('2020-01')]).toEqual([['credit'], []])
    expect([await lines(month), await lines('2020-01')]).toEqual([2, 1])
  })

  test('writes a journal as CSV', async () => {
    await started.ask('POST', '/accounts', { id: 'acct_csv' })
    await started.ask('POST', '/accounts/acct_csv/credits', { amount: '3', description: '=1+1' })
    const response = await fetch(`${started.admin}/accounts/acct_csv/journal.csv`, {
      headers: { authorization: `Bearer ${OPERATOR_KEY}` },
    })
    const text = await response.text()

    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="journal-acct_csv.csv"')
    expect(text.split('\r\n')).toHaveLength(3)
    expect(text).toContain(`'=1+1`)
  })

  test('answers what was used, by whom, and one request with its attempts and its charge', async () => {
    started.sandbox.fault({ kind: 'status', status: 503, times: 1 })
    const response = await started.post('/v1/chat/completions', chatBody('cl-sonnet-4-6', 'good morning'), {
      'x-signalbox-tags': 'shop',
      'x-signalbox-user': 'user_7',
    })
    await started.ended(response)
    const id = response.headers.get('x-request-id') ?? ''

    const usage = await started.ask('GET', `/usage?group_by=day,model&account=${TEST_ACCOUNT}`)
    const users = await started.ask('GET', '/usage?group_by=end_user,tag&tag=shop&end_user=user_7')
    const hours = await started.ask('GET', '/usage?group_by=hour')
    const percentiles = await started.ask('GET', '/usage?percentiles=true')
    const listed = await started.ask('GET', `/requests?account=${TEST_ACCOUNT}&model=cl-sonnet-4-6&ending=completed`)
    const none = await started.ask('GET', '/requests?code=no_such_code')
    const named = await started.ask('GET', '/requests?user=user_7&code=')
    const unnamed = await started.ask('GET', '/requests?user=')
    const untagged = await started.ask('GET', '/requests?tag=')
    const found = await started.ask('GET', `/requests/${id}`)
    const row = (listed.body['data'] as { id: string; ended_at_ms: number; charged: string }[])[0]
    const exact = await started.ask('GET', `/requests/${id}?ended_at=${row?.ended_at_ms}`)
    const missing = await started.ask('GET', '/requests/req_ffffffffffffffffffffffffffffffff')
    const csv = await fetch(`${started.admin}/usage.csv?group_by=model,end_user&account=${TEST_ACCOUNT}`, {
      headers: { authorization: `Bearer ${OPERATOR_KEY}` },
    })

    expect(usage.body['data']).toMatchObject([{ model: 'cl-sonnet-4-6', requests: 1, failed: 0 }])
    expect(users.body['data']).toMatchObject([{ end_user: 'user_7', tag: 'shop', requests: 1 }])
    expect((hours.body['data'] as unknown[]).length).toBeGreaterThan(0)
    expect(percentiles.body['data']).toMatchObject([{ percentiles: { duration: { p50_ms: expect.any(Number) } } }])
    expect(row?.id).toBe(id)
    expect(none.body).toMatchObject({ data: [], next: null })
    expect(named.body['data']).toMatchObject([{ id, end_user: 'user_7', code: null }])
    const { records } = await started.gateway.usage.records()
    expect(unnamed.body['data']).toHaveLength(records.filter(({ endUser }) => endUser === undefined).length)
    expect(untagged.body['data']).toHaveLength(records.filter(({ tags }) => tags.length === 0).length)
    expect(found.body).toMatchObject({
      id,
      account: TEST_ACCOUNT,
      attempts: [
        { vendor: 'anthropic', outcome: 'failed', status: 503, reason: 'unavailable' },
        { vendor: 'anthropic', outcome: 'answered', status: null, reason: null },
      ],
      journal: [{ kind: 'charge', hold: id, amount: `-${row?.charged}` }],
    })
    expect(exact.body).toEqual(found.body)
    expect(missing.status).toBe(404)
    expect((await csv.text()).split('\r\n').slice(0, 2)).toEqual([
      'model,end_user,requests,failed,abandoned,estimated,duration_ms,due,charged,inputTokens,outputTokens',
      expect.stringMatching(/^cl-sonnet-4-6,user_7,1,0,0,0,/),
    ])
  })

  test('shows the one attempt of a plain call as long as the call, and none if no vendor was called', async () => {
    const response = await started.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))
    await started.ended(response)
    const found = await started.ask('GET', `/requests/${response.headers.get('x-request-id')}`)
    const { duration_ms: durationMs, credential } = found.body

    expect(found.body['attempts']).toEqual([
      {
        ...{ vendor: 'openai', model: 'chat-relayed', credential, outcome: 'answered', reason: null, status: null },
        ...{ start_ms: 0, end_ms: durationMs },
      },
    ])
  })

  test('pages through requests, and a cursor continues where a page ended', async () => {
    for (const text of ['one', 'two', 'three'])
      await started.ended(await started.post('/v1/chat/completions', chatBody('chat-relayed', text)))
    const ids: string[] = []
    let after = ''
    do {
      const page = await started.ask('GET', `/requests?limit=1&account=${TEST_ACCOUNT}${after}`)
      ids.push(...(page.body['data'] as { id: string }[]).map(({ id }) => id))
      after = page.body['next'] === null ? '' : `&after=${page.body['next']}`
    } while (after !== '')
    const whole = await started.ask('GET', `/requests?account=${TEST_ACCOUNT}`)

    expect(ids).toEqual((whole.body['data'] as { id: string }[]).map(({ id }) => id))
    expect(ids.length).toBeGreaterThanOrEqual(3)
  })

  test('lists models with their routes, and prices', async () => {
    const models = await started.ask('GET', '/models')
    const prices = await started.ask('GET', '/prices')

    expect(models.body['data']).toContainEqual(
      expect.objectContaining({
        id: 'chat-relayed',
        available: true,
        unavailable_reason: null,
        routes: [{ vendor: 'openai', upstream: 'gpt-5.4', weight: 1, priority: 0, when: {} }],
      }),
    )
    expect(models.body['data']).toContainEqual(
      expect.objectContaining({ id: 'gpt-5.4', available: false, unavailable_reason: 'model_not_priced' }),
    )
    expect(prices.body).toMatchObject({ billing: 'on', currency: 'USD' })
    expect((prices.body['data'] as unknown[]).length).toBeGreaterThan(10)
  })
})

test('finds a request by its id among many that ended after it', async () => {
  const store = memoryStore()
  const busy = await startAdmin({ store })
  const response = await busy.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))
  await busy.ended(response)
  const id = response.headers.get('x-request-id') ?? ''
  const { records } = await busy.gateway.usage.records()
  const [own] = records
  const later = Array.from({ length: 12_000 }, (_, index) => {
    return { ...own!, id: `req_later_${index}`, endedAtMs: own!.endedAtMs + 2_000 + index }
  })
  await store.usage?.write(later)

  expect(await busy.ask('GET', `/requests/${id}`)).toMatchObject({ status: 200, body: { id } })
  await busy.close()
})

test.each(['with pages', 'without them'])('lists keys in pages, of a store %s', async (kind) => {
  const store = memoryStore()
  const { page, ...keys } = store.keys
  const asked: unknown[] = []
  const noted: typeof page = (query) => {
    asked.push(query.limit)
    return page!(query)
  }
  const other = await startAdmin({ store: { ...store, keys: kind === 'with pages' ? { ...keys, page: noted } : keys } })
  for (const label of ['one', 'two', 'three']) await other.ask('POST', '/keys', { account: TEST_ACCOUNT, label })
  const all = await other.ask('GET', `/keys?account=${TEST_ACCOUNT}`)
  const first = await other.ask('GET', `/keys?account=${TEST_ACCOUNT}&limit=2`)
  const second = await other.ask('GET', `/keys?account=${TEST_ACCOUNT}&limit=2&after=${first.body['next']}`)
  await other.close()

  const idsOf = ({ body }: typeof all) => (body['data'] as { id: string }[]).map(({ id }) => id)
  expect([...idsOf(first), ...idsOf(second)]).toEqual(idsOf(all))
  expect([idsOf(first).length, first.body['has_more']]).toEqual([2, true])
  expect(second.body).toMatchObject({ has_more: false, next: null })
  expect(asked).toEqual(kind === 'with pages' ? [1_001, 3, 3] : [])
})

test('filters that fit few requests, or none, are answered in few questions, each request once', async () => {
  const store = memoryStore({ maxUsageRecords: 20_000 })
  const usage = store.usage!
  let asked = 0
  let turn = 0
  const turns: number[] = []
  const records = usage.records.bind(usage)
  Object.assign(usage, {
    records: (query: Parameters<typeof records>[0]) => {
      asked += 1
      turns.push(turn)
      setImmediate(() => {
        turn += 1
      })
      return records(query)
    },
  })
  const admin = await startAdmin({ store })
  const nowMs = Date.now()
  // Newest first: 400 of which two in a hundred fit, then 100 that all fit, then 9,500 that do not.
  const codeOf = (place: number) => ((place < 400 ? place % 50 === 0 : place < 500) ? 'upstream_timeout' : undefined)
  await usage.write(
    Array.from({ length: 10_000 }, (_, place) => ({
      ...RECORD,
      ...{ id: `req_${place}`, endedAtMs: nowMs - place * 1_000, code: codeOf(place) },
    })).reverse(),
  )
  const none = await admin.ask('GET', '/requests?code=none')
  const askedForNone = asked
  const ids: string[] = []
  for (let after = ''; ; ) {
    const { body } = await admin.ask('GET', `/requests?code=upstream_timeout${after}`)
    expect((body['data'] as unknown[]).length).toBeLessThanOrEqual(50)
    ids.push(...(body['data'] as { id: string }[]).map(({ id }) => id))
    if (body['next'] === null) break
    after = `&after=${body['next']}`
  }
  await admin.close()

  expect(none.body).toMatchObject({ data: [], next: null })
  expect(askedForNone).toBeLessThan(30)
  // Others have their turn between two questions.
  expect(new Set(turns).size).toBe(turns.length)
  const fitting = Array.from({ length: 10_000 }, (_, place) => place).filter((place) => codeOf(place) !== undefined)
  expect(ids).toEqual(fitting.map((place) => `req_${place}`))
  expect(asked - askedForNone).toBeLessThan(40)
})

test('is found below a mount that has a version in its path too, and an account may be called like one', async () => {
  const admin = await startAdmin()
  const handler = adminHandler(admin.gateway, { operatorKeys: [{ name: 'ops', key: OPERATOR_KEY }] })
  const { origin, close } = await listen(nodeHandler(handler))
  await admin.gateway.accounts.create({ id: 'v1' })
  const headers = { authorization: `Bearer ${OPERATOR_KEY}` }
  const paths = ['/api/v1/admin/v1/accounts/v1/spending', '/v1/accounts/v1/journal', '/api/v1/admin/v1/nothing']
  const answers = await Promise.all(paths.map((path) => fetch(origin + path, { headers })))
  await close()
  await admin.close()

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 404])
})

test('reports the top accounts if more accounts were active than an answer has rows', async () => {
  const store = memoryStore({ maxUsageRecords: 20_000 })
  const admin = await startAdmin({ store })
  await store.usage!.write(
    Array.from({ length: 10_001 }, (_, place) => ({
      ...RECORD,
      ...{ id: `req_${place}`, accountId: `acct_${place}`, endedAtMs: Date.now() },
      ...{ dueNanoDollars: BigInt(place), chargedNanoDollars: BigInt(place) },
    })),
  )
  const all = await admin.ask('GET', '/usage?group_by=account')
  const top = await admin.ask('GET', '/usage?group_by=account&top=2')
  const headers = { authorization: `Bearer ${OPERATOR_KEY}` }
  const csv = await (await fetch(`${admin.admin}/usage.csv?group_by=account&limit=20000`, { headers })).text()
  await admin.close()

  expect(all.status).toBe(400)
  const named = csv.split('\r\n').map((line) => line.split(',')[0])
  expect([named.length, new Set(named).size, named[0]]).toEqual([10_003, 10_003, 'account'])
  expect((top.body['data'] as { account: string }[]).map(({ account }) => account)).toEqual(['acct_10000', 'acct_9999'])
})

test('a text of a vendor that quotes a prompt is read by operators with the scope content only', async () => {
  const reader = 'reader-key-0123456789abcdef'
  const operatorKeys = [
    { name: 'ops', key: OPERATOR_KEY },
    { name: 'reader', key: reader, can: ['read'] },
  ] as const
  const admin = await startAdmin({}, { operatorKeys })
  const request = { model: 'chat-relayed', input: '[[fault:canary-prompt]]', background: true }
  const { id } = (await (await admin.post('/v1/responses', request)).json()) as { id: string }
  await admin.taskEnded(id)
  const paths = ['/tasks', `/accounts/${TEST_ACCOUNT}/tasks`, `/accounts/${TEST_ACCOUNT}/tasks/${id}`]
  const authorization = `Bearer ${reader}`
  const shown = await Promise.all(paths.map((path) => admin.ask('GET', path)))
  const kept = await Promise.all(paths.map((path) => admin.ask('GET', path, undefined, { authorization })))
  await admin.close()

  for (const { body } of shown) expect(JSON.stringify(body)).toContain('canary-prompt')
  for (const { status, body } of kept) {
    expect(status).toBe(200)
    expect(JSON.stringify(body)).toMatch(/"error":\{"code":"[^"]+","message":null\}/)
    expect(JSON.stringify(body)).not.toContain('canary-prompt')
  }
})
