import { describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { chatBody, startGateway } from '../support/start-gateway.ts'
import { runStageDrill, type StageReport } from './support/run-stage-drill.ts'
import type { Stage, StageFault } from './support/stage-gate.ts'

const START = 1_000_000_000n

/** Expected result of one fault in one stage. */
interface Expected {
  /** `none`: the caller gets no answer, because it has left. */
  readonly status: number | 'none'
  /** `not begun`: no hold was placed. */
  readonly hold: 'not begun' | 'voided' | 'settled'
  readonly vendorCalls: 0 | 1 | 2
  /** When the answer had begun: how it ended. */
  readonly ending?: 'clean' | 'cut'
  /** Limits that a limiter failing at the end cannot release; they expire. */
  readonly keeps?: 'lease' | 'tokens'
}

type Row = readonly [stage: Stage, fault: StageFault, forms: 'both' | 'whole' | 'stream', expected: Expected]

const notBegun = (status: number | 'none'): Expected => ({ status, hold: 'not begun', vendorCalls: 0 })
const unsent = (status: number | 'none'): Expected => ({ status, hold: 'voided', vendorCalls: 0 })
const voided = (status: number | 'none'): Expected => ({ status, hold: 'voided', vendorCalls: 1 })
const settled = (status: number | 'none', rest: Partial<Expected> = {}): Expected => ({
  status,
  hold: 'settled',
  vendorCalls: 1,
  ...rest,
})

const ROWS: readonly Row[] = [
  ['authenticate', 'a throw', 'both', notBegun(503)],
  ['authenticate', 'a time-out', 'both', notBegun(503)],
  ['authenticate', 'a leaving caller', 'both', notBegun('none')],
  ['receive body', 'a throw', 'both', notBegun(500)],
  ['receive body', 'a time-out', 'both', notBegun('none')],
  ['receive body', 'a leaving caller', 'both', notBegun('none')],
  ['estimate', 'a throw', 'both', notBegun(500)],
  ['estimate', 'a leaving caller', 'both', unsent('none')],
  ['acquire lease', 'a throw', 'both', notBegun(500)],
  ['acquire lease', 'a time-out', 'both', notBegun(500)],
  ['acquire lease', 'a leaving caller', 'both', unsent('none')],
  ['take rates', 'a throw', 'both', notBegun(500)],
  ['take rates', 'a time-out', 'both', notBegun(500)],
  ['take rates', 'a leaving caller', 'both', unsent('none')],
  ['reserve', 'a throw', 'both', unsent(503)],
  ['reserve', 'a time-out', 'both', unsent(503)],
  ['reserve', 'a leaving caller', 'both', unsent('none')],
  ['translate request', 'a throw', 'both', unsent(500)],
  ['translate request', 'a leaving caller', 'both', unsent('none')],
  // No byte was sent, so the vendor is called again, and answers.
  ['send', 'a throw', 'both', settled(200, { vendorCalls: 2, ending: 'clean' })],
  ['send', 'a time-out', 'both', voided(504)],
  // A whole answer that is under way is read to its end, and paid for.
  ['send', 'a leaving caller', 'whole', settled('none')],
  ['send', 'a leaving caller', 'stream', voided('none')],
  ['vendor head', 'a throw', 'both', voided(502)],
  ['vendor head', 'a time-out', 'both', voided(504)],
  // From here on the vendor may have worked: a caller who disconnects pays for the prompt at least.
  ['vendor head', 'a leaving caller', 'both', settled('none')],
  ['vendor body', 'a throw', 'whole', voided(502)],
  ['vendor body', 'a throw', 'stream', settled(200, { ending: 'clean' })],
  ['vendor body', 'a time-out', 'whole', voided(504)],
  ['vendor body', 'a time-out', 'stream', settled(200, { ending: 'clean' })],
  ['vendor body', 'a leaving caller', 'whole', settled('none')],
  ['vendor body', 'a leaving caller', 'stream', settled(200)],
  ['read answer', 'a throw', 'whole', voided(500)],
  ['read answer', 'a throw', 'stream', settled(200, { ending: 'clean' })],
  ['read answer', 'a leaving caller', 'whole', settled('none')],
  ['read answer', 'a leaving caller', 'stream', settled(200)],
  ['pass answer through', 'a throw', 'whole', voided(500)],
  ['pass answer through', 'a throw', 'stream', settled(200, { ending: 'clean' })],
  ['pass answer through', 'a leaving caller', 'whole', settled('none')],
  ['pass answer through', 'a leaving caller', 'stream', settled(200)],
  ['settle', 'a throw', 'both', settled(200, { ending: 'clean' })],
  ['settle', 'a time-out', 'both', settled(200, { ending: 'clean' })],
  // The end of a stream is sent after its settlement, so a caller who disconnects before gets no end.
  ['settle', 'a leaving caller', 'whole', settled('none')],
  ['settle', 'a leaving caller', 'stream', settled(200)],
  ['release lease', 'a throw', 'both', settled(200, { ending: 'clean', keeps: 'lease' })],
  ['release lease', 'a time-out', 'both', settled(200, { ending: 'clean', keeps: 'lease' })],
  ['release lease', 'a leaving caller', 'whole', settled('none')],
  ['release lease', 'a leaving caller', 'stream', settled(200)],
  ['adjust rates', 'a throw', 'both', settled(200, { ending: 'clean', keeps: 'tokens' })],
  ['adjust rates', 'a time-out', 'both', settled(200, { ending: 'clean', keeps: 'tokens' })],
  ['adjust rates', 'a leaving caller', 'whole', settled('none')],
  ['adjust rates', 'a leaving caller', 'stream', settled(200)],
  ['answer head', 'a throw', 'both', settled(500, { ending: 'clean' })],
  ['answer head', 'a leaving caller', 'both', settled('none')],
  ['answer bytes', 'a throw', 'stream', settled(200, { ending: 'cut' })],
  ['answer bytes', 'a time-out', 'stream', settled(200, { ending: 'clean' })],
  ['answer bytes', 'a leaving caller', 'stream', settled(200)],
  ['answer end', 'a throw', 'both', settled(200, { ending: 'cut' })],
  ['answer end', 'a leaving caller', 'both', settled(200)],
]

const CASES = ROWS.flatMap(([stage, fault, forms, expected]) => {
  const names = forms === 'both' ? (['whole', 'stream'] as const) : [forms]
  return names.map((form) => [fault, stage, form, expected] as const)
})

function expectNothingLost(report: StageReport, expected: Pick<Expected, 'hold' | 'keeps'>): void {
  expect(report.uncaught).toEqual([])
  expect(report.holds).toEqual(expected.hold === 'not begun' ? [] : [[expected.hold]])
  expect(report.held).toBe(0n)
  expect(report.balance).toBe(report.journal)
  expect(report.openLeases).toBe(expected.keeps === 'lease' ? 1 : 0)
  if (expected.keeps === 'tokens') expect(report.tokensTaken).toBeGreaterThan(report.tokensUsed ?? 0)
  else expect(report.tokensTaken).toBe(report.tokensUsed ?? 0)
  expect(report.openVendorCalls).toBe(0)
}

describe('a hold ends once, limits are given back and nothing is thrown into the void', () => {
  test.each(CASES)('survives %s at "%s" (%s)', async (fault, stage, form, expected) => {
    const report = await runStageDrill({ stage, fault, isStream: form === 'stream' })

    expectNothingLost(report, expected)
    expect(report.status ?? 'none').toBe(expected.status)
    expect(report.vendorCalls).toBe(expected.vendorCalls)
    if (expected.ending !== undefined) expect(report.ending).toBe(expected.ending)
    const charged = START - report.balance
    if (expected.hold === 'settled') expect(charged).toBeGreaterThan(0n)
    else expect(charged).toBe(0n)
  })
})

describe('policy drain', () => {
  const stages: readonly (readonly [Stage, Expected['hold'], 0 | 1])[] = [
    ['acquire lease', 'voided', 0],
    ['take rates', 'voided', 0],
    ['reserve', 'voided', 0],
    ['send', 'settled', 1],
    ['vendor head', 'settled', 1],
    ['vendor body', 'settled', 1],
    ['read answer', 'settled', 1],
    ['settle', 'settled', 1],
  ]
  const cases = stages.flatMap((row) => [[...row, false] as const, [...row, true] as const])

  test.each(cases)(
    'ends a call whose caller disconnects at "%s" as %s: only a started call is read on (calls: %i, stream: %s)',
    async (stage, hold, vendorCalls, isStream) => {
      const report = await runStageDrill({ stage, fault: 'a leaving caller', isStream, disconnect: 'drain' })

      expectNothingLost(report, { hold })
      expect(report.vendorCalls).toBe(vendorCalls)
      // The vendor's report at the end of the whole answer: 9 tokens in, 3 out.
      expect(START - report.balance).toBe(hold === 'settled' ? 9n * 1000n + 3n * 4000n : 0n)
    },
  )
})

test('sweeps an expired hold whose acknowledgement was lost, while the store cannot undo it', async () => {
  const clock = fakeClock()
  const store = memoryStore()
  const { ledger } = store
  let holdId = ''
  let swept = 0
  const losing: GatewayStore = {
    ...store,
    ledger: {
      ...ledger,
      async reserve(reservation, nowMs) {
        await ledger.reserve(reservation, nowMs)
        holdId = reservation.holdId
        throw new Error('the connection broke before the answer came')
      },
      async expire(nowMs, limit) {
        const count = await ledger.expire(nowMs, limit)
        swept += count
        return count
      },
    },
  }
  const started = await startGateway({ store: losing, clock, holdTtlMs: 4_000, timeouts: { totalMs: 3_000 } })
  const response = await started.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))
  const whileHeld = await started.account()
  clock.advance(2_000)
  await started.account()
  const sweptEarly = swept
  clock.advance(2_000)
  const afterwards = await started.account()
  const late = await ledger.void(holdId, clock.now())
  await started.close()

  expect(response.status).toBe(503)
  expect(started.sandbox.requests).toHaveLength(0)
  expect(whileHeld.held).toBeGreaterThan(0n)
  expect([sweptEarly, swept]).toEqual([0, 1])
  expect(afterwards).toEqual({ balance: whileHeld.balance + whileHeld.held, held: 0n })
  expect(late.resolved).toBe(false)
})
