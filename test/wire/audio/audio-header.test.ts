import { Buffer } from 'node:buffer'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AudioHeader, audioHeader } from '../../../src/wire/audio/audio-header.ts'
import { type ByteSource, ChunkedBytes } from '../../../src/wire/audio/container-headers.ts'
import { flacFile, fragmentedMp4File, mp3File, mp4File, opusFile, wavFile, webmFile, withId3 } from './written-files.ts'

const folder = join(import.meta.dirname, 'files')
const read = (file: Buffer): AudioHeader | undefined => audioHeader(new ChunkedBytes([file]))
const FRAME_SECONDS = 1152 / 44_100

/** Name, the file, and its seconds: true files of encoders say theirs in their names, in tenths. */
const FILES: readonly (readonly [name: string, file: Buffer, seconds: number])[] = [
  ...readdirSync(folder).map((name): [string, Buffer, number] => [
    name,
    readFileSync(join(folder, name)),
    Number(/-(\d+)\.\w+$/.exec(name)?.[1]) / 10,
  ]),
  ['MP4 with its movie first', mp4File({ seconds: 12.3 }), 12.3],
  ['MP4 with its movie last', mp4File({ seconds: 12.3, movieLast: true }), 12.3],
  ['MP4 with times of 64 bits', mp4File({ seconds: 77.7, version: 1, movieLast: true }), 77.7],
  ['MP4 with a length of 64 bits', mp4File({ seconds: 9.1, isLarge: true, movieLast: true }), 9.1],
  ['MP4 with a longer picture track', mp4File({ seconds: 5.5, videoSeconds: 8 }), 5.5],
  ['MP4 with the length of the movie alone', mp4File({ seconds: 6.4, hasTracks: false }), 6.4],
  ['MP4 in fragments whose samples tell their lengths', fragmentedMp4File(7.5, true), 7.5],
  ['MP4 in fragments of equal samples', fragmentedMp4File(8.25, false), 8.25],
  ['WebM with a duration', webmFile({ seconds: 11.1, duration: 8 }), 11.1],
  ['WebM with a short duration', webmFile({ seconds: 11.1, duration: 4 }), 11.1],
  ['WebM without a duration', webmFile({ seconds: 13.2 }), 13.2],
  ['WebM as browsers record it', webmFile({ seconds: 21.6, isLive: true }), 21.6],
  ['WebM in groups of blocks', webmFile({ seconds: 6.6, inGroups: true, isLive: true }), 6.6],
  ['WebM with a coarse scale', webmFile({ seconds: 9, scale: 10_000_000 }), 9],
  ['Ogg with Opus', opusFile(14.7), 14.7],
  ['Ogg with Opus and a foreign stream behind it', opusFile(3.2, 'foreign'), 3.2],
  ['Ogg with Opus and a page on which nothing ends', opusFile(3.2, 'unfinished'), 3.2],
  ['MP3 with a Xing count', mp3File(100, { kind: 'Xing', frames: 100 }), 100 * FRAME_SECONDS],
  ['MP3 with a VBRI count', mp3File(80, { kind: 'VBRI', frames: 80 }), 80 * FRAME_SECONDS],
  ['MP3 without a count', mp3File(240), 240 * FRAME_SECONDS],
  ['MP3 behind a cover', withId3(mp3File(120), 90_000), 120 * FRAME_SECONDS],
  ['MP3 behind two tags', withId3(withId3(mp3File(120), 300), 70_000), 120 * FRAME_SECONDS],
  ['WAV with tags before and behind the sound', wavFile({ seconds: 2.5, tagBytes: 5_001, trailingBytes: 9_000 }), 2.5],
  ['WAV that was written before its length was known', wavFile({ seconds: 3.3, claimedBytes: 0xffff_ffff }), 3.3],
  ['WAV that was never finished', wavFile({ seconds: 1.4, claimedBytes: 0 }), 1.4],
  ['FLAC with a picture', flacFile({ samples: 160_000, pictureBytes: 200_000, soundBytes: 150_000 }), 10],
]

describe('the length of a recording', () => {
  test('is tried with forty files or more', () => {
    expect(FILES.length).toBeGreaterThanOrEqual(40)
  })

  test.each(FILES)('is right to a tenth of a second for %s', (_name, file, seconds) => {
    expect(Math.abs((read(file)?.seconds ?? Number.NaN) - seconds)).toBeLessThanOrEqual(0.1)
  })

  test.each(FILES)('does not depend on the chunks in which %s arrived', (_name, file) => {
    const chunks = Array.from({ length: Math.ceil(file.length / 997) }, (_, index) =>
      file.subarray(index * 997, (index + 1) * 997),
    )

    expect(audioHeader(new ChunkedBytes(chunks))).toEqual(read(file))
  })
})

