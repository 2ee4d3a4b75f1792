import { describe, expect, test } from 'vitest'
import { ListSplitter } from '../../src/tasks/batches/inline-requests.ts'
import { TOO_LONG } from '../../src/tasks/batches/lines.ts'

interface Split {
  readonly items: readonly string[]
  readonly rest: string
}

/** Splits a text that arrives in chunks of `pieceBytes` bytes. */
function split(text: string, pieceBytes: number, maxItemBytes = 1_000): Split {
  const splitter = new ListSplitter({ member: 'requests', maxItemBytes, maxRestBytes: 1_000 })
  const bytes = Buffer.from(text)
  const items: string[] = []
  for (let start = 0; start < bytes.byteLength; start += pieceBytes)
    for (const item of splitter.push(bytes.subarray(start, start + pieceBytes)))
      items.push(item === TOO_LONG ? 'too long' : Buffer.from(item).toString())
  return { items, rest: Buffer.from(splitter.rest()).toString() }
}

/** Returns the result of parsing the whole text, or `undefined` if it is not JSON. */
function parsed(text: string): { items: unknown; rest: unknown } | undefined {
  try {
    const value = JSON.parse(text) as Record<string, unknown>
    const items = value['requests']
    return Array.isArray(items) ? { items, rest: { ...value, requests: [] } } : { items: [], rest: value }
  } catch {
    return undefined
  }
}

function parsedParts({ items, rest }: Split): { items: unknown; rest: unknown } | undefined {
  try {
    return { items: items.map((item) => JSON.parse(item) as unknown), rest: JSON.parse(rest) as unknown }
  } catch {
    return undefined
  }
}

const TEXTS = [
  '{"requests":[{"a":1},{"b":[1,{"c":"]}"}]}],"webhook_url":"x"}',
  ' { "webhook_url" : "requests" , "requests" : [ {"a" : "\\"," } , 2 , "é[{" , null , [ ] ] } ',
  '{"a":{"requests":[1,2]},"requests":[]}',
  '{"requests":[ ]}',
  '{"requests":{"requests":[1]}}',
  '{"re\\u0071uests":[1,2]}',
  '{"requests":"[1,2]","b":[3]}',
  '{"b":["requests",[1]],"requests":["\\\\",{"requests":[1]}]}',
  '[{"requests":[1]}]',
  '"requests"',
  '{"é":1,"requests":[{"ü":"\\u00e9\\\\"}]}',
]

const BROKEN = [
  '{"requests":[1,]}',
  '{"requests":[,1]}',
  '{"requests":[1,2}',
  '{"requests":[{"a":1]}]}',
  '{"requests":[{"a":1}}]}',
  '{"requests":[1]]}',
  '{"requests":[1',
  '{"requests":["a]}',
  '{"requests":[1]}}',
  '{"requests" [1]}',
  '{"requests":[1] "a":2}',
  '{"requests":[1 2]}',
  '{"requests":[[}],1]}',
]

describe('a list that is split while it arrives', () => {
  test.each(TEXTS)('has the items and the rest of %s, however it is cut', (text) => {
    for (let pieceBytes = 1; pieceBytes <= Buffer.byteLength(text); pieceBytes++)
      expect(parsedParts(split(text, pieceBytes))).toEqual(parsed(text))
  })

  test.each(BROKEN)('leaves it to the parts to be no JSON: %s', (text) => {
    expect(parsed(text)).toBeUndefined()
    for (let pieceBytes = 1; pieceBytes <= Buffer.byteLength(text); pieceBytes++)
      expect([pieceBytes, parsedParts(split(text, pieceBytes))]).toEqual([pieceBytes, undefined])
  })

  test('is JSON exactly where its parts are, of texts with a byte changed, left out or added', () => {
    const strange = '{}[]",:\\ 1a'
    let broken = 0
    for (const text of TEXTS)
      for (let at = 0; at < text.length; at++)
        for (const byte of strange)
          for (const changed of [
            text.slice(0, at) + byte + text.slice(at + 1),
            text.slice(0, at) + text.slice(at + 1),
            text.slice(0, at) + byte + text.slice(at),
          ]) {
            let parts: Split
            try {
              parts = split(changed, 7)
            } catch (error) {
              expect(String(error)).toContain('is given twice')
              continue
            }
            if (parsed(changed) === undefined) broken++
            expect([changed, parsedParts(parts) !== undefined]).toEqual([changed, parsed(changed) !== undefined])
          }
    expect(broken).toBeGreaterThan(1_000)
  })

  test('gives up the bytes of an item that is too long, and goes on behind it', () => {
    const long = JSON.stringify('x'.repeat(50))

    expect(split(`{"requests":[1,${long},2]}`, 8, 20).items).toEqual(['1', 'too long', '2'])
  })

  test('rejects too much content outside of the list', () => {
    expect(() => split(JSON.stringify({ a: 'x'.repeat(1_000), requests: [] }), 64)).toThrow(
      'may have at most 1000 bytes',
    )
  })
})
