import { Buffer } from 'node:buffer'

/** Sound files with the headers of real ones, written byte by byte, for formats that no tool of the tests writes. */

const FILLING = 0x5a

// MP4 (ISO/IEC 14496-12)

function box(type: string, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + body.length, 0)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, body])
}

function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4)
  return bytes
}

/** `mvhd` or `mdhd`, of version 0 or 1. */
function header(type: string, timescale: number, seconds: number, version: 0 | 1): Buffer {
  const duration = Math.round(seconds * timescale)
  const rest = Buffer.alloc(type === 'mvhd' ? 80 : 4)
  if (version === 0) return box(type, numbers(0, 0, 0, timescale, duration), rest)
  return box(type, numbers(0x0100_0000, 0, 0, 0, 0, timescale, 0, duration), rest)
}

function track(handler: 'soun' | 'vide', timescale: number, seconds: number, version: 0 | 1): Buffer {
  const named = Buffer.concat([numbers(0, 0), Buffer.from(handler), Buffer.alloc(13)])
  return box('trak', box('mdia', header('mdhd', timescale, seconds, version), box('hdlr', named)))
}

export interface Mp4Options {
  readonly seconds: number
  readonly movieLast?: boolean
  readonly version?: 0 | 1
  /** Length of a video track in seconds, which may be longer. */
  readonly videoSeconds?: number
  /** Whether there are tracks. If false, only the header of the movie contains the length. */
  readonly hasTracks?: boolean
  /** Whether the length of `mdat` has 64 bits. */
  readonly isLarge?: boolean
}

export function mp4File(options: Mp4Options): Buffer {
  const { seconds, movieLast = false, version = 0, videoSeconds, hasTracks = true, isLarge = false } = options
  const start = box('ftyp', Buffer.from('M4A \0\0\0\0M4A mp42'))
  const tracks = hasTracks ? [track('soun', 44_100, seconds, version)] : []
  if (videoSeconds !== undefined) tracks.unshift(track('vide', 600, videoSeconds, version))
  const movie = box('moov', header('mvhd', 1000, Math.max(seconds, videoSeconds ?? 0), version), ...tracks)
  const sound = Buffer.alloc(Math.ceil(seconds * 4_000), FILLING)
  const data = isLarge
    ? Buffer.concat([numbers(1), Buffer.from('mdat'), numbers(0, 16 + sound.length), sound])
    : box('mdat', sound)
  return Buffer.concat(movieLast ? [start, data, movie] : [start, movie, data])
}

/** A file in fragments of a second, whose `moov` knows no length, as recorders write it. */
export function fragmentedMp4File(seconds: number, samplesTellLength: boolean): Buffer {
  const timescale = 48_000
  const start = box('ftyp', Buffer.from('iso5\0\0\x02\0iso5'))
  const movie = box('moov', header('mvhd', 1000, 0, 0), track('soun', timescale, 0, 0))
  const fragments: Buffer[] = []
  for (let from = 0; from < seconds; from += 1) {
    const length = Math.min(1, seconds - from)
    const samples = Math.ceil(length * 50)
    const sample = Math.round((length * timescale) / samples)
    const run = samplesTellLength
      ? box('trun', numbers(0x301, samples, 0, ...Array.from({ length: samples }, () => [sample, 80]).flat()))
      : box('trun', numbers(0x201, samples, 0, ...Array.from({ length: samples }, () => 80)))
    const head = box('tfhd', samplesTellLength ? numbers(0x020000, 1) : numbers(0x020008, 1, sample))
    const time = box('tfdt', numbers(0x0100_0000, 0, Math.round(from * timescale)))
    fragments.push(box('moof', box('mfhd', numbers(0, 1)), box('traf', head, time, run)))
    fragments.push(box('mdat', Buffer.alloc(samples * 80, FILLING)))
  }
  return Buffer.concat([start, movie, ...fragments])
}

// WebM (RFC 9559)

