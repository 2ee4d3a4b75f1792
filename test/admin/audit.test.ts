import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { TEST_ACCOUNT } from '../support/start-gateway.ts'
import { ADMIN_STORES, type StartedAdmin, startAdmin } from './support/start-admin.ts'

describe.each(ADMIN_STORES)('the audit of the admin API on %s', (_name, store) => {
  let started: StartedAdmin

  beforeAll(async () => {
    started = await startAdmin({ store: store() })
  })
  afterAll(() => started.close())

  const entriesOf = async (subject: string) => {
    const { body } = await started.ask('GET', `/audit?subject=${subject}`)
    return body['data'] as Record<string, unknown>[]
  }

  test('lists who changed what, with the values before and after', async () => {
    await started.ask('POST', '/accounts', { id: 'acct_audit', name: 'One' })
    await started.ask('PATCH', '/accounts/acct_audit', { name: 'Two' })
    const refused = await started.ask('PATCH', '/accounts/acct_audit', { nothing: 1 })
    const entries = await entriesOf('acct_audit')

    expect(refused.status).toBe(400)
    expect(entries).toEqual([
      expect.objectContaining({
        operator: 'ops',
        action: 'update_account',
        subject: 'acct_audit',
        source: 'admin_api',
        address: expect.stringContaining('127.0.0.1'),
        request: expect.stringMatching(/^req_/),
        code: null,
        input: { name: 'Two' },
        before: { name: 'One' },
        after: { name: 'Two' },
      }),
      expect.objectContaining({
        action: 'create_account',
        before: null,
        after: expect.objectContaining({ id: 'acct_audit', name: 'One' }),
      }),
    ])
  })

  test('records a repeated change once, and the balance that it changed', async () => {
    await started.ask('POST', '/accounts', { id: 'acct_once' })
    for (let count = 0; count < 2; count++)
      await started.ask('POST', '/accounts/acct_once/credits', { amount: '5' }, { 'idempotency-key': 'credit_1' })
    const credits = (await entriesOf('acct_once')).filter(({ action }) => action === 'credit_account')

    expect(credits).toHaveLength(1)
    expect(credits[0]).toMatchObject({ before: { balance: '0' }, after: { balance: '5' } })
  })

  test('records no difference for the creation of an account that exists', async () => {
    await started.ask('POST', '/accounts', { id: 'acct_twice', name: 'One' })
    await started.ask('POST', '/accounts', { id: 'acct_twice', name: 'Two' })

    const states = (await entriesOf('acct_twice')).map(({ before, after }) => ({ before, after }))
    expect(states).toEqual([
      { before: {}, after: {} },
      { before: null, after: expect.objectContaining({ name: 'One' }) },
    ])
  })

  test('keeps no key and no secret', async () => {
    const key = await started.ask('POST', '/keys', { account: TEST_ACCOUNT })
    const read = await started.ask('GET', `/accounts/${TEST_ACCOUNT}/webhook_secret`)
    const rotated = await started.ask('POST', `/accounts/${TEST_ACCOUNT}/webhook_secret`)
    const entries = await entriesOf(TEST_ACCOUNT)
    const text = JSON.stringify(entries)

    expect(entries.map(({ action }) => action)).toEqual(['rotate_webhook_secret', 'read_webhook_secret', 'create_key'])
    for (const secret of [key.body['key'], read.body['secret'], rotated.body['secret']]) {
      expect(secret).toEqual(expect.any(String))
      expect(text).not.toContain(secret)
    }
  })

  test('lists pages by time', async () => {
    const first = await started.ask('GET', '/audit?limit=1')
    const second = await started.ask('GET', `/audit?limit=1&after=${first.body['next']}`)
    const future = await started.ask('GET', `/audit?from=${Date.now() + 60_000}`)

    expect(first.body).toMatchObject({ has_more: true, data: [{ object: 'audit.entry' }] })
    expect(second.body['data']).not.toEqual(first.body['data'])
    expect(future.body['data']).toEqual([])
  })
})

test('reports an entry that the store could not write, and sends the answer of the change', async () => {
  const store = memoryStore()
  const audit = { ...store.audit!, add: () => Promise.reject(new Error('disk full')) }
  const started = await startAdmin({ store: { ...store, audit } })
  const faults: unknown[] = []
  started.gateway.listen((event) => {
    if (event.type === 'internal-error') faults.push(event)
  })
  const made = await started.ask('POST', '/accounts', { id: 'acct_fault' })
  await started.close()

  expect(made).toMatchObject({ status: 200, body: { id: 'acct_fault' } })
  expect(faults).toEqual([expect.objectContaining({ where: 'operator' })])
})
