import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import { H264_PICTURES } from '../../../src/testing/sandbox/files/draw-image.ts'
import { drawVideo, videoLink } from '../../../src/testing/sandbox/files/stored-files.ts'

interface Box {
  readonly type: string
  /** Position of the content in the file. */
  readonly start: number
  readonly content: Buffer
}

/** Returns the boxes of a part of a file, which they must fill exactly. */
function boxesOf(part: Buffer, partStart = 0): Box[] {
  const boxes: Box[] = []
  let at = 0
  while (at < part.length) {
    const length = part.readUInt32BE(at)
    if (length < 8 || at + length > part.length) throw new Error(`a box of ${length} bytes at ${partStart + at}`)
    boxes.push({
      type: part.toString('latin1', at + 4, at + 8),
      start: partStart + at + 8,
      content: part.subarray(at + 8, at + length),
    })
    at += length
  }
  return boxes
}

/** Returns the box at the end of a path of types. */
function boxAt(file: Buffer, ...path: string[]): Box {
  let boxes = boxesOf(file)
  let found: Box | undefined
  for (const type of path) {
    found = boxes.find((box) => box.type === type)
    if (found === undefined) throw new Error(`no ${type} in ${path}`)
    const plain = ['moov', 'trak', 'mdia', 'minf', 'dinf', 'stbl'].includes(type)
    boxes = plain ? boxesOf(found.content, found.start) : []
  }
  return found as Box
}

const MEDIA = ['moov', 'trak', 'mdia'] as const
const TABLE = [...MEDIA, 'minf', 'stbl'] as const
const wordsOf = ({ content }: Box): number[] =>
  Array.from({ length: Math.floor(content.length / 4) }, (_, index) => content.readUInt32BE(index * 4))

/** Returns the sequence parameters inside the only sample entry. */
function sequenceParametersOf(file: Buffer): Buffer {
  const entry = boxAt(file, ...TABLE, 'stsd').content.subarray(8)
  expect(entry.toString('latin1', 4, 8)).toBe('avc1')
  const [configuration] = boxesOf(entry.subarray(8 + 78))
  expect(configuration?.type).toBe('avcC')
  const content = configuration?.content ?? Buffer.alloc(0)
  return content.subarray(8, 8 + content.readUInt16BE(6))
}

/** Returns width and height as a decoder computes them from the sequence parameters (ITU-T H.264, 7.3.2.1.1). */
function codedSize(unit: Buffer): [width: number, height: number] {
  let at = 32
  const bit = (): number => ((unit[at >> 3] ?? 0) >> (7 - (at++ & 7))) & 1
  const unsigned = (): number => {
    let zeros = 0
    while (bit() === 0) zeros++
    let value = 1
    for (; zeros > 0; zeros--) value = value * 2 + bit()
    return value - 1
  }
  // Number of the set, bits of frame numbers, order of frames, stored frames.
  for (let field = 0; field < 4; field++) unsigned()
  bit()
  const width = (unsigned() + 1) * 16
  const height = (unsigned() + 1) * 16
  bit()
  bit()
  const [left, right, top, bottom] = bit() === 1 ? [unsigned(), unsigned(), unsigned(), unsigned()] : [0, 0, 0, 0]
  return [width - 2 * (left + right), height - 2 * (top + bottom)]
}

const SIZES = [...H264_PICTURES.keys()].map((size) => size.split('x').map(Number) as [width: number, height: number])

describe('a drawn video', () => {
  test.each(SIZES)('states its size, %i by %i pixels, to the player and to the decoder', (width, height) => {
    const file = Buffer.from(drawVideo({ width, height, durationMs: 200, seed: 'a' }))
    const header = wordsOf(boxAt(file, 'moov', 'trak', 'tkhd'))

    expect(boxesOf(file).map(({ type }) => type)).toEqual(['ftyp', 'moov', 'mdat', 'free'])
    expect(header.slice(-2)).toEqual([width * 65_536, height * 65_536])
    expect(codedSize(sequenceParametersOf(file))).toEqual([width, height])
  })

  test.each([100, 2000, 6500, 15_000, 600_000])('has the duration %i ms in all its headers', (durationMs) => {
    const file = Buffer.from(drawVideo({ width: 832, height: 480, durationMs, seed: 'a' }))
    const [, , , scale, movieUnits] = wordsOf(boxAt(file, 'moov', 'mvhd'))
    const [, , , mediaScale, mediaUnits] = wordsOf(boxAt(file, ...MEDIA, 'mdhd'))
    const [, , , , , trackUnits] = wordsOf(boxAt(file, 'moov', 'trak', 'tkhd'))

    expect([scale, mediaScale]).toEqual([1000, 1000])
    expect([movieUnits, mediaUnits, trackUnits]).toEqual([durationMs, durationMs, durationMs])
    expect(wordsOf(boxAt(file, ...TABLE, 'stts'))).toEqual([0, 1, 1, durationMs])
  })

  test('has an index whose only sample fills the media exactly and is independent', () => {
    const file = Buffer.from(drawVideo({ width: 832, height: 480, durationMs: 1000, seed: 'a' }))
    const media = boxAt(file, 'mdat')

    expect(wordsOf(boxAt(file, ...TABLE, 'stco'))).toEqual([0, 1, media.start])
    expect(wordsOf(boxAt(file, ...TABLE, 'stsz'))).toEqual([0, media.content.length, 1])
    expect(wordsOf(boxAt(file, ...TABLE, 'stsc'))).toEqual([0, 1, 1, 1, 1])
    expect(media.content.readUInt32BE(0)).toBe(media.content.length - 4)
    expect(media.content.readUInt8(4) & 31).toBe(5)
  })

  // ffmpeg decodes these bytes without a warning; ffprobe reads 1280 by 720 pixels and 5 seconds.
  test('has the bytes that a decoder was seen to open', () => {
    const file = drawVideo({ width: 1280, height: 720, durationMs: 5000, seed: 'a' })

    expect(createHash('sha256').update(file).digest('hex')).toBe(
      'af9ab83badbc68ee992f665404fbf89f9e27cff3d352a4a4b56e7a5ae9cd7dce',
    )
  })

  test('is the same for the same seed, another for another, and small', () => {
    const draw = (seed: string) => drawVideo({ width: 1920, height: 1080, durationMs: 15_000, seed })

    expect(draw('a')).toEqual(draw('a'))
    expect(draw('a')).not.toEqual(draw('b'))
    expect(draw('a').length).toBeLessThan(1500)
  })

  test.each([
    [0, 480, 1000],
    [64, 48, 1000],
    [480, 831, 1000],
    [832, 480, 99],
    [832, 480, 600_001],
    [832, 480, 1000.5],
    [832.5, 480, 1000],
  ])('cannot have %d by %d pixels and %d ms', (width, height, durationMs) => {
    expect(() => drawVideo({ width, height, durationMs, seed: 'a' })).toThrow(RangeError)
  })
})

