import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JsonCursor, textBetween } from '../../src/wire/json-cursor.ts'
import { findMembers, findString, outlineMembers } from '../../src/wire/json-edits.ts'

function found(text: string, name = 'model'): string | undefined {
  const bytes = Buffer.from(text)
  const span = findString(bytes, [name])
  return span && bytes.toString('utf8', span.start, span.end)
}

describe('findString', () => {
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

  it('goes down a path, to the first of each name', () => {
    const bytes = Buffer.from('event {"a":{"x":"no"},"message":{"y":{"model":"no"},"model":"a","model":"b"}} end')
    const span = findString(bytes, ['message', 'model'], 6, bytes.length - 4)

    expect(span && bytes.toString('utf8', span.start, span.end)).toBe('"a"')
    expect(findString(bytes, ['message', 'y'], 6)).toBeUndefined()
    expect(findString(bytes, ['model', 'message'], 6)).toBeUndefined()
  })
})

function membersFound(text: string): { input: string | undefined; parameters: string | undefined } {
  const bytes = Buffer.from(text)
  const { input, parameters } = findMembers(bytes, ['input', 'parameters'])
  return {
    input: input && bytes.toString('utf8', input.start, input.end),
    parameters: parameters && bytes.toString('utf8', parameters.start, parameters.end),
  }
}

describe('the spans of members', () => {
  it.each([
    ['{"input":{},"parameters":{}}', '{}', '{}'],
    [
      ' {\n "parameters" : { "a" : [ 1 , "}" ] } ,\t"model" : "m" , "input" :{"b":"\\"{"}}',
      '{"b":"\\"{"}',
      '{ "a" : [ 1 , "}" ] }',
    ],
    ['{"model":1.50,"input":-1e3}', '-1e3', undefined],
    ['{"input":null,"parameters":true }', 'null', 'true'],
    ['{"other":{"input":1,"parameters":2},"x":["input"]}', undefined, undefined],
    ['{"x":"input","input":"parameters"}', '"parameters"', undefined],
    ['{"inpu\\u0074":{},"parameters":{}}', undefined, '{}'],
    ['{}', undefined, undefined],
    ['[{"input":1}]', undefined, undefined],
    ['', undefined, undefined],
    ['{"input":', undefined, undefined],
    ['{"input":"x', undefined, undefined],
    ['{"input":{"a":1', undefined, undefined],
    ['{"input"', undefined, undefined],
    ['{"input', undefined, undefined],
  ])('finds the spans in %s: %s and %s', (text, input, parameters) => {
    expect(membersFound(text)).toEqual({ input, parameters })
  })

  it('contain the values that a reader finds, whatever surrounds them', () => {
    const names = fc.constantFrom('input', 'parameters', 'model', 'user', 'inputs', 'é')
    fc.assert(
      fc.property(fc.dictionary(names, fc.jsonValue()), fc.constantFrom(undefined, 1, '\t'), (body, indent) => {
        const { input, parameters } = membersFound(JSON.stringify(body, undefined, indent))

        if (input !== undefined) expect(JSON.parse(input)).toEqual(JSON.parse(JSON.stringify(body['input'])))
        expect(input === undefined).toBe(!Object.hasOwn(body, 'input'))
        expect(parameters === undefined).toBe(!Object.hasOwn(body, 'parameters'))
        if (parameters !== undefined)
          expect(JSON.parse(parameters)).toEqual(JSON.parse(JSON.stringify(body['parameters'])))
      }),
      { numRuns: 1_000 },
    )
  })
})

const name = fc.constantFrom('model', 'data', 'usage', 'a b', '')
// Read once, so that what JSON does not keep (minus zero) is gone.
const object = fc
  .dictionary(name, fc.jsonValue({ maxDepth: 3 }))
  .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>)

