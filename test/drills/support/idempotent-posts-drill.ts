import { afterEach, beforeEach, expect } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'
import { sendCrowd } from './crowd.ts'
import { GATED_ANSWER_COST, type GatedVendor, gatedVendor } from './gated-vendor.ts'

const POSTS = 50
const ROUNDS = process.env['DRILL'] === 'long' ? 40 : 2

/**
 * A vendor of its own for each test of the file that calls this; the result sends 50 equal requests to a gateway on the store,
 * answers at the vendor once all others were refused, and sends the request once more.
 */
export function idempotentPosts(): (store: GatewayStore) => Promise<void> {
  let vendor: GatedVendor

  beforeEach(async () => {
    vendor = await gatedVendor()
  })
  afterEach(() => vendor.close())

  return async (store) => {
    const started = await startGateway({ store, vendors: [openai({ apiKey: 'vendor-key', baseURL: vendor.origin })] })
    const post = (round: number, count: number) =>
      sendCrowd([`${started.url}/v1/chat/completions`], {
        count,
        headers: { authorization: `Bearer ${TEST_KEY}`, 'idempotency-key': `order-${round}` },
        body: chatBody('chat-relayed', 'count to three'),
      })

    const first = post(0, POSTS)
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (vendor.received + first.statuses.length >= POSTS) resolve()
      }
      vendor.onArrival = look
      first.onAnswer = look
    })
    const receivedAtOnce = vendor.received
    vendor.release()
    const statuses = await first.all
    const replayed = await post(0, POSTS).all
    // From now on the vendor answers at once, so that requests meet the first one at every point of its way.
    for (let round = 1; round <= ROUNDS; round++) await post(round, POSTS).all
    const { balance, held } = await started.account()
    const entries = await started.gateway.accounts.ledger(TEST_ACCOUNT, { limit: 1000 })
    await started.close()

    expect(receivedAtOnce).toBe(1)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 409)).toHaveLength(POSTS - 1)
    expect(replayed).toEqual(new Array(POSTS).fill(200))
    expect(vendor.received).toBe(1 + ROUNDS)
    const charges = entries.filter(({ kind }) => kind === 'charge').map(({ amount }) => amount)
    expect(charges).toEqual(new Array(1 + ROUNDS).fill(-GATED_ANSWER_COST))
    expect(held).toBe(0n)
    expect(balance).toBe(entries.reduce((sum, { amount }) => sum + amount, 0n))
  }
}

export const IDEMPOTENT_POSTS = '50 equal POSTs with one Idempotency-Key at the same time have one effect'

/**
 * Two processes, each with its view of one store: of the first one the store hears nothing while it answers, as if it had died. The second
 * one has its key once no call can be under way, and keeps it when the first is heard after all.
 */
export async function takenOver([first, second]: readonly [GatewayStore, GatewayStore]): Promise<void> {
  const shared = { billing: 'off', clock: fakeClock() } as const
  const request = chatBody('chat-relayed', 'hello')
  const post = (gateway: StartedGateway) =>
    gateway.post('/v1/chat/completions', request, { 'idempotency-key': 'order-1' })
  let isHeard: () => void = () => undefined
  const hearing = new Promise<void>((resolve) => (isHeard = resolve))
  let answers = 0
  const late = await startGateway({
    ...shared,
    store: {
      ...first,
      idempotency: {
        ...first.idempotency,
        async complete(...given) {
          answers += 1
          await hearing
          return await first.idempotency.complete(...given)
        },
      },
    },
  })
  const other = await startGateway({ ...shared, store: second })
  late.sandbox.reply({ text: 'the late answer' })
  const answering = post(late).then((response) => response.text())
  await expect.poll(() => answers).toBe(1)

  shared.clock.advance(15 * 60_000 - 1)
  const early = await post(other)
  shared.clock.advance(1)
  const taking = await post(other)
  const taken = await taking.text()
  isHeard()
  const lateAnswer = await answering
  const replayed = await post(late)
  const replayedText = await replayed.text()
  await late.close()
  await other.close()

  expect([early.status, taking.status, replayed.status]).toEqual([409, 200, 200])
  expect(taken).toContain('You said:')
  expect(replayedText).toBe(taken)
  expect(lateAnswer).toContain('the late answer')
  expect(late.events.filter(({ type }) => type === 'internal-error')).toMatchObject([{ where: 'idempotency' }])
  expect([late, other].map(({ sandbox }) => sandbox.requests.length)).toEqual([1, 1])
}

export const TAKEN_OVER =
  'an answer that comes after another process has its Idempotency-Key is not kept, and the operator is told'
