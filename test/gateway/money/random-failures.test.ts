import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts'
import { countingIds, type FakeClock, fakeClock } from '../../../src/testing/index.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type CallPlan, SCRIPTS, ScriptedTransport, type SentCall } from '../models/scripted-transport.ts'

/** A random caller of the model `asked`. */
interface Caller {
  readonly atMs: number
  readonly isStream: boolean
  /** Delay before the caller disconnects, or `undefined` if it stays connected. */
  readonly leavesAfterMs: number | undefined
  readonly maxTokens: number | undefined
}

/** Outcome of one request. */
interface Outcome {
  readonly caller: Caller
  status: number | undefined
  requestId: string | undefined
  leftAtMs: number | undefined
  isOver: boolean
}

const NAMES = ['one', 'two'] as const
const KEY = 'sk-test-0123456789'
const ACCOUNT = 'acct_test'

const plan: fc.Arbitrary<CallPlan> = fc.record({
  script: fc.constantFrom(...SCRIPTS),
  connectMs: fc.constantFrom(0, 10, 300),
  headMs: fc.constantFrom(0, 20, 200, 3_000),
  eventMs: fc.constantFrom(0, 5, 100, 2_000),
  events: fc.integer({ min: 0, max: 5 }),
  status: fc.constantFrom(400, 401, 403, 404, 408, 429, 429, 500, 503, 504, 529),
  retryAfter: fc.constantFrom(undefined, undefined, '2', '0', 'soon', 'Thu, 01 Jan 2026 00:00:09 GMT'),
})

const history = fc.record({
  /** Number of keys of each vendor. */
  keys: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 1, maxLength: 2 }),
  hasFallback: fc.boolean(),
  retryAfterTimeout: fc.boolean(),
  disconnect: fc.constantFrom(undefined, 'cancel' as const, 'drain' as const),
  /** Delay of a credential, or `undefined` for static keys. */
  credentialMs: fc.constantFrom(undefined, undefined, 0, 30, 800),
  plans: fc.array(plan, { minLength: 1, maxLength: 10 }),
  callers: fc.array(
    fc.record({
      atMs: fc.integer({ min: 0, max: 6_000 }),
      isStream: fc.boolean(),
      leavesAfterMs: fc.constantFrom(undefined, undefined, 0, 15, 120, 400, 2_500),
      maxTokens: fc.constantFrom(undefined, 20),
    }),
    { minLength: 1, maxLength: 8 },
  ),
})

type History = typeof history extends fc.Arbitrary<infer Made> ? Made : never

function start(
  { keys, hasFallback, retryAfterTimeout, disconnect, credentialMs }: History,
  {
    clock,
    transport,
    onEvent,
  }: { clock: FakeClock; transport: ScriptedTransport; onEvent: (event: GatewayEvent) => void },
): Gateway {
  const credential = (name: string, delayMs: number) => () =>
    new Promise<{ token: string; expiresAtMs: number }>((resolve) => {
      clock.schedule(delayMs, () => resolve({ token: name, expiresAtMs: clock.now() + 4_000 }))
    })
  const vendors = keys.map((count, index) => {
    const names = Array.from({ length: count }, (_, number) => `key-${NAMES[index]}-${number}-canary`)
    const apiKey = credentialMs === undefined ? names : names.map((name) => credential(name, credentialMs))
    return openaiCompatible({ id: NAMES[index]!, baseURL: `http://${NAMES[index]}.test/v1`, apiKey, models: [] })
  })
  const row = { kind: 'chat', vendor: 'one', limits: { maxOutputTokens: 100 } } as const
  const routes = vendors.map(({ id }) => ({ vendor: id }))
  return createGateway({
    vendors,
    models: [
      { ...row, id: 'asked', upstream: 'asked', routes, ...(hasFallback ? { fallbacks: ['other'] } : {}) },
      { ...row, id: 'other', upstream: 'other' },
    ],
    prices: {
      currency: 'USD',
      prices: ['asked', 'other'].flatMap((model) =>
        (['input_token', 'output_token'] as const).map((meter) => ({ model, meter, amount: '1', per: 1_000_000 })),
      ),
    },
    keys: [{ key: KEY, account: ACCOUNT }],
    routing: { retryAfterTimeout },
    timeouts: { firstByteMs: 5_000, idleMs: 4_000, totalMs: 20_000 },
    drainMs: 8_000,
    disconnect,
    clock,
    transport,
    onEvent,
    ids: countingIds(),
  })
}

async function ask(gateway: Gateway, clock: FakeClock, outcome: Outcome, mark: string): Promise<void> {
  const { isStream, leavesAfterMs, maxTokens } = outcome.caller
  const leaving = new AbortController()
  if (leavesAfterMs !== undefined)
    clock.schedule(leavesAfterMs, () => {
      if (outcome.isOver) return
      outcome.leftAtMs = clock.now()
      leaving.abort()
    })
  const body = { model: 'asked', messages: [{ role: 'user', content: mark }], stream: isStream, max_tokens: maxTokens }
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const request = { method: 'POST', headers, body: JSON.stringify(body), signal: leaving.signal }
  try {
    const response = await gateway.fetch(new Request('http://gateway.test/v1/chat/completions', request))
    outcome.status = response.status
    outcome.requestId = response.headers.get('x-request-id') ?? undefined
    await response.text()
  } catch {
    // A disconnected caller reads no answer.
  }
  outcome.isOver = true
}

