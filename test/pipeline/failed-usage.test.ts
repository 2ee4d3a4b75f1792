import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/core/errors.ts'
import type { Usage } from '../../src/core/usage.ts'
import type { Candidate, Reserved } from '../../src/pipeline/call-record.ts'
import { abandonedUsage } from '../../src/pipeline/charge.ts'
import type { AttemptFailure } from '../../src/pipeline/error-classification.ts'
import type { PipelineContext } from '../../src/pipeline/pipeline-context.ts'

/** Charge of a caller that disconnected from a call that its vendor had begun. */
function charged(
  estimate: Usage,
  failure: Partial<AttemptFailure>,
  { hasHiddenReasoning = false, isMaking = false, readOnMs = 0 } = {},
) {
  const call = {
    estimate,
    bytesPerToken: 4,
    usualReasoningTokens: 5,
    tokensPerSecond: 100,
    startedAtMs: 0,
    calls: { readOnMs: () => readOnMs },
  } as unknown as Reserved
  const begun = { mayHaveBegun: true, outcome: 'ignored', error: new GatewayError('upstream_unavailable') } as const
  const last = {
    failure: { ...begun, ...failure } as AttemptFailure,
    candidate: {} as Candidate,
    unreported: undefined,
  }
  const context = { clock: { now: () => 2_000 } } as PipelineContext
  return abandonedUsage(context, call, last, { hasHiddenReasoning, isMaking })
}

describe('a disconnected caller', () => {
  test('pays for a batch of which parts were answered what they report, at least the whole prompt', () => {
    const parts = (inputTokens: number) => ({ billedUsage: { inputTokens }, isPartDone: true })

    expect(charged({ inputTokens: 100 }, parts(30)).usage).toMatchObject({ inputTokens: 100 })
    expect(charged({ inputTokens: 100 }, parts(300)).usage).toMatchObject({ inputTokens: 300 })
    expect(charged({ inputTokens: 100 }, { billedUsage: { inputTokens: 30 } }).usage).toMatchObject({ inputTokens: 30 })
  })

  test('pays for the time that passed where the call was stopped while a model reasoned unseen, at most the hold', () => {
    const estimate = { inputTokens: 100, outputTokens: 1_000 }

    const unseen = { hasHiddenReasoning: true }
    expect(charged(estimate, {}, unseen).estimatedUsage).toEqual({ inputTokens: 100, outputTokens: 200 })
    expect(charged({ ...estimate, outputTokens: 50 }, {}, unseen).estimatedUsage?.outputTokens).toBe(50)
    expect(charged(estimate, {}).estimatedUsage).toEqual({ inputTokens: 100, outputTokens: 0 })
  })

  test('pays for ten seconds of a whole answer after leaving, however long it was awaited', () => {
    const estimate = { inputTokens: 100, outputTokens: 5_000 }
    const output = (readOnMs: number) =>
      charged(estimate, {}, { isMaking: true, readOnMs }).estimatedUsage?.outputTokens

    expect([0, 500, 20_000].map(output)).toEqual([1_200, 1_150, 200])
  })

  test('pays nothing for a call that its vendor failed', () => {
    const estimate = { inputTokens: 100, outputTokens: 1_000 }

    expect(charged(estimate, { outcome: 'failing' }, { hasHiddenReasoning: true })).toMatchObject({
      usage: undefined,
      estimatedUsage: undefined,
    })
  })
})
