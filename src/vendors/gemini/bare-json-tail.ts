const LINE_FEED = 0x0a
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

/** Maximum size of a stored tail. Errors are far shorter. */
const MAX_TAIL_BYTES = 1024 * 1024

/**
 * Separates events from plain JSON after them: the vendor writes some errors into a running event stream without an event
 * around them. No line of an event begins with a brace or bracket, so the first line that does begins the tail.
 */
export class BareJsonTail {
  readonly #decoder = new TextDecoder()
  #text: string | undefined
  #byteLength = 0
  #isAtLineStart = true

  /** Processes one network read and returns the part of it that belongs to events. */
  push(chunk: Uint8Array): Uint8Array {
    const start = this.#text === undefined ? this.#tailStart(chunk) : 0
    if (start === -1) return chunk
    const tail = chunk.subarray(start)
    this.#byteLength += tail.byteLength
    if (this.#byteLength <= MAX_TAIL_BYTES)
      this.#text = (this.#text ?? '') + this.#decoder.decode(tail, { stream: true })
    return chunk.subarray(0, start)
  }

  /** Returns the tail's text, or `undefined` if the stream contained only events. */
  end(): string | undefined {
    return this.#text
  }

  #tailStart(chunk: Uint8Array): number {
    let position = 0
    while (position < chunk.length) {
      const byte = chunk[position]
      if (this.#isAtLineStart && (byte === OPEN_BRACE || byte === OPEN_BRACKET)) return position
      const lineEnd = chunk.indexOf(LINE_FEED, position)
      this.#isAtLineStart = lineEnd !== -1
      if (lineEnd === -1) return -1
      position = lineEnd + 1
    }
    return -1
  }
}
