import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findTopLevelString, replaceTopLevelString } from '../../../src/vendors/shared/json-bytes.ts'

function found(text: string, name = 'model'): string | undefined {
  const bytes = Buffer.from(text)
  const span = findTopLevelString(bytes, name)
  return span && bytes.toString('utf8', span.start, span.end)
}

describe('findTopLevelString', () => {
  for (const [description, text, expected] of [
    ['at the beginning', '{"model":"a","x":1}', '"a"'],
    [
      'behind nested members of the same name',
      '{"metadata":{"model":"no"},"tools":[{"model":"no"}],"model":"a"}',
      '"a"',
    ],
    ['with blanks around it', ' {\n "x" : 1 ,\t"model" : "a" }', '"a"'],
    ['behind text that looks like it', '{"x":"\\"model\\":\\"no\\"","y":"\\\\","model":"a"}', '"a"'],
    ['behind a long string of escapes', `{"x":"${'\\\\\\"'.repeat(100)}","model":"a"}`, '"a"'],
    ['behind one escaped quote in a long string', `{"x":"${'a'.repeat(200)}\\",","model":"a"}`, '"a"'],
    ['behind a long string that ends in a backslash', `{"x":"${'a'.repeat(200)}\\\\","model":"a"}`, '"a"'],
    ['with escapes in its value', '{"model":"a\\"b"}', '"a\\"b"'],
  ] as const) {
    it(`finds the member ${description}`, () => {
      expect(found(text)).toBe(expected)
    })
  }

  for (const [description, text] of [
    ['is missing', '{"x":{"model":"no"}}'],
    ['is no string', '{"model":7}'],
    ['is a string value and no name', '{"x":"model"}'],
    ['stands in an array', '["model","a"]'],
    ['stands behind a byte order mark', '\uFEFF{"model":"a"}'],
    ['is torn', '{"model":"a'],
  ] as const) {
    it(`gives nothing when the member ${description}`, () => {
      expect(found(text)).toBeUndefined()
    })
  }

  it('agrees with a parser on any object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.boolean(), (members, model, isSpaced) => {
        const text = JSON.stringify({ ...members, model, after: { model: 'no' } }, null, isSpaced ? 2 : 0)

        const replaced = replaceTopLevelString(Buffer.from(text), 'model', model, 'new "id"')

        expect(JSON.parse(replaced?.toString('utf8') ?? '')).toEqual({ ...JSON.parse(text), model: 'new "id"' })
      }),
    )
  })
})

describe('replaceTopLevelString', () => {
  it('gives the very same bytes when nothing changes', () => {
    const bytes = Buffer.from('{"model":"a"}')

    expect(replaceTopLevelString(bytes, 'model', 'a', 'a')).toBe(bytes)
  })

  it('refuses when the name stands there twice with different values', () => {
    expect(replaceTopLevelString(Buffer.from('{"model":"a","model":"b"}'), 'model', 'b', 'c')).toBeUndefined()
  })
})
