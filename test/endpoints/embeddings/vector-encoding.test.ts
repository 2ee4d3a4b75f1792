import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeVector,
  encodeVector,
  shapeVector,
  truncateVector,
} from '../../../src/endpoints/embeddings/embeddings-endpoint.ts'

const floats = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 50 })

test('base64 is that of little-endian 32-bit floats', () => {
  expect(encodeVector([1, -2])).toBe(Buffer.from([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]).toString('base64'))
})

test('what is encoded is decoded to the same numbers', () => {
  fc.assert(
    fc.property(floats, (numbers) => {
      expect(decodeVector(encodeVector(numbers))).toEqual(numbers)
    }),
  )
})

test.each(['', 'AAA=', 'AAAAAAA='])('rejects %j as a vector', (base64) => {
  expect(() => decodeVector(base64)).toThrow(expect.objectContaining({ code: 'upstream_invalid_response' }))
})

describe('cutting', () => {
  test('gives length 1 again', () => {
    expect(truncateVector([3, 4, 12], 2)).toEqual([0.6, 0.8])
  })

  test('leaves zeros as they are', () => {
    expect(truncateVector([0, 0, 1], 2)).toEqual([0, 0])
  })
})

describe('shaping', () => {
  const numbers = [3, 4, 12]
  const base64 = encodeVector(numbers)

  test.each([
    ['numbers as numbers', numbers, undefined, 'float', numbers],
    ['numbers as base64', numbers, undefined, 'base64', base64],
    ['base64 as numbers', base64, undefined, 'float', numbers],
    ['base64 as base64', base64, undefined, 'base64', base64],
    ['a shorter vector', base64, 2, 'float', [0.6, 0.8]],
    ['a shorter vector in base64', numbers, 2, 'base64', encodeVector([0.6, 0.8])],
    ['a vector that is short enough', numbers, 3, 'float', numbers],
  ] as const)('gives %s', (_name, vector, dimensions, encoding, shaped) => {
    expect(shapeVector(vector, { dimensions, encoding, isFixed: false })).toEqual(shaped)
  })
})
