import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import { isJsonObject, parseVendorJson } from '../core/json.ts'
import { isPending } from '../core/maybe-promise.ts'
import type { ErrorDialect } from '../endpoints/error-dialect.ts'
import type { StreamTransform } from '../endpoints/stream-transform.ts'
import { type AnswerObject, type AnswerTexts, NO_TEXT, type TextStreamReader, withTexts } from '../endpoints/texts.ts'
import { type AnswerCall, AnswerStage } from '../hooks/answer-stage.ts'
import type { CheckedDenial } from '../hooks/denial.ts'
import type { AnswerResult } from '../hooks/hook.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import {
  rewrite,
  StreamDenial,
  type StreamWork,
  type TextEvent,
  type TextStage,
  textEvent,
} from '../hooks/text-events.ts'
import { WindowStage } from '../hooks/window-stage.ts'
import { EventLines, EventSplitter } from '../wire/event-splitter.ts'
import { joinChunks } from '../wire/join-chunks.ts'
import { sseData, sseEvent } from '../wire/sse.ts'
import { MAX_ENTRY_BYTES } from './cache/cache-plan.ts'
import type { Reserved } from './call-record.ts'
import { ANSWER_RESULT, checkedResult, checkedTexts, denied, hookFailed } from './hook-facts.ts'
import { checkedHeaders } from './hook-headers.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { denialOf } from './request-hooks.ts'
import { ScreenedTransform } from './screened-transform.ts'
import { type AnswerScreen, callAnswer, callWindow, type Screening } from './shown-answer.ts'
import { MAX_HOLD_BACK_MS, type StreamEnd, type StreamReceiver } from './stream-call.ts'
import { deniedEnding } from './stream-pump.ts'
import { StreamRecording } from './stream-recording.ts'
import type { FailedResponse, OpenStream, StreamResponse } from './vendor-response.ts'

/**
 * Puts hooks between a stream and its caller. Resolves when the first text may go, so that headers wait with it; at the latest after
 * the time for which headers are held back anyway.
 */
export async function screenStream(
  context: PipelineContext,
  reserved: Reserved,
  response: StreamResponse,
  { hooks, reader, jsonSchema }: Screening & Pick<AnswerScreen, 'jsonSchema'>,
): Promise<StreamResponse | FailedResponse> {
  const inner = response.call
  const { candidate } = response
  const screen: AnswerScreen = { context, reserved, candidate, usage: undefined, jsonSchema }
  const { cachePlan } = reserved
  if (cachePlan?.key !== undefined) cachePlan.recording = new StreamRecording(MAX_ENTRY_BYTES)
  const stream = new ScreenedStream(inner, screen, { hooks, reader }, cachePlan?.recording)
  const waitedMs = context.clock.now() - reserved.startedAtMs
  const timer = context.clock.schedule(Math.max(0, MAX_HOLD_BACK_MS - waitedMs), () => stream.open())
  reserved.caller.onDisconnect = () => stream.open()
  await stream.opening
  timer.cancel()
  const { denial } = stream
  if (denial === undefined || denial.denial.isRefusal || reserved.caller.isDisconnected) {
    response.call = stream
    return response
  }
  // Nothing was sent, so the error can have its own status.
  const { error } = denial.denial
  response.end(inner.transform.isComplete ? 'completed' : 'aborted')
  const ending = deniedEnding(reserved, response, { error, isCharged: stream.isCharged })
  return { kind: 'failed', error, candidate, mayHaveBegun: true, ending }
}

function answerCallOf(screen: AnswerScreen, inner: OpenStream): AnswerCall {
  const { context, reserved, candidate } = screen
  const model = candidate.model.id
  const failedFor = (point: 'text' | 'answer'): AnswerCall['failed'] => {
    const told = new Set<string>()
    return (hook, fault, error) => {
      // One event for each hook of a stream, however many windows it fails on.
      if (hook.isOpen && told.has(hook.name)) return undefined
      told.add(hook.name)
      const failure = hookFailed(context, reserved, model, { hook, point, fault, error })
      return failure && { error: failure, isRefusal: false, fault: undefined }
    }
  }
  const failed = failedFor('text')
  const answerFailed = failedFor('answer')
  const deny = (hook: CompiledHook, point: 'text' | 'answer', denial: unknown): CheckedDenial =>
    denied(context, reserved, model, { hook, point, denial })
  return {
    check: (hook, window) => callWindow(screen, hook, window),
    denied: (hook, denial) => deny(hook, 'text', denial),
    failed: (hook, fault, error) => (hook.hook.text === undefined ? answerFailed : failed)(hook, fault, error),
    answer(hook, parts) {
      const called = callAnswer({ ...screen, usage: inner.transform.usage }, hook, { body: undefined, parts })
      const read = (outcome: Awaited<typeof called>): ReadonlyMap<string, string> | StreamDenial | undefined => {
        if (outcome.kind === 'result') {
          const denial = denialOf(outcome.result)
          if (denial !== undefined) return new StreamDenial(hook, deny(hook, 'answer', denial.deny), false)
        }
        try {
          if (outcome.kind === 'fault') return failing(hook, outcome.fault, outcome.error)
          const { texts, headers } = checkedResult<AnswerResult>(outcome.result, ANSWER_RESULT) ?? {}
          const added = headers === undefined ? undefined : checkedHeaders(headers)
          const changed = texts === undefined ? undefined : checkedTexts(texts, parts)
          if (added !== undefined) reserved.addHeaders(added)
          return changed
        } catch (error) {
          return failing(hook, 'unusable-result', error)
        }
      }
      return isPending(called) ? called.then(read) : read(called)
    },
  }

  function failing(hook: CompiledHook, ...[fault, error]: [Parameters<AnswerCall['failed']>[1], unknown]) {
    const denial = answerFailed(hook, fault, error)
    return denial && new StreamDenial(hook, denial, true)
  }
}