function element(id: number, content: Buffer, isOpen = false): Buffer {
  const digits = id.toString(16)
  const size = Buffer.alloc(8)
  size.writeUIntBE(content.length, 2, 6)
  size.writeUInt8(0x01, 0)
  const unknown = Buffer.from('01ffffffffffffff', 'hex')
  return Buffer.concat([Buffer.from(digits, 'hex'), isOpen ? unknown : size, content])
}

function integer(value: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUIntBE(value, 0, 6)
  return bytes
}

export interface WebmOptions {
  readonly seconds: number
  /** Number of bytes of the duration. If omitted, there is none, as in recordings of browsers. */
  readonly duration?: 4 | 8
  /** Whether the lengths of segment and clusters are unknown, as in recordings of browsers. */
  readonly isLive?: boolean
  readonly inGroups?: boolean
  /** Nanoseconds of a unit of time. */
  readonly scale?: number
}

/** Opus in blocks of 60 ms. */
export function webmFile({
  seconds,
  duration,
  isLive = false,
  inGroups = false,
  scale = 1_000_000,
}: WebmOptions): Buffer {
  const start = element(0x1a45dfa3, element(0x4282, Buffer.from('webm')))
  const units = (at: number): number => Math.round((at * 1e9) / scale)
  const length = Buffer.alloc(duration ?? 0)
  if (duration === 4) length.writeFloatBE(units(seconds))
  if (duration === 8) length.writeDoubleBE(units(seconds))
  const info = element(
    0x1549a966,
    Buffer.concat([element(0x2ad7b1, integer(scale)), ...(duration === undefined ? [] : [element(0x4489, length)])]),
  )
  const tracks = element(0x1654ae6b, element(0xae, Buffer.alloc(60)))
  const clusters: Buffer[] = []
  for (let from = 0; from < seconds - 1e-9; from += 5) {
    const blocks = [element(0xe7, integer(units(from)))]
    for (let at = from; at < Math.min(seconds, from + 5) - 1e-9; at += 0.06) {
      const block = Buffer.alloc(4 + 120, FILLING)
      block.writeUInt8(0x81, 0)
      block.writeInt16BE(units(at) - units(from), 1)
      blocks.push(inGroups ? element(0xa0, element(0xa1, block)) : element(0xa3, block))
    }
    clusters.push(element(0x1f43b675, Buffer.concat(blocks), isLive))
  }
  return Buffer.concat([start, element(0x18538067, Buffer.concat([info, tracks, ...clusters]), isLive)])
}

// Ogg (RFC 3533, RFC 7845)

function page(serial: number, granule: bigint, packet: Buffer, flags = 0): Buffer {
  const head = Buffer.alloc(27)
  head.write('OggS', 'latin1')
  head.writeUInt8(flags, 5)
  head.writeBigUInt64LE(granule, 6)
  head.writeUInt32LE(serial, 14)
  const lengths = [...Array.from({ length: Math.floor(packet.length / 255) }, () => 255), packet.length % 255]
  head.writeUInt8(lengths.length, 26)
  return Buffer.concat([head, Buffer.from(lengths), packet])
}

/** Opus in pages of a second; with a foreign stream behind it, or a last page on which no packet ends. */
export function opusFile(seconds: number, end: 'plain' | 'foreign' | 'unfinished' = 'plain'): Buffer {
  const skipped = 312
  const opusHead = Buffer.alloc(19)
  opusHead.write('OpusHead', 'latin1')
  opusHead.writeUInt8(1, 8)
  opusHead.writeUInt8(1, 9)
  opusHead.writeUInt16LE(skipped, 10)
  opusHead.writeUInt32LE(16_000, 12)
  const pages = [page(7, 0n, opusHead, 2), page(7, 0n, Buffer.from('OpusTags'))]
  for (let at = 0; at < seconds; at += 1) {
    const position = Math.round(Math.min(at + 1, seconds) * 48_000) + skipped
    pages.push(page(7, BigInt(position), Buffer.alloc(2_000, FILLING)))
  }
  if (end === 'foreign') pages.push(page(9, 999_999_999n, Buffer.alloc(40)))
  if (end === 'unfinished') pages.push(page(7, 0xffff_ffff_ffff_ffffn, Buffer.alloc(40)))
  return Buffer.concat(pages)
}

// MP3 (ISO 11172-3)

