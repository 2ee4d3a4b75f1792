import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { MAX_EVENT_BYTES, SSE_DONE, sseData } from '../../wire/sse.ts'
import type { AnswerStream, VendorCall, VendorFailure } from '../vendor.ts'
import { ByteEdits } from './byte-edits.ts'
import { ChatChunkScan } from './chat-chunk-scan.ts'
import { EventFrames } from './event-frames.ts'
import { invalidResponse } from './invalid-response.ts'
import { type ByteSpan, findTopLevelString, startsWith } from './json-bytes.ts'
import { type ChunkRepair, isErrorEnvelope, type OpenAIChatDialect } from './openai-chat-dialect.ts'
import { openaiUsage } from './openai-usage.ts'
import { StreamedChoices } from './streamed-choices.ts'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const DATA_FIELD = Buffer.from('data:')
const EVENT_FIELD = Buffer.from('event:')
const DONE = Buffer.from(SSE_DONE)
/** Of the events at hand. One for all streams, because each works on its events in one go and a stream lives long. */
const edits = new ByteEdits()

/**
 * Relays a streamed chat of OpenAI's dialect: the vendor's bytes go through, event by event, with the model id replaced.
 * Ordinary chunks are only walked over; the first ones, the last ones and odd ones are parsed.
 * What it guarantees beyond the vendor: a role in each choice's first delta, the dialect's finish reasons only, usage
 * forwarded only when asked for, one `[DONE]`, no error events, and no `[DONE]` that the vendor's answer does not justify.
 */
export class OpenAIChatStreamRelay implements AnswerStream {
  hasContent = false
  isComplete = false
  failure: VendorFailure | undefined
  usage: Usage | undefined
  outputTokensSeen = 0

  readonly #dialect: OpenAIChatDialect
  readonly #repair: ChunkRepair | undefined
  readonly #wantsUsage: boolean
  readonly #costOf: VendorCall<ChatRequest>['costOf']
  readonly #publicModel: string
  readonly #publicModelJson: Buffer
  readonly #frames: EventFrames
  readonly #scan = new ChatChunkScan()
  readonly #choices: StreamedChoices

  constructor(call: VendorCall<ChatRequest>, dialect: OpenAIChatDialect, maxEventBytes: number = MAX_EVENT_BYTES) {
    this.#dialect = dialect
    this.#repair = dialect.chunkRepair?.()
    this.#wantsUsage = call.request.stream_options?.include_usage === true
    this.#costOf = call.costOf
    this.#publicModel = call.publicModel
    this.#publicModelJson = Buffer.from(JSON.stringify(call.publicModel))
    this.#frames = new EventFrames(maxEventBytes)
    this.#choices = new StreamedChoices(call.request.n ?? 1)
  }

  get atBoundary(): boolean {
    return this.#frames.heldBytes === 0
  }

