import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { Recording } from '../../endpoints/transcriptions/audio-length.ts'
import { transcriptionUsage } from '../../endpoints/transcriptions/transcription-usage.ts'
import type { EventLines } from '../../wire/event-splitter.ts'
import { sseData } from '../../wire/sse.ts'
import type { VendorFailure } from '../vendor.ts'
import { PassThroughStream } from './pass-through-stream.ts'
import { tellsPurchasePrice, withoutPurchasePrice } from './purchase-price.ts'

/** Facts about the call that a streamed transcript needs. */
export interface TranscriptionStreamOptions {
  readonly request: Recording
  /** Whether the caller is billed, so that events must not show the operator's cost. */
  readonly isBilled?: boolean | undefined
  /** Reads an error object inside the stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/** Maximum event size. The last event contains the whole text. */
const MAX_TRANSCRIPT_EVENT_BYTES = 16 * 1024 * 1024

/**
 * Passes a streamed transcript on (OpenAI API, "Transcription events"): its events pass untouched, and only the length of their
 * text and their usage are read. It is complete after `transcript.text.done`; `[DONE]` is not required.
 */
export class OpenAITranscriptionStream extends PassThroughStream {
  usage: Usage | undefined
  readonly #isBilled: boolean
  readonly #streamFailure: TranscriptionStreamOptions['streamFailure']
  /** Excludes the request, which contains the recording. */
  readonly #recording: Recording

  constructor({ request, isBilled, streamFailure }: TranscriptionStreamOptions) {
    super(MAX_TRANSCRIPT_EVENT_BYTES)
    this.#isBilled = isBilled === true
    this.#streamFailure = streamFailure
    this.#recording = { audio: request.audio, file: { byteLength: request.file.byteLength } }
  }

  override get hasTextEnded(): boolean {
    return this.isComplete
  }

  protected readEvent(event: EventLines, isRest: boolean): void {
    if (event.isEndMark) return
    const data = parseVendorJson(event.text)
    if (!isJsonObject(data)) {
      this.failUnreadable(isRest)
      return
    }
    const type = typeof data['type'] === 'string' ? data['type'] : (event.name ?? '')
    if (event.name === 'error' || type === 'error' || isJsonObject(data['error'])) {
      this.fail(this.#streamFailure(data))
    } else if (type === 'transcript.text.delta') this.#count(data['delta'])
    else if (type === 'transcript.text.segment') this.#count(data['text'])
    else if (type === 'transcript.text.done') this.#end(data)
  }

  #end(data: Record<string, unknown>): void {
    if (this.outputBytesSeen === 0) this.#count(data['text'])
    this.hasContent = true
    this.isComplete = true
    this.usage = transcriptionUsage(data, this.#recording)
    const { usage } = data
    if (this.#isBilled && tellsPurchasePrice(usage))
      this.replaceEvent(Buffer.from(sseData(JSON.stringify({ ...data, usage: withoutPurchasePrice(usage) }))))
  }

  #count(text: unknown): void {
    if (typeof text === 'string') this.countContent(Buffer.byteLength(text))
  }
}
