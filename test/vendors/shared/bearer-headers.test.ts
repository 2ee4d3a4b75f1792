import { expect, test } from 'vitest'
import { bearerHeaders, MAX_KEPT_KEYS } from '../../../src/vendors/shared/vendor-options.ts'

test('the headers of a key are made once, and apart for whole answers and streams', () => {
  const whole = bearerHeaders('one', 'application/json')

  expect(bearerHeaders('one', 'application/json')).toBe(whole)
  expect(whole).toContain('Bearer one')
  expect(bearerHeaders('one', 'text/event-stream')).toContain('text/event-stream')
  expect(bearerHeaders('two', 'application/json')).toContain('Bearer two')
})

test('an empty key sends no credential', () => {
  expect(bearerHeaders('', 'application/json')).not.toContain('authorization')
})

test('headers are kept for a bounded number of keys', () => {
  const first = bearerHeaders('first', 'application/json')
  for (let key = 0; key <= MAX_KEPT_KEYS; key++) bearerHeaders(`key-${key}`, 'application/json')

  expect(bearerHeaders('first', 'application/json')).not.toBe(first)
  expect(bearerHeaders('first', 'application/json')).toEqual(first)
})
