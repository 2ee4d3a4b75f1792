import { afterEach, expect, test, vi } from 'vitest'
import { timeOrderedIds, toBase62 } from '../../src/core/ids.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('an id is its prefix and 32 hexadecimal digits, and never the same twice', () => {
  const ids = Array.from({ length: 1000 }, () => timeOrderedIds.next('req'))

  expect(ids.every((id) => /^req_[0-9a-f]{32}$/.test(id))).toBe(true)
  expect(new Set(ids).size).toBe(1000)
})

test('ids made later stand later in an index', () => {
  vi.useFakeTimers({ now: 1_800_000_000_000 })
  const first = timeOrderedIds.next('req')
  vi.setSystemTime(1_800_000_000_001)
  const second = timeOrderedIds.next('req')

  expect(first < second).toBe(true)
  expect(Number.parseInt(first.slice(4, 16), 16)).toBe(1_800_000_000_000)
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
