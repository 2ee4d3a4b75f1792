import { Buffer } from 'node:buffer'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  closingQuote,
  decodedByteLength,
  isText,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
  skipBlanks,
  startsWith,
} from '../../wire/json-cursor.ts'

const LETTER_N = 0x6e

const CONTENT = Buffer.from('"content":"')

// Nesting depths inside a chunk: its members, the choices, a choice's members, the members of its delta.
const TOP = 1
const CHOICE = 3
const DELTA = 4
// Depth of the members of a tool call in the delta.
const TOOL_CALL = 6

/**
 * Scans the text of one chat chunk without parsing it, to find out whether it is ordinary: it has choices, each with a delta, no
 * usage, no error and no finish reason, its content is text, its tool calls have an index, and its model is a string. Other chunks
 * are rare (the first and the last few of a stream) and are parsed. Nothing is allocated; the fields hold the findings of the last
 * scan.
 *
 * The chunks of one answer start alike (id, model, index) up to the members of the delta, and most end alike after the text of
 * their content. The start of the first ordinary chunk is stored, and equal bytes are not scanned again. {@link skipAlike} finds
 * whole events that differ from a scanned one only in the text of their content.
 */
export class ChatChunkScan {
  /** Span of the top-level `model` value, quotes included. */
  modelStart = -1
  modelEnd = -1
  hasToolCalls = false
  /** Whether a tool call has more than an index and the text of its arguments. It then opens a call, or needs a repair. */
  opensCalls = false
  /** Bytes of generated text in the deltas. */
  textBytes = 0
  // Number of members in the deltas that a caller keeps.
  #contentMembers = 0
  // Bytes of reasoning in the current choice.
  #reasoningBytes = 0
  #inChoices = false
  #hasChoices = false
  #inDelta = false
  // Number of choices minus deltas, and of tool calls minus their indexes. Both are 0 at the end of an ordinary chunk.
  #choicesWithoutDelta = 0
  #callsWithoutIndex = 0
  // Start of the first delta's members in the last walked chunk, or 0 without one.
  #deltaStart = 0
  #beginning: Buffer | undefined
  #beginningModelStart = -1
  #beginningModelEnd = -1
  // Span of the text that the delta of the last ordinary chunk begins with. The end is -1 if it has none, or more content.
  #textStart = 0
  #textEnd = -1
  // Bytes of an event before and after that text, and the position of the model in them.
  #head: Buffer | undefined
  #tail: Buffer | undefined
  #headModelStart = 0
  #headModelEnd = 0

  /** Whether a delta carried content that a caller keeps. */
  get hasContent(): boolean {
    return this.#contentMembers > 0
  }

