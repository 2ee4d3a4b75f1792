import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/core/errors.ts'
import { isJsonObject, MAX_JSON_DEPTH, parseCallerJson, parseVendorJson } from '../../src/core/json.ts'

function codeOf(text: string | Uint8Array): string {
  try {
    parseCallerJson(typeof text === 'string' ? Buffer.from(text) : text)
    return 'accepted'
  } catch (error) {
    return GatewayError.isInstance(error) ? error.code : 'another error'
  }
}

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`

describe("a caller's JSON", () => {
  test('comes back as it was', () => {
    const value = { text: 'Grüße 東京 🚀', list: [1, null, true], nested: { constructor: 1 } }

    expect(parseCallerJson(Buffer.from(JSON.stringify(value)))).toEqual(value)
  })

  test.each([
    ['nothing', ''],
    ['a byte that is no UTF-8', Uint8Array.from([0x22, 0xff, 0x22])],
    ['half a character', Uint8Array.from([0x22, 0xe6, 0x9d, 0x22])],
    ['a surrogate in UTF-8', Uint8Array.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['a comment', '{} // no'],
    ['NaN', 'NaN'],
    ['20,000 open brackets (S37)', '['.repeat(20_000)],
  ])('with %s does not parse', (_name, text) => {
    expect(codeOf(text)).toBe('invalid_json')
  })

  test('S37 may nest 64 levels and no more', () => {
    expect(codeOf(nested(MAX_JSON_DEPTH))).toBe('accepted')
    expect(codeOf(nested(MAX_JSON_DEPTH + 1))).toBe('json_too_deep')
    expect(codeOf(nested(100_000))).toBe('json_too_deep')
  })

  test.each(['{"__proto__":1}', '[{"a":[{"__proto__":null}]}]', '{"\\u005f\\u005fproto__":{}}'])(
    'S38 holds no __proto__: %s',
    (text) => {
      expect(codeOf(text)).toBe('invalid_request')
    },
  )
})

test("a vendor's broken JSON is undefined, not an exception", () => {
  expect(parseVendorJson('{"a":1}')).toEqual({ a: 1 })
  expect(parseVendorJson('<html>')).toBeUndefined()
})

test('an object is neither null nor a list', () => {
  expect([{}, null, [], 'x', 1].map(isJsonObject)).toEqual([true, false, false, false, false])
})
