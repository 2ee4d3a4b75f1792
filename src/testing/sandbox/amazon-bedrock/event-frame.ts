import { Buffer } from 'node:buffer'
import { crc32 } from 'node:zlib'

/** Writes a frame of `application/vnd.amazon.eventstream` with headers of text. Source: AWS, "Event stream encoding". */
export function eventFrame(headers: Readonly<Record<string, string>>, payload: string | Uint8Array): Buffer {
  const written = Object.entries(headers).map(([name, value]) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(Buffer.byteLength(value))
    return Buffer.concat([
      Buffer.from([Buffer.byteLength(name)]),
      Buffer.from(name),
      Buffer.from([7]),
      length,
      Buffer.from(value),
    ])
  })
  const head = Buffer.concat(written)
  const body = Buffer.from(payload)
  const total = 12 + head.length + body.length + 4
  const frame = Buffer.alloc(total)
  frame.writeUInt32BE(total, 0)
  frame.writeUInt32BE(head.length, 4)
  frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8)
  head.copy(frame, 12)
  body.copy(frame, 12 + head.length)
  frame.writeUInt32BE(crc32(frame.subarray(0, total - 4)), total - 4)
  return frame
}

/** An event of a stream, padded as the service pads it. */
export function eventOf(type: string, value: object): Buffer {
  const headers = { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' }
  return eventFrame(headers, JSON.stringify({ ...value, p: 'abcdefghijklmnopqrstuvwxyz'.slice(0, type.length) }))
}

/** An exception inside a stream. */
export function exceptionOf(type: string, message: string): Buffer {
  const headers = { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' }
  return eventFrame(headers, JSON.stringify({ message }))
}
