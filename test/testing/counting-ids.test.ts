import { expect, test } from 'vitest'
import { countingIds } from '../../src/testing/index.ts'

test('counting ids have the shape of real ones', () => {
  const ids = countingIds()

  expect(ids.next('req')).toBe('req_00000000000000000000000000000001')
  expect(ids.next('task')).toBe('task_00000000000000000000000000000002')
})
