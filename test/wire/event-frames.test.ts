import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { eventFrame } from '../../src/testing/sandbox/amazon-bedrock/amazon-bedrock.ts'
import { EventFrameError, EventFrameReader } from '../../src/vendors/amazon-bedrock/converse-answer.ts'

/** Returns the frames from reads of these bytes as a list of strings. */
function framesOf(chunks: readonly Uint8Array[]): { frames: string[]; reader: EventFrameReader } {
  const frames: string[] = []
  const reader = new EventFrameReader(({ messageType, name, errorMessage, payload }) =>
    frames.push([messageType, name, errorMessage, payload.toString()].join('|')),
  )
  for (const chunk of chunks) reader.push(chunk)
  return { frames, reader }
}

const event = (text: string): Buffer =>
  eventFrame({ ':event-type': 'delta', ':content-type': 'application/json', ':message-type': 'event' }, text)

describe('frames', () => {
  test('are those of the published examples', () => {
    // AWS's test vectors of the encoding: no headers and no payload, and one with a header of a 32-bit number.
    const empty = Buffer.from('000000100000000005c248eb7d98c8ff', 'hex')
    const payloadOnly = Buffer.from('0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936', 'hex')
    const withNumber = Buffer.from(
      '0000002d0000001041c424b80a6576656e742d74797065040000a00c7b27666f6f273a27626172277d36f480a0',
      'hex',
    )

    expect(framesOf([empty, payloadOnly, withNumber]).frames).toEqual(['|||', `|||{'foo':'bar'}`, `|||{'foo':'bar'}`])
  })

  test('are the same however the network cuts them', () => {
    const texts = fc.array(fc.string({ unit: 'grapheme', maxLength: 300 }), { minLength: 1, maxLength: 8 })
    const property = fc.property(texts, fc.array(fc.nat({ max: 2_000 }), { maxLength: 40 }), (payloads, cuts) => {
      const bytes = Buffer.concat(payloads.map(event))
      const places = [0, ...cuts.map((cut) => cut % bytes.length).sort((one, other) => one - other), bytes.length]
      const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end))
      const expected = payloads.map((text) => `event|delta||${text}`)

      expect(framesOf(chunks).frames).toEqual(expected)
      expect(framesOf(Array.from(bytes, (byte) => Uint8Array.of(byte))).frames).toEqual(expected)
    })
    fc.assert(property, { numRuns: 60 })
  })

  test('end between two frames, or were cut', () => {
    const bytes = Buffer.concat([event('one'), event('two')])
    for (let length = 0; length <= bytes.length; length++) {
      const isBoundary = length === 0 || length === bytes.length / 2 || length === bytes.length
      expect(framesOf([bytes.subarray(0, length)]).reader.isBetweenFrames, `${length}`).toBe(isBoundary)
    }
  })

  test('carry exceptions and errors', () => {
    const bytes = Buffer.concat([
      eventFrame({ ':message-type': 'exception', ':exception-type': 'throttlingException' }, '{"message":"x"}'),
      eventFrame({ ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'größer' }, ''),
    ])

    expect(framesOf([bytes]).frames).toEqual([
      'exception|throttlingException||{"message":"x"}',
      'error|InternalError|größer|',
    ])
  })

  test('are rejected with a flipped bit, wherever it is', () => {
    const bytes = event('{"text":"hello"}')
    for (let place = 0; place < bytes.length * 8; place++) {
      const broken = Buffer.from(bytes)
      broken[place >> 3]! ^= 1 << (place & 7)
      // A length that is wrong is not believed: more bytes change nothing.
      expect(() => framesOf([broken, bytes]), `bit ${place}`).toThrow(EventFrameError)
    }
  })

  test('are rejected with impossible lengths before anything is stored for them', () => {
    const prelude = (total: number, headers: number): Buffer => {
      const bytes = Buffer.alloc(12)
      bytes.writeUInt32BE(total, 0)
      bytes.writeUInt32BE(headers, 4)
      bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
      return bytes
    }
    for (const [total, headers] of [
      [15, 0],
      [16, 1],
      [0xff_ff_ff_ff, 0],
      [26_000_000, 200_000],
    ] as const)
      expect(() => framesOf([prelude(total, headers)])).toThrow(/cannot be read/)
    expect(framesOf([prelude(24 * 1024 * 1024, 0)]).reader.isBetweenFrames).toBe(false)
  })

  test('are rejected if their headers exceed their end', () => {
    const frame = (header: Buffer): Buffer => {
      const bytes = Buffer.concat([Buffer.alloc(12), header, Buffer.alloc(4)])
      bytes.writeUInt32BE(bytes.length, 0)
      bytes.writeUInt32BE(header.length, 4)
      bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
      bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4)
      return bytes
    }
    for (const header of [[1, 97, 7, 0, 9, 1], [9], [1, 97, 10], [1, 97, 7], [1, 97, 7, 0], [1, 97, 5, 0, 0]])
      expect(() => framesOf([frame(Buffer.from(header))]), `${header}`).toThrow(EventFrameError)
    // Every type of value is skipped.
    const all = [
      [0],
      [1],
      [2, 9],
      [3, 9, 9],
      [4, 0, 0, 0, 1],
      [5, ...Buffer.alloc(8)],
      [6, 0, 1, 9],
      [8, ...Buffer.alloc(8)],
      [9, ...Buffer.alloc(16)],
    ]
    const headers = Buffer.concat(all.map((value) => Buffer.from([1, 97, ...value])))
    expect(framesOf([frame(headers)]).frames).toEqual(['|||'])
  })
})
