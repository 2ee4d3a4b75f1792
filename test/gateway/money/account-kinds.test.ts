import { afterEach, describe, expect, test } from 'vitest'
import { parseDollars } from '../../../src/core/money.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

const CHAT = '/v1/chat/completions'
const HELLO = chatBody('chat-relayed', 'hello', { max_tokens: 16 })
const PRINCIPAL = { accountId: TEST_ACCOUNT, keyId: 'worker', tier: 'paid' } as const
const CAP = parseDollars('0.0003')

const STORES: readonly (readonly [string, () => GatewayStore])[] = [
  ['in memory', () => memoryStore()],
  ['in SQLite', () => sqliteStore({ path: ':memory:' })],
]

const inProcess = (): Promise<unknown> =>
  started.gateway.client(PRINCIPAL).chat.completions.create({
    model: 'chat-relayed',
    messages: [{ role: 'user', content: 'hello' }],
    max_tokens: 16,
  })

/** Returns the costs of calls in process until one is rejected, at most `most`. */
async function spendUntilRefused(most: number): Promise<bigint> {
  const before = (await started.account()).balance
  for (let call = 0; call < most; call++) {
    const error = await inProcess().then(
      () => undefined,
      (cause: unknown) => cause,
    )
    if (error !== undefined) {
      expect(error).toMatchObject({ status: 402, code: 'spending_cap_reached' })
      break
    }
  }
  return before - (await started.account()).balance
}

describe.each(STORES)('caps %s', (_, store) => {
  test('limit calls in process by the account, whose principal has no cap', async () => {
    started = await startGateway({ store: store() })
    await started.gateway.accounts.update(TEST_ACCOUNT, { spendingCap: { amount: CAP, period: 'month' } })

    const spent = await spendUntilRefused(100)

    expect(spent).toBeGreaterThan(0n)
    expect(spent).toBeLessThanOrEqual(CAP)
  })

  test('count earlier spending when they are set later', async () => {
    started = await startGateway({ store: store() })
    const { key, record } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT })
    const ask = (): Promise<Response> => started.post(CHAT, HELLO, { authorization: `Bearer ${key}` })
    const first = await ask()
    await first.text()
    await started.ended(first)
    await started.gateway.keys.update(record.id, { spendingCap: { amount: 1n, period: 'day' } })
    const capped = await ask()
    await started.gateway.keys.update(record.id, { spendingCap: null })
    await started.gateway.accounts.update(TEST_ACCOUNT, { spendingCap: { amount: 1n, period: 'day' } })
    const refused = await inProcess().catch((cause: unknown) => cause)

    expect([first.status, capped.status]).toEqual([200, 402])
    expect(capped.headers.get('x-signalbox-error-code')).toBe('spending_cap_reached')
    expect(refused).toMatchObject({ status: 402, code: 'spending_cap_reached' })
  })
})

describe.each(STORES)('metered accounts %s', (_, store) => {
  test.each(['metered', { mode: 'metered' }] as const)(
    'are charged without a balance by %j, and owe what they used',
    async (billing) => {
      started = await startGateway({ store: store(), billing })
      const { id } = await started.gateway.accounts.create({ id: 'acct_metered' })
      const { key } = await started.gateway.keys.create({ accountId: id })
      const response = await started.post(CHAT, HELLO, { authorization: `Bearer ${key}` })
      await response.text()
      const { costNanoDollars, dueNanoDollars } = await started.ended(response)
      const account = await started.gateway.accounts.get(id)

      expect(response.status).toBe(200)
      expect(costNanoDollars).toBeGreaterThan(0n)
      expect(dueNanoDollars).toBe(costNanoDollars)
      expect(account).toMatchObject({ balance: 0n, held: 0n, creditHeld: 0n, owed: costNanoDollars })
      expect(started.events.filter(({ type }) => type === 'charge-shortfall')).toEqual([])
    },
  )

  test('get 402 beyond their credit limit, and emit events at its thresholds', async () => {
    started = await startGateway({ store: store() })
    const { id } = await started.gateway.accounts.create({ id: 'acct_metered', billing: 'metered', creditLimit: CAP })
    const { key } = await started.gateway.keys.create({ accountId: id })
    const ask = (): Promise<Response> => started.post(CHAT, HELLO, { authorization: `Bearer ${key}` })
    let response = await ask()
    for (let call = 0; call < 100 && response.status === 200; call++) {
      await response.text()
      response = await ask()
    }
    const { owed = 0n } = (await started.gateway.accounts.get(id)) ?? {}
    const low = started.events.filter(({ type }) => type === 'balance-low')

    expect(response.status).toBe(402)
    expect(response.headers.get('x-signalbox-error-code')).toBe('credit_limit_reached')
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining('This request needs $') } })
    expect(owed).toBeLessThanOrEqual(CAP)
    expect(low[0]).toMatchObject({ of: 'credit_limit', thresholdPercent: 50, totalNanoDollars: CAP, accountId: id })
  })
})

