import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CatalogModel } from '../../src/catalog/model.ts'
import { videoTask } from '../../src/endpoints/videos/video-endpoint.ts'
import type { TaskRecord } from '../../src/stores/task-store.ts'
import { applyReport, nextPollAtMs, type ReportFacts } from '../../src/tasks/update-task.ts'
import type { TaskReport } from '../../src/vendors/vendor.ts'

const NOW_MS = 1_800_000_000_000
const MODEL = { video: { maxBilledSeconds: 30 } } as CatalogModel
const FACTS: ReportFacts = {
  nowMs: NOW_MS,
  pollIntervalMs: 15_000,
  billedUsage: (billed) => videoTask.billedUsage(billed, MODEL),
}

function task(details: Partial<TaskRecord['details']> = {}): TaskRecord {
  return {
    id: 'task_1',
    accountId: 'account_1',
    keyId: 'key_1',
    state: 'queued',
    upstreamId: 'upstream-1',
    credentialId: 'some-vendor:0123456789abcdef',
    holdId: 'req_1',
    createdAtMs: NOW_MS - 60_000,
    updatedAtMs: NOW_MS - 60_000,
    nextPollAtMs: NOW_MS,
    deadlineAtMs: NOW_MS + 3_600_000,
    details: {
      requestId: 'req_1',
      endpoint: 'videos',
      model: 'some-model',
      vendor: 'some-vendor',
      prices: {
        '': [{ meter: 'video_second', amount: '0.10', per: 1 }],
        '720p': [{ meter: 'video_second', amount: '0.10', per: 1 }],
        '1080p': [{ meter: 'video_second', amount: '0.15', per: 1 }],
      },
      heldUsage: { videoSeconds: 4 },
      variant: '720p',
      facts: {},
      polls: 0,
      unknownReports: 0,
      ...details,
    },
  }
}

function report(members: Partial<TaskReport>): TaskReport {
  return {
    status: 'completed',
    output: undefined,
    usage: undefined,
    billed: undefined,
    variant: undefined,
    contentUrl: undefined,
    facts: undefined,
    error: undefined,
    ...members,
  }
}

describe('the price of a finished task', () => {
  test('ten seconds rendered are charged though four were held', () => {
    const { change, ended } = applyReport(task(), report({ billed: { videoSeconds: 10 } }), FACTS)

    expect(change.resolve).toMatchObject({
      kind: 'settle',
      amount: 1_000_000_000n,
      description: 'videos some-model',
      details: { endpoint: 'videos', model: 'some-model', usage: { videoSeconds: 10 } },
    })
    expect(ended).toMatchObject({ state: 'completed', costNanoDollars: 1_000_000_000n, implausible: [] })
  })

  test('the tier that was rendered is charged at the price of the submission', () => {
    const { change } = applyReport(task(), report({ billed: { videoSeconds: 4 }, variant: '1080p' }), FACTS)

    expect(change.resolve).toMatchObject({ amount: 600_000_000n })
  })

  test('a tier without a price of its own costs what the tier asked for does', () => {
    const { change } = applyReport(task(), report({ billed: { videoSeconds: 4 }, variant: '540p' }), FACTS)

    expect(change.resolve).toMatchObject({ amount: 400_000_000n })
  })

  test('a report without seconds is charged as held', () => {
    expect(applyReport(task(), report({}), FACTS).change.resolve).toMatchObject({ amount: 400_000_000n })
  })

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 31, 2 ** 31])(
    '%s seconds are not believed; the held ones are charged and the report is flagged',
    (videoSeconds) => {
      const { change, ended } = applyReport(task(), report({ billed: { videoSeconds } }), FACTS)

      expect(change.resolve).toMatchObject({ amount: 400_000_000n })
      expect(ended?.implausible).toEqual(['videoSeconds'])
    },
  )

  test('fractions of a second are charged exactly', () => {
    const { change } = applyReport(task(), report({ billed: { videoSeconds: 5.04 } }), FACTS)

    expect(change.resolve).toMatchObject({ amount: 504_000_000n })
  })

  test('nothing is settled where billing is off', () => {
    const free: TaskRecord = { ...task(), holdId: undefined }

    expect(applyReport(free, report({ billed: { videoSeconds: 4 } }), FACTS).change.resolve).toBeUndefined()
  })

  test('whatever seconds a vendor reports, a charge is never negative and nothing throws', () => {
    fc.assert(
      fc.property(fc.double(), (videoSeconds) => {
        const { resolve } = applyReport(task(), report({ billed: { videoSeconds } }), FACTS).change
        expect(resolve?.kind === 'settle' && resolve.amount >= 0n).toBe(true)
      }),
    )
  })
})

