import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../../core/json.ts'
import type { Usage } from '../../../core/usage.ts'
import {
  type InteractionRequest,
  imageSize,
  pictureTokens,
} from '../../../endpoints/images/interactions/interaction-request.ts'
import { MAX_EVENT_BYTES, SSE_DONE, sseEvent } from '../../../wire/sse.ts'
import { ByteEdits } from '../../shared/byte-edits.ts'
import { EventFrames } from '../../shared/event-frames.ts'
import { invalidResponse } from '../../shared/invalid-response.ts'
import type { AnsweredInteraction, AnswerStream, VendorCall, VendorFailure } from '../../vendor.ts'
import { BareJsonTail } from '../bare-json-tail.ts'
import { failureOf } from '../error-from.ts'
import { googleErrorFrom } from '../google-error.ts'
import { countPictures, isPicture } from './count-pictures.ts'
import { type EventLines, readEventLines } from './event-lines.ts'
import { InteractionNames } from './interaction-names.ts'
import { interactionUsage, usageSoFar } from './interaction-usage.ts'
import { jsonOutline } from './json-outline.ts'

const DONE = Buffer.from(SSE_DONE)

// A stream's last event tells one of the other statuses; `requires_action` ends it too.
const UNFINISHED = new Set(['queued', 'in_progress'])

/**
 * Relays a streamed interaction (Interactions API, "Streaming"): events pass as bytes, pictures are not decoded, and what
 * names the model or the answer is written with the caller's ids. The answer is whole with the event of its last status;
 * `[DONE]` then follows, by the vendor or from here. Errors end it and are not passed on.
 */
export class InteractionStream implements AnswerStream {
  hasContent = false
  isComplete = false
  isRefusal = false
  outputTokensSeen = 0
  failure: VendorFailure | undefined

  readonly #apiKey: string
  readonly #pictureTokens: number
  readonly #names: InteractionNames
  readonly #tail = new BareJsonTail()
  readonly #frames: EventFrames
  readonly #edits = new ByteEdits()
  #reported: unknown
  #pictures = 0
  #isDone = false

  constructor(call: VendorCall<InteractionRequest>, maxEventBytes: number = MAX_EVENT_BYTES) {
    this.#apiKey = call.apiKey
    this.#names = new InteractionNames(call)
    this.#pictureTokens = pictureTokens(call.model, imageSize(call.request, call.model))
    this.#frames = new EventFrames(maxEventBytes)
  }

  get atBoundary(): boolean {
    return this.#frames.heldBytes === 0
  }

  get usage(): Usage | undefined {
    return this.isComplete
      ? interactionUsage(this.#reported, this.#pictures)
      : usageSoFar(this.#reported, this.#pictures, this.#pictureTokens)
  }

  get interaction(): AnsweredInteraction | undefined {
    return this.#names.interaction
  }

  push(chunk: Uint8Array): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const complete = this.#frames.take(this.#tail.push(chunk))
    const given = complete === undefined ? undefined : this.#relay(complete, false)
    // What follows the answer is nobody's business, however large.
    if (this.#frames.isOversize && !this.#isOver && !this.isComplete) {
      this.failure = invalidResponse('the vendor sent an event that is too large')
    }
    return given
  }

  end(): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const rest = this.#frames.rest()
    const given = rest === undefined ? undefined : this.#relay(rest, true)
    this.#readTail()
    if (this.#isOver || !this.isComplete) return given
    this.#isDone = true
    return given === undefined ? DONE : Buffer.concat([given, DONE])
  }

  get #isOver(): boolean {
    return this.#isDone || this.failure !== undefined
  }

  /** The vendor writes some errors behind the events, as plain JSON. */
  #readTail(): void {
    const tail = this.#tail.end()
    if (tail === undefined || this.#isOver || this.isComplete) return
    this.#fail(parseVendorJson(tail))
  }

