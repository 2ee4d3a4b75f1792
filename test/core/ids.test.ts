import { expect, test } from 'vitest'
import { randomIds, toBase62 } from '../../src/core/ids.ts'

test('an id is its prefix and 32 hexadecimal digits, and never the same twice', () => {
  const ids = Array.from({ length: 1000 }, () => randomIds.next('req'))

  expect(ids.every((id) => /^req_[0-9a-f]{32}$/.test(id))).toBe(true)
  expect(new Set(ids).size).toBe(1000)
})

test.each([
  [[], '000'],
  [[0], '000'],
  [[61], '00z'],
  [[62], '010'],
  [[255], '047'],
  [[1, 0], '048'],
])('the bytes %j are %s in base62', (bytes, text) => {
  expect(toBase62(Uint8Array.from(bytes), 3)).toBe(text)
})
