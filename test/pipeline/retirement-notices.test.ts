import { expect, test } from 'vitest'
import { defineModel } from '../../src/catalog/model.ts'
import type { GatewayEvent } from '../../src/core/events.ts'
import { silentLogger } from '../../src/core/logger.ts'
import { RetirementNotices } from '../../src/pipeline/notices.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

test('emits at most 1,000 events per day, whatever ids callers choose for a pattern, and a header for each', () => {
  const clock = fakeClock()
  const events: GatewayEvent[] = []
  const source = { find: () => undefined, list: () => [] }
  const context = { clock, logger: silentLogger, catalog: { source } }
  const notices = new RetirementNotices((event) => events.push(event))
  const model = (id: string) => defineModel({ id, kind: 'chat', vendor: 'v', retires: '2026-01-31' })
  const headers = Array.from({ length: 1_500 }, (_, index) => notices.headerFor(context, [model(`any-${index}`)]))

  expect(events).toHaveLength(1_000)
  expect(headers.every((header) => header?.join() === 'x-signalbox-model-retires,2026-01-31')).toBe(true)
  clock.advance(24 * 60 * 60_000)
  notices.headerFor(context, [model('any-1499')])
  expect(events.at(-1)).toEqual({ type: 'model-retiring', model: 'any-1499', vendor: 'v', retires: '2026-01-31' })
})
