import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memberText, outlineMembers } from '../../../src/vendors/shared/member-outline.ts'
import { editMembers } from '../../../src/vendors/shared/openai-images-member-edits.ts'

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

        expect(members.map((member) => [member.name, JSON.parse(memberText(chunks, member)) as unknown])).toEqual(
          Object.entries(value),
        )
        for (const { name: key, items } of members) {
          const list = value[key]
          const count = Array.isArray(list) ? list.filter(isObject).length : undefined
          expect(items).toBe(count)
        }
      }),
    )
  })

  it('never throws, and takes nothing for an object that is none', () => {
    fc.assert(fc.property(fc.string(), (text) => void outlineMembers([Buffer.from(text)])))
    for (const text of ['', ' ', '1', '"{}"', '[{}]', '{', '{"a":1', '{"a":"', '{}x', 'x{}'])
      expect(outlineMembers([Buffer.from(text)])).toBeUndefined()
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

        const edited = editMembers(Buffer.from(text), new Map(json))

        const expected: Record<string, unknown> = { ...value, ...wanted }
        for (const key of Object.keys(expected)) if (expected[key] === undefined) delete expected[key]
        expect(JSON.parse(edited?.toString() ?? 'null')).toEqual(expected)
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

    expect(editMembers(Buffer.from('{ "a" : 1 , "b" : 2 , "c" : 3 }'), changes)?.toString()).toBe(expected)
  })

  it('are left to a full reading where a name is escaped or stands twice', () => {
    const changes = new Map([['n', '2']])

    expect(editMembers(Buffer.from('{"n":1,"n":3}'), changes)).toBeUndefined()
    expect(editMembers(Buffer.from('{"n":1,"\\u006e":3}'), changes)).toBeUndefined()
    expect(editMembers(Buffer.from('{"m":1,"m":3}'), changes)?.toString()).toBe('{"n":2,"m":1,"m":3}')
  })
})

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