describe('the end of a task', () => {
  test('a failed task is voided and keeps the code and text of the vendor', () => {
    const error = { code: 'DataInspectionFailed', message: 'Input data may contain inappropriate content.' }
    const outcome = applyReport(task(), report({ status: 'failed', error }), FACTS)

    expect(outcome.change.resolve).toEqual({ kind: 'void' })
    expect(outcome.task).toMatchObject({ state: 'failed', details: { error } })
  })

  test('reports usage of a task that the vendor did not complete, and does not charge it', () => {
    for (const status of ['failed', 'cancelled'] as const) {
      const { change, ended } = applyReport(task(), report({ status, billed: { videoSeconds: 2 } }), FACTS)
      const nothing = applyReport(task(), report({ status, billed: { videoSeconds: 0 } }), FACTS)

      expect(change.resolve).toEqual({ kind: 'void' })
      expect(ended?.unbilled).toEqual({ usage: { videoSeconds: 2 }, isEstimated: false })
      expect(nothing.ended?.unbilled).toBeUndefined()
    }
  })

  test('a cancelled task is voided', () => {
    const outcome = applyReport(task(), report({ status: 'cancelled' }), FACTS)

    expect(outcome.change.resolve).toEqual({ kind: 'void' })
    expect(outcome.ended?.state).toBe('cancelled')
  })

  test('only the third report in a row that the vendor does not know the task is believed', () => {
    const unknown = report({ status: 'unknown' })
    const first = applyReport(task(), unknown, FACTS)
    const second = applyReport(first.task, unknown, FACTS)
    const third = applyReport(second.task, unknown, FACTS)

    expect([first.ended, second.ended]).toEqual([undefined, undefined])
    expect([first.task.state, second.task.state]).toEqual(['queued', 'queued'])
    expect(third.task).toMatchObject({ state: 'failed', details: { error: { code: 'task_expired' } } })
    expect(third.change.resolve).toEqual({ kind: 'void' })
    // The vendor may have made it before.
    expect(third.ended?.unbilled).toEqual({ usage: task().details.heldUsage, isEstimated: true })
  })

  test('restarts the count of unknown reports after another report', () => {
    const unknown = report({ status: 'unknown' })
    const second = applyReport(applyReport(task(), unknown, FACTS).task, unknown, FACTS)
    const running = applyReport(second.task, report({ status: 'in_progress' }), FACTS)

    expect(running.task.details.unknownReports).toBe(0)
    expect(applyReport(running.task, unknown, FACTS).ended).toBeUndefined()
  })
})

describe('asking again', () => {
  test('a task that goes on is asked about after the interval of its vendor', () => {
    const { change } = applyReport(task(), report({ status: 'in_progress' }), FACTS)

    expect(change.set).toMatchObject({ state: 'in_progress', nextPollAtMs: NOW_MS + 15_000, updatedAtMs: NOW_MS })
    expect(change.resolve).toBeUndefined()
  })

  test('a task that nothing has changed about keeps the time of its last change', () => {
    const { task: after } = applyReport(task(), report({ status: 'queued' }), FACTS)

    expect(after.updatedAtMs).toBe(NOW_MS - 60_000)
  })

  test('a task that was asked about often is asked about at most four times more seldom', () => {
    const delays = [0, 9, 10, 25, 1_000].map((polls) => nextPollAtMs(task({ polls }), FACTS) - NOW_MS)

    expect(delays).toEqual([15_000, 15_000, 30_000, 45_000, 60_000])
  })
})
