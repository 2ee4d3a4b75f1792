import { describe, expect, test } from 'vitest'
import { type ImageStageReport, REPORTED_COST, runImageStageDrill } from './image-stage-drill.ts'
import type { Stage, StageFault } from './support/stage-gate.ts'

const START = 1_000_000_000n

/** Amount that is paid: nothing without a hold, nothing despite a hold, the full hold, or the vendor's report. */
type Paid = 'not begun' | 'nothing' | 'as held' | 'as reported'

interface Expected {
  /** `none`: the caller gets no answer, because it has left. */
  readonly status: number | 'none'
  readonly paid: Paid
  readonly calls: 0 | 1 | 2
}

type Row = readonly [stage: Stage, fault: StageFault, forms: 'both' | 'whole' | 'stream', expected: Expected]

const row = (status: Expected['status'], paid: Paid, calls: Expected['calls']): Expected => ({ status, paid, calls })

const ROWS: readonly Row[] = [
  ['authenticate', 'a throw', 'both', row(503, 'not begun', 0)],
  ['authenticate', 'a leaving caller', 'both', row('none', 'not begun', 0)],
  ['receive body', 'a throw', 'both', row(500, 'not begun', 0)],
  ['receive body', 'a leaving caller', 'both', row('none', 'not begun', 0)],
  ['acquire lease', 'a throw', 'both', row(500, 'not begun', 0)],
  ['acquire lease', 'a leaving caller', 'both', row('none', 'nothing', 0)],
  ['take rates', 'a throw', 'both', row(500, 'not begun', 0)],
  ['take rates', 'a leaving caller', 'both', row('none', 'nothing', 0)],
  ['reserve', 'a throw', 'both', row(503, 'nothing', 0)],
  ['reserve', 'a time-out', 'both', row(503, 'nothing', 0)],
  ['reserve', 'a leaving caller', 'both', row('none', 'nothing', 0)],
  ['translate request', 'a throw', 'both', row(500, 'nothing', 0)],
  ['translate request', 'a leaving caller', 'both', row('none', 'nothing', 0)],
  // No byte was sent, so the vendor is called again, and generates the image.
  ['send', 'a throw', 'both', row(200, 'as reported', 2)],
  ['send', 'a time-out', 'both', row(504, 'nothing', 1)],
  ['send', 'a leaving caller', 'both', row('none', 'nothing', 1)],
  // From here on the vendor may be drawing: it is never asked again, and a caller who disconnects pays.
  ['vendor head', 'a throw', 'both', row(502, 'nothing', 1)],
  ['vendor head', 'a time-out', 'both', row(504, 'nothing', 1)],
  ['vendor head', 'a leaving caller', 'both', row('none', 'as held', 1)],
  ['vendor body', 'a throw', 'whole', row(502, 'nothing', 1)],
  ['vendor body', 'a throw', 'stream', row(200, 'as held', 1)],
  ['vendor body', 'a time-out', 'whole', row(504, 'nothing', 1)],
  ['vendor body', 'a time-out', 'stream', row(200, 'as held', 1)],
  ['vendor body', 'a leaving caller', 'whole', row('none', 'as held', 1)],
  ['vendor body', 'a leaving caller', 'stream', row(200, 'as held', 1)],
  ['read answer', 'a throw', 'whole', row(500, 'nothing', 1)],
  ['read answer', 'a throw', 'stream', row(200, 'as held', 1)],
  // The whole answer has arrived when its caller disconnects.
  ['read answer', 'a leaving caller', 'whole', row('none', 'as reported', 1)],
  ['read answer', 'a leaving caller', 'stream', row(200, 'as held', 1)],
  ['settle', 'a throw', 'both', row(200, 'as reported', 1)],
  ['settle', 'a time-out', 'both', row(200, 'as reported', 1)],
  ['settle', 'a leaving caller', 'whole', row('none', 'as reported', 1)],
  ['settle', 'a leaving caller', 'stream', row(200, 'as reported', 1)],
  ['answer head', 'a throw', 'whole', row(500, 'as reported', 1)],
  ['answer head', 'a leaving caller', 'whole', row('none', 'as reported', 1)],
  ['answer end', 'a throw', 'both', row(200, 'as reported', 1)],
  ['answer end', 'a leaving caller', 'both', row(200, 'as reported', 1)],
]

/** Where the vendor has the request and nobody has its answer. */
const MAY_BE_DRAWING: readonly Stage[] = ['vendor head', 'vendor body', 'read answer']

const CASES = ROWS.flatMap(([stage, fault, forms, expected]) => {
  const names = forms === 'both' ? (['whole', 'stream'] as const) : [forms]
  return names.map((form) => [fault, stage, form, expected] as const)
})

function expectPaid(report: ImageStageReport, paid: Paid): void {
  const ends = { 'not begun': [], nothing: [['voided']], 'as held': [['settled']], 'as reported': [['settled']] }
  const amounts = { 'not begun': 0n, nothing: 0n, 'as held': report.mostHeld, 'as reported': REPORTED_COST }

  expect(report.holds).toEqual(ends[paid])
  expect(START - report.balance).toBe(amounts[paid])
  expect(report.held).toBe(0n)
  expect(report.balance).toBe(report.journal)
  expect(report.openLeases).toBe(0)
  expect(report.openVendorCalls).toBe(0)
}

describe('the hold of an image ends once, and no vendor that may be generating it is called again', () => {
  test.each(CASES)('survives %s at "%s" (%s)', async (fault, stage, form, expected) => {
    const report = await runImageStageDrill({ stage, fault, isStream: form === 'stream' })

    expect(report.status ?? 'none').toBe(expected.status)
    expect(report.vendorCalls).toBe(expected.calls)
    expectPaid(report, expected.paid)
    // Nor is it asked again by the caller's client.
    expect(report.isFinal).toBe(MAY_BE_DRAWING.includes(stage) && Number(expected.status) >= 500)
  })
})

describe('policy drain', () => {
  test.each([
    ['reserve', 'nothing', 0, false],
    ['send', 'as reported', 1, false],
    ['vendor head', 'as reported', 1, false],
    ['vendor head', 'as reported', 1, true],
    ['vendor body', 'as reported', 1, false],
    ['vendor body', 'as reported', 1, true],
  ] as const)(
    'charges a caller that disconnects at "%s" %s (calls: %i, stream: %s)',
    async (stage, paid, calls, isStream) => {
      const report = await runImageStageDrill({
        stage,
        fault: 'a leaving caller',
        isStream,
        disconnect: { images: 'drain' },
      })

      expect(report.vendorCalls).toBe(calls)
      expectPaid(report, paid)
    },
  )
})