describe.each(STORES)('frozen accounts %s', (_, store) => {
  test('are refused with 403 at once, also in process, while a call in progress ends and is charged', async () => {
    started = await startGateway({ store: store() })
    const { accounts } = started.gateway
    const hanging = { ...HELLO, stream: true, messages: [{ role: 'user', content: '[[fault:hang-body=3]] hi' }] }
    const open = await started.post(CHAT, hanging)
    await accounts.freeze(TEST_ACCOUNT, { reason: 'chargeback' })
    await accounts.freeze(TEST_ACCOUNT, { reason: 'chargeback of 3 May' })
    const refused = await started.post(CHAT, HELLO)
    const local = await inProcess().catch((cause: unknown) => cause)
    const ending = started.nextEnded()
    await open.body?.cancel()
    const ended = await ending

    expect(refused.status).toBe(403)
    expect(refused.headers.get('x-signalbox-error-code')).toBe('account_frozen')
    expect(local).toMatchObject({ status: 403, code: 'account_frozen' })
    expect(ended.costNanoDollars).toBeGreaterThan(0n)
    expect((await started.account()).held).toBe(0n)
    expect((await accounts.get(TEST_ACCOUNT))?.frozen?.reason).toBe('chargeback of 3 May')
    expect(started.events.filter(({ type }) => type === 'account-frozen')).toEqual([
      { type: 'account-frozen', accountId: TEST_ACCOUNT, reason: 'chargeback' },
    ])
    expect((await accounts.unfreeze(TEST_ACCOUNT))?.frozen).toBeUndefined()
    await expect(inProcess()).resolves.toBeDefined()
  })

  test('are refused with billing off too, once their keys are looked up', async () => {
    started = await startGateway({ store: store(), billing: 'off' })
    const { key } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT })
    await started.gateway.accounts.freeze(TEST_ACCOUNT, { reason: 'abuse' })
    const refused = await started.post(CHAT, HELLO, { authorization: `Bearer ${key}` })

    expect(refused.status).toBe(403)
    expect(started.sandbox.requests).toHaveLength(0)
  })
})

describe('thresholds', () => {
  const of = <Type extends string>(type: Type) => started.events.filter((event) => event.type === type)

  test('emit one event each for the cap and the balance', async () => {
    started = await startGateway({ spendingThresholds: { caps: [1, 99], balance: [2] } })
    const cap = parseDollars('0.001')
    const { id } = await started.gateway.accounts.create({ spendingCap: { amount: cap, period: 'day' } })
    await started.gateway.accounts.credit(id, '0.002')
    const { key, record } = await started.gateway.keys.create({ accountId: id })
    for (let call = 0; call < 6; call++) {
      const response = await started.post(CHAT, HELLO, { authorization: `Bearer ${key}` })
      await response.text()
    }
    const caller = { accountId: id, keyId: record.id }

    expect(of('cap-reached')).toMatchObject([
      { ...caller, owner: 'account', period: 'day', thresholdPercent: 1, capNanoDollars: cap },
    ])
    expect(of('balance-low')).toMatchObject([
      { ...caller, of: 'balance', thresholdPercent: 2, totalNanoDollars: parseDollars('0.002') },
    ])
  })

  test.each([
    [{ caps: [0] }, 'spendingThresholds.caps must be percents above 0 and at most 100'],
    [{ owed: [50] } as object, 'spendingThresholds.owed is unknown; known: caps, balance'],
  ])('%j are refused at start', async (spendingThresholds, message) => {
    started = await startGateway()
    await expect(startGateway({ spendingThresholds })).rejects.toThrow(message)
  })

  test('rejects an unknown billing mode at start', async () => {
    started = await startGateway()
    for (const mode of ['postpaid' as 'metered', { mode: 'postpaid' as 'metered' }])
      await expect(startGateway({ billing: mode })).rejects.toThrow("billing must be 'prepaid', 'metered' or 'off'")
  })
})
