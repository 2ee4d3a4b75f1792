import { Buffer } from 'node:buffer'
import { MAX_EVENT_BYTES } from '../../wire/sse.ts'
import { asBuffer } from './json-bytes.ts'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d

/**
 * Cuts a body of server-sent events at event borders, without decoding it: complete events come out in one piece, the
 * rest is kept until its end arrives. Every byte is looked at once and joined at most once, however it was cut.
 */
export class EventFrames {
  readonly #maxEventBytes: number
  // Emptied, not replaced: V8 puts arrays that live as long as a stream into its old space, and what stands in them stays.
  readonly #held: Uint8Array[] = []
  #heldBytes = 0
  // The last two bytes held. Between events, as at the start, a line break would close an (empty) event.
  #last = LINE_FEED
  #beforeLast = LINE_FEED

  constructor(maxEventBytes: number = MAX_EVENT_BYTES) {
    this.#maxEventBytes = maxEventBytes
  }

  /** Bytes of the event under way; 0 between events. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /** True when the event under way is larger than allowed; it was thrown away and nothing more can be read. */
  get isOversize(): boolean {
    return this.#heldBytes > this.#maxEventBytes
  }

  /** Takes one network read; gives all events complete by now, each with its blank line, or undefined. */
  take(chunk: Uint8Array): Buffer | undefined {
    const bytes = asBuffer(chunk)
    const border = this.#lastBorder(bytes)
    if (border === 0) {
      this.#hold(bytes)
      return undefined
    }
    const head = border === bytes.length ? bytes : bytes.subarray(0, border)
    const complete = this.#heldBytes === 0 ? head : Buffer.concat([...this.#held, head])
    this.#reset()
    if (border < bytes.length) this.#hold(bytes.subarray(border))
    return complete
  }

  /** What is left when the body has ended, closed by a blank line; undefined when nothing is. */
  rest(): Buffer | undefined {
    if (this.#heldBytes === 0 || this.isOversize) return undefined
    const rest = Buffer.concat([...this.#held, Buffer.from('\n\n')])
    this.#reset()
    return rest
  }

  /** Position behind the last blank line in these bytes; 0 when there is none. */
  #lastBorder(bytes: Buffer): number {
    let lineFeed = bytes.lastIndexOf(LINE_FEED)
    while (lineFeed !== -1) {
      let before = this.#byteBefore(bytes, lineFeed)
      if (before === CARRIAGE_RETURN) before = this.#byteBefore(bytes, lineFeed - 1)
      if (before === LINE_FEED) return lineFeed + 1
      lineFeed = lineFeed === 0 ? -1 : bytes.lastIndexOf(LINE_FEED, lineFeed - 1)
    }
    return 0
  }

  #byteBefore(bytes: Buffer, position: number): number | undefined {
    if (position > 0) return bytes[position - 1]
    return position === 0 ? this.#last : this.#beforeLast
  }

  #hold(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.isOversize) return
    this.#held.push(bytes)
    this.#heldBytes += bytes.length
    this.#beforeLast = bytes.length > 1 ? (bytes[bytes.length - 2] ?? 0) : this.#last
    this.#last = bytes[bytes.length - 1] ?? 0
    if (this.isOversize) this.#held.length = 0
  }

  #reset(): void {
    this.#held.length = 0
    this.#heldBytes = 0
    this.#last = LINE_FEED
    this.#beforeLast = LINE_FEED
  }
}
