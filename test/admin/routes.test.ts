import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN_ROUTES } from '../../src/admin/routes/admin-routes.ts'
import { formatDollars, parseDollars } from '../../src/core/money.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { chatBody, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { OPERATOR_KEY, type StartedAdmin, startAdmin } from './support/start-admin.ts'

const STORES = [
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:', clock: 'caller' })],
] as const

describe.each(STORES)('the admin API on %s', (_name, store) => {
  let started: StartedAdmin

  beforeAll(async () => {
    started = await startAdmin({ store: store(), plans: { team: {} }, taskPollIntervalMs: 20 })
  })
  afterAll(() => started.close())

  test('tells the operator who he is', async () => {
    const { body } = await started.ask('GET', '/session')

    expect(body).toMatchObject({ operator: 'ops', can: ['read', 'write', 'money', 'play', 'content'], billing: 'on' })
  })

  test('makes, changes, freezes and lists accounts', async () => {
    const made = await started.ask('POST', '/accounts', { id: 'acct_new', name: 'New', tier: 'free' })
    const again = await started.ask('POST', '/accounts', { id: 'acct_new', name: 'Other' })
    const changed = await started.ask('PATCH', '/accounts/acct_new', {
      plan: 'team',
      billing: 'metered',
      credit_limit: '7.5',
      spending_cap: { amount: '5', period: 'day' },
    })
    const cleared = await started.ask('PATCH', '/accounts/acct_new', { spending_cap: null, name: null, billing: null })
    const frozen = await started.ask('POST', '/accounts/acct_new/freeze', { reason: 'chargeback' })
    const thawed = await started.ask('POST', '/accounts/acct_new/unfreeze')
    const listed = await started.ask('GET', '/accounts?search=acct_n')
    const missing = await started.ask('GET', '/accounts/nobody')

    expect(made.body).toMatchObject({ id: 'acct_new', name: 'New', tier: 'free', balance: '0' })
    expect(again.body).toEqual(made.body)
    expect(changed.body).toMatchObject({
      plan: 'team',
      billing: 'metered',
      credit_limit: '7.5',
      spending_cap: { amount: '5', period: 'day' },
    })
    expect(cleared.body).toMatchObject({ plan: 'team', spending_cap: null, name: null, billing: null })
    expect(frozen.body).toMatchObject({ frozen: { reason: 'chargeback' } })
    expect(thawed.body).toMatchObject({ frozen: null })
    expect(listed.body).toMatchObject({ data: [{ id: 'acct_new' }], has_more: false, next: null })
    expect(missing).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  })

  test('credits, corrects and refunds, each once by its id', async () => {
    await started.ask('POST', '/accounts', { id: 'acct_money' })
    const credit = { amount: '20', id: 'pay_1', description: 'payment' }
    const credited = await started.ask('POST', '/accounts/acct_money/credits', credit)
    const repeated = await started.ask('POST', '/accounts/acct_money/credits', credit)
    const adjusted = await started.ask('POST', '/accounts/acct_money/adjustments', { amount: '-2.5', reason: 'error' })
    const { body: made } = await started.ask('POST', '/keys', { account: 'acct_money', label: 'shop' })
    const answer = await started.post('/v1/chat/completions', chatBody('cl-sonnet-4-6', 'hello'), {
      authorization: `Bearer ${made['key']}`,
    })
    await started.ended(answer)
    const journal = await started.ask('GET', '/accounts/acct_money/journal?limit=10')
    const lines = journal.body['data'] as { id: string; kind: string; amount: string; due: string }[]
    const charge = lines.find(({ kind }) => kind === 'charge')
    const refund = { charge: charge?.id, reason: 'bad answer', id: 'refund_1' }
    const refunded = await started.ask('POST', '/refunds', refund)
    const refundedAgain = await started.ask('POST', '/refunds', refund)
    const month = new Date().toISOString().slice(0, 7)
    const statement = await started.ask('GET', `/accounts/acct_money/statements/${month}`)

    expect(credited.body).toMatchObject({ is_new: true, amount: '20', balance: '20' })
    expect(repeated.body).toMatchObject({ is_new: false, amount: null, balance: '20' })
    expect(adjusted.body).toMatchObject({ is_new: true, balance: '17.5' })
    expect(answer.status).toBe(200)
    expect(lines.map(({ kind }) => kind)).toEqual(['charge', 'adjustment', 'credit'])
    expect(refunded.body).toMatchObject({ is_new: true, amount: charge?.due, balance: '17.5' })
    expect(refundedAgain.body).toMatchObject({ is_new: false, amount: null, balance: '17.5' })
    expect(statement.body).toMatchObject({ opening_balance: '0', closing_balance: '17.5' })
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

  test('refuses a key for an endpoint that there is not', async () => {
    const refused = await started.ask('POST', '/keys', { account: 'acct_test', endpoints: ['chatt'] })

    expect(refused.status).toBe(400)
    expect(refused.body['error']).toMatchObject({
      message: 'there is no endpoint "chatt"; did you mean chat?',
      param: 'endpoints',
    })
  })

  test('takes a time in a body as a number too, as answers have it', async () => {
    const expiresAtMs = Date.now() + 86_400_000
    const key = await started.ask('POST', '/keys', { account: TEST_ACCOUNT, expires_at: expiresAtMs })
    const credit = { amount: '0.01', expires_at: expiresAtMs }
    const credited = await started.ask('POST', `/accounts/${TEST_ACCOUNT}/credits`, credit)
    const rebuilt = await started.ask('POST', '/usage/rebuild', { from: Date.now() })
    await started.ask('POST', `/keys/${key.body['id']}/revoke`)

    expect(key.body).toMatchObject({ expires_at_ms: expiresAtMs })
    expect([credited.status, rebuilt.status]).toEqual([200, 200])
  })

  test('makes, limits, rotates and revokes keys, and shows each key once', async () => {
    await started.ask('POST', '/accounts', { id: 'acct_keys' })
    const made = await started.ask('POST', '/keys', {
      account: 'acct_keys',
      endpoints: ['chat'],
      models: ['cl-*'],
      tags: ['shop'],
      limits: { requests_per_minute: 10 },
      spending_cap: { amount: '1.5', period: 'month' },
      expires_at: String(Date.now() + 86_400_000),
    })
    const keyId = String(made.body['id'])
    const changed = await started.ask('PATCH', `/keys/${keyId}`, { limits: { concurrency: 2 }, spending_cap: null })
    const rotated = await started.ask('POST', `/keys/${keyId}/rotate`, { overlap_ms: 1_000 })
    const revoked = await started.ask('POST', `/keys/${keyId}/revoke`)
    const listed = await started.ask('GET', '/keys?account=acct_keys')
    const missing = await started.ask('POST', '/keys/key_none/revoke')

    expect(made.body['key']).toMatch(/^sk-/)
    expect(made.body).toMatchObject({
      endpoints: ['chat'],
      tags: ['shop'],
      models: ['cl-*'],
      limits: { requests_per_minute: 10 },
    })
    expect(changed.body).toMatchObject({ limits: { concurrency: 2, requests_per_minute: null }, spending_cap: null })
    expect(rotated.body).toMatchObject({ replaces: keyId, limits: { concurrency: 2 } })
    expect(revoked.body['revoked_at_ms']).toBeTypeOf('number')
    expect(listed.body['data']).toHaveLength(2)
    expect(JSON.stringify(listed.body)).not.toContain('sk-')
    expect(missing.status).toBe(404)
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

  test('shows the one attempt of a plain call as long as the call, and none where no vendor was asked', async () => {
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

  test('proves the sums and makes them again', async () => {
    const today = new Date().toISOString().slice(0, 10)
    const rebuilt = await started.ask('POST', '/usage/rebuild', { from: today })
    const verified = await started.ask('GET', `/usage/verify?from=${today}`)

    expect(rebuilt.body).toMatchObject({ rebuilt: true })
    expect(verified.body).toMatchObject({ data: [] })
  })

  test('shows open holds and ends them by hand', async () => {
    started.sandbox.fault({ kind: 'hang', times: 1 })
    const leave = new AbortController()
    const hanging = started
      .post('/v1/chat/completions', chatBody('cl-sonnet-4-6', 'wait'), {}, leave.signal)
      .catch((error: unknown) => error)
    let holds: { id: string; account: string }[] = []
    while (holds.length === 0)
      holds = (await started.ask('GET', `/holds?account=${TEST_ACCOUNT}`)).body['data'] as typeof holds
    const [hold] = holds
    const settled = await started.ask('POST', `/holds/${hold?.id}/settle`, { amount: '0.25', reason: 'by hand' })
    const voided = await started.ask('POST', `/holds/${hold?.id}/void`)
    leave.abort()
    await hanging
    const unknown = await started.ask('POST', '/holds/req_none/void')

    expect(settled.body).toMatchObject({ resolved: true, charged: '0.25' })
    expect(voided.body).toMatchObject({ resolved: false, ended_by: 'settled' })
    expect(unknown).toMatchObject({ status: 404, body: { error: { code: 'not_found', param: null } } })
  })

  test('leaves a vendor key alone, and uses it again', async () => {
    const before = await started.ask('GET', '/vendors')
    const vendors = before.body['data'] as { id: string; keys: { credential: string }[] }[]
    const credential = vendors.find(({ id }) => id === 'anthropic')?.keys[0]?.credential ?? ''
    const path = `/vendor_keys/${encodeURIComponent(credential)}`
    const ejected = await started.ask('POST', `${path}/eject`, { for_ms: 60_000 })
    const restored = await started.ask('POST', `${path}/restore`)
    const missing = await started.ask('POST', '/vendor_keys/nobody%3A0/eject')

    expect(ejected.body).toMatchObject({ keys: [{ credential, circuit: 'open', reason: 'operator' }] })
    expect(restored.body).toMatchObject({
      keys: [{ credential, circuit: 'closed', reason: null, open_until_ms: null }],
    })
    expect(missing.status).toBe(404)
    expect(started.events).toContainEqual(expect.objectContaining({ type: 'circuit-opened', reason: 'operator' }))
  })

  test('lists models with their routes, and prices', async () => {
    const models = await started.ask('GET', '/models')
    const prices = await started.ask('GET', '/prices')

    expect(models.body['data']).toContainEqual(
      expect.objectContaining({
        id: 'chat-relayed',
        routes: [{ vendor: 'openai', upstream: 'gpt-5.4', weight: 1, priority: 0, when: {} }],
      }),
    )
    expect(prices.body).toMatchObject({ billing: 'on', currency: 'USD' })
    expect((prices.body['data'] as unknown[]).length).toBeGreaterThan(10)
  })

  test('shows tasks and their webhook messages, and sends one again', async () => {
    const secret = await started.ask('POST', `/accounts/${TEST_ACCOUNT}/webhook_secret`, { overlap_ms: 0 })
    const shown = await started.ask('GET', `/accounts/${TEST_ACCOUNT}/webhook_secret`)
    const submitted = await started.post('/v1/videos/generations', {
      model: 'wv2.6-t2v',
      duration: 4,
      resolution: '720p',
      input: { prompt: 'a boat' },
      webhook_url: `${started.url}/nowhere?token=canary`,
    })
    const taskId = String((await submitted.json()).task_id)
    await started.taskEnded(taskId)
    const tasks = await started.ask('GET', `/accounts/${TEST_ACCOUNT}/tasks`)
    const task = await started.ask('GET', `/accounts/${TEST_ACCOUNT}/tasks/${taskId}`)
    const deliveries = await started.ask('GET', `/accounts/${TEST_ACCOUNT}/tasks/${taskId}/deliveries`)
    const [delivery] = deliveries.body['data'] as { id: string; url: string }[]
    const resent = await started.ask('POST', `/accounts/${TEST_ACCOUNT}/deliveries/${delivery?.id}/resend`)
    const foreign = await started.ask('POST', `/accounts/acct_new/deliveries/${delivery?.id}/resend`)
    const missing = await started.ask('GET', `/accounts/${TEST_ACCOUNT}/tasks/task_none`)

    const all = await started.ask('GET', '/tasks?state=completed&limit=1')
    const open = await started.ask('GET', '/tasks?state=queued')
    const foreigners = await started.ask('GET', '/tasks?account=acct_new')
    const messages = await started.ask('GET', `/deliveries?account=${TEST_ACCOUNT}`)
    const second = await started.post('/v1/videos/generations', {
      ...{ model: 'wv2.6-t2v', duration: 4, resolution: '720p', input: { prompt: 'a boat' } },
    })
    const secondId = String((await second.json()).task_id)
    await started.taskEnded(secondId)
    const first = await started.ask('GET', '/tasks?limit=1')
    const next = await started.ask('GET', `/tasks?limit=1&after=${first.body['next']}`)
    const badState = await started.ask('GET', '/tasks?state=lost')
    const badCursor = await started.ask('GET', '/deliveries?after=nonsense')

    expect(all.body).toMatchObject({ data: [{ id: taskId, account: TEST_ACCOUNT }], has_more: false })
    expect(open.body['data']).toEqual([])
    expect(foreigners.body['data']).toEqual([])
    expect(messages.body).toMatchObject({ data: [{ id: delivery?.id, task: taskId, account: TEST_ACCOUNT }] })
    expect(JSON.stringify(messages.body)).not.toContain('canary')
    expect(first.body).toMatchObject({ data: [{ id: secondId }], has_more: true })
    expect(next.body).toMatchObject({ data: [{ id: taskId }], next: null })
    expect(badState.status).toBe(400)
    expect(badCursor).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } })
    expect(secret.body['secret']).toMatch(/^whsec_/)
    expect(shown.body).toEqual({ object: 'webhook.secret', account: TEST_ACCOUNT, secret: secret.body['secret'] })
    expect(tasks.body).toMatchObject({ data: [{ id: taskId, state: 'completed', vendor: 'dashscope' }] })
    expect(task.body).toMatchObject({ id: taskId, has_webhook: true })
    expect(delivery?.url).toBe(`${started.url}/nowhere`)
    expect(resent.body).toMatchObject({ resent: true, delivery: delivery?.id })
    expect(foreign.status).toBe(404)
    expect(missing.status).toBe(404)
  })

  test('makes calls in the name of an account, whole and as a stream, and charges them', async () => {
    const play = (request: object) =>
      fetch(`${started.admin}/playground`, {
        method: 'POST',
        headers: { authorization: `Bearer ${OPERATOR_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ account: TEST_ACCOUNT, path: '/v1/chat/completions', request }),
      })
    const whole = await play(chatBody('cl-sonnet-4-6', 'hello'))
    const stream = await play(chatBody('cl-sonnet-4-6', 'hello', { stream: true }))
    const text = await stream.text()
    await started.ended(stream)
    const listed = await started.ask('GET', '/requests?key=operator:ops')

    expect((await whole.json()).choices[0].message.content).toBe('You said: hello')
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
    expect(text).toContain('[DONE]')
    expect(listed.body['data']).toHaveLength(2)
  })

  test('makes a call in the name of an account once for each Idempotency-Key', async () => {
    const play = (text: string, key: string) =>
      fetch(`${started.admin}/playground`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${OPERATOR_KEY}`,
          'content-type': 'application/json',
          'idempotency-key': key,
        },
        body: JSON.stringify({
          account: TEST_ACCOUNT,
          path: '/v1/chat/completions',
          request: chatBody('cl-sonnet-4-6', text),
        }),
      })
    const charges = async () => {
      const { body } = await started.ask('GET', `/accounts/${TEST_ACCOUNT}/journal?limit=1000`)
      return (body['data'] as { kind: string }[]).filter(({ kind }) => kind === 'charge').length
    }
    const before = await charges()
    const first = await play('hello', 'play-1')
    const again = await play('hello', 'play-1')
    const other = await play('bye', 'play-1')
    // The account's own callers may use the same key.
    const own = await started.post('/v1/chat/completions', chatBody('cl-sonnet-4-6', 'mine'), {
      'idempotency-key': 'play-1',
    })

    expect(first.headers.get('idempotent-replayed')).toBeNull()
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(await again.text()).toBe(await first.text())
    expect([other.status, own.status]).toEqual([422, 200])
    expect(await charges()).toBe(before + 2)
  })

  test('tells the host of every change, and of none of the secrets', () => {
    const ids = new Set(started.actions.map(({ action }) => action))
    const changes = ADMIN_ROUTES.filter(({ method }) => method !== 'GET').map(({ id }) => id)

    expect(changes.filter((id) => !ids.has(id))).toEqual([])
    expect(started.actions.every(({ operator, requestId }) => operator === 'ops' && requestId.startsWith('req_'))).toBe(
      true,
    )
    const told = JSON.stringify(started.actions)
    for (const secret of ['sk-', 'whsec_', OPERATOR_KEY, TEST_KEY, 'hello']) expect(told).not.toContain(secret)
    expect(started.actions).toContainEqual(
      expect.objectContaining({
        action: 'freeze_account',
        target: 'acct_new',
        input: { reason: 'chargeback' },
        status: 200,
      }),
    )
    expect(started.actions).toContainEqual(
      expect.objectContaining({ action: 'revoke_key', target: 'key_none', status: 404, code: 'invalid_request' }),
    )
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

test('tells who reads the secret that signs webhooks, or was refused it, and nothing of it', async () => {
  const other = await startAdmin(
    {},
    {
      operatorKeys: [
        { name: 'ops', key: OPERATOR_KEY },
        { name: 'reader', key: 'reader-key-0123456789abcdef', can: ['read'] },
      ],
    },
  )
  const path = `/accounts/${TEST_ACCOUNT}/webhook_secret`
  const read = await other.ask('GET', path)
  const refused = await other.ask('GET', path, undefined, { authorization: 'Bearer reader-key-0123456789abcdef' })
  await other.ask('GET', `/accounts/${TEST_ACCOUNT}`)
  await other.close()

  expect([read.status, refused.status]).toEqual([200, 403])
  expect(other.actions).toMatchObject([
    { operator: 'ops', action: 'read_webhook_secret', target: TEST_ACCOUNT, status: 200 },
    { operator: 'reader', action: 'read_webhook_secret', target: TEST_ACCOUNT, status: 403 },
  ])
  expect(JSON.stringify(other.actions)).not.toContain('whsec_')
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

test('looks up one key by its id, and reads no others to change, rotate or revoke it', async () => {
  const store = memoryStore()
  let lists = 0
  const list: typeof store.keys.list = (accountId) => {
    lists += 1
    return store.keys.list(accountId)
  }
  const other = await startAdmin({ store: { ...store, keys: { ...store.keys, list } } })
  const made = await other.ask('POST', '/keys', { account: TEST_ACCOUNT, limits: { concurrency: 1 } })
  const keyId = String(made.body['id'])
  const changed = await other.ask('PATCH', `/keys/${keyId}`, { limits: { concurrency: 2 } })
  const rotated = await other.ask('POST', `/keys/${keyId}/rotate`, { overlap_ms: 1_000 })
  const revoked = await other.ask('POST', `/keys/${keyId}/revoke`)
  await other.close()

  expect(changed.body).toMatchObject({ id: keyId, limits: { concurrency: 2 } })
  expect(rotated.body).toMatchObject({ replaces: keyId, limits: { concurrency: 2 } })
  expect(revoked.body['revoked_at_ms']).toBeTypeOf('number')
  expect(lists).toBe(0)
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