  push(chunk: Uint8Array): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const complete = this.#frames.take(chunk)
    const given = complete === undefined ? undefined : this.#relay(complete, false)
    // What follows the end mark is nobody's business, however large.
    if (this.#frames.isOversize && !this.#isOver) {
      this.failure = invalidResponse('The vendor sent an event that is too large.')
    }
    return given
  }

  end(): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const rest = this.#frames.rest()
    const given = rest === undefined ? undefined : this.#relay(rest, true)
    if (this.#isOver || !this.#choices.haveEnded) return given
    // The vendor said that every choice is finished and ended its body cleanly: whole, though the end mark is missing.
    this.isComplete = true
    return given === undefined ? DONE : Buffer.concat([given, DONE])
  }

  get #isOver(): boolean {
    return this.isComplete || this.failure !== undefined
  }

  #relay(bytes: Buffer, isRest: boolean): Buffer | undefined {
    edits.clear()
    let position = 0
    while (position < bytes.length && !this.#isOver) position = this.#frame(bytes, position, isRest)
    // A frame that failed, or that follows the end, is not passed on; the edits noted so far lie before it.
    const relayed = edits.apply(bytes, position)
    return relayed.length === 0 ? undefined : relayed
  }

  /** Deals with one event; gives the position up to which bytes may go out, and from which to go on. */
  #frame(bytes: Buffer, start: number, isRest: boolean): number {
    let dataStart = -1
    let dataEnd = -1
    let extraData: string | undefined
    let isErrorEvent = false
    let line = start
    for (;;) {
      const lineFeed = bytes.indexOf(LINE_FEED, line)
      const lineEnd = lineFeed > line && bytes[lineFeed - 1] === CARRIAGE_RETURN ? lineFeed - 1 : lineFeed
      if (lineEnd === line) {
        line = lineFeed + 1
        break
      }
      if (startsWith(bytes, line, DATA_FIELD)) {
        const value =
          bytes[line + DATA_FIELD.length] === SPACE ? line + DATA_FIELD.length + 1 : line + DATA_FIELD.length
        if (dataStart === -1) {
          dataStart = value
          dataEnd = lineEnd
        } else extraData = `${extraData ?? ''}\n${bytes.toString('utf8', value, lineEnd)}`
      } else if (startsWith(bytes, line, EVENT_FIELD)) {
        isErrorEvent = bytes.toString('latin1', line + EVENT_FIELD.length, lineEnd).trim() === 'error'
      }
      line = lineFeed + 1
    }
    if (dataStart === -1) {
      if (isRest) edits.replace(start, line, undefined)
      return line
    }
    if (isErrorEvent || extraData !== undefined) {
      const text = bytes.toString('utf8', dataStart, dataEnd) + (extraData ?? '')
      return this.#parsed(text, { bytes, start, end: line, data: undefined }, isErrorEvent, isRest)
    }
    if (this.#ordinary(bytes, dataStart, dataEnd)) return line
    const text = bytes.toString('utf8', dataStart, dataEnd)
    if (text.trim() === '[DONE]') {
      this.isComplete = true
      if (line - start !== DONE.length || !startsWith(bytes, start, DONE)) edits.replace(start, line, DONE)
      return line
    }
    return this.#parsed(text, { bytes, start, end: line, data: { start: dataStart, end: dataEnd } }, false, isRest)
  }

  /** Passes an ordinary chunk on with its model replaced; false when it has to be parsed. */
  #ordinary(bytes: Buffer, start: number, end: number): boolean {
    if (!this.#choices.haveBegun) return false
    const scan = this.#scan
    if (!scan.scan(bytes, start, end) || (scan.hasToolCalls && this.#repair !== undefined)) return false
    if (scan.hasContent) this.#countContent()
    this.#rename(bytes, scan.modelStart, scan.modelEnd)
    return true
  }

  #parsed(text: string, frame: Frame, isErrorEvent: boolean, isRest: boolean): number {
    const chunk = parseVendorJson(text)
    if (!isJsonObject(chunk)) {
      // A torn last event is no fault of its own: the body was cut, and `isComplete` says so.
      if (isRest) edits.replace(frame.start, frame.end, undefined)
      else this.failure = invalidResponse('The vendor sent an event that is not JSON.')
      return isRest ? frame.end : frame.start
    }
    if (isErrorEvent || isErrorEnvelope(chunk)) {
      this.failure = this.#dialect.streamFailure(chunk)
      return frame.start
    }
    const usage = openaiUsage(chunk['usage'])
    if (usage !== undefined) this.usage = usage
    const choices = Array.isArray(chunk['choices']) ? chunk['choices'] : []
    if (choices.length === 0 && (usage === undefined ? !Array.isArray(chunk['choices']) : !this.#wantsUsage)) {
      edits.replace(frame.start, frame.end, undefined)
      return frame.end
    }
    const findings = this.#choices.mend(choices)
    if (findings.hasContent) this.#countContent()
    if (findings.hasEnd) this.hasContent = true
    let changed = findings.changed
    if (this.#repair?.mend(chunk) === true) changed = true
    if (!Array.isArray(chunk['choices'])) {
      chunk['choices'] = []
      changed = true
    }
    if (usage !== undefined && this.#changesUsage(chunk, usage)) changed = true
    this.#passParsed(chunk, frame, changed)
    return frame.end
  }

  /** Takes usage out that nobody asked for, or adds its cost. */
  #changesUsage(chunk: Record<string, unknown>, usage: Usage): boolean {
    if (!this.#wantsUsage) return delete chunk['usage']
    const cost = this.#costOf?.(usage)
    if (cost === undefined) return false
    chunk['usage'] = { ...(chunk['usage'] as object), cost }
    return true
  }

  #passParsed(chunk: Record<string, unknown>, frame: Frame, changed: boolean): void {
    const span = frame.data && findTopLevelString(frame.bytes, 'model', frame.data.start, frame.data.end)
    const isFound =
      span !== undefined && frame.bytes.toString('utf8', span.start, span.end) === JSON.stringify(chunk['model'])
    if (!changed && isFound) {
      this.#rename(frame.bytes, span.start, span.end)
      return
    }
    chunk['model'] = this.#publicModel
    edits.replace(frame.start, frame.end, Buffer.from(sseData(JSON.stringify(chunk))))
  }

  #rename(bytes: Buffer, start: number, end: number): void {
    const name = this.#publicModelJson
    if (end - start === name.length && startsWith(bytes, start, name)) return
    edits.replace(start, end, name)
  }

  #countContent(): void {
    this.hasContent = true
    this.outputTokensSeen += 1
  }
}

/** One event in the bytes at hand; `data` is the span of its only data line. */
interface Frame {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  readonly data: ByteSpan | undefined
}
