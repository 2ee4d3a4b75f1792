import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { base64Chunks } from '../../src/wire/base64.ts'

test('chunks of any lengths become the base64 of all of them', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 8 }), (chunks) => {
      expect(Buffer.concat(base64Chunks(chunks)).toString()).toBe(Buffer.concat(chunks).toString('base64'))
    }),
  )
})

test('no piece is larger than 64 KiB', () => {
  const pieces = base64Chunks([Buffer.alloc(1), Buffer.alloc(300_001, 7), Buffer.alloc(2, 9)])

  expect(Math.max(...pieces.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(64 * 1024)
})
