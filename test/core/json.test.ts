import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/core/errors.ts'
import { isJsonObject, MAX_JSON_DEPTH, parseCallerJson, parseVendorJson, readCallerJson } from '../../src/core/json.ts'

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
    ['20,000 open brackets', '['.repeat(20_000)],
  ])('does not parse with %s', (_name, text) => {
    expect(codeOf(text)).toBe('invalid_json')
  })

  test('may nest 64 levels and no more', () => {
    expect(codeOf(nested(MAX_JSON_DEPTH))).toBe('accepted')
    expect(codeOf(nested(MAX_JSON_DEPTH + 1))).toBe('json_too_deep')
    expect(codeOf(nested(100_000))).toBe('json_too_deep')
  })

  test.each(['{"__proto__":1}', '[{"a":[{"__proto__":null}]}]', '{"\\u005f\\u005fproto__":{}}'])(
    'holds no __proto__: %s',
    (text) => {
      expect(codeOf(text)).toBe('invalid_request')
    },
  )
})

describe('a text of very many values', () => {
  const BYTES = 2 * 1024 * 1024
  const filled = (open: string, item: string, close: string): string =>
    `${open}${`${item},`.repeat(BYTES / item.length)}${item}${close}`
  const messageOf = (text: string): string => {
    try {
      parseCallerJson(Buffer.from(text))
      return 'accepted'
    } catch (error) {
      return GatewayError.isInstance(error) && error.code === 'invalid_request' ? error.message : 'another error'
    }
  }

  test.each([
    ['empty lists', filled('[', '[]', ']')],
    ['empty objects', filled('{"a":[', '{}', ']}')],
    ['numbers', filled('[', '1', ']')],
    ['short texts', filled('[', '"a"', ']')],
    ['brackets that nothing closes', '['.repeat(BYTES)],
    ['numbers behind a text that ends in backslashes', `["${'\\\\'.repeat(100)}",${'0,'.repeat(500_000)}0]`],
  ])('is refused before it is parsed: %s', (_what, text) => {
    expect(messageOf(text)).toBe('The request body has more than 500,000 values.')
  })

  test.each([
    ['in one object', `{${Array.from({ length: 100_001 }, (_, index) => `"m${index}":0`).join()}}`],
    ['in many objects', filled('[', '{"a":0}', ']')],
    ['of one name', filled('{', '"a" :0', '}')],
  ])('is refused for its members: %s', (_what, text) => {
    expect(messageOf(text)).toBe('The request body has more than 50,000 members of objects.')
  })

  test.each([
    ['the tokens of the largest request for embeddings', `[${'100257,'.repeat(299_999)}0]`],
    ['a text full of signs', JSON.stringify('{"a":[1,2,3]},'.repeat(100_000))],
    ['a text full of quotes and backslashes', JSON.stringify('\\"\\\\",:{['.repeat(100_000))],
    ['a picture', JSON.stringify({ url: 'QUJD'.repeat(100_000) })],
    ['50,000 members', `[${'{"a":0},'.repeat(49_999)}{"a":0}]`],
    ['499,999 items of a list', `[${'0,'.repeat(499_998)}0]`],
  ])('is taken within the bounds: %s', (_what, text) => {
    expect(messageOf(text)).toBe('accepted')
  })

  test('is written again where a member stands twice, as a short one is', () => {
    const long = JSON.stringify('x"\\,'.repeat(50_000))
    const once = `{"a":${long},"b":${long}}`
    const twice = `{"a":1,"b" : ${long}, "\\u0061":${long}}`

    expect(Buffer.from(readCallerJson(Buffer.from(once)).bytes).toString()).toBe(once)
    expect(Buffer.from(readCallerJson(Buffer.from(twice)).bytes).toString()).toBe(`{"a":${long},"b":${long}}`)
  })
})

test("a vendor's broken JSON is undefined, not an exception", () => {
  expect(parseVendorJson('{"a":1}')).toEqual({ a: 1 })
  expect(parseVendorJson('<html>')).toBeUndefined()
})

test('an object is neither null nor a list', () => {
  expect([{}, null, [], 'x', 1].map(isJsonObject)).toEqual([true, false, false, false, false])
})

describe('a text in which a member stands twice is written again from its value', () => {
  const bytesOf = (text: string): string => Buffer.from(readCallerJson(Buffer.from(text)).bytes).toString('utf8')

  test.each([
    ['at the top', '{"n":10,"a":1,"n":1}', '{"n":1,"a":1}'],
    ['with the same value', '{"n" : 1,"n":1 }', '{"n":1}'],
    ['under an escaped name', '{"\\u006e":10,"n":1}', '{"n":1}'],
    ['deep inside', '[{"list":[{"url":"a","url":"b"}]}]', '[{"list":[{"url":"b"}]}]'],
    ['with objects that are lost', '{"a":{"x":1,"y":2},"a":{}}', '{"a":{}}'],
    ['where blanks stand before the colon', '{"n"\n\t :10,"n":1}', '{"n":1}'],
    ['beside a text that looks like a name', '{"a":":","b":"\\":","b":"\\\\"}', '{"a":":","b":"\\\\"}'],
  ])('%s', (_where, text, written) => {
    expect(bytesOf(text)).toBe(written)
  })

  test.each([
    ['the same name in several objects', '{ "a":{"n":1} ,"b":{"n":1},"n":[{"n":2}] }'],
    ['names inside texts', '{"a":"\\"n\\":1,\\"n\\":2","b":"n\\\\","n":": \\\\\\": "}'],
    ['texts that begin with a colon, or are empty', '{"":":","a":"","b":[":",""]}'],
    ['no object', '"n"'],
  ])('%s is no reason: the bytes stay as they came', (_what, text) => {
    expect(bytesOf(text)).toBe(text)
  })

  test('whatever JSON it is, exactly when a name is repeated', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.string({ unit: 'binary' }), (value, name) => {
        fc.pre(name !== '__proto__' && !JSON.stringify(value).includes('__proto__'))
        const once = JSON.stringify({ [name]: value }, null, 1)
        expect(bytesOf(once)).toBe(once)
        const twice = `{${JSON.stringify(name)}:${JSON.stringify(value)}, ${JSON.stringify(name)} :${JSON.stringify(value)}}`
        expect(bytesOf(twice)).toBe(JSON.stringify({ [name]: value }))
      }),
    )
  })
})