  #relay(bytes: Buffer, isRest: boolean): Buffer | undefined {
    let position = 0
    while (position < bytes.length && !this.#isOver) position = this.#event(bytes, position, isRest)
    // An event that failed, or that follows the end, is not passed on; the edits noted so far lie before it.
    const relayed = this.#edits.apply(bytes, position)
    return relayed.length === 0 ? undefined : relayed
  }

  /** Deals with one event; gives the position up to which bytes may go out, and from which to go on. */
  #event(bytes: Buffer, start: number, isRest: boolean): number {
    const lines = readEventLines(bytes, start)
    const first = lines.data[0]
    if (first === undefined) {
      if (isRest || this.isComplete) this.#edits.replace(start, lines.end, undefined)
      return lines.end
    }
    if (isEndMark(bytes, lines)) {
      this.isComplete = true
      this.hasContent = true
      this.#isDone = true
      this.#edits.replace(start, lines.end, DONE)
      return lines.end
    }
    if (this.isComplete) {
      this.#edits.replace(start, lines.end, undefined)
      return lines.end
    }
    const outline = lines.data.length === 1 ? jsonOutline(bytes, first.start, first.end) : parsedData(bytes, lines)
    if (!isJsonObject(outline)) return this.#unreadable(outline, start, lines, isRest)
    const type = typeof outline['event_type'] === 'string' ? outline['event_type'] : (lines.name ?? '')
    if (type === 'error' || lines.name === 'error' || googleErrorFrom(outline) !== undefined) {
      this.#fail(outline)
      return start
    }
    this.#read(type, outline)
    const replacement = this.#names.replacementFor(outline)
    if (replacement !== undefined) {
      const renamed = JSON.stringify(replacement(parsedData(bytes, lines)))
      if (lines.data.length === 1) this.#edits.replace(first.start, first.end, Buffer.from(renamed))
      else this.#edits.replace(start, lines.end, Buffer.from(sseEvent(type, renamed)))
    }
    return lines.end
  }

  #unreadable(value: unknown, start: number, lines: EventLines, isRest: boolean): number {
    if (isRest && value === undefined) {
      // A torn last event is no fault of its own: the body was cut, and `isComplete` says so.
      this.#edits.replace(start, lines.end, undefined)
      return lines.end
    }
    this.#fail(value)
    return start
  }

  /** Ends the stream with the error that this value holds, or because it holds none and is no event either. */
  #fail(value: unknown): void {
    const error = googleErrorFrom(value)
    this.failure =
      error === undefined
        ? invalidResponse('the vendor sent an event that cannot be read')
        : failureOf(error, 0, [this.#apiKey])
  }

  #read(type: string, event: Record<string, unknown>): void {
    const { interaction } = event
    if (type === 'step.delta') this.#readDelta(event['delta'])
    if (!isJsonObject(interaction)) return
    if (isJsonObject(interaction['usage'])) this.#reported = interaction['usage']
    const { status } = interaction
    const isLast = type === 'interaction.completed' || (typeof status === 'string' && !UNFINISHED.has(status))
    if (!isLast || type === 'interaction.created') return
    this.#pictures = Math.max(this.#pictures, countPictures(interaction['steps']))
    this.isRefusal = status === 'failed' && this.#pictures === 0
    this.isComplete = true
    this.hasContent = true
  }

  #readDelta(delta: unknown): void {
    this.hasContent = true
    if (isPicture(delta)) {
      this.#pictures += 1
      this.outputTokensSeen += this.#pictureTokens
    } else this.outputTokensSeen += 1
  }
}

function isEndMark(bytes: Buffer, { data }: EventLines): boolean {
  const [span, ...others] = data
  if (span === undefined || others.length > 0 || span.end - span.start > 16) return false
  return bytes.toString('latin1', span.start, span.end).trim() === '[DONE]'
}

function parsedData(bytes: Buffer, { data }: EventLines): unknown {
  return parseVendorJson(data.map(({ start, end }) => bytes.toString('utf8', start, end)).join('\n'))
}
