import { expect, test } from 'vitest'
import { onDemand } from '../../src/core/on-demand.ts'

test('a value on demand is made when it is first asked for, and once', () => {
  let count = 0
  const value = onDemand(() => ({ count: ++count }))

  expect(count).toBe(0)
  expect(value()).toBe(value())
  expect(count).toBe(1)
})
