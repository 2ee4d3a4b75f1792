import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../../core/json.ts'
import type { Usage } from '../../../core/usage.ts'
import {
  type InteractionRequest,
  imageSize,
  pictureTokens,
} from '../../../endpoints/images/interactions/interaction-request.ts'
import type { EventLines } from '../../../wire/event-splitter.ts'
import { SSE_DONE, sseEvent } from '../../../wire/sse.ts'
import { googleErrorFrom } from '../../shared/google-error.ts'
import { invalidResponse } from '../../shared/invalid-response.ts'
import { PassThroughStream } from '../../shared/pass-through-stream.ts'
import type { AnswerIds, VendorCall } from '../../vendor.ts'
import { BareJsonTail } from '../bare-json-tail.ts'
import { failureOf } from '../error-from.ts'
import { countPictures, interactionUsage, isPicture, usageSoFar } from '../usage-from.ts'
import { jsonOutline } from './interaction-from-wire.ts'
import { InteractionNames } from './interaction-names.ts'

const DONE = Buffer.from(SSE_DONE)

// Statuses before the end. The last event has one of the others, including `requires_action`.
const UNFINISHED = new Set(['queued', 'in_progress'])

/**
 * Passes a streamed interaction on (Interactions API, "Streaming"): events pass as bytes, images are not decoded, and names of the
 * model or the answer become the caller's. The answer is complete with the event of its last status. `[DONE]` then follows, from
 * the vendor or from here. Errors end the stream and are not passed on.
 */
export class InteractionStream extends PassThroughStream {
  isRefusal = false
  readonly #apiKey: string
  readonly #pictureTokens: number
  readonly #names: InteractionNames
  readonly #tail = new BareJsonTail()
  #reported: unknown
  #pictures = 0
  /** Whether the current step is output for the caller, rather than a thought or a call. */
  #isOutput = true
  #hasOutput = false
  #hasLast = false

  constructor(call: VendorCall<InteractionRequest>, maxEventBytes?: number) {
    super(maxEventBytes)
    this.#apiKey = call.apiKey
    this.#names = new InteractionNames(call)
    this.#pictureTokens = pictureTokens(call.model, imageSize(call.request, call.model))
  }

  get usage(): Usage | undefined {
    return this.isComplete
      ? interactionUsage(this.#reported, this.#pictures)
      : usageSoFar(this.#reported, this.#pictures, this.#pictureTokens)
  }

  get answerIds(): AnswerIds | undefined {
    return this.#names.answerIds
  }

  override push(chunk: Uint8Array): Uint8Array | undefined {
    return super.push(this.#tail.push(chunk))
  }

  protected override get dropsComments(): boolean {
    return this.isComplete
  }

  protected override bodyEnded(): Buffer | undefined {
    if (this.isComplete) {
      this.finish()
      return DONE
    }
    // The vendor sends some errors after the events, as plain JSON.
    const tail = this.#tail.end()
    if (tail !== undefined) this.#failWith(parseVendorJson(tail))
    return undefined
  }

  protected readEvent(event: EventLines, isRest: boolean): void {
    if (event.isEndMark) {
      this.hasContent = true
      this.finish()
      this.replaceEvent(DONE)
      return
    }
    if (this.#hasLast) {
      this.drop()
      return
    }
    const { bytes, dataStart, dataEnd, name } = event
    const outline = event.hasOneLine ? jsonOutline(bytes, dataStart, dataEnd) : parseVendorJson(event.text)
    if (!isJsonObject(outline)) {
      if (outline === undefined && isRest) this.failUnreadable(isRest)
      else this.#failWith(outline)
      return
    }
    const type = typeof outline['event_type'] === 'string' ? outline['event_type'] : (name ?? '')
    if (type === 'error' || name === 'error' || googleErrorFrom(outline) !== undefined) {
      this.#failWith(outline)
      return
    }
    this.#read(type, outline)
    const replacement = this.#names.replacementFor(outline)
    if (replacement === undefined) return
    const renamed = JSON.stringify(replacement(parseVendorJson(event.text)))
    if (event.hasOneLine) this.edit(dataStart, dataEnd, Buffer.from(renamed))
    else this.replaceEvent(Buffer.from(sseEvent(type, renamed)))
  }

  /** Ends the stream with the error in this value, or because the value is neither an event nor an error. */
  #failWith(value: unknown): void {
    const error = googleErrorFrom(value)
    this.fail(
      error === undefined
        ? invalidResponse('The vendor sent an event that cannot be read.')
        : failureOf(error, 0, [this.#apiKey]),
    )
  }

  #read(type: string, event: Record<string, unknown>): void {
    const { interaction, step } = event
    if (type === 'step.start') this.#isOutput = !isJsonObject(step) || step['type'] === 'model_output'
    if (type === 'step.delta') this.#readDelta(event['delta'])
    if (!isJsonObject(interaction)) return
    if (isJsonObject(interaction['usage'])) this.#reported = interaction['usage']
    const { status } = interaction
    const isLast = type === 'interaction.completed'
    const isWhole = isLast || (typeof status === 'string' && !UNFINISHED.has(status))
    if (!isWhole || type === 'interaction.created') return
    // A separate event may report the status before the usage.
    if (isLast) this.#hasLast = true
    this.#pictures = Math.max(this.#pictures, countPictures(interaction['steps']))
    // Output that the caller received was generated, and is charged.
    this.isRefusal = status === 'failed' && this.#pictures === 0 && !this.#hasOutput
    this.isComplete = true
    this.hasContent = true
  }

  #readDelta(delta: unknown): void {
    if (isPicture(delta)) this.#pictures += 1
    if (this.#isOutput) this.#hasOutput = true
    const text = isJsonObject(delta) ? delta['text'] : undefined
    this.countContent(typeof text === 'string' ? Buffer.byteLength(text) : 0)
  }
}