/** A stream whose texts hooks read, hold back and replace, before its receiver gets them. */
export class ScreenedStream implements OpenStream, StreamReceiver {
  readonly transform: StreamTransform
  /** Resolves when the receiver may be attached. */
  readonly opening: Promise<void>
  /** Set once a hook has ended the stream. */
  denial: StreamDenial | undefined
  readonly #inner: OpenStream
  readonly #errors: ErrorDialect
  readonly #recording: StreamRecording | undefined
  readonly #reader: TextStreamReader
  readonly #stages: readonly TextStage[]
  readonly #splitter = new EventSplitter()
  readonly #lines = new EventLines()
  readonly #waiting: Uint8Array[] = []
  #out: Uint8Array[] = []
  #isBusy = false
  #isPausedByReceiver = false
  #hasSentText = false
  #end: StreamEnd | undefined
  #isOver = false
  #over: StreamEnd | undefined
  #receiver: StreamReceiver | undefined
  #resolveOpening: () => void = () => undefined
  #closing: Uint8Array | undefined

  /** @param recording Gets the bytes as they come; undefined: nobody keeps them. */
  constructor(
    inner: OpenStream,
    screen: AnswerScreen,
    { hooks, reader: texts }: Screening,
    recording?: StreamRecording,
  ) {
    const call = answerCallOf(screen, inner)
    this.#inner = inner
    this.#errors = screen.reserved.endpoint.errors
    this.#recording = recording
    this.#reader = texts.stream()
    this.#stages = hooks.map((hook) =>
      hook.hook.text === undefined
        ? new AnswerStage(hook, call, this.#reader)
        : new WindowStage(hook, call, this.#reader),
    )
    this.transform = new ScreenedTransform(inner.transform, {
      closing: () => this.#closing,
      failed: (error) => this.#failedWith(error),
      kept: (answer) => this.#screened(answer, texts),
    })
    this.opening = new Promise((resolve) => {
      this.#resolveOpening = resolve
    })
    inner.attach(this)
  }

  get vendorRequestId(): string | undefined {
    return this.#inner.vendorRequestId
  }

  /** Is what the hook has ended charged for? */
  get isCharged(): boolean {
    const { denial } = this
    return denial === undefined || (denial.isFault ? this.#hasSentText : denial.hook.chargesDenied)
  }

  open(): void {
    this.#resolveOpening()
  }

  attach(receiver: StreamReceiver): void {
    this.#receiver = receiver
    this.#flush()
    if (this.#over !== undefined) receiver.onStreamEnd(this.#over)
  }

  pause(): void {
    this.#isPausedByReceiver = true
    this.#inner.pause()
  }

  resume(): void {
    this.#isPausedByReceiver = false
    if (!this.#isBusy) this.#inner.resume()
  }

  readAtMost(byteLength: number): void {
    this.#inner.readAtMost(byteLength)
  }

  abort(): void {
    this.#inner.abort()
  }

  onBytes(bytes: Uint8Array | string): void {
    if (this.#isOver) return
    this.#recording?.add(bytes)
    const read = this.#splitter.take(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
    if (read === undefined) return
    this.#waiting.push(read)
    if (!this.#isBusy) this.#work()
  }

  onStreamEnd(end: StreamEnd): void {
    if (this.#isOver) return
    this.#end = end
    if (!this.#isBusy) this.#work()
  }

  /** Works on what has come; the vendor waits while a hook does. */
  #work(): void {
    if (this.#isOver) return
    if (this.#waiting.length > 0) {
      const bytes = joinChunks(this.#waiting)
      this.#waiting.length = 0
      this.#drive(this.#pass(this.#eventsIn(bytes)), (events) => {
        this.#write(events)
        this.#work()
      })
    } else if (this.#end !== undefined) {
      const end = this.#end
      this.#drive(this.#finish(), () => this.#finished(end))
    }
  }

  /** Runs a work until it waits, and goes on when it may. */
  #drive<Result>(work: StreamWork<Result>, done: (result: Result) => void): void {
    const step = (next: () => IteratorResult<PromiseLike<unknown>, Result>): void => {
      let result: IteratorResult<PromiseLike<unknown>, Result>
      try {
        result = next()
      } catch (cause) {
        this.#failed(cause)
        return
      }
      if (result.done === true) {
        const wasBusy = this.#isBusy
        this.#isBusy = false
        if (wasBusy && !this.#isPausedByReceiver) this.#inner.resume()
        done(result.value)
        return
      }
      if (!this.#isBusy) this.#inner.pause()
      this.#isBusy = true
      result.value.then(
        (value) => step(() => work.next(value)),
        (error: unknown) => step(() => work.throw(error)),
      )
    }
    step(() => work.next())
  }

  *#pass(events: TextEvent[]): StreamWork<TextEvent[]> {
    let passing = events
    for (const stage of this.#stages) passing = yield* stage.push(passing)
    return passing
  }

  *#finish(): StreamWork<void> {
    const rest = this.#splitter.rest()
    let passing = rest === undefined ? [] : this.#eventsIn(rest)
    for (const stage of this.#stages) {
      passing = yield* stage.push(passing)
      passing.push(...(yield* stage.end()))
    }
    this.#write(passing)
    const { closing } = this.#inner.transform
    if (closing === undefined) return
    this.#recording?.add(closing)
    const last = yield* this.#pass(this.#eventsIn(typeof closing === 'string' ? Buffer.from(closing) : closing))
    this.#closing = joinChunks(last.map((event) => this.#bytesOf(event)))
  }

  #finished(end: StreamEnd): void {
    this.#isOver = true
    this.#over = end
    this.open()
    this.#receiver?.onStreamEnd(end)
  }

  #failed(cause: unknown): void {
    const denial = cause instanceof StreamDenial ? cause : undefined
    this.denial = denial
    this.#waiting.length = 0
    // The abort may be told as an end of the vendor's.
    this.#isOver = true
    this.#inner.abort()
    const error = denial?.denial.error ?? GatewayError.from(cause)
    this.#finished({ kind: 'denied', error, isCharged: this.isCharged })
  }

  #failedWith(error: GatewayError): string {
    const { denial } = this
    if (denial?.denial.isRefusal === true) return this.#reader.refusal(denial.denial.error.message)
    const told = this.#inner.transform.failed?.(error)
    if (told === undefined) return this.#errors.streamEvent(error)
    // The end of a stream that broke may repeat what was held back.
    const events = this.#eventsIn(Buffer.from(told))
    for (const event of events)
      for (const part of [...event.added, ...event.repeated])
        rewrite(event, part, this.#stages.at(-1)?.sentOf(part.id) ?? '', this.#reader)
    return Buffer.from(joinChunks(events.map((event) => this.#bytesOf(event)))).toString('utf8')
  }

  /** A whole answer with the texts that were sent. */
  #screened(answer: AnswerObject, texts: AnswerTexts): AnswerObject {
    const parts = texts.whole(answer)
    const last = this.#stages.at(-1)
    const sent = new Map(parts.map(({ id, kind }) => [id, last?.sentOf(id) ?? (kind === 'tool_arguments' ? '{}' : '')]))
    if (parts.every(({ id, text }) => sent.get(id) === text)) return answer
    const screened = structuredClone(withTexts(answer, parts, sent))
    texts.replaced?.(screened)
    return screened
  }

  #eventsIn(bytes: Uint8Array): TextEvent[] {
    const events: TextEvent[] = []
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const lines = this.#lines
    for (let start = 0; start < buffer.length; start = lines.end) {
      lines.read(buffer, start)
      const own = buffer.subarray(start, lines.end)
      const value = lines.hasData && !lines.isEndMark ? parseVendorJson(lines.text) : undefined
      if (isJsonObject(value)) events.push(textEvent(own, lines.name, value, this.#reader.read(value)))
      else events.push(textEvent(own, undefined, undefined, lines.isEndMark ? END_MARK : NO_TEXT))
    }
    lines.release()
    return events
  }

  #write(events: readonly TextEvent[]): void {
    if (events.length === 0) return
    for (const event of events) {
      this.#out.push(this.#bytesOf(event))
      if (event.value !== undefined) this.#reader.sent(event.value)
      if (event.added.length > 0) this.#hasSentText = true
    }
    if (this.#receiver !== undefined) this.#flush()
    else if (this.#hasSentText) this.open()
  }

  #bytesOf({ bytes, name, value, isChanged }: TextEvent): Uint8Array {
    const isRenumbered = value !== undefined && this.#reader.numbered?.(value) === true
    if (bytes !== undefined && !isChanged && !isRenumbered) return bytes
    const json = JSON.stringify(value)
    return Buffer.from(name === undefined ? sseData(json) : sseEvent(name, json))
  }

  #flush(): void {
    const chunks = this.#out
    if (chunks.length === 0) return
    this.#out = []
    this.#receiver?.onBytes(joinChunks(chunks))
  }
}

const END_MARK = { ...NO_TEXT, ended: [''] }
