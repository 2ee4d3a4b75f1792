import { Buffer } from 'node:buffer'
import { type ByteSpan, startsWith } from '../../shared/json-bytes.ts'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const DATA_FIELD = Buffer.from('data:')
const EVENT_FIELD = Buffer.from('event:')

/** One server-sent event in the bytes at hand, not decoded. */
export interface EventLines {
  /** Position behind the blank line that closes it. */
  readonly end: number
  /** The `event:` name. */
  readonly name: string | undefined
  /** Where the values of its `data:` lines stand; nearly always one. */
  readonly data: readonly ByteSpan[]
}

/** Takes the event at `start` apart. `bytes` must hold it whole, up to its blank line. */
export function readEventLines(bytes: Buffer, start: number): EventLines {
  const data: ByteSpan[] = []
  let name: string | undefined
  let line = start
  for (;;) {
    const lineFeed = bytes.indexOf(LINE_FEED, line)
    if (lineFeed === -1) return { end: bytes.length, name, data }
    const lineEnd = lineFeed > line && bytes[lineFeed - 1] === CARRIAGE_RETURN ? lineFeed - 1 : lineFeed
    if (lineEnd === line) return { end: lineFeed + 1, name, data }
    if (startsWith(bytes, line, DATA_FIELD)) {
      data.push({ start: valueStart(bytes, line + DATA_FIELD.length), end: lineEnd })
    } else if (startsWith(bytes, line, EVENT_FIELD)) {
      name = bytes.toString('utf8', valueStart(bytes, line + EVENT_FIELD.length), lineEnd)
    }
    line = lineFeed + 1
  }
}

function valueStart(bytes: Buffer, position: number): number {
  return bytes[position] === SPACE ? position + 1 : position
}
