import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteEdits, editMembers, replaceString } from '../../src/wire/json-edits.ts'

const name = fc.constantFrom('model', 'data', 'usage', 'a b', '')
// Read once, so that what JSON does not keep (minus zero) is gone.
const object = fc
  .dictionary(name, fc.jsonValue({ maxDepth: 3 }))
  .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>)

describe('ByteEdits', () => {
  it('makes the same of its edits in one piece and in many', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40 }),
        fc.array(fc.tuple(fc.nat(40), fc.option(fc.string(), { nil: undefined })), { maxLength: 6 }),
        (given, wanted) => {
          const bytes = Buffer.from(given)
          const places = wanted.map(([place]) => place % (bytes.length + 1)).sort((a, b) => a - b)
          const edits = new ByteEdits()
          let expected = ''
          let read = 0
          for (const [index, start] of places.entries()) {
            const end = places[index + 1] === undefined ? bytes.length : Math.min(start + 2, places[index + 1]!)
            const text = wanted[index]?.[1]
            edits.replace(start, end, text === undefined ? undefined : Buffer.from(text))
            expected += bytes.toString('latin1', read, start) + Buffer.from(text ?? '').toString('latin1')
            read = end
          }
          expected += bytes.toString('latin1', read)

          expect(Buffer.concat(edits.pieces(bytes)).toString('latin1')).toBe(expected)
          expect(edits.apply(bytes).toString('latin1')).toBe(expected)
          expect(edits.apply(bytes)).toBe(bytes)
        },
      ),
    )
  })
})

describe('replaceString', () => {
  it('agrees with a parser on any object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.boolean(), (members, model, isSpaced) => {
        const text = JSON.stringify({ ...members, model, after: { model: 'no' } }, null, isSpaced ? 2 : 0)

        const replaced = replaceString(Buffer.from(text), 'model', model, 'new "id"')

        expect(JSON.parse(replaced?.toString('utf8') ?? '')).toEqual({ ...JSON.parse(text), model: 'new "id"' })
      }),
    )
  })

  it('gives the very same bytes when nothing changes', () => {
    const bytes = Buffer.from('{"model":"a"}')

    expect(replaceString(bytes, 'model', 'a', 'a')).toBe(bytes)
  })

  it('rejects a name that occurs twice with different values', () => {
    expect(replaceString(Buffer.from('{"model":"a","model":"b"}'), 'model', 'b', 'c')).toBeUndefined()
  })
})

describe('members changed in place', () => {
  it('are the only ones that differ, for any object and any changes', () => {
    const change = fc.option(fc.string(), { nil: undefined })
    fc.assert(
      fc.property(object, fc.dictionary(name, change), fc.constantFrom(0, 2), (value, wanted, indent) => {
        const text = JSON.stringify(value, null, indent)
        const json = Object.entries(wanted).map(
          ([key, to]) => [key, to === undefined ? to : JSON.stringify(to)] as const,
        )

        const edited = changed(text, new Map(json))

        const expected: Record<string, unknown> = { ...value, ...wanted }
        for (const key of Object.keys(expected)) if (expected[key] === undefined) delete expected[key]
        expect(JSON.parse(edited ?? 'null')).toEqual(expected)
      }),
    )
  })

  it.each([
    ['the first two', ['a', 'b'], '{ "c" : 3 }'],
    ['the last two', ['b', 'c'], '{ "a" : 1 }'],
    ['the one between', ['b'], '{ "a" : 1 , "c" : 3 }'],
    ['the outer two', ['a', 'c'], '{ "b" : 2 }'],
    ['all', ['a', 'b', 'c'], '{  }'],
  ])('go with one comma each: %s', (_, names, expected) => {
    const changes = new Map(names.map((key) => [key, undefined]))

    expect(changed('{ "a" : 1 , "b" : 2 , "c" : 3 }', changes)).toBe(expected)
  })

  it('are left to a full reading where a name is escaped or stands twice', () => {
    const changes = new Map([['n', '2']])

    expect(changed('{"n":1,"n":3}', changes)).toBeUndefined()
    expect(changed('{"n":1,"\\u006e":3}', changes)).toBeUndefined()
    expect(changed('{"m":1,"m":3}', changes)).toBe('{"n":2,"m":1,"m":3}')
  })
})

function changed(text: string, changes: ReadonlyMap<string, string | undefined>): string | undefined {
  const bytes = Buffer.from(text)
  return editMembers(bytes, changes)?.apply(bytes).toString()
}
