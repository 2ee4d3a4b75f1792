import { expect, test } from 'vitest'
import { RawHeaders } from '../../src/transport/undici.ts'

const headers = (...list: string[]): RawHeaders => new RawHeaders(list.map((text) => Buffer.from(text, 'latin1')))

test('a header is found whatever the case of its letters, and only by its whole name', () => {
  const read = headers('Content-Type', 'text/event-stream', 'x-request-id-2', 'b', 'X-Request-Id', 'a')

  expect(read.get('content-type')).toBe('text/event-stream')
  expect(read.get('x-request-id')).toBe('a')
  expect(read.get('content')).toBeUndefined()
  expect(read.get('')).toBeUndefined()
})

test('only letters have a second case', () => {
  expect(headers('x@a', '1').get('x`a')).toBeUndefined()
  expect(headers('x[a', '1').get('x{a')).toBeUndefined()
})

test('reads the first value of a repeated header', () => {
  expect(headers('Retry-After', '1', 'retry-after', '2').get('retry-after')).toBe('1')
})

test('reads a value beyond ASCII byte by byte, as HTTP requires', () => {
  expect(headers('x-name', 'J\u00fcrgen').get('x-name')).toBe('J\u00fcrgen')
})