/** Until when the open circuits are open, by what events have told: by key, and by key and model. */
function circuitsTold(events: readonly GatewayEvent[]): Map<string, number> {
  const open = new Map<string, number>()
  for (const event of events) {
    if (event.type === 'circuit-opened') open.set(`${event.credentialId} ${event.model ?? ''}`, event.untilMs)
    if (event.type === 'circuit-closed') open.delete(`${event.credentialId} ${event.model ?? ''}`)
  }
  return open
}

function expectNoCallsAfterLeaving(outcomes: readonly Outcome[], sent: readonly SentCall[]): void {
  for (const { mark, atMs } of sent) {
    const { leftAtMs } = outcomes[Number(mark)]!
    expect(leftAtMs ?? atMs, `a call for caller ${mark}, who had left`).toBeGreaterThanOrEqual(atMs)
  }
}

async function play(given: History): Promise<void> {
  const clock = fakeClock()
  const transport = new ScriptedTransport(clock, given.plans)
  const events: GatewayEvent[] = []
  const gateway = start(given, { clock, transport, onEvent: (event) => void events.push(event) })
  await gateway.start()
  await gateway.accounts.credit(ACCOUNT, '100')
  const outcomes = given.callers.map(
    (caller): Outcome => ({
      caller,
      status: undefined,
      requestId: undefined,
      leftAtMs: undefined,
      isOver: false,
    }),
  )
  for (const [index, outcome] of outcomes.entries())
    clock.schedule(outcome.caller.atMs, () => void ask(gateway, clock, outcome, String(index)))
  const move = async (ms: number): Promise<void> => {
    clock.advance(ms)
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  const isOver = (): boolean =>
    outcomes.every((outcome) => outcome.isOver) && transport.sent.every(({ endedAtMs }) => endedAtMs !== undefined)
  for (let step = 0; step < 1_000 && !isOver(); step++) await move(step < 150 ? 50 : 200)

  expect(isOver()).toBe(true)
  expectNoCallsAfterLeaving(outcomes, transport.sent)
  await expectBooks(gateway, events, outcomes, transport.sent)
  const told = circuitsTold(events)
  for (const { inFlight, keys } of gateway.routes().vendors) {
    expect(inFlight).toBe(0)
    for (const { credentialId, openUntilMs, openModels } of keys) {
      const models = ['asked', 'other'].filter((model) => told.has(`${credentialId} ${model}`))
      expect(openUntilMs, `the circuit of ${credentialId}`).toBe(told.get(`${credentialId} `) ?? null)
      expect([...openModels].sort(), `models behind ${credentialId}`).toEqual(models)
    }
  }
  const closed = gateway.close({ drainMs: 1 })
  await move(30_000)
  await closed
  clock.advance(600_000)
  expect(clock.pending, 'timers').toBe(0)
}

async function expectBooks(
  gateway: Gateway,
  events: readonly GatewayEvent[],
  outcomes: readonly Outcome[],
  sent: readonly SentCall[],
): Promise<void> {
  const ended = events.filter((event) => event.type === 'request-ended')
  const told = events.filter((event) => event.type === 'unbilled-usage')
  const charged = ended.reduce((sum, { costNanoDollars }) => sum + costNanoDollars, 0n)
  const account = await gateway.accounts.get(ACCOUNT)
  expect(account).toMatchObject({ held: 0n, balance: 100_000_000_000n - charged })
  expect(new Set(ended.map(({ requestId }) => requestId)).size).toBe(ended.length)
  expect(ended).toHaveLength(events.filter(({ type }) => type === 'request-started').length)
  for (const [index, { requestId, status, leftAtMs }] of outcomes.entries()) {
    if (leftAtMs !== undefined) continue
    const end = ended.find((event) => event.requestId === requestId)
    expect(end?.status, `the event of caller ${index}`).toBe(status)
    // Everything that a vendor bills is charged or reported; nothing else is.
    const calls = sent.filter(({ mark }) => mark === String(index))
    const explained = told.filter((event) => event.requestId === requestId).length + (end?.usage === undefined ? 0 : 1)
    expect(explained).toBeGreaterThanOrEqual(calls.filter(({ isBilled }) => isBilled).length)
    expect(explained).toBeLessThanOrEqual(calls.filter(({ mayBeBilled }) => mayBeBilled).length)
  }
}

const RUNS = process.env['DRILL'] === 'long' ? 3_000 : 40

test('whatever vendors and callers do, calls, circuits and money agree', { timeout: 600_000 }, async () => {
  await fc.assert(fc.asyncProperty(history, play), { numRuns: RUNS })
})