/** MPEG-1 layer III of 44.1 kHz and 64 kbit/s: frames of 208 bytes and 1152 samples. */
export function mp3File(frames: number, mark?: { readonly kind: 'Xing' | 'VBRI'; readonly frames: number }): Buffer {
  const file = Buffer.alloc(frames * 208)
  for (let index = 0; index < frames; index++) file.writeUInt32BE(0xfffb5064, index * 208)
  if (mark?.kind === 'Xing') {
    file.write('Xing', 36, 'latin1')
    file.writeUInt32BE(1, 40)
    file.writeUInt32BE(mark.frames, 44)
  }
  if (mark?.kind === 'VBRI') {
    file.write('VBRI', 36, 'latin1')
    file.writeUInt32BE(mark.frames, 50)
  }
  return file
}

export function withId3(file: Buffer, tagBytes: number): Buffer {
  const head = Buffer.from('ID3\x04\0\0\0\0\0\0', 'latin1')
  for (let index = 0; index < 4; index++) head.writeUInt8((tagBytes >>> (7 * (3 - index))) & 0x7f, 6 + index)
  return Buffer.concat([head, Buffer.alloc(tagBytes), file])
}

// WAV and FLAC

export interface WavOptions {
  readonly seconds: number
  readonly rate?: number
  /** Length in the header of the `data` chunk. Defaults to the true length. */
  readonly claimedBytes?: number
  /** Bytes of a chunk of tags before the sound. */
  readonly tagBytes?: number
  /** Bytes of tags behind the sound. */
  readonly trailingBytes?: number
}

/** PCM of 16 bits, mono. */
export function wavFile({ seconds, rate = 16_000, claimedBytes, tagBytes = 0, trailingBytes = 0 }: WavOptions): Buffer {
  const chunk = (id: string, content: Buffer, claimed = content.length): Buffer => {
    const head = Buffer.alloc(8)
    head.write(id, 'latin1')
    head.writeUInt32LE(claimed, 4)
    return Buffer.concat([head, content, Buffer.alloc(content.length % 2)])
  }
  const format = Buffer.alloc(16)
  format.writeUInt16LE(1, 0)
  format.writeUInt16LE(1, 2)
  format.writeUInt32LE(rate, 4)
  format.writeUInt32LE(rate * 2, 8)
  format.writeUInt16LE(2, 12)
  format.writeUInt16LE(16, 14)
  const sound = Buffer.alloc(Math.round(seconds * rate) * 2, FILLING)
  const parts = [
    chunk('fmt ', format),
    ...(tagBytes === 0 ? [] : [chunk('LIST', Buffer.alloc(tagBytes))]),
    chunk('data', sound, claimedBytes),
    ...(trailingBytes === 0 ? [] : [chunk('LIST', Buffer.alloc(trailingBytes))]),
  ]
  const body = Buffer.concat([Buffer.from('WAVE'), ...parts])
  return chunk('RIFF', body)
}

export interface FlacOptions {
  /** Values in STREAMINFO. */
  readonly samples: number
  readonly rate?: number
  readonly pictureBytes?: number
  readonly soundBytes: number
}

/** FLAC of 16 bits, mono. */
export function flacFile({ samples, rate = 16_000, pictureBytes = 0, soundBytes }: FlacOptions): Buffer {
  const info = Buffer.alloc(34)
  info.writeUIntBE((rate << 4) | 0, 10, 3)
  info.writeUInt8(15 << 4, 13)
  info.writeUInt32BE(samples, 14)
  const block = (type: number, content: Buffer, isLast: boolean): Buffer => {
    const head = Buffer.alloc(4)
    head.writeUInt8(type | (isLast ? 0x80 : 0), 0)
    head.writeUIntBE(content.length, 1, 3)
    return Buffer.concat([head, content])
  }
  const picture = pictureBytes === 0 ? [] : [block(6, Buffer.alloc(pictureBytes), true)]
  const blocks = [block(0, info, picture.length === 0), ...picture]
  return Buffer.concat([Buffer.from('fLaC'), ...blocks, Buffer.alloc(soundBytes, FILLING)])
}
