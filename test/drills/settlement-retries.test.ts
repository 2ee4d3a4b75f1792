import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const CREDIT = 100_000_000_000n

let started: StartedGateway
let clock: FakeClock

afterEach(() => started.close())

/** Store whose ledger can be down when holds end. It records every end that had an effect. */
class FailingStore {
  readonly inner = memoryStore()
  readonly ends: string[] = []
  /** Fault of every attempt to end a hold; `undefined` if it succeeds. */
  fault: 'down' | 'acknowledgement lost' | Promise<void> | undefined
  attempts = 0
  isClosed = false

  get store(): GatewayStore {
    const { ledger } = this.inner
    return {
      ...this.inner,
      ledger: {
        ...ledger,
        settle: (settlement, nowMs) => this.#end('settled', () => ledger.settle(settlement, nowMs)),
        void: (holdId, nowMs) => this.#end('voided', () => ledger.void(holdId, nowMs)),
      },
      close: async () => {
        this.isClosed = true
      },
    }
  }

  async #end<Value extends { readonly resolved: boolean }>(
    how: string,
    act: () => Value | PromiseLike<Value>,
  ): Promise<Value> {
    this.attempts += 1
    if (this.isClosed) throw new Error('the store was closed before')
    if (this.fault === 'down') throw new Error('the database is down')
    await (this.fault instanceof Promise ? this.fault : undefined)
    const resolution = await act()
    if (resolution.resolved) this.ends.push(how)
    if (this.fault === 'acknowledgement lost') throw new Error('the connection broke before the answer came')
    return resolution
  }
}

async function begin(failing: FailingStore): Promise<void> {
  clock = fakeClock()
  started = await startGateway({ store: failing.store, clock })
}

/** Lets everything run that waits for nothing but the turn of the event loop. */
async function turns(): Promise<void> {
  for (let count = 0; count < 5; count++) await new Promise((resolve) => setImmediate(resolve))
}

async function journal(failing: FailingStore): Promise<{ charges: number; sum: bigint }> {
  const entries = await failing.inner.ledger.entries(TEST_ACCOUNT, 1000)
  return {
    charges: entries.filter(({ kind }) => kind === 'charge').length,
    sum: entries.reduce((total, { amount }) => total + amount, 0n),
  }
}

describe('a request that ends while the ledger is down', () => {
  const ways = [
    ['a whole answer', 'hello', false, 'settled'],
    ['a stream', 'hello', true, 'settled'],
    ['a refusal', '[[fault:status=400]] hello', false, 'voided'],
    ['a stream that breaks', '[[fault:reset-mid-stream=3]] one two three four', true, 'settled'],
  ] as const

  test.each(ways)('ends its hold once after %s, when the ledger is back', async (_name, text, stream, how) => {
    const failing = new FailingStore()
    await begin(failing)
    failing.fault = 'down'
    const response = await started.post(CHAT, chatBody('chat-relayed', text, { stream }))
    await response.text()
    await started.ended(response)
    clock.advance(250)
    await turns()
    const whileDown = await started.account()
    failing.fault = undefined
    clock.advance(500)
    await turns()
    clock.advance(60_000)
    await turns()

    expect(whileDown.held).toBeGreaterThan(0n)
    expect(failing.ends).toEqual([how])
    expect(failing.attempts).toBe(3)
    const { balance, held } = await started.account()
    const { charges, sum } = await journal(failing)
    expect(held).toBe(0n)
    expect(charges).toBe(how === 'settled' ? 1 : 0)
    expect(balance).toBe(sum)
    expect(balance < CREDIT).toBe(how === 'settled')
  })

  test('does not show a cost that is not known yet', async () => {
    const failing = new FailingStore()
    await begin(failing)
    failing.fault = 'down'
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
    await response.text()
    failing.fault = undefined

    expect(response.status).toBe(200)
    expect(response.headers.get('x-signalbox-cost')).toBeNull()
    expect(Number(response.headers.get('x-signalbox-cost-due'))).toBeGreaterThan(0)
  })

  test('is charged once when its settlement arrived and only the acknowledgement was lost', async () => {
    const failing = new FailingStore()
    await begin(failing)
    failing.fault = 'acknowledgement lost'
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
    await response.text()
    await started.ended(response)
    clock.advance(250)
    await turns()
    failing.fault = undefined
    clock.advance(500)
    await turns()

    expect(failing.ends).toEqual(['settled'])
    expect(await journal(failing)).toEqual({ charges: 1, sum: (await started.account()).balance })
  })

  test('does not wait behind another one that can never be settled', async () => {
    const failing = new FailingStore()
    clock = fakeClock()
    const { store } = failing
    const poisoned = { id: '' }
    started = await startGateway({
      clock,
      store: {
        ...store,
        ledger: {
          ...store.ledger,
          settle: async (settlement, nowMs) => {
            if (settlement.holdId === poisoned.id) throw new Error('this row cannot be read')
            return store.ledger.settle(settlement, nowMs)
          },
        },
      },
      onEvent: (event) => {
        if (event.type === 'request-started') poisoned.id ||= event.requestId
      },
    })
    await started.post(CHAT, chatBody('chat-relayed', 'the first')).then((response) => response.text())
    failing.fault = 'down'
    await started.post(CHAT, chatBody('chat-relayed', 'the second')).then((response) => response.text())
    await started.post(CHAT, chatBody('chat-relayed', 'the third')).then((response) => response.text())
    failing.fault = undefined
    for (let count = 0; count < 4; count++) {
      clock.advance(5_000)
      await turns()
    }

    const endedBesideIt = [...failing.ends]
    // Else closing would wait for it, and the clock stands still.
    poisoned.id = 'none'

    expect(endedBesideIt).toEqual(['settled', 'settled'])
  })
})