describe('the outline of a JSON object', () => {
  it('finds every member of any object, however it is written and cut', () => {
    fc.assert(
      fc.property(object, fc.constantFrom(0, 1, '\t'), fc.integer({ min: 1, max: 9 }), (value, indent, size) => {
        const bytes = Buffer.from(` ${JSON.stringify(value, null, indent)}\n`)
        const chunks: Buffer[] = []
        for (let start = 0; start < bytes.length; start += size) chunks.push(bytes.subarray(start, start + size))

        const members = outlineMembers(chunks) ?? []

        expect(
          members.map((member) => [
            member.name,
            JSON.parse(textBetween(chunks, member.valueStart, member.end)) as unknown,
          ]),
        ).toEqual(Object.entries(value))
        for (const { name: key, items } of members) {
          const list = value[key]
          const count = Array.isArray(list) ? list.filter(isObject).length : undefined
          expect(items).toBe(count)
        }
      }),
    )
  })

  it('never throws, and accepts only objects as an object', () => {
    fc.assert(fc.property(fc.string(), (text) => void outlineMembers([Buffer.from(text)])))
    for (const text of ['', ' ', '1', '"{}"', '[{}]', '{', '{"a":1', '{"a":"', '{}x', 'x{}'])
      expect(outlineMembers([Buffer.from(text)])).toBeUndefined()
  })
})

describe('JsonCursor', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '"', '\\', '{', ']', ',', ':', '\n', 'é', '👋') })
  const value = fc.jsonValue({ maxDepth: 3, stringUnit: fc.constantFrom('a', '"', '\\', '}', '[', 'é', '👋') })

  it('walks over any list as a parser reads it, wherever the chunks are cut', () => {
    fc.assert(
      fc.property(fc.array(value), fc.constantFrom(0, 1, '\t'), fc.array(fc.nat(99)), (list, indent, cuts) => {
        const bytes = Buffer.from(JSON.stringify(list, null, indent))
        const cursor = new JsonCursor(cutAt(bytes, cuts))
        const items: unknown[] = []

        expect(cursor.enter(0x5b)).toBe(true)
        while (!cursor.enter(0x5d)) {
          cursor.enter(0x2c)
          cursor.peek()
          const start = cursor.position
          expect(cursor.skipValue()).toBe(true)
          items.push(JSON.parse(bytes.toString('utf8', start, cursor.position)))
        }

        expect(items).toEqual(JSON.parse(bytes.toString()))
        expect([cursor.peek(), cursor.position, cursor.isBroken]).toEqual([-1, bytes.length, false])
      }),
      { numRuns: 500 },
    )
  })

  it('finds any member of an object inside an object, wherever the chunks are cut', () => {
    fc.assert(
      fc.property(fc.dictionary(text, value), text, fc.array(fc.nat(99)), (members, name, cuts) => {
        const outer = { first: 0, inner: { ...members, [name]: { last: members } }, after: { inner: 1 } }
        const bytes = Buffer.from(JSON.stringify(outer))
        const chunks = cutAt(bytes, cuts)
        const cursor = new JsonCursor(chunks)
        const found: [string, unknown][] = []

        expect(cursor.seek('inner') && cursor.enter(0x7b)).toBe(true)
        while (cursor.nextMember()) {
          const written = Buffer.from(cursor.name, 'latin1').toString('utf8')
          const { valueStart } = cursor
          expect(cursor.skipValue()).toBe(true)
          found.push([JSON.parse(`"${written}"`), JSON.parse(textBetween(chunks, valueStart, cursor.position))])
        }

        expect(cursor.isBroken).toBe(false)
        expect(found).toEqual(Object.entries(JSON.parse(bytes.toString()).inner))
      }),
      { numRuns: 500 },
    )
  })

  it('never runs past the end of anything, and says when it is cut', () => {
    fc.assert(
      fc.property(
        fc.dictionary(text, value, { minKeys: 1 }),
        fc.nat(99),
        fc.array(fc.nat(99)),
        (members, cut, cuts) => {
          const bytes = Buffer.from(JSON.stringify(members))
          const torn = bytes.subarray(0, Math.min(cut, bytes.length - 1))

          expect(outlineMembers(cutAt(torn, cuts))).toBeUndefined()
        },
      ),
    )
  })
})

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end))
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
