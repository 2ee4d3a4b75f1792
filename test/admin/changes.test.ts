import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN_ROUTES } from '../../src/admin/routes/admin-routes.ts'
import { BUILT_IN_SNAPSHOT } from '../../src/catalog/vendor-models/snapshot.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { chatBody, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { ADMIN_STORES, OPERATOR_KEY, type StartedAdmin, startAdmin } from './support/start-admin.ts'

describe.each(ADMIN_STORES)('what operators change by the admin API on %s', (_name, store) => {
  let started: StartedAdmin

  beforeAll(async () => {
    started = await startAdmin({ store: store(), plans: { team: {} }, taskPollIntervalMs: 20 })
  })
  afterAll(() => started.close())

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

  test('rejects a key for an unknown endpoint', async () => {
    const refused = await started.ask('POST', '/keys', { account: 'acct_test', endpoints: ['chatt'] })

    expect(refused.status).toBe(400)
    expect(refused.body['error']).toMatchObject({
      message: 'there is no endpoint "chatt"; did you mean chat?',
      param: 'endpoints',
    })
  })

  test('accepts a time in a body as a number too, as in answers', async () => {
    const expiresAtMs = Date.now() + 86_400_000
    const key = await started.ask('POST', '/keys', { account: TEST_ACCOUNT, expires_at: expiresAtMs })
    const credit = { amount: '0.01', expires_at: expiresAtMs }
    const credited = await started.ask('POST', `/accounts/${TEST_ACCOUNT}/credits`, credit)
    const rebuilt = await started.ask('POST', '/usage/rebuild', { from: Date.now() })
    await started.ask('POST', `/keys/${key.body['id']}/revoke`)

    expect(key.body).toMatchObject({ expires_at_ms: expiresAtMs })
    expect([credited.status, rebuilt.status]).toEqual([200, 200])
  })

  test.each(['10', 0, -1, 1.5, Number.NaN, true, [10]])(
    'refuses %j as a limit of a key with 400 that names the member',
    async (value) => {
      // JSON has no NaN: some clients write it into the text anyway, most write null, which removes the limit.
      const limits = Number.isNaN(value) ? { requests_per_minute: 'NaN' } : { requests_per_minute: value }
      const made = await started.ask('POST', '/keys', { account: TEST_ACCOUNT, limits })
      const changed = await started.ask('PATCH', '/keys/key_none', { limits })

      expect([made.status, changed.status]).toEqual([400, 400])
      expect(JSON.stringify([made.body, changed.body])).toMatch(/(limits.requests_per_minute.*){2}/)
    },
  )

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

    expect(before.body['catalog']).toEqual({
      ...{ date: BUILT_IN_SNAPSHOT.date, age_days: expect.any(Number), is_old: expect.any(Boolean), error: null },
    })
    expect(ejected.body).toMatchObject({ keys: [{ credential, circuit: 'open', reason: 'operator' }] })
    expect(restored.body).toMatchObject({
      keys: [{ credential, circuit: 'closed', reason: null, open_until_ms: null }],
    })
    expect(missing.status).toBe(404)
    expect(started.events).toContainEqual(expect.objectContaining({ type: 'circuit-opened', reason: 'operator' }))
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
    const late = await started.ask('POST', `/accounts/${TEST_ACCOUNT}/tasks/${taskId}/cancel`)

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
    expect(late).toMatchObject({ status: 409, body: { error: { code: 'task_not_cancellable' } } })
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

test('reports who reads the secret that signs webhooks, or was rejected, without the secret', async () => {
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