describe('the link to a video', () => {
  const NOW_MS = Date.UTC(2026, 10, 20)
  let nowMs = NOW_MS
  let sandbox: Sandbox
  let host: string
  beforeAll(async () => {
    sandbox = sandboxVendors({ clock: { now: () => nowMs, schedule: () => ({ cancel: () => undefined }) } })
    host = new URL((await sandbox.listen()).origin).host
  })
  beforeEach(() => {
    nowMs = NOW_MS
    sandbox.reset()
  })
  afterAll(() => sandbox.close())

  const VIDEO = { width: 832, height: 480, durationMs: 1000, seed: 'a' }
  const whole = Buffer.from(drawVideo(VIDEO))
  const open = async (range?: string) => {
    const link = videoLink({ headers: { host } }, VIDEO, NOW_MS)
    const response = await fetch(link, range === undefined ? {} : { headers: { range } })
    return { response, bytes: Buffer.from(await response.arrayBuffer()) }
  }

  test('opens without a key for a day', async () => {
    const { response, bytes } = await open()
    nowMs = NOW_MS + 86_400_000
    const last = await open()
    nowMs++
    const late = await open()

    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'video/mp4'])
    expect(response.headers.get('content-length')).toBe(String(whole.length))
    expect(response.headers.get('accept-ranges')).toBe('bytes')
    expect(bytes).toEqual(whole)
    expect([last.response.status, late.response.status]).toEqual([200, 403])
    expect(late.bytes.toString()).toContain('<Message>Request has expired.</Message>')
  })

  test.each([
    ['bytes=0-0', 0, 0],
    ['bytes=10-19', 10, 19],
    ['bytes=100-', 100, whole.length - 1],
    ['bytes=-5', whole.length - 5, whole.length - 1],
    ['bytes=-999999', 0, whole.length - 1],
    ['bytes=5-999999', 5, whole.length - 1],
  ])('gives the part %s', async (range, start, end) => {
    const { response, bytes } = await open(range)

    expect([response.status, response.headers.get('content-range')]).toEqual([
      206,
      `bytes ${start}-${end}/${whole.length}`,
    ])
    expect(response.headers.get('content-length')).toBe(String(end - start + 1))
    expect(bytes).toEqual(whole.subarray(start, end + 1))
  })

  test.each(['bytes=999999-', 'bytes=-0', `bytes=${whole.length}-${whole.length}`])('has no part %s', async (range) => {
    const { response } = await open(range)

    expect([response.status, response.headers.get('content-range')]).toEqual([416, `bytes */${whole.length}`])
  })

  test.each(['bytes=9-3', 'bytes=0-1,5-6', 'items=0-1', 'bytes=-', 'bytes=a-b'])(
    'gives everything when asked for %s',
    async (range) => {
      const { response, bytes } = await open(range)

      expect([response.status, bytes.length]).toEqual([200, whole.length])
    },
  )

  test('can be struck by faults', async () => {
    sandbox.fault({ kind: 'status', status: 404, vendor: 'files', operation: 'video' })
    sandbox.fault({ kind: 'end-early', vendor: 'files', operation: 'video' })

    expect((await open()).response.status).toBe(404)
    expect((await open()).bytes).toEqual(whole.subarray(0, Math.floor(whole.length / 2)))
  })

  test.each([
    'a-831x480-1000ms.mp4',
    'a-832x480-10ms.mp4',
    'a-832x480.mp4',
    'a%2Fb-832x480-1000ms.mp4',
    'a-9998x9998-1000ms.mp4',
  ])('is never %s', async (name) => {
    expect((await fetch(`http://${host}/sandbox-files/${name}`)).status).toBe(404)
  })
})
