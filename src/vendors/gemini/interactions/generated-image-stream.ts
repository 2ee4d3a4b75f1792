import { Buffer } from 'node:buffer'
import { parseVendorJson } from '../../../core/json.ts'
import type { Usage } from '../../../core/usage.ts'
import {
  type InteractionRequest,
  imageSize,
  pictureTokens,
} from '../../../endpoints/images/interactions/interaction-request.ts'
import { EventLines, EventSplitter } from '../../../wire/event-splitter.ts'
import { SSE_DONE, sseEvent } from '../../../wire/sse.ts'
import { redactGoogleKeys } from '../../shared/google-error.ts'
import { invalidResponse } from '../../shared/invalid-response.ts'
import type { StreamTransform, VendorCall, VendorFailure } from '../../vendor.ts'
import { BareJsonTail } from '../bare-json-tail.ts'
import { generatedImageUsage, interactionUsage, usageSoFar } from '../usage-from.ts'
import {
  GeneratedImageReader,
  type GeneratedInteraction,
  generatedInteraction,
  type OutputBlock,
} from './generated-image-from-wire.ts'

/**
 * Writes a stream of `streamGenerateContent` as the events of an interaction (Interactions API, "Streaming"): one `model_output`
 * step whose deltas are texts and whole images. The vendor's stream has no end mark, so the answer is complete if its body ends
 * after a finish reason.
 */
export class GeneratedImageStream implements StreamTransform {
  hasContent = false
  isComplete = false
  isRefusal = false
  outputBytesSeen = 0
  /** Returned chunks contain only whole events. */
  readonly atBoundary = true
  #unreadable: VendorFailure | undefined

  readonly #reader: GeneratedImageReader
  readonly #interaction: GeneratedInteraction
  readonly #pictureTokens: number
  readonly #apiKey: string
  readonly #tail = new BareJsonTail()
  readonly #splitter = new EventSplitter()
  #hasBegun = false
  #hasStep = false

  constructor(call: VendorCall<InteractionRequest>) {
    this.#reader = new GeneratedImageReader(call.apiKey)
    this.#interaction = generatedInteraction(call)
    this.#pictureTokens = pictureTokens(call.model, imageSize(call.request, call.model))
    this.#apiKey = call.apiKey
  }

  get failure(): VendorFailure | undefined {
    return this.#unreadable ?? this.#reader.failure
  }

  get usage(): Usage | undefined {
    const usage = generatedImageUsage(this.#reader.usageMetadata)
    const { pictures } = this.#reader
    return this.isComplete ? interactionUsage(usage, pictures) : usageSoFar(usage, pictures, this.#pictureTokens)
  }

  push(chunk: Uint8Array): string | undefined {
    if (this.#isOver) return undefined
    const complete = this.#splitter.take(this.#tail.push(chunk))
    const given = complete === undefined ? undefined : this.#readAll(complete)
    if (this.#splitter.isOversize) this.#unreadable = invalidResponse('The vendor sent an event that is too large.')
    return given
  }

  end(): string | undefined {
    if (this.#isOver) return undefined
    const rest = this.#splitter.rest()
    const tail = this.#tail.end()
    let text = rest === undefined ? '' : (this.#readAll(rest) ?? '')
    if (tail !== undefined && !this.#isOver) text += this.#readJson(tail)
    if (this.failure === undefined && this.#reader.isFinished) text += this.#close()
    return text === '' ? undefined : text
  }

  get #isOver(): boolean {
    return this.isComplete || this.failure !== undefined
  }

  #readAll(bytes: Buffer): string | undefined {
    let text = ''
    const event = new EventLines()
    while (event.end < bytes.length && !this.#isOver) {
      event.read(bytes, event.end)
      text += this.#readJson(event.text)
    }
    return text === '' ? undefined : text
  }

  #readJson(json: string): string {
    // Proxies for several dialects add OpenAI's end mark to every stream.
    if (json === '' || json === '[DONE]') return ''
    const response = parseVendorJson(json)
    if (response === undefined) {
      this.#unreadable = invalidResponse('The vendor sent an event that is not JSON.')
      return ''
    }
    const blocks = this.#reader.read(response)
    return this.failure === undefined ? this.#open() + blocks.map((block) => this.#delta(block)).join('') : ''
  }

  #open(): string {
    if (this.#hasBegun) return ''
    this.#hasBegun = true
    return event('interaction.created', { interaction: { ...this.#interaction, status: 'in_progress' } })
  }

  #delta(block: OutputBlock): string {
    this.hasContent = true
    if (block.type === 'text') this.outputBytesSeen += Buffer.byteLength(block.text)
    const start = this.#hasStep ? '' : event('step.start', { index: 0, step: { type: 'model_output' } })
    this.#hasStep = true
    return start + event('step.delta', { index: 0, delta: block })
  }

  #close(): string {
    const { status, errors } = this.#reader.ending()
    const usage = generatedImageUsage(this.#reader.usageMetadata)
    this.isComplete = true
    this.hasContent = true
    // Output that the caller received was generated, and is charged.
    this.isRefusal = status === 'failed' && !this.#hasStep && !this.#reader.isCharged
    const interaction = {
      ...this.#interaction,
      status,
      ...(errors.length === 0 ? {} : { errors }),
      ...(usage === undefined ? {} : { usage }),
    }
    const stop = this.#hasStep ? event('step.stop', { index: 0 }) : ''
    return stop + redactGoogleKeys(event('interaction.completed', { interaction }), [this.#apiKey]) + SSE_DONE
  }
}

function event(type: string, payload: object): string {
  return sseEvent(type, JSON.stringify({ ...payload, event_type: type }))
}
