import { Buffer } from 'node:buffer'
import { parseVendorJson } from '../../core/json.ts'
import { closingQuote } from '../../wire/json-cursor.ts'

const DELTA_MEMBER = Buffer.from('"delta":"')
const NO_BYTES = Buffer.alloc(0)
const LINE_FEED = 0x0a

/** The bytes before the data of a delta event of a Responses stream, as its vendors write them. */
export function deltaStart(name: string): Buffer {
  return Buffer.from(`event: response.${name}.delta\ndata: `)
}

/** The text of a delta event, found in its bytes and not parsed. Reusable, because a stream has many. */
export class DeltaEvent {
  data: Buffer = NO_BYTES
  /** The quotes around the text within `data`. */
  open = 0
  close = 0
  /** Position after the event. */
  end = 0

  /** Returns false if the event must be parsed. `dataStart` is the position after {@link deltaStart}. */
  find(bytes: Buffer, dataStart: number): boolean {
    const lineEnd = bytes.indexOf(LINE_FEED, dataStart)
    if (lineEnd === -1 || bytes[lineEnd + 1] !== LINE_FEED) return false
    this.data = bytes.subarray(dataStart, lineEnd)
    const member = this.data.indexOf(DELTA_MEMBER)
    if (member === -1) return false
    this.open = member + DELTA_MEMBER.length - 1
    this.close = closingQuote(this.data, this.open, this.data.length)
    this.end = lineEnd + 2
    return this.close !== -1
  }

  /** The text, decoded; undefined if it is not valid JSON. */
  get text(): string | undefined {
    const text = this.data.toString('utf8', this.open + 1, this.close)
    if (!text.includes('\\')) return text
    const parsed = parseVendorJson(`"${text}"`)
    return typeof parsed === 'string' ? parsed : undefined
  }

  /** Releases the bytes, which may be large. */
  release(): void {
    this.data = NO_BYTES
  }
}
