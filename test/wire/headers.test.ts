import { describe, expect, test } from 'vitest'
import { firstHeader, mediaType, retryAfterSeconds } from '../../src/wire/headers.ts'

test('the first of several values counts', () => {
  const headers = { one: 'a', many: ['b', 'c'], none: undefined, empty: [] }

  expect(['one', 'many', 'none', 'empty', 'absent'].map((name) => firstHeader(headers, name))).toEqual([
    'a',
    'b',
    undefined,
    undefined,
    undefined,
  ])
})

test('headers may be a reader, such as those of a fetch response', () => {
  const fetched = new Headers({ 'Retry-After': '3' })

  expect(firstHeader(fetched, 'retry-after')).toBe('3')
  expect(firstHeader(fetched, 'absent')).toBeUndefined()
  expect(retryAfterSeconds(fetched, 0)).toBe(3)
})

test('a record with a header called get is still a record', () => {
  expect(firstHeader({ get: 'a', one: 'b' }, 'get')).toBe('a')
  expect(firstHeader({ get: 'a', one: 'b' }, 'one')).toBe('b')
})

test.each([
  [undefined, ''],
  ['', ''],
  ['application/json', 'application/json'],
  ['Application/JSON; charset=utf-8', 'application/json'],
  [' text/event-stream ;x', 'text/event-stream'],
])('the media type of %j is %j', (value, type) => {
  expect(mediaType(value)).toBe(type)
})

describe('how long a vendor asks to wait', () => {
  const nowMs = Date.UTC(2026, 0, 1)

  test.each([
    [{}, undefined],
    [{ 'retry-after': '7' }, 7],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': '1.5' }, 1.5],
    [{ 'retry-after': '-3' }, undefined],
    [{ 'retry-after': ' ' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': 'Infinity' }, undefined],
    [{ 'retry-after': ['9', '1'] }, 9],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, 30],
    [{ 'retry-after': 'Wed, 31 Dec 2025 23:59:00 GMT' }, 0],
    [{ 'retry-after-ms': '250', 'retry-after': '7' }, 0.25],
    [{ 'retry-after-ms': 'x', 'retry-after': '7' }, 7],
    [{ 'retry-after-ms': '-1', 'retry-after': '7' }, 7],
  ])('reads %j as %s seconds', (headers, seconds) => {
    expect(retryAfterSeconds(headers, nowMs)).toBe(seconds)
  })
})