  /** Whether `bytes[start, end)` is an ordinary chunk. */
  scan(bytes: Buffer, start: number, end: number): boolean {
    this.hasToolCalls = false
    this.opensCalls = false
    this.textBytes = 0
    this.#contentMembers = 0
    this.#reasoningBytes = 0
    this.#textEnd = -1
    const beginning = this.#beginning
    if (beginning !== undefined && startsWith(bytes, start, beginning))
      return this.#resume(bytes, start, end, beginning)
    this.modelStart = -1
    this.modelEnd = -1
    this.#deltaStart = 0
    this.#inChoices = false
    this.#hasChoices = false
    this.#inDelta = false
    this.#choicesWithoutDelta = 0
    this.#callsWithoutIndex = 0
    if (!this.#walk(bytes, start, end, 0)) return false
    if (beginning === undefined && this.#deltaStart !== 0) this.#keepBeginning(bytes, start)
    return true
  }

  /** Stores the event `bytes[start, end)`, whose chunk was scanned last, for {@link skipAlike}, unless one is stored. */
  keepAlike(bytes: Buffer, start: number, end: number): void {
    if (this.#textEnd === -1) return
    this.#head = Buffer.from(bytes.subarray(start, this.#textStart))
    this.#tail = Buffer.from(bytes.subarray(this.#textEnd, end))
    // The bytes are stored once.
    const beginningEnd = this.#head.length - CONTENT.length
    this.#beginning = this.#head.subarray(beginningEnd - this.#beginning!.length, beginningEnd)
    this.#headModelStart = this.modelStart - start
    this.#headModelEnd = this.modelEnd - start
  }

  /** Returns the position after the event at `start` if only its text differs from the stored one, else -1. */
  skipAlike(bytes: Buffer, start: number): number {
    const head = this.#head
    if (head === undefined || !startsWith(bytes, start, head)) return -1
    const textStart = start + head.length
    const textEnd = endOfText(bytes, textStart)
    if (!startsWith(bytes, textEnd, this.#tail!)) return -1
    this.hasToolCalls = false
    this.opensCalls = false
    this.textBytes = decodedByteLength(bytes, textStart, textEnd)
    this.#contentMembers = textEnd > textStart ? 1 : 0
    this.modelStart = start + this.#headModelStart
    this.modelEnd = start + this.#headModelEnd
    return textEnd + this.#tail!.length
  }

  #resume(bytes: Buffer, start: number, end: number, beginning: Buffer): boolean {
    const hasModel = this.#beginningModelStart !== -1
    this.modelStart = hasModel ? start + this.#beginningModelStart : -1
    this.modelEnd = hasModel ? start + this.#beginningModelEnd : -1
    const from = start + beginning.length
    this.#inChoices = true
    this.#hasChoices = true
    this.#inDelta = true
    this.#choicesWithoutDelta = 0
    this.#callsWithoutIndex = 0
    if (!this.#walk(bytes, from, end, DELTA)) return false
    if (this.#head === undefined && hasModel && startsWith(bytes, from, CONTENT)) {
      const textStart = from + CONTENT.length
      const textEnd = endOfText(bytes, textStart)
      // The rest must contain no tool call and no other text, which only a full walk would find.
      const isOnlyContent = this.#contentMembers === (textEnd > textStart ? 1 : 0)
      this.#textStart = textStart
      this.#textEnd = isOnlyContent && bytes[textEnd] === QUOTE ? textEnd : -1
    }
    return true
  }

  #keepBeginning(bytes: Buffer, start: number): void {
    const hasModel = this.modelStart !== -1 && this.modelStart < this.#deltaStart
    this.#beginning = Buffer.from(bytes.subarray(start, this.#deltaStart))
    this.#beginningModelStart = hasModel ? this.modelStart - start : -1
    this.#beginningModelEnd = hasModel ? this.modelEnd - start : -1
  }

  #walk(bytes: Buffer, start: number, end: number, startDepth: number): boolean {
    let depth = startDepth
    let position = start
    while (position < end) {
      const byte = bytes[position]
      if (byte === QUOTE) {
        const close = closingQuote(bytes, position, end)
        if (close === -1) return false
        let next = skipBlanks(bytes, close + 1)
        if (bytes[next] === COLON) {
          next = skipBlanks(bytes, next + 1)
          if (depth <= DELTA) {
            if (!this.#isOrdinaryMember(bytes, position + 1, close, next, end, depth)) return false
          } else if (this.#inDelta) {
            if (bytes[next] === QUOTE) this.#countNested(bytes, position + 1, close, next, end)
            else if (depth === TOOL_CALL && isText(bytes, position + 1, close, 'index')) this.#callsWithoutIndex -= 1
            else if (isText(bytes, position + 1, close, 'arguments')) this.opensCalls = true
          }
        }
        position = next
        continue
      }
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth += 1
        if (depth === CHOICE) {
          if (this.#inChoices && byte === OPEN_BRACE) {
            this.#choicesWithoutDelta += 1
            this.#reasoningBytes = 0
          }
        } else if (depth === TOOL_CALL && this.#inDelta) this.#callsWithoutIndex += 1
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        depth -= 1
        if (depth === 0) return this.#isWhole(bytes, position + 1, end)
      }
      position += 1
    }
    return false
  }

  /** Reads a member by its name, in `bytes[start, end)`, and the first byte of its value. */
  #isOrdinaryMember(
    bytes: Buffer,
    nameStart: number,
    nameEnd: number,
    value: number,
    end: number,
    depth: number,
  ): boolean {
    if (depth === TOP) return this.#isOrdinaryTopMember(bytes, nameStart, nameEnd, value, end)
    if (!this.#inChoices) return true
    if (depth === CHOICE) {
      if (isText(bytes, nameStart, nameEnd, 'finish_reason')) return bytes[value] === LETTER_N
      this.#inDelta = isText(bytes, nameStart, nameEnd, 'delta')
      if (this.#inDelta && bytes[value] === OPEN_BRACE) {
        this.#choicesWithoutDelta -= 1
        if (this.#deltaStart === 0) this.#deltaStart = value + 1
      }
      return true
    }
    if (depth !== DELTA || !this.#inDelta) return true
    const first = bytes[value]
    const second = bytes[value + 1]
    if (first === QUOTE) {
      if (second === QUOTE || isText(bytes, nameStart, nameEnd, 'role')) return true
      this.#contentMembers += 1
      this.#countMember(bytes, nameStart, nameEnd, value, end)
    } else if (first === OPEN_BRACKET && second !== CLOSE_BRACKET) {
      if (isText(bytes, nameStart, nameEnd, 'content')) return false
      this.#contentMembers += 1
      if (isText(bytes, nameStart, nameEnd, 'tool_calls')) this.hasToolCalls = true
    } else if (first === OPEN_BRACE && second !== CLOSE_BRACE) {
      // The old form of a call, and audio, are rare enough to be parsed.
      if (isText(bytes, nameStart, nameEnd, 'function_call') || isText(bytes, nameStart, nameEnd, 'audio')) return false
      this.#contentMembers += 1
    }
    return true
  }

  /** Servers that send reasoning under both of its names repeat it. */
  #countMember(bytes: Buffer, nameStart: number, nameEnd: number, value: number, end: number): void {
    const textBytes = stringBytes(bytes, value, end)
    if (isText(bytes, nameStart, nameEnd, 'content') || isText(bytes, nameStart, nameEnd, 'refusal'))
      this.textBytes += textBytes
    else if (isText(bytes, nameStart, nameEnd, 'reasoning_content') || isText(bytes, nameStart, nameEnd, 'reasoning')) {
      this.textBytes += Math.max(0, textBytes - this.#reasoningBytes)
      this.#reasoningBytes = Math.max(this.#reasoningBytes, textBytes)
    }
  }

  /** Counts a text inside a tool call, whose name and arguments, or input, are generated. */
  #countNested(bytes: Buffer, nameStart: number, nameEnd: number, value: number, end: number): void {
    if (!this.hasToolCalls) return
    const isEmpty = bytes[value + 1] === QUOTE
    if (!isEmpty && (isText(bytes, nameStart, nameEnd, 'id') || isText(bytes, nameStart, nameEnd, 'name')))
      this.opensCalls = true
    const isArguments = isText(bytes, nameStart, nameEnd, 'arguments') || isText(bytes, nameStart, nameEnd, 'input')
    if (isArguments || isText(bytes, nameStart, nameEnd, 'name')) this.textBytes += stringBytes(bytes, value, end)
  }

  #isOrdinaryTopMember(bytes: Buffer, nameStart: number, nameEnd: number, value: number, end: number): boolean {
    const first = bytes[value]
    this.#inChoices = false
    if (isText(bytes, nameStart, nameEnd, 'choices')) {
      const inside = skipBlanks(bytes, value + 1)
      this.#inChoices = true
      this.#hasChoices = true
      return first === OPEN_BRACKET && bytes[inside] !== CLOSE_BRACKET
    }
    if (isText(bytes, nameStart, nameEnd, 'model')) {
      if (first !== QUOTE || this.modelStart !== -1) return false
      this.modelStart = value
      this.modelEnd = closingQuote(bytes, value, end) + 1
      return this.modelEnd > 0
    }
    if (isText(bytes, nameStart, nameEnd, 'usage') || isText(bytes, nameStart, nameEnd, 'error'))
      return first === LETTER_N
    return true
  }

  #isWhole(bytes: Buffer, from: number, end: number): boolean {
    if (this.#choicesWithoutDelta !== 0 || this.#callsWithoutIndex !== 0) return false
    return skipBlanks(bytes, from, end) === end && this.#hasChoices && this.modelStart !== -1
  }
}

/** Returns the position of the quote that ends the text at `start`, or of a byte that is invalid in a text. */
function endOfText(bytes: Buffer, start: number): number {
  let position = start
  while (position < bytes.length) {
    const byte = bytes[position]!
    if (byte === QUOTE || byte < SPACE) break
    // A control character also ends an escape.
    position += byte === BACKSLASH && bytes[position + 1]! >= SPACE ? 2 : 1
  }
  return position
}

/** Returns the bytes of text in the string whose opening quote is at `value`. */
function stringBytes(bytes: Buffer, value: number, end: number): number {
  const close = closingQuote(bytes, value, end)
  return close === -1 ? 0 : decodedByteLength(bytes, value + 1, close)
}
