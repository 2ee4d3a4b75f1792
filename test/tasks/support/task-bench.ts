import type { GatewayEvent } from '../../../src/core/events.ts'
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import type { TaskRecord } from '../../../src/stores/task-store.ts'
import {
  type FakeClock,
  fakeClock,
  type Sandbox,
  type SandboxOptions,
  sandboxVendors,
} from '../../../src/testing/index.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

export const VIDEOS = '/v1/videos/generations'

/** Initial balance of the test account, in nano-dollars. */
export const CREDIT = 100_000_000_000n

/** The operator's key at the vendor. */
export const VENDOR_KEY = 'vendor-key-canary-7f3a'

/** Signs messages to receivers. */
export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** Steps of the machine's own loop that are enough for whatever does not wait for the clock. */
const LOOP_TURNS = 25

/** A gateway without sockets whose tasks live on a clock that is moved by hand; its vendor lives on the same clock. */
export interface TaskBench {
  readonly clock: FakeClock
  readonly store: GatewayStore
  readonly sandbox: Sandbox
  readonly events: readonly GatewayEvent[]
  readonly gateway: Gateway
  /** Submits a video of four seconds in 720p, and returns the answer, whatever it is. */
  post(prompt: string, options?: PostOptions): Promise<Response>
  /** Submits a video that must be accepted, and returns its id. */
  submit(prompt: string, options?: PostOptions): Promise<string>
  /** The record as its owner reads it. */
  read(id: string): Promise<Record<string, unknown>>
  list(query?: string): Promise<Response>
  cancel(id: string): Promise<Response>
  /** Returns the task in the store. */
  task(id: string): Promise<TaskRecord>
  /** Moves the clock on, in steps, and lets everything happen that falls due. */
  pass(durationMs: number, stepMs?: number): Promise<void>
  /** Lets everything happen that is due now. */
  settle(): Promise<void>
  /** Sets the gateway's clock back. Scheduled work is still due after the same delay. */
  setClockBack(durationMs: number): void
  /** Returns how often the vendor was polled about tasks. */
  polls(): number
  account(): Promise<{ balance: bigint; held: bigint }>
  /** Starts another gateway on the same store, clock and vendor, in place of this one, which goes on unless it is closed. */
  another(options?: Partial<GatewayOptions>): Promise<TaskBench>
  close(): Promise<void>
}

/** Fields of a submission other than the prompt, and the caller. */
export interface PostOptions {
  readonly fields?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
  readonly apiKey?: string
}

/** Parts that benches on one store share. */
interface Shared {
  readonly clock: FakeClock
  readonly store: GatewayStore
  readonly sandbox: Sandbox
}

/** Starts one, at a moment that may be given; the account of the test key has 100 dollars. */
export async function taskBench(
  options: Partial<GatewayOptions> = {},
  sandboxOptions: SandboxOptions = {},
  startMs?: number,
): Promise<TaskBench> {
  const clock = fakeClock(startMs === undefined ? {} : { startMs })
  const sandbox = sandboxVendors({ clock, videoPendingMs: 1_000, videoRunningMs: 30_000, ...sandboxOptions })
  const bench = await benchOn({ clock, sandbox, store: options.store ?? memoryStore() }, options)
  await bench.gateway.accounts.credit(TEST_ACCOUNT, '100')
  return bench
}

async function benchOn(shared: Shared, options: Partial<GatewayOptions>): Promise<TaskBench> {
  const { clock, sandbox } = shared
  const store = options.store ?? shared.store
  const events: GatewayEvent[] = []
  let backMs = 0
  const gateway = createGateway({
    vendors: [dashscope({ apiKey: VENDOR_KEY, baseURL: 'https://vendor.example' })],
    ...(options.billing === 'off' ? {} : { prices: testPrices }),
    keys: [{ key: TEST_KEY, account: TEST_ACCOUNT }],
    allowPrivateUrls: true,
    transport: sandbox.transport(),
    onEvent: (event) => events.push(event),
    ...options,
    clock: { now: () => clock.now() - backMs, schedule: clock.schedule },
    store,
  })
  await gateway.start()

  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < LOOP_TURNS; turn++) {
      await new Promise((resolve) => setImmediate(resolve))
      clock.advance(0)
    }
  }
  const ask = async (
    method: string,
    path: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<Response> => {
    const answer = gateway.fetch(
      new Request(`http://gateway.example${path}`, {
        method,
        headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
    // The vendor's stand-in may wait for the clock.
    await settle()
    return await answer
  }
  const post = (prompt: string, { fields, headers, apiKey }: PostOptions = {}): Promise<Response> =>
    ask(
      'POST',
      VIDEOS,
      { model: 'wv2.7-t2v', duration: 4, resolution: '720p', input: { prompt }, ...fields },
      { ...headers, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) },
    )
  return {
    clock,
    store,
    sandbox,
    events,
    gateway,
    post,
    async submit(prompt, postOptions) {
      const answer = await post(prompt, postOptions)
      const body = (await answer.json()) as { task_id: string }
      if (answer.status !== 202) throw new Error(`${answer.status}: ${JSON.stringify(body)}`)
      return body.task_id
    },
    read: async (id) => (await (await ask('GET', `${VIDEOS}/${id}`, undefined, {})).json()) as Record<string, unknown>,
    list: (query = '') => ask('GET', `${VIDEOS}${query}`, undefined, {}),
    cancel: (id) => ask('POST', `${VIDEOS}/${id}/cancel`, {}, {}),
    async task(id) {
      const found = await store.tasks.find(TEST_ACCOUNT, id)
      if (found === undefined) throw new Error(`there is no task ${id}`)
      return found
    },
    async pass(durationMs, stepMs = durationMs) {
      for (let passedMs = 0; passedMs < durationMs; passedMs += stepMs) {
        clock.advance(Math.min(stepMs, durationMs - passedMs))
        await settle()
      }
    },
    settle,
    setClockBack(durationMs) {
      backMs += durationMs
    },
    polls: () => sandbox.requests.filter(({ method, path }) => method === 'GET' && path.includes('/tasks/')).length,
    async account() {
      const account = await store.ledger.account(TEST_ACCOUNT)
      return { balance: account?.balance ?? 0n, held: account?.held ?? 0n }
    },
    another: (more = {}) => benchOn(shared, { ...options, ...more }),
    async close() {
      const closed = gateway.close({ drainMs: 1 })
      await settle()
      clock.advance(60_000)
      await settle()
      await closed
    },
  }
}
