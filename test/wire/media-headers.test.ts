import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { audioHeader } from '../../src/wire/audio/audio-header.ts'
import { Base64Bytes } from '../../src/wire/base64.ts'
import { pdfPages } from '../../src/wire/image-header.ts'
import { flacFile, linearizedPdf, mp3File, oggFile, pdfFile, wavFile } from './media-files.ts'

const lengthOf = (bytes: Base64Bytes): number | undefined => audioHeader(bytes)?.seconds
const encoded = (file: Buffer): Base64Bytes => new Base64Bytes(file.toString('base64'))

test('bytes in base64 are read from anywhere as if they were decoded', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.nat(220),
      fc.nat(220),
      fc.constantFrom('base64', 'base64url'),
      (bytes, offset, length, encoding) => {
        const text = Buffer.from(bytes).toString(encoding as 'base64')
        const read = new Base64Bytes(text)
        expect(read.byteLength).toBe(bytes.length)
        expect([...read.read(offset, length)]).toEqual([...bytes.subarray(offset, offset + length)])
      },
    ),
  )
})

describe('the length of sound', () => {
  test.each([
    ['WAV', wavFile(30), 30],
    ['MP3 of a constant rate', mp3File(60), 60],
    ['MP3 behind a cover', mp3File(60, { coverBytes: 150_000 }), 60],
    ['MP3 of a variable rate', mp3File(10, { frames: 3_829 }), 100],
    ['FLAC', flacFile(77), 77],
    ['Ogg with Opus', oggFile(123, 300_000), 123],
  ])('is read from the headers of %s', (_format, file, seconds) => {
    expect(lengthOf(encoded(file))).toBeCloseTo(seconds, 0)
  })

  test('is not guessed for anything else, and nothing makes the reader throw', () => {
    expect(lengthOf(encoded(Buffer.from('M4A something else')))).toBeUndefined()
    const magics = ['RIFF', 'fLaC', 'OggS', 'ID3\x04', '\xff\xfb', '']
    fc.assert(
      fc.property(fc.constantFrom(...magics), fc.uint8Array({ maxLength: 300 }), (magic, rest) => {
        const seconds = lengthOf(encoded(Buffer.concat([Buffer.from(magic, 'latin1'), rest])))
        expect(seconds === undefined || (Number.isFinite(seconds) && seconds >= 0)).toBe(true)
      }),
    )
  })
})

describe('the pages of a PDF', () => {
  test.each([
    ['whose page tree is in plain text', pdfFile(12), 12],
    ['whose page tree stands at the end of a large file', pdfFile(480, { byteLength: 3_000_000 }), 480],
    ['that is linearized', linearizedPdf(33), 33],
    ['whose page tree is compressed', pdfFile(12, { isCompressed: true }), undefined],
  ])('are read from a file %s', (_kind, file, pages) => {
    expect(pdfPages(encoded(file))).toBe(pages)
  })

  test('are not read from a file that is not a PDF', () => {
    expect(pdfPages(encoded(Buffer.from('/Type/Pages /Count 7')))).toBeUndefined()
  })
})
