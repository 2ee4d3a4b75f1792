import { describe, expect, test } from 'vitest'
import { soundStart, WAV_HEADER_BYTES, WavEncoder, wavHeader } from '../../src/wire/audio/encoders.ts'
import { wavFile } from './wav-file.ts'

test('a header is that of 16-bit mono sound whose length is open', () => {
  const { samples, ...format } = wavFile(wavHeader(24_000))

  expect(samples).toHaveLength(0)
  expect(format).toEqual({ channels: 1, sampleRate: 24_000, bits: 16, claimedBytes: 0x7ffff000 })
  expect(Buffer.from(wavHeader(24_000)).readUInt32LE(4)).toBe(0x7ffff000 + 36)
})

test('a file has its header before the first samples only', () => {
  const encoder = new WavEncoder(24_000)
  const [one, two] = [Buffer.of(1, 2), Buffer.of(3, 4)]
  const pieces = [...encoder.encode(one), ...encoder.encode(two), ...encoder.finish()]

  expect(pieces.map(({ length }) => length)).toEqual([WAV_HEADER_BYTES, 2, 2])
  expect(pieces[1]).toBe(one)
})

describe('the samples begin', () => {
  const samples = Buffer.from('samples.')

  test('after a header, however many chunks it has', () => {
    const plain = Buffer.concat([wavHeader(24_000), samples])
    const list = Buffer.concat([Buffer.from('LIST'), Buffer.of(3, 0, 0, 0), Buffer.from('abc\0')])
    const longer = Buffer.concat([plain.subarray(0, 36), list, plain.subarray(36)])

    expect(plain.subarray(soundStart(plain)).equals(samples)).toBe(true)
    expect(longer.subarray(soundStart(longer)).equals(samples)).toBe(true)
  })

  test('immediately if there is no header', () => {
    expect(soundStart(samples)).toBe(0)
    expect(soundStart(Buffer.from('RIFF but no more'))).toBe(0)
    expect(soundStart(Buffer.alloc(0))).toBe(0)
  })

  test('nowhere in a header without samples', () => {
    expect(soundStart(Buffer.from(wavHeader(24_000)).subarray(0, 36))).toBe(36)
  })
})
