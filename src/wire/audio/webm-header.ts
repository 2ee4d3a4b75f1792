import type { Buffer } from 'node:buffer'
import type { ByteSource } from './byte-source.ts'

// Ids of elements (RFC 9559).
const SEGMENT = 0x18538067
const INFO = 0x1549a966
const TIMESTAMP_SCALE = 0x2ad7b1
const DURATION = 0x4489
const CLUSTER = 0x1f43b675
const TIMESTAMP = 0xe7
const SIMPLE_BLOCK = 0xa3
const BLOCK_GROUP = 0xa0
const BLOCK = 0xa1

/** Elements whose children are read. Their length is irrelevant, because the children follow directly. */
const PARENTS: ReadonlySet<number> = new Set([SEGMENT, INFO, CLUSTER, BLOCK_GROUP])

/** Maximum number of elements read. Browsers write a block per 20 to 60 ms, so this is an hour or more. */
const MAX_ELEMENTS = 200_000
/** Size of one read, for elements that are close together. */
const WINDOW_BYTES = 64 * 1024
const NANOSECONDS_PER_SECOND = 1e9
const USUAL_SCALE = 1_000_000

/**
 * Returns the length of a WebM file in seconds: its duration, or the time of its last block if it has none, as in recordings of
 * browsers. Blocks are skipped, not read.
 */
export function webmSeconds(bytes: ByteSource): number | undefined {
  const window = new Window(bytes)
  let scale = USUAL_SCALE
  let duration = 0
  let clusterTime = 0
  let lastTime = -1
  let previous = -1
  let position = 0
  let count = 0
  for (; count < MAX_ELEMENTS && position < bytes.byteLength; count++) {
    const element = elementAt(window, position)
    if (element === undefined) break
    const { id, content, length } = element
    if (id === CLUSTER && duration > 0) break
    if (id === TIMESTAMP_SCALE) scale = integerAt(window, content, length) || USUAL_SCALE
    if (id === DURATION) duration = floatAt(window, content, length)
    if (id === TIMESTAMP) clusterTime = integerAt(window, content, length)
    if (id === SIMPLE_BLOCK || id === BLOCK) {
      const time = clusterTime + blockTime(window, content)
      if (time > lastTime) {
        previous = lastTime
        lastTime = time
      }
    }
    if (PARENTS.has(id)) position = content
    // Only parents may have an unknown length. Other elements with an unknown length cannot be skipped.
    else if (length === undefined) break
    else position = content + length
  }
  if (duration > 0) return (duration * scale) / NANOSECONDS_PER_SECOND
  if (lastTime < 0) return undefined
  // The last block is assumed to be as long as the one before it.
  const lastLength = previous < 0 ? 0 : lastTime - previous
  const seconds = ((lastTime + lastLength) * scale) / NANOSECONDS_PER_SECOND
  // The unread part is assumed to have the same byte rate as the part that was read.
  return count < MAX_ELEMENTS ? seconds : (seconds * bytes.byteLength) / position
}

interface Element {
  readonly id: number
  /** Offset of its content. */
  readonly content: number
  /** Length of its content, or `undefined` if it was unknown when the element was written. */
  readonly length: number | undefined
}

function elementAt(window: Window, position: number): Element | undefined {
  const head = window.read(position, 12)
  const idLength = head.length === 0 ? 0 : Math.clz32(head.readUInt8(0)) - 23
  if (idLength < 1 || idLength > 4 || head.length <= idLength) return undefined
  const id = head.readUIntBE(0, idLength)
  const first = head.readUInt8(idLength)
  const sizeLength = Math.clz32(first) - 23
  if (sizeLength > 8 || head.length < idLength + sizeLength) return undefined
  let length = first & (0xff >>> sizeLength)
  let isUnknown = length === 0xff >>> sizeLength
  for (let index = 1; index < sizeLength; index++) {
    const byte = head.readUInt8(idLength + index)
    isUnknown &&= byte === 0xff
    length = length * 256 + byte
  }
  return { id, content: position + idLength + sizeLength, length: isUnknown ? undefined : length }
}

function integerAt(window: Window, position: number, length: number | undefined): number {
  if (length === undefined || length < 1 || length > 8) return 0
  let value = 0
  for (const byte of window.read(position, length)) value = value * 256 + byte
  return value
}

function floatAt(window: Window, position: number, length: number | undefined): number {
  const bytes = length === 4 || length === 8 ? window.read(position, length) : undefined
  if (bytes === undefined || bytes.length !== length) return 0
  const value = length === 4 ? bytes.readFloatBE(0) : bytes.readDoubleBE(0)
  return Number.isFinite(value) ? value : 0
}

/** Returns the time of a block within its cluster. The number of its track precedes it. */
function blockTime(window: Window, position: number): number {
  const head = window.read(position, 10)
  const trackLength = head.length === 0 ? 9 : Math.clz32(head.readUInt8(0)) - 23
  return trackLength + 2 <= head.length ? head.readInt16BE(trackLength) : 0
}

/** Reads small pieces that are close together from one larger read. */
class Window {
  readonly #bytes: ByteSource
  #start = 0
  #held: Buffer

  constructor(bytes: ByteSource) {
    this.#bytes = bytes
    this.#held = bytes.read(0, WINDOW_BYTES)
  }

  read(position: number, length: number): Buffer {
    const from = position - this.#start
    if (from >= 0 && from + length <= this.#held.length) return this.#held.subarray(from, from + length)
    this.#start = position
    this.#held = this.#bytes.read(position, WINDOW_BYTES)
    return this.#held.subarray(0, length)
  }
}