describe('a header that lies', () => {
  test.each([
    ['FLAC of a second in 320 kB', flacFile({ samples: 16_000, soundBytes: 320_000 }), 9.8],
    ['MP3 with a count of one frame in 416 kB', mp3File(2_000, { kind: 'Xing', frames: 1 }), 8.67],
  ])('is not believed to be shorter than its bytes: %s', (_name, file, seconds) => {
    expect(read(file)?.seconds).toBeCloseTo(seconds, 1)
  })

  test.each([
    ['MP4 of a billion seconds', mp4File({ seconds: 4, videoSeconds: 4 }), 'mdhd'],
    ['WebM of a billion seconds', webmFile({ seconds: 4, duration: 8 }), '4489'],
  ])('is not believed to be longer than its bytes can hold: %s', (_name, file, mark) => {
    const forged = Buffer.from(file)
    if (mark === 'mdhd') forged.writeUInt32BE(0xf000_0000, forged.lastIndexOf('mdhd') + 4 + 16)
    else forged.writeDoubleBE(1e12, forged.indexOf(Buffer.from('44890100000000000008', 'hex')) + 10)

    expect(read(forged)?.seconds ?? 0).toBeLessThan(100_000)
    expect(read(forged)?.format).toBeDefined()
  })

  test.each([
    ['a FLAC that does not know its length', flacFile({ samples: 0, soundBytes: 5_000 })],
    ['a WAV without a rate', Buffer.concat([wavFile({ seconds: 1 }).subarray(0, 28), Buffer.alloc(400)])],
    [
      'an MP4 whose boxes have no length',
      Buffer.concat([mp4File({ seconds: 1 }).subarray(0, 24), Buffer.alloc(400, 1)]),
    ],
    ['a WebM of a negative duration', webmWith(-5)],
    ['a WebM of an endless duration', webmWith(Number.POSITIVE_INFINITY)],
  ])('has no length where it tells none: %s', (_name, file) => {
    const header = read(file)

    expect(header).toBeDefined()
    expect(header?.seconds === undefined || header.seconds < 2).toBe(true)
  })

  test('is given up after a limited number of reads if boxes or elements are countless', () => {
    const emptyBoxes = Buffer.alloc(25 * 1024 * 1024)
    for (let position = 0; position + 8 <= emptyBoxes.length; position += 8) {
      emptyBoxes.writeUInt32BE(8, position)
      emptyBoxes.write(position === 0 ? 'ftyp' : 'free', position + 4, 'latin1')
    }
    const emptyElements = Buffer.alloc(25 * 1024 * 1024, Buffer.from('ec80', 'hex'))
    webmFile({ seconds: 1 }).subarray(0, 12).copy(emptyElements)

    for (const file of [emptyBoxes, emptyElements]) {
      const counted = new CountedReads(file)
      audioHeader(counted)
      expect(counted.reads).toBeLessThan(210_000)
    }
  })

  test('never makes the reader throw, however files are cut and changed', () => {
    const files = FILES.map(([, file]) => file)
    fc.assert(
      fc.property(
        fc.constantFrom(...files),
        fc.nat(400),
        fc.array(fc.tuple(fc.nat(600), fc.nat(255)), { maxLength: 12 }),
        (file, cut, changes) => {
          const forged = Buffer.from(file.subarray(0, Math.max(0, file.length - cut * 37)))
          for (const [position, value] of changes) if (position < forged.length) forged.writeUInt8(value, position)
          const seconds = read(forged)?.seconds
          expect(seconds === undefined || (Number.isFinite(seconds) && seconds > 0)).toBe(true)
          expect((seconds ?? 0) * 25).toBeLessThanOrEqual(forged.length)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

test.each([
  ['text', Buffer.from('Hello, this is a letter and no sound at all.')],
  ['JSON', Buffer.from('{"file":"sound.mp3"}')],
  ['a PNG', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')],
  ['a JPEG', Buffer.concat([Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'), Buffer.alloc(900, 0xff)])],
  ['a ZIP', Buffer.concat([Buffer.from('504b0304', 'hex'), Buffer.alloc(2_000, 0x11)])],
  ['nothing', Buffer.alloc(0)],
  ['three bytes', Buffer.from([0xff, 0xfb, 0x50])],
])('rejects %s as a recording', (_name, file) => {
  expect(read(file)).toBeUndefined()
})

function webmWith(duration: number): Buffer {
  const file = webmFile({ seconds: 1, duration: 8 })
  file.writeDoubleBE(duration, file.indexOf(Buffer.from('44890100000000000008', 'hex')) + 10)
  return file
}

class CountedReads implements ByteSource {
  reads = 0
  readonly byteLength: number
  readonly #bytes: ChunkedBytes

  constructor(file: Buffer) {
    this.byteLength = file.length
    this.#bytes = new ChunkedBytes([file])
  }

  read(offset: number, length: number): Buffer {
    this.reads += 1
    return this.#bytes.read(offset, length)
  }
}
