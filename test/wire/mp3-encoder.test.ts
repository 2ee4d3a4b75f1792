import { describe, expect, test } from 'vitest'
import { mp3Encoder } from '../../src/wire/audio/encoders.ts'
import { mp3Frames } from './mp3-frames.ts'

const RATE = 24_000

function tone(seconds: number, hertz = 440): Buffer {
  const samples = Buffer.alloc(seconds * RATE * 2)
  for (let index = 0; index < samples.length / 2; index++)
    samples.writeInt16LE(Math.round(9_000 * Math.sin((2 * Math.PI * hertz * index) / RATE)), index * 2)
  return samples
}

async function encoded(samples: Buffer, step: number): Promise<Buffer> {
  const encoder = await mp3Encoder(RATE)
  const file: Uint8Array[] = []
  for (let start = 0; start < samples.length; start += step)
    file.push(...encoder.encode(samples.subarray(start, start + step)))
  return Buffer.concat([...file, ...encoder.finish()])
}

describe('an MP3 file', () => {
  test('has whole frames of one size, and is as long as its sound but for the delay of the encoder', async () => {
    const { seconds, ...format } = mp3Frames(await encoded(tone(3), 4800))

    expect(format).toMatchObject({ sampleRate: RATE, kilobits: 64, channels: 1 })
    expect(seconds).toBeGreaterThanOrEqual(3)
    expect(seconds).toBeLessThan(3.1)
  })

  test('is the same however its sound is cut into pieces', async () => {
    const sound = tone(1)
    const file = await encoded(sound, sound.length)

    expect((await encoded(sound, 4800)).equals(file)).toBe(true)
    expect((await encoded(sound, 2)).equals(file)).toBe(true)
  })

  test('is not changed by a file that was made with the same encoder before', async () => {
    const file = await encoded(tone(1, 300), 4800)
    await encoded(tone(2, 900), 4800)

    expect((await encoded(tone(1, 300), 4800)).equals(file)).toBe(true)
  })

  test('is not changed by one that is made at the same time, nor by one that was given up', async () => {
    const file = await encoded(tone(1, 300), 4800)
    const givenUp = await mp3Encoder(RATE)
    givenUp.encode(tone(1, 700))
    const [one, other] = [await mp3Encoder(RATE), await mp3Encoder(RATE)]
    const pieces: Uint8Array[] = []
    for (let start = 0; start < RATE * 2; start += 4800) {
      pieces.push(...one.encode(tone(1, 300).subarray(start, start + 4800)))
      other.encode(tone(1, 900).subarray(start, start + 4800))
    }

    expect(Buffer.concat([...pieces, ...one.finish()]).equals(file)).toBe(true)
  })

  test('is the same for samples whose bytes begin at an odd position', async () => {
    const sound = tone(1)
    const shifted = Buffer.concat([Buffer.of(0), sound]).subarray(1)

    expect((await encoded(shifted, shifted.length)).equals(await encoded(sound, sound.length))).toBe(true)
  })

  test('cannot go on once it is finished, so that its encoder can serve another', async () => {
    const encoder = await mp3Encoder(RATE)
    encoder.encode(tone(1))
    encoder.finish()

    expect(() => encoder.encode(tone(1))).toThrow('finished')
    expect(encoder.finish()).toEqual([])
  })
})
