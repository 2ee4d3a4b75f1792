import { Buffer } from 'node:buffer'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import { colourBands } from '../../../src/testing/sandbox/files/draw-picture.ts'
import { drawVideo } from '../../../src/testing/sandbox/files/draw-video.ts'
import { videoLink } from '../../../src/testing/sandbox/files/stored-files.ts'
import { encodeH264 } from '../../../src/testing/sandbox/videos/encode-h264.ts'
import { H264Bits } from '../../../src/testing/sandbox/videos/h264-bits.ts'

interface Box {
  readonly type: string
  /** Place of the content in the file. */
  readonly start: number
  readonly content: Buffer
}

/** The boxes of a part of a file, which they must fill exactly. */
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

/** The box at the end of a path of types. */
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

/** The sequence parameters inside the only sample entry. */
function sequenceParametersOf(file: Buffer): Buffer {
  const entry = boxAt(file, ...TABLE, 'stsd').content.subarray(8)
  expect(entry.toString('latin1', 4, 8)).toBe('avc1')
  const [configuration] = boxesOf(entry.subarray(8 + 78))
  expect(configuration?.type).toBe('avcC')
  const content = configuration?.content ?? Buffer.alloc(0)
  return content.subarray(8, 8 + content.readUInt16BE(6))
}

/** Width and height that a decoder works out from the sequence parameters (ITU-T H.264, 7.3.2.1.1). */
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
  // Number of the set, bits of frame numbers, order of pictures, pictures kept.
  for (let field = 0; field < 4; field++) unsigned()
  bit()
  const width = (unsigned() + 1) * 16
  const height = (unsigned() + 1) * 16
  bit()
  bit()
  const [left, right, top, bottom] = bit() === 1 ? [unsigned(), unsigned(), unsigned(), unsigned()] : [0, 0, 0, 0]
  return [width - 2 * (left + right), height - 2 * (top + bottom)]
}

const PARAMETERS = ['6742c028da15fe21', '68ce01442b20']
const PICTURES = [
  '658884a11b8e0006638001988c5c700010108e0004a2371c000402e380188c50c7031c03118a031c0018e000201b4f4f4f4f4f4f4f4f4f4f80',
  '419a228210',
  '419a428210',
]

const SIZES: [width: number, height: number][] = [
  [1920, 1080],
  [832, 480],
  [624, 624],
  [1248, 1648],
  [1104, 832],
]

describe('a drawn video', () => {
  test.each(SIZES)('of %i by %i pixels says so to the player and to the decoder', (width, height) => {
    const file = Buffer.from(drawVideo({ width, height, durationMs: 200, seed: 'a' }))
    const header = wordsOf(boxAt(file, 'moov', 'trak', 'tkhd'))

    expect(boxesOf(file).map(({ type }) => type)).toEqual(['ftyp', 'moov', 'mdat'])
    expect(header.slice(-2)).toEqual([width * 65_536, height * 65_536])
    expect(codedSize(sequenceParametersOf(file))).toEqual([width, height])
  })

  test.each([
    [2000, 60],
    [15_000, 450],
    [6500, 195],
    [34, 1],
  ])('of %i ms has %i pictures and lasts as long in all its headers', (durationMs, pictures) => {
    const file = Buffer.from(drawVideo({ width: 64, height: 48, durationMs, seed: 'a' }))
    const [, , , scale, movieUnits] = wordsOf(boxAt(file, 'moov', 'mvhd'))
    const [, , , mediaScale, mediaUnits] = wordsOf(boxAt(file, ...MEDIA, 'mdhd'))
    const [, , , , , trackUnits] = wordsOf(boxAt(file, 'moov', 'trak', 'tkhd'))
    const [, entries, samples, sampleUnits] = wordsOf(boxAt(file, ...TABLE, 'stts'))

    expect([scale, mediaScale]).toEqual([600, 600])
    expect([movieUnits, mediaUnits, trackUnits]).toEqual(new Array(3).fill(pictures * 20))
    expect([entries, samples, sampleUnits]).toEqual([1, pictures, 20])
  })

  test('has an index whose samples fill the media exactly, the first one standing alone', () => {
    const file = Buffer.from(drawVideo({ width: 64, height: 48, durationMs: 1000, seed: 'a' }))
    const media = boxAt(file, 'mdat')
    const [, , count = 0, ...lengths] = wordsOf(boxAt(file, ...TABLE, 'stsz'))
    const types: number[] = []
    let at = wordsOf(boxAt(file, ...TABLE, 'stco'))[2] ?? 0
    expect(at).toBe(media.start)
    for (const length of lengths) {
      expect(file.readUInt32BE(at)).toBe(length - 4)
      types.push(file.readUInt8(at + 4) & 31)
      at += length
    }

    expect(at).toBe(file.length)
    expect(lengths).toHaveLength(count)
    expect(types).toEqual([5, ...new Array(29).fill(1)])
    expect(wordsOf(boxAt(file, ...TABLE, 'stss'))).toEqual([0, 1, 1])
    expect(wordsOf(boxAt(file, ...TABLE, 'stsc'))).toEqual([0, 1, 1, 30, 1])
  })

  // ffmpeg decodes these bytes without a warning into three equal pictures of five columns.
  test('consists of units that a decoder has read', () => {
    const film = encodeH264(colourBands(80, 34, 's1'), 3)
    const hex = (units: readonly Buffer[]) => units.map((unit) => unit.toString('hex'))

    expect(hex([film.sequenceParameters, film.pictureParameters])).toEqual(PARAMETERS)
    expect(hex(film.pictures)).toEqual(PICTURES)
  })

  test('never has the start of a unit inside a unit', () => {
    const unit = new H264Bits().add(0, 16).add(1, 8).add(0, 16).add(0, 8).unit(0x67)

    expect(unit.toString('hex')).toBe('67000003010000030080')
  })

  test('is the same for the same seed, another for another, and small', () => {
    const draw = (seed: string) => drawVideo({ width: 1920, height: 1080, durationMs: 15_000, seed })

    expect(draw('a')).toEqual(draw('a'))
    expect(draw('a')).not.toEqual(draw('b'))
    expect(draw('a').length).toBeLessThan(20_000)
  })

  test.each([
    [0, 48, 1000],
    [63, 48, 1000],
    [1936, 1088, 1000],
    [64, 48, 33],
    [64, 48, 600_001],
    [64.5, 48, 1000],
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

  const VIDEO = { width: 64, height: 48, durationMs: 1000, seed: 'a' }
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
    'a-63x48-1000ms.mp4',
    'a-64x48-10ms.mp4',
    'a-64x48.mp4',
    'a%2Fb-64x48-1000ms.mp4',
    'a-9998x9998-1000ms.mp4',
  ])('is never %s', async (name) => {
    expect((await fetch(`http://${host}/sandbox-files/${name}`)).status).toBe(404)
  })
})
