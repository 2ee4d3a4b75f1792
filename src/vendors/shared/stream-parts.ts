import { Buffer } from 'node:buffer'
import type { Usage } from '../../core/usage.ts'
import { EventLines, EventSplitter } from '../../wire/event-splitter.ts'
import { startsWith } from '../../wire/json-cursor.ts'
import { ByteEdits, findKnownString } from '../../wire/json-edits.ts'
import type { StreamTransform, VendorFailure } from '../vendor.ts'
import { invalidResponse } from './invalid-response.ts'

// Shared by all streams, because each one reads its events synchronously and lives long.
const edits = new ByteEdits()
const event = new EventLines()

/**
 * Passes a stream of server-sent events through as bytes. A dialect reads each complete event, and may edit it, remove it, end the
 * stream or fail it. Other events pass unchanged, including comments. Nothing is returned after the end or a failure.
 */
export abstract class PassThroughStream implements StreamTransform {
  hasContent = false
  isComplete = false
  failure: VendorFailure | undefined
  outputBytesSeen = 0
  abstract readonly usage: Usage | undefined
  readonly #splitter: EventSplitter
  #isOver = false
  #isWithheld = false

  /** @param maxEventBytes Maximum event size. By default, a 4K image fits. */
  constructor(maxEventBytes?: number) {
    this.#splitter = new EventSplitter(maxEventBytes)
  }

  /** Overridden by dialects that know it. */
  get hasTextEnded(): boolean {
    return false
  }

  get atBoundary(): boolean {
    return this.#splitter.heldBytes === 0
  }

  /** True between events. Dialects must copy what they keep of an event. */
  get holdsNoBytes(): boolean {
    return this.#splitter.heldBytes === 0
  }

  push(chunk: Uint8Array): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const complete = this.#splitter.take(chunk)
    const given = complete === undefined ? undefined : this.#pass(complete, false)
    // Bytes after the end are ignored, however many.
    if (this.#splitter.isOversize && !this.#isOver && !this.isComplete) {
      this.fail(invalidResponse('The vendor sent an event that is too large.'))
    }
    return given
  }

  end(): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const rest = this.#splitter.rest()
    const given = rest === undefined ? undefined : this.#pass(rest, true)
    const added = this.#isOver ? undefined : this.bodyEnded()
    return given === undefined || added === undefined ? (given ?? added) : Buffer.concat([given, added])
  }

  /**
   * Reads one event that has data. Its bytes are valid only during the call.
   * @param isRest Whether this is the remainder at the end of the body, which may be torn.
   */
  protected abstract readEvent(event: EventLines, isRest: boolean): void

  /** Returns the position after an event that passes unread, or -1 if {@link readEvent} must read it. */
  protected skipEvent(_bytes: Buffer, _start: number): number {
    return -1
  }

  /** Whether comments are removed from here on. */
  protected get dropsComments(): boolean {
    return false
  }

  /** Called if the vendor's body has ended and the stream neither ended nor failed. Returns bytes to add. */
  protected bodyEnded(): Buffer | undefined {
    return undefined
  }

  /** Sends the current event and nothing after it. */
  protected finish(): void {
    this.isComplete = true
    this.#isOver = true
  }

  /** Sends neither the current event nor anything after it. A complete answer stays complete. */
  protected fail(failure: VendorFailure): void {
    this.#isOver = true
    this.#isWithheld = true
    if (!this.isComplete) this.failure = failure
  }

  /** Handles an event that is not a JSON object. A torn last event is dropped: the body was cut, and `isComplete` is false. */
  protected failUnreadable(isRest: boolean): void {
    if (isRest) this.drop()
    else this.fail(invalidResponse('The vendor sent an event that is not a JSON object.'))
  }

  /** Removes the current event. */
  protected drop(): void {
    edits.replace(event.start, event.end, undefined)
  }

  /** Sends other bytes in place of the current event. */
  protected replaceEvent(replacement: Buffer): void {
    this.edit(event.start, event.end, replacement)
  }

  /** Replaces a span of the current event. Spans must be in order. */
  protected edit(start: number, end: number, replacement: Buffer): void {
    if (end - start === replacement.length && startsWith(event.bytes, start, replacement)) return
    edits.replace(start, end, replacement)
  }

  /** Replaces a string in the current event, found by its path and value. Returns false if it cannot be found reliably. */
  protected editString(path: readonly string[], value: unknown, replacement: Buffer): boolean {
    const { bytes, dataStart, dataEnd } = event
    const span = event.hasOneLine ? findKnownString(bytes, path, value, dataStart, dataEnd) : undefined
    if (span === undefined) return false
    this.edit(span.start, span.end, replacement)
    return true
  }

  /** @param textBytes Bytes of generated text in the event. */
  protected countContent(textBytes = 0): void {
    this.hasContent = true
    this.outputBytesSeen += textBytes
  }

  #pass(bytes: Buffer, isRest: boolean): Buffer | undefined {
    edits.clear()
    event.bytes = bytes
    let position = 0
    while (position < bytes.length && !this.#isOver) {
      const behind = isRest ? -1 : this.skipEvent(bytes, position)
      if (behind !== -1) {
        position = behind
        continue
      }
      event.read(bytes, position)
      if (event.hasData) this.readEvent(event, isRest)
      else if (isRest || this.dropsComments) this.drop()
      if (this.#isWithheld) break
      position = event.end
    }
    event.release()
    // The edits so far precede an event that failed.
    const given = edits.apply(bytes, position)
    return given.length === 0 ? undefined : given
  }
}
