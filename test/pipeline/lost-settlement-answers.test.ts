import { afterEach, expect, test, vi } from 'vitest'
import { parseDollars } from '../../src/core/money.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway } from '../support/start-gateway.ts'

const CAP = parseDollars('0.01')
const CREDIT = parseDollars('0.5')
/** More than the account has: what a vendor reported beyond the hold. */
const CHARGE = parseDollars('0.6')

let started: StartedGateway | undefined

afterEach(() => started?.close())

/** Store that charges the same for each call, and loses the answers of `losses` settlements. */
function losing(inner: GatewayStore, losses: number): GatewayStore {
  let left = losses
  const settle: GatewayStore['ledger']['settle'] = async (settlement, nowMs) => {
    const resolution = await inner.ledger.settle({ ...settlement, amount: CHARGE }, nowMs)
    if (left === 0) return resolution
    left -= 1
    throw new Error('the connection broke before the answer')
  }
  return { ...inner, ledger: { ...inner.ledger, settle } }
}

test.each([0, 1, 2])(
  'reports thresholds and debt of a charge once if %d answers of its settlement are lost',
  async (losses) => {
    const clock = fakeClock()
    const store = losing(sqliteStore({ path: ':memory:' }), losses)
    started = await startGateway({ store, clock, spendingThresholds: { caps: [50], balance: [50] } })
    const { gateway, events, post } = started
    const { id: accountId } = await gateway.accounts.create({ spendingCap: { amount: CAP, period: 'day' } })
    await gateway.accounts.credit(accountId, '0.5')
    const { key } = await gateway.keys.create({ accountId })
    const response = await post('/v1/chat/completions', chatBody('chat-relayed', 'hello'), {
      authorization: `Bearer ${key}`,
    })
    await response.text()
    const told = () => events.filter(({ type }) => ['charge-shortfall', 'balance-low', 'cap-reached'].includes(type))

    await vi.waitFor(() => {
      // When the next retry is due, if it waits.
      clock.advance(10_000)
      expect(told()).toHaveLength(3)
    })
    clock.advance(60_000)

    const of = { requestId: response.headers.get('x-request-id'), accountId }
    expect(response.status).toBe(200)
    expect(told()).toMatchObject([
      {
        type: 'charge-shortfall',
        ...of,
        dueNanoDollars: CHARGE,
        chargedNanoDollars: CREDIT,
        owedNanoDollars: CHARGE - CREDIT,
      },
      {
        type: 'cap-reached',
        ...of,
        owner: 'account',
        thresholdPercent: 50,
        capNanoDollars: CAP,
        chargedNanoDollars: CHARGE,
      },
      { type: 'balance-low', ...of, of: 'balance', thresholdPercent: 50, remainingNanoDollars: 0n },
    ])
  },
)
