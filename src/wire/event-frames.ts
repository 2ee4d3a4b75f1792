import { crc32 } from 'node:zlib'
import { asBuffer } from './join-chunks.ts'

/** Lengths of the frame and of its headers, plus the checksum of both. */
const PRELUDE_BYTES = 12
const CHECKSUM_BYTES = 4
/** Size of a frame without headers and payload. */
const LEAST_FRAME_BYTES = PRELUDE_BYTES + CHECKSUM_BYTES
/** Maximum size of a frame's headers that the format allows. */
const MAX_HEADER_BYTES = 128 * 1024
/** Maximum size of a frame that the format allows: headers plus a payload of 24 MiB. */
const MAX_FRAME_BYTES = LEAST_FRAME_BYTES + MAX_HEADER_BYTES + 24 * 1024 * 1024

/** Sizes of header values by type. Byte and string values have a length prefix instead. */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16] as const
const TEXT_TYPE = 7
const BYTES_TYPE = 6

/** A frame of `application/vnd.amazon.eventstream`. */
export interface EventFrame {
  /** Kind of the frame: `event`, `exception` or `error`. Empty if the frame has none. */
  readonly messageType: string
  /** Type of the event or exception, or code of the error. */
  readonly name: string
  /** Text of an error, which has no payload. */
  readonly errorMessage: string
  /** Slice of the read bytes. Valid only until the next read. */
  readonly payload: Buffer
}

/** Error of a stream that violates the format. */
export class EventFrameError extends Error {
  override readonly name = 'EventFrameError'
}

/**
 * Splits a binary event stream into its frames, independent of network chunks (AWS, "Event stream encoding"). Verifies both
 * checksums, the first one before it uses a length.
 */
export class EventFrameReader {
  readonly #onFrame: (frame: EventFrame) => void
  #kept: Uint8Array[] = []
  #keptBytes = 0
  /** Number of bytes required before the buffer is checked again. */
  #needed = PRELUDE_BYTES

  constructor(onFrame: (frame: EventFrame) => void) {
    this.#onFrame = onFrame
  }

  /** Whether the reader is between two frames. A body that ends elsewhere was truncated. */
  get isBetweenFrames(): boolean {
    return this.#keptBytes === 0
  }

  /**
   * Processes one network read.
   * @throws EventFrameError for a wrong checksum or length. Nothing may be pushed after that.
   */
  push(chunk: Uint8Array): void {
    if (this.#keptBytes === 0) {
      this.#split(asBuffer(chunk))
      return
    }
    this.#kept.push(chunk)
    this.#keptBytes += chunk.length
    if (this.#keptBytes < this.#needed) return
    const bytes = Buffer.concat(this.#kept, this.#keptBytes)
    this.#kept = []
    this.#keptBytes = 0
    this.#split(bytes)
  }

  #split(bytes: Buffer): void {
    let start = 0
    for (;;) {
      const left = bytes.length - start
      this.#needed = left < PRELUDE_BYTES ? PRELUDE_BYTES : frameBytes(bytes, start)
      if (left < this.#needed) break
      const end = start + this.#needed
      this.#onFrame(readFrame(bytes, start, end))
      start = end
    }
    if (start === bytes.length) return
    this.#kept.push(start === 0 ? bytes : bytes.subarray(start))
    this.#keptBytes = bytes.length - start
  }
}

/** Returns the length of a frame whose prelude is complete. */
function frameBytes(bytes: Buffer, start: number): number {
  const total = bytes.readUInt32BE(start)
  const headers = bytes.readUInt32BE(start + 4)
  if (crc32(bytes.subarray(start, start + 8)) !== bytes.readUInt32BE(start + 8))
    throw new EventFrameError('the checksum of the beginning of a frame is wrong')
  if (headers > MAX_HEADER_BYTES || total > MAX_FRAME_BYTES || total < headers + LEAST_FRAME_BYTES)
    throw new EventFrameError(`a frame of ${total} bytes with headers of ${headers} bytes cannot be read`)
  return total
}

function readFrame(bytes: Buffer, start: number, end: number): EventFrame {
  const payloadEnd = end - CHECKSUM_BYTES
  if (crc32(bytes.subarray(start, payloadEnd)) !== bytes.readUInt32BE(payloadEnd))
    throw new EventFrameError('the checksum of a frame is wrong')
  const headersStart = start + PRELUDE_BYTES
  const headersEnd = headersStart + bytes.readUInt32BE(start + 4)
  let messageType = ''
  let name = ''
  let errorMessage = ''
  for (let position = headersStart; position < headersEnd; ) {
    const nameEnd = position + 1 + bytes[position]!
    const type = bytes[nameEnd]
    const hasLength = type === TEXT_TYPE || type === BYTES_TYPE
    const valueStart = nameEnd + (hasLength ? 3 : 1)
    const length =
      valueStart > headersEnd ? undefined : hasLength ? bytes.readUInt16BE(nameEnd + 1) : VALUE_BYTES[type!]
    if (length === undefined || valueStart + length > headersEnd)
      throw new EventFrameError('the headers of a frame cannot be read')
    if (type === TEXT_TYPE) {
      const header = bytes.toString('latin1', position + 1, nameEnd)
      if (header === ':message-type') messageType = bytes.toString('latin1', valueStart, valueStart + length)
      else if (header === ':event-type' || header === ':exception-type' || header === ':error-code')
        name = bytes.toString('latin1', valueStart, valueStart + length)
      else if (header === ':error-message') errorMessage = bytes.toString('utf8', valueStart, valueStart + length)
    }
    position = valueStart + length
  }
  return { messageType, name, errorMessage, payload: bytes.subarray(headersEnd, payloadEnd) }
}
