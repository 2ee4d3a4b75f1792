import { Buffer } from 'node:buffer'
import { startsWith } from './json-bytes.ts'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const DATA_FIELD = Buffer.from('data:')
const EVENT_FIELD = Buffer.from('event:')
const JOINT = Buffer.from('\n')

/** One server-sent event, found in its bytes. */
export interface FrameLines {
  /** Behind its blank line. */
  readonly end: number
  readonly event: string | undefined
  /** The value of its data, in the pieces in which it stands there; undefined when it has none (a comment). */
  readonly data: readonly Uint8Array[] | undefined
}

/** Reads the event that begins at `start`. The bytes must hold it whole, its blank line included. */
export function readFrame(bytes: Buffer, start: number): FrameLines {
  let event: string | undefined
  let data: Uint8Array[] | undefined
  let line = start
  for (;;) {
    const lineFeed = bytes.indexOf(LINE_FEED, line)
    const lineEnd = lineFeed > line && bytes[lineFeed - 1] === CARRIAGE_RETURN ? lineFeed - 1 : lineFeed
    if (lineEnd <= line) return { end: lineFeed === -1 ? bytes.length : lineFeed + 1, event, data }
    if (startsWith(bytes, line, DATA_FIELD)) {
      const value = bytes.subarray(valueStart(bytes, line + DATA_FIELD.length), lineEnd)
      if (data === undefined) data = [value]
      else data.push(JOINT, value)
    } else if (startsWith(bytes, line, EVENT_FIELD)) {
      event = bytes.toString('utf8', valueStart(bytes, line + EVENT_FIELD.length), lineEnd)
    }
    line = lineFeed + 1
  }
}

/** One space behind the colon belongs to neither field nor value. */
function valueStart(bytes: Buffer, behindColon: number): number {
  return bytes[behindColon] === SPACE ? behindColon + 1 : behindColon
}