describe('a gateway that is closed while settlements wait', () => {
  test('waits for one that is under way, and closes the store after it', async () => {
    const failing = new FailingStore()
    await begin(failing)
    failing.fault = 'down'
    await started.post(CHAT, chatBody('chat-relayed', 'hello')).then((response) => response.text())
    let goOn = (): void => {}
    failing.fault = new Promise<void>((resolve) => {
      goOn = resolve
    })
    clock.advance(250)
    await turns()
    const closing = started.gateway.close({ drainMs: 10_000 })
    await turns()
    const closedEarly = failing.isClosed
    goOn()
    await closing

    expect(closedEarly).toBe(false)
    expect(failing.ends).toEqual(['settled'])
    expect(failing.isClosed).toBe(true)
  })

  test('gives the ledger the drain time to come back', async () => {
    const failing = new FailingStore()
    await begin(failing)
    failing.fault = 'down'
    for (const text of ['one', 'two', 'three'])
      await started.post(CHAT, chatBody('chat-relayed', text)).then((response) => response.text())
    const closing = started.gateway.close({ drainMs: 10_000 })
    await turns()
    clock.advance(1_000)
    await turns()
    failing.fault = undefined
    clock.advance(5_000)
    await closing

    expect(failing.ends).toEqual(['settled', 'settled', 'settled'])
    const account = await failing.inner.ledger.account(TEST_ACCOUNT)
    expect(account?.held).toBe(0n)
    expect(await journal(failing)).toEqual({ charges: 3, sum: account?.balance })
  })

  test('still ends if the ledger stays down; the holds then expire in the next gateway', async () => {
    const failing = new FailingStore()
    await begin(failing)
    failing.fault = 'down'
    await started.post(CHAT, chatBody('chat-relayed', 'hello')).then((response) => response.text())
    const closing = started.gateway.close({ drainMs: 3_000 })
    for (let count = 0; count < 4; count++) {
      await turns()
      clock.advance(1_000)
    }
    await closing
    const left = await failing.inner.ledger.account(TEST_ACCOUNT)
    clock.advance(15 * 60_000)
    const next = await startGateway({ store: failing.inner, clock })
    const account = await next.gateway.accounts.get(TEST_ACCOUNT)
    await next.close()

    expect(failing.ends).toEqual([])
    expect(left?.held).toBeGreaterThan(0n)
    // Every test gateway is given 100 dollars when it starts.
    expect(account).toMatchObject({ held: 0n, balance: 2n * CREDIT })
  })
})
