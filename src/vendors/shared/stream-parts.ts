import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { type ArgumentsMember, parseAnswerJson } from '../../endpoints/answer-json.ts'
import { EventLines, EventSplitter } from '../../wire/event-splitter.ts'
import { type JsonPath, KnownEvents } from '../../wire/event-template.ts'
import { type ByteSpan, startsWith } from '../../wire/json-cursor.ts'
import { ByteEdits, findKnownString } from '../../wire/json-edits.ts'
import type { StreamTransform, VendorFailure } from '../vendor.ts'
import { invalidResponse } from './invalid-response.ts'

// Shared by all streams, because each one reads its events synchronously and lives long.
const edits = new ByteEdits()
const event = new EventLines()

/**
 * Reads a vendor's stream of server-sent events, one event at a time, at any chunk borders. Nothing is read after the end or a
 * failure. Events that differ from an earlier one only in a text may be read without parsing.
 * @typeParam Kind Facts of a dialect about such events.
 */
abstract class EventReader<Kind> {
  failure: VendorFailure | undefined
  readonly #splitter: EventSplitter
  /** Created with the first event that is learned, because a stream lives long. */
  #known: KnownEvents<Kind> | undefined
  #isOver = false

  /** @param maxEventBytes Maximum event size. By default, a 4K image fits. */
  constructor(maxEventBytes?: number) {
    this.#splitter = new EventSplitter(maxEventBytes)
  }

  /** True between events. Dialects must copy what they keep of an event. */
  get holdsNoBytes(): boolean {
    return this.#splitter.heldBytes === 0
  }

  /** Whether the answer is complete. */
  abstract readonly isComplete: boolean

  /** Whether nothing more is read. */
  protected get isOver(): boolean {
    return this.#isOver
  }

  /** Member in which the dialect sends the arguments of a tool call as an object, if any. */
  protected readonly argumentsMember: ArgumentsMember | undefined = undefined

  /** Reads the data of one event. The bytes of the event are valid only during the call. */
  protected readValue(_value: Record<string, unknown>, _event: EventLines): void {}

  /**
   * Reads one event that has data. Dialects override it if they do not parse all data.
   * @param isRest Whether this is the remainder at the end of the body, which may be torn.
   */
  protected readEvent(event: EventLines, isRest: boolean): void {
    const value = parseAnswerJson(event.text, this.argumentsMember)
    if (isJsonObject(value)) this.readValue(value, event)
    else if (event.isEndMark) this.readEndMark()
    else this.failUnreadable(event, isRest)
  }

  /** Reads the end mark of OpenAI's dialect, which proxies also add to other dialects. */
  protected readEndMark(): void {}

  /** Reads an event like one that was learned. Returns false if it must be parsed. */
  protected readKnown(_known: KnownEvents<Kind>, _kind: Kind, _start: number): boolean {
    return false
  }

  /** Whether learned events may now pass without being parsed. */
  protected get readsKnown(): boolean {
    return true
  }

  /** Called if the event has no data. */
  protected readComment(_isRest: boolean): void {}

  /** Called if the vendor's body has ended and the stream neither ended nor failed. Returns bytes to add. */
  protected bodyEnded(): Buffer | undefined {
    return undefined
  }

  /** Ends the stream. */
  protected finish(): void {
    this.#isOver = true
  }

  /** Ends the stream with a failure. A complete answer stays complete. */
  protected fail(failure: VendorFailure): void {
    this.#isOver = true
    if (!this.isComplete) this.failure = failure
  }

  /** Handles an event that is not a JSON object. A torn last event is ignored: the body was cut, and `isComplete` is false. */
  protected failUnreadable(_event: EventLines, isRest: boolean): void {
    if (!isRest) this.fail(invalidResponse('The vendor sent an event that is not a JSON object.'))
  }

  /** Learns the current event; see {@link KnownEvents}. */
  protected learn(value: object, paths: readonly JsonPath[], kind: Kind, fixedBytes?: number): void {
    if (!event.hasOneLine) return
    this.#known ??= new KnownEvents()
    this.#known.learn(event.bytes.subarray(event.start, event.end), value, paths, kind, fixedBytes)
  }

