import { expect, test } from 'vitest'
import { defineModel } from '../../src/catalog/model.ts'
import type { GatewayEvent } from '../../src/core/events.ts'
import { silentLogger } from '../../src/core/logger.ts'
import type { PipelineContext } from '../../src/pipeline/pipeline-context.ts'
import { RetirementNotices } from '../../src/pipeline/retirement-notices.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

test('emits at most 1,000 events per day, whatever ids callers choose for a pattern, and a header for each', () => {
  const clock = fakeClock()
  const events: GatewayEvent[] = []
  const context = {
    ...{ clock, logger: silentLogger, observers: undefined, catalog: { source: {} } },
    onEvent: (event: GatewayEvent) => events.push(event),
  } as unknown as PipelineContext
  const notices = new RetirementNotices()
  const model = (id: string) => defineModel({ id, kind: 'chat', vendor: 'v', retires: '2026-01-31' })
  const headers = Array.from({ length: 1_500 }, (_, index) => notices.headerFor(context, [model(`any-${index}`)]))

  expect(events).toHaveLength(1_000)
  expect(headers.every((header) => header?.join() === 'x-signalbox-model-retires,2026-01-31')).toBe(true)
  clock.advance(24 * 60 * 60_000)
  notices.headerFor(context, [model('any-1499')])
  expect(events.at(-1)).toEqual({ type: 'model-retiring', model: 'any-1499', vendor: 'v', retires: '2026-01-31' })
})
