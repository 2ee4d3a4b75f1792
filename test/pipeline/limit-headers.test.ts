import { expect, test } from 'vitest'
import { formatDuration } from '../../src/pipeline/respond.ts'

test.each([
  [0, '0ms'],
  [0.2, '1ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [1_450, '1.5s'],
  [59_900, '59.9s'],
  [59_950, '1m0s'],
  [60_200, '1m1s'],
  [119_600, '2m0s'],
  [360_000, '6m0s'],
])('until a limit is full again, %i ms are written as %s', (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text)
})