  protected readChunk(chunk: Uint8Array): Buffer | undefined {
    if (this.#isOver) return undefined
    const complete = this.#splitter.take(chunk)
    const given = complete === undefined ? undefined : this.readAll(complete, false)
    // Bytes after the end are ignored, however many.
    if (this.#splitter.isOversize && !this.#isOver && !this.isComplete)
      this.fail(invalidResponse('The vendor sent an event that is too large.'))
    return given
  }

  protected readRest(): Buffer | undefined {
    if (this.#isOver) return undefined
    const rest = this.#splitter.rest()
    const given = rest === undefined ? undefined : this.readAll(rest, true)
    const added = this.#isOver ? undefined : this.bodyEnded()
    return given === undefined || added === undefined ? (given ?? added) : Buffer.concat([given, added])
  }

  /** Reads whole events. Returns the bytes that pass on, if any. */
  protected readAll(bytes: Buffer, isRest: boolean): Buffer | undefined {
    this.readEvents(bytes, isRest)
    return undefined
  }

  /** Returns the position after the last event that was read. */
  protected readEvents(bytes: Buffer, isRest: boolean): number {
    event.bytes = bytes
    let position = 0
    while (position < bytes.length && !this.#isOver) {
      const behind = isRest ? -1 : this.#behindKnown(bytes, position)
      if (behind !== -1) {
        position = behind
        continue
      }
      event.read(bytes, position)
      if (event.dataStart !== -1) this.readEvent(event, isRest)
      else this.readComment(isRest)
      position = event.end
    }
    event.release()
    this.#known?.release()
    return position
  }

  /** Returns the position after an event like one that was learned, or -1. */
  #behindKnown(bytes: Buffer, start: number): number {
    const known = this.#known
    if (known === undefined || !this.readsKnown) return -1
    const kind = known.match(bytes, start)
    return kind !== undefined && this.readKnown(known, kind, start) ? known.end : -1
  }
}

/** Decodes a vendor's stream of server-sent events, for dialects that are translated. */
export abstract class EventDecoder<Kind = never> extends EventReader<Kind> {
  push(chunk: Uint8Array): void {
    this.readChunk(chunk)
  }

  end(): void {
    this.readRest()
  }

  protected override readEvent(event: EventLines, isRest: boolean): void {
    // Some servers send events without data to keep a connection open.
    if (event.dataEnd > event.dataStart || !event.hasOneLine) super.readEvent(event, isRest)
  }
}

/**
 * Passes a stream of server-sent events through as bytes. A dialect reads each complete event, and may edit it, remove it, end the
 * stream or fail it. Other events pass unchanged, including comments. Nothing is returned after the end or a failure.
 */
export abstract class PassThroughStream<Kind = never> extends EventReader<Kind> implements StreamTransform {
  hasContent = false
  isComplete = false
  outputBytesSeen = 0
  abstract readonly usage: Usage | undefined
  #isWithheld = false

  /** Overridden by dialects that know it. */
  get hasTextEnded(): boolean {
    return false
  }

  get atBoundary(): boolean {
    return this.holdsNoBytes
  }

  push(chunk: Uint8Array): Uint8Array | undefined {
    return this.readChunk(chunk)
  }

  end(): Uint8Array | undefined {
    return this.readRest()
  }

  /** Whether comments are removed from here on. */
  protected get dropsComments(): boolean {
    return false
  }

  protected override readEndMark(): void {
    this.drop()
  }

  protected override readComment(isRest: boolean): void {
    if (isRest || this.dropsComments) this.drop()
  }

  /** Sends the current event and nothing after it. */
  protected override finish(): void {
    this.isComplete = true
    super.finish()
  }

  /** Sends neither the current event nor anything after it. A complete answer stays complete. */
  protected override fail(failure: VendorFailure): void {
    this.#isWithheld = true
    super.fail(failure)
  }

  protected override failUnreadable(event: EventLines, isRest: boolean): void {
    if (isRest) this.drop()
    super.failUnreadable(event, isRest)
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

  /**
   * Replaces a string in the current event, found by its path and value. Returns its span, counted from the start of the event, or
   * `undefined` if it cannot be found reliably.
   */
  protected editString(path: readonly string[], value: unknown, replacement: Buffer): ByteSpan | undefined {
    const { bytes, start, dataStart, dataEnd } = event
    const span = event.hasOneLine ? findKnownString(bytes, path, value, dataStart, dataEnd) : undefined
    if (span === undefined) return undefined
    this.edit(span.start, span.end, replacement)
    return { start: span.start - start, end: span.end - start }
  }

  /** @param textBytes Bytes of generated text in the event. */
  protected countContent(textBytes = 0): void {
    this.hasContent = true
    this.outputBytesSeen += textBytes
  }

  protected override readAll(bytes: Buffer, isRest: boolean): Buffer | undefined {
    edits.clear()
    const position = this.readEvents(bytes, isRest)
    // The edits so far precede an event that failed.
    const given = edits.apply(bytes, this.#isWithheld ? event.start : position)
    return given.length === 0 ? undefined : given
  }
}
