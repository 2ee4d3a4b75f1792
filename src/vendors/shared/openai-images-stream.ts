import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { PARTIAL_IMAGE_TOKENS } from '../../endpoints/images/openai/openai-image-request.ts'
import { MAX_EVENT_BYTES } from '../../wire/sse.ts'
import type { AnswerStream, VendorFailure } from '../vendor.ts'
import { EventFrames } from './event-frames.ts'
import { type FrameLines, readFrame } from './frame-lines.ts'
import { invalidResponse } from './invalid-response.ts'
import { type MemberOutline, memberText, outlineMembers } from './member-outline.ts'
import { memberCalled } from './openai-images-answer.ts'
import { addedUsage, openaiImageUsage } from './openai-images-usage.ts'

/** What a stream of pictures must know of its call. */
export interface ImageStreamOptions {
  /** Pictures asked for; each ends with an event of its own. */
  readonly pictures: number
  /** Reads an error object that came inside the stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
  /** Largest event, in bytes; room for a 4K picture by default. */
  readonly maxEventBytes?: number
}

/**
 * Relays a stream of pictures (OpenAI API reference, image streaming events): events pass untouched, and are only looked
 * over for their type and usage. Errors are taken out. It is whole when every picture is complete, or when the vendor
 * ended it after at least one; whether it writes `[DONE]` makes no difference.
 */
export class OpenAIImageStream implements AnswerStream {
  hasContent = false
  isComplete = false
  failure: VendorFailure | undefined
  usage: Usage | undefined
  outputTokensSeen = 0

  readonly #options: ImageStreamOptions
  readonly #frames: EventFrames
  #completed = 0
  #isOver = false

  constructor(options: ImageStreamOptions) {
    this.#options = options
    this.#frames = new EventFrames(options.maxEventBytes ?? MAX_EVENT_BYTES)
  }

  get atBoundary(): boolean {
    return this.#frames.heldBytes === 0
  }

  push(chunk: Uint8Array): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const complete = this.#frames.take(chunk)
    const given = complete === undefined ? undefined : this.#relay(complete, false)
    if (this.#frames.isOversize) this.#fail(invalidResponse('The vendor sent an event that is too large.'))
    return given
  }

  end(): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const rest = this.#frames.rest()
    const given = rest === undefined ? undefined : this.#relay(rest, true)
    if (this.failure === undefined && this.#completed > 0) this.isComplete = true
    return given
  }

  #relay(bytes: Buffer, isRest: boolean): Buffer | undefined {
    let position = 0
    while (position < bytes.length) {
      const frame = readFrame(bytes, position)
      if (!this.#passes(frame, isRest)) break
      position = frame.end
    }
    return position === 0 ? undefined : bytes.subarray(0, position)
  }

  /** Looks an event over; false when neither it nor anything after it may go out. */
  #passes({ event, data }: FrameLines, isRest: boolean): boolean {
    if (data === undefined) return !isRest
    if (isEndMark(data)) {
      if (this.#completed > 0) this.isComplete = true
      return true
    }
    const members = outlineMembers(data)
    if (members === undefined) {
      // A torn last event is no fault of its own: the body was cut, and `isComplete` says so.
      if (!isRest) this.#fail(invalidResponse('The vendor sent an event that is not JSON.'))
      return false
    }
    const type = textMember(data, members, 'type') ?? event ?? ''
    if (event === 'error' || type === 'error' || holdsError(data, members)) {
      const envelope = parseVendorJson(Buffer.concat(data).toString('utf8'))
      this.#fail(this.#options.streamFailure(isJsonObject(envelope) ? envelope : {}))
      return false
    }
    this.#count(type, data, members)
    return true
  }

  #count(type: string, data: readonly Uint8Array[], members: readonly MemberOutline[]): void {
    if (type.endsWith('.partial_image')) {
      this.hasContent = true
      this.outputTokensSeen += PARTIAL_IMAGE_TOKENS
    } else if (type.endsWith('.completed')) {
      this.hasContent = true
      this.#completed += 1
      const member = memberCalled(members, 'usage')
      const reported = openaiImageUsage(member === undefined ? undefined : parseVendorJson(memberText(data, member)))
      this.usage = { ...addedUsage(this.usage ?? {}, reported), images: this.#completed }
      if (this.#completed >= this.#options.pictures) this.isComplete = true
    }
  }

  /** An error after the last picture takes nothing back: what is paid for is whole. */
  #fail(failure: VendorFailure): void {
    this.#isOver = true
    if (!this.isComplete) this.failure = failure
  }
}

function isEndMark(data: readonly Uint8Array[]): boolean {
  const [only] = data
  return data.length === 1 && only !== undefined && only.length < 16 && Buffer.from(only).toString().trim() === '[DONE]'
}

function textMember(data: readonly Uint8Array[], members: readonly MemberOutline[], name: string): string | undefined {
  const member = memberCalled(members, name)
  const value = member === undefined ? undefined : parseVendorJson(memberText(data, member))
  return typeof value === 'string' ? value : undefined
}

function holdsError(data: readonly Uint8Array[], members: readonly MemberOutline[]): boolean {
  const error = memberCalled(members, 'error')
  return error !== undefined && memberText(data, error) !== 'null'
}
