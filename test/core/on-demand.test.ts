import { expect, test } from 'vitest'
import { onDemand, whileUsed } from '../../src/core/on-demand.ts'

test('a value on demand is made when it is first asked for, and once', () => {
  let count = 0
  const value = onDemand(() => ({ count: ++count }))

  expect(count).toBe(0)
  expect(value()).toBe(value())
  expect(count).toBe(1)
})

test('a value that is in use is created once', () => {
  let count = 0
  const value = whileUsed(() => ({ count: ++count }))
  const used = value()

  expect(value()).toBe(used)
  expect(used.count).toBe(1)
})
