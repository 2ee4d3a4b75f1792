import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { ExactNumber, exactJsonText, parseExactJson, readExactCallerJson } from '../../src/core/exact-json.ts'

const NUMBERS = ['1234567890123456789', '-0', '1.0', '1e400', '0.10', '1E5', '12345678901234567890.5', '-1e-7']

describe('parseExactJson', () => {
  test.each(NUMBERS)('keeps the digits of %s', (number) => {
    expect(exactJsonText(parseExactJson(number))).toBe(number)
    expect(exactJsonText(parseExactJson(`{"a":[${number},"${number}"],"b":1}`))).toBe(
      `{"a":[${number},"${number}"],"b":1}`,
    )
  })

  test('returns plain values for a text whose numbers do not change', () => {
    expect(parseExactJson('{"a":[0,-1,2.5,9007199254740991,"1.0"]}')).toEqual({
      a: [0, -1, 2.5, 9007199254740991, '1.0'],
    })
  })

  test.each(['01', '1.', '.5', '1.0.0', '--1', '+1', '1e', '{"a":1.0', '[1.0,]'])(
    'returns undefined for %s',
    (text) => {
      expect(parseExactJson(text)).toBeUndefined()
    },
  )

  test('keeps all digits below members of text, and only those that a double loses below members of value', () => {
    const members = new Map([['args', 'text'] as const, ['schema', 'value'] as const])
    const text = `{"rate":1.0,"id":1234567890123456789,"args":{"rate":1.0},"schema":{"minimum":0.0,"maximum":9223372036854775807}}`
    const value = parseExactJson(text, members) as { rate: unknown; schema: { minimum: unknown } }

    expect([value.rate, value.schema.minimum]).toEqual([1, 0])
    expect(exactJsonText(value)).toBe(
      '{"rate":1,"id":1234567890123456800,"args":{"rate":1.0},"schema":{"minimum":0,"maximum":9223372036854775807}}',
    )
  })

  test('returns undefined for a text that nests too deep', () => {
    const depth = 100_000
    const value = parseExactJson(`${'['.repeat(depth)}1.0${']'.repeat(depth)}`)

    expect(value).toBeUndefined()
  })
})

test('JSON.stringify rounds an exact number', () => {
  expect(JSON.stringify({ a: new ExactNumber('1.0') })).toBe('{"a":1}')
})

test('exactJsonText ends its marks if a value cannot be written', () => {
  expect(() => exactJsonText([new ExactNumber('1.0'), 1n])).toThrow(TypeError)
  expect(JSON.stringify(new ExactNumber('1.0'))).toBe('1')
})

test('readExactCallerJson keeps digits in bytes that are written again for a repeated member', () => {
  const bytes = Buffer.from('{"a":1,"a":2,"input":{"id":1234567890123456789}}')
  const json = readExactCallerJson(bytes, new Map([['input', 'text']]))

  expect(Buffer.from(json.bytes).toString()).toBe('{"a":2,"input":{"id":1234567890123456789}}')
})
