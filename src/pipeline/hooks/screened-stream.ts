import { Buffer } from 'node:buffer'
import { endOfTurn } from '../../core/calls-in-flight.ts'
import { GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { isPending } from '../../core/maybe-promise.ts'
import type { ErrorDialect } from '../../endpoints/error-dialect.ts'
import { EventLines, EventSplitter, eventPieces } from '../../endpoints/event-reader.ts'
import type { StreamTransform } from '../../endpoints/stream-transform.ts'
import {
  type AnswerObject,
  type AnswerTexts,
  NO_TEXT,
  type TextStreamReader,
  withTexts,
} from '../../endpoints/texts.ts'
import { type AnswerCall, AnswerStage, PlainEvents } from '../../hooks/answer-stage.ts'
import type { AnswerResult, CheckedDenial } from '../../hooks/hook.ts'
import type { CompiledHook } from '../../hooks/hook-table.ts'
import {
  rewrite,
  StreamDenial,
  type StreamWork,
  type TextEvent,
  type TextStage,
  textEvent,
} from '../../hooks/text-events.ts'
import { WindowStage } from '../../hooks/window-stage.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { SSE_COMMENT, sseData, sseEvent } from '../../wire/sse.ts'
import { MAX_ENTRY_BYTES, StreamRecording } from '../cache/cache-plan.ts'
import type { Reserved } from '../call-record.ts'
import type { PipelineContext } from '../pipeline-context.ts'
import { MAX_HOLD_BACK_MS, type StreamEnd, type StreamReceiver } from '../stream-call.ts'
import { deniedEnding } from '../stream-pump.ts'
import type { FailedResponse, OpenStream, StreamResponse } from '../vendor-response.ts'
import {
  ANSWER_RESULT,
  type AnswerScreen,
  callAnswer,
  callWindow,
  checkedResult,
  checkedTexts,
  denied,
  hookFailed,
  type Screening,
} from './hook-facts.ts'
import { checkedHeaders, denialOf } from './request-hooks.ts'

/**
 * Inserts hooks between a stream and its caller. Resolves when the first text may be sent, so that headers wait for it, but at
 * the latest after the maximum hold-back time of headers.
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
  reserved.caller.onDisconnect(() => stream.open())
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

/** Stream whose texts hooks read, hold back and replace before its receiver gets them. */
export class ScreenedStream implements OpenStream, StreamReceiver {
  readonly transform: StreamTransform
  /** Resolves when the receiver may be attached. */
  readonly opening: Promise<void>
  /** Set after a hook has ended the stream. */
  denial: StreamDenial | undefined
  readonly #inner: OpenStream
  readonly #errors: ErrorDialect
  readonly #recording: StreamRecording | undefined
  readonly #reader: TextStreamReader
  readonly #plain: PlainEvents | undefined
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

  /** @param recording Receives the bytes as they arrive, or `undefined` if nobody stores them. */
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
    this.#plain = PlainEvents.of(this.#reader)
    this.#stages = hooks.map((hook) =>
      hook.hook.text === undefined
        ? new AnswerStage(hook, call, this.#reader)
        : new WindowStage(hook, call, this.#reader),
    )
    this.transform = new ScreenedTransform(inner.transform, {
      keepAlive: () => this.#keepAlive(),
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

  /** Whether a stream that the hook has ended is charged. */
  get isCharged(): boolean {
    const { denial } = this
    return denial === undefined || (denial.isFault ? this.#hasSentText : denial.hook.chargesDenied)
  }

  open(): void {
    this.#resolveOpening()
  }

  attach(receiver: StreamReceiver): void {
    // If the stream ends while buffered bytes are passed on, the receiver is notified directly.
    const over = this.#over
    this.#receiver = receiver
    this.#flush()
    if (over !== undefined) receiver.onStreamEnd(over)
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
    // A short read may have expanded to many events.
    this.#waiting.push(...eventPieces(read, PIECE_BYTES))
    this.#work()
  }

  onStreamEnd(end: StreamEnd): void {
    if (this.#isOver) return
    this.#end = end
    this.#work()
  }

  /** Processes the received bytes, one piece at a time. The vendor is paused while a hook works. */
  #work(): void {
    if (this.#isOver || this.#isBusy) return
    if (this.#waiting.length > 0) {
      const bytes = joinChunks(this.#waiting.splice(0, MAX_READS))
      const events = this.#eventsIn(bytes)
      let passed: TextEvent[] | undefined
      try {
        passed = this.#passQuietly(events)
      } catch (cause) {
        this.#failed(cause)
        return
      }
      if (passed !== undefined) {
        this.#write(passed)
        this.#continue()
      } else
        this.#drive(this.#pass(events), (passing) => {
          this.#write(passing)
          this.#continue()
        })
    } else if (this.#end !== undefined) {
      const end = this.#end
      this.#drive(this.#finish(), () => this.#finished(end))
    }
  }

  /** Processes bytes that arrived meanwhile, after other work of the process. */
  #continue(): void {
    if (this.#waiting.length > 0) this.#drive(anotherTurn(), () => this.#work())
    else if (this.#end !== undefined) this.#work()
  }

  /** Runs a step of work until it waits, and continues it later. */
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
        done(result.value)
        // Must be last: the rest of the stream may arrive before this returns, and belongs after the completed work.
        if (wasBusy && !this.#isBusy && !this.#isPausedByReceiver) this.#inner.resume()
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

  /** Returns events that need no check by a hook, as for most reads, or `undefined` if a hook must check them. */
  #passQuietly(events: TextEvent[]): TextEvent[] | undefined {
    // With several stages, each one receives the output of the previous one.
    const [only] = this.#stages
    return this.#stages.length === 1 ? only?.pushQuiet?.(events) : undefined
  }

  *#pass(events: TextEvent[]): StreamWork<TextEvent[]> {
    let passing = events
    for (const stage of this.#stages) passing = stage.pushQuiet?.(passing) ?? (yield* stage.push(passing))
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
    // The abort may appear as an end by the vendor.
    this.#isOver = true
    this.#inner.abort()
    const error = denial?.denial.error ?? GatewayError.from(cause)
    this.#finished({ kind: 'denied', error, isCharged: this.isCharged })
  }

  /** Returns the heartbeat of a silent stream. Its number follows the sent events, not those held back. */
  #keepAlive(): Uint8Array | string {
    const told = this.#inner.transform.keepAlive?.() ?? SSE_COMMENT
    this.#recording?.add(told)
    const events = this.#eventsIn(typeof told === 'string' ? Buffer.from(told) : told)
    for (const { value } of events) if (value !== undefined) this.#reader.sent(value)
    return this.#reader.hasBegun === false ? SSE_COMMENT : joinChunks(events.map((event) => this.#bytesOf(event)))
  }

  #failedWith(error: GatewayError): string {
    const { denial } = this
    if (denial?.denial.isRefusal === true) return this.#reader.refusal(denial.denial.error.message)
    const told = this.#inner.transform.failed?.(error)
    if (told === undefined) return this.#errors.streamEvent(error)
    // The end of a broken stream may repeat text that was held back.
    const events = this.#eventsIn(Buffer.from(told))
    for (const event of events) {
      const parts = [...event.added, ...event.repeated]
      const sent = parts.map((part) => [part, this.#stages.at(-1)?.sentOf(part.id) ?? ''] as const)
      rewrite(event, new Map(sent), this.#reader)
    }
    return Buffer.from(joinChunks(events.map((event) => this.#bytesOf(event)))).toString('utf8')
  }

  /** Returns a whole answer with the texts that were sent. */
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
    // Combines consecutive comments and empty events, which may be many.
    let from = 0
    const passIdle = (end: number): void => {
      if (from < end) events.push(textEvent(buffer.subarray(from, end), undefined, undefined, NO_TEXT))
      from = end
    }
    for (let start = 0; start < buffer.length; start = lines.end) {
      const plain = this.#plain?.read(buffer, start)
      if (plain !== undefined) {
        passIdle(start)
        events.push(plain)
        from = this.#plain!.end
        lines.end = from
        continue
      }
      lines.read(buffer, start)
      if (!lines.hasData) continue
      passIdle(start)
      from = lines.end
      const own = buffer.subarray(start, lines.end)
      const value = lines.isEndMark ? undefined : parseVendorJson(lines.text)
      if (isJsonObject(value)) {
        const event = textEvent(own, lines.name, value, this.#reader.read(value))
        this.#plain?.learn(event)
        events.push(event)
      } else events.push(textEvent(own, undefined, undefined, lines.isEndMark ? END_MARK : NO_TEXT))
    }
    passIdle(buffer.length)
    lines.release()
    return events
  }

  #write(events: readonly TextEvent[]): void {
    if (events.length === 0) return
    for (const event of events) {
      this.#out.push(this.#bytesOf(event))
      if (!event.isPlain && event.value !== undefined) this.#reader.sent(event.value)
      if (event.added.length > 0) this.#hasSentText = true
    }
    if (this.#receiver !== undefined) this.#flush()
    else if (this.#hasSentText) this.open()
  }

  #bytesOf(event: TextEvent): Uint8Array {
    if (event.isPlain && !event.isChanged && event.bytes !== undefined) return event.bytes
    const { bytes, name, value, isChanged } = event
    const isRenumbered = value !== undefined && this.#reader.numbered?.(value) === true
    const isMended = value !== undefined && this.#reader.mended?.(value) === true
    if (bytes !== undefined && !isChanged && !isRenumbered && !isMended) return bytes
    const json = exactJsonText(value)
    return Buffer.from(name === undefined ? sseData(json) : sseEvent(name, json))
  }

  #flush(): void {
    const chunks = this.#out
    if (chunks.length === 0) return
    this.#out = []
    this.#receiver?.onBytes(joinChunks(chunks))
  }
}

/** Maximum number of reads, or pieces of them, whose events are processed in one turn of the event loop. */
const MAX_READS = 4

/** Number of bytes of a read after which its next event begins another piece. */
const PIECE_BYTES = 16 * 1024

function* anotherTurn(): StreamWork<void> {
  yield endOfTurn()
}

const END_MARK = { ...NO_TEXT, ended: [''] }

/** Screened versions of the texts that a transform repeats. */
interface ScreenedTexts {
  keepAlive(): Uint8Array | string
  closing(): Uint8Array | undefined
  failed(error: GatewayError): string
  kept(answer: AnswerObject): AnswerObject
}

/** Read-only view of a stream's transform whose texts are screened. Nothing can be pushed into it. */
class ScreenedTransform implements StreamTransform {
  /** Only whole events are sent. */
  readonly atBoundary = true
  readonly #inner: StreamTransform
  readonly #texts: ScreenedTexts

  constructor(inner: StreamTransform, texts: ScreenedTexts) {
    this.#inner = inner
    this.#texts = texts
  }

  keepAlive(): Uint8Array | string {
    return this.#texts.keepAlive()
  }

  push(): never {
    throw new TypeError('a screened stream accepts no bytes')
  }

  end(): never {
    throw new TypeError('a screened stream accepts no bytes')
  }

  get hasContent(): boolean {
    return this.#inner.hasContent
  }

  get isComplete(): boolean {
    return this.#inner.isComplete
  }

  get failure(): StreamTransform['failure'] {
    return this.#inner.failure
  }

  get usage(): StreamTransform['usage'] {
    return this.#inner.usage
  }

  get countsUsage(): boolean {
    return this.#inner.countsUsage === true
  }

  get serviceTier(): string | undefined {
    return this.#inner.serviceTier
  }

  get outputBytesSeen(): number {
    return this.#inner.outputBytesSeen
  }

  get innerImagesSeen(): number | undefined {
    return this.#inner.innerImagesSeen
  }

  get hasTextEnded(): boolean {
    return this.#inner.hasTextEnded === true
  }

  get hasRunningUsage(): boolean {
    return this.#inner.hasRunningUsage === true
  }

  get isRefusal(): boolean {
    return this.#inner.isRefusal === true
  }

  get answerIds(): StreamTransform['answerIds'] {
    return this.#inner.answerIds
  }

  get keptAnswer(): StreamTransform['keptAnswer'] {
    const { keptAnswer } = this.#inner
    return keptAnswer && this.#texts.kept({ ...keptAnswer })
  }

  get closing(): Uint8Array | undefined {
    return this.#texts.closing()
  }

  failed(error: GatewayError): string {
    return this.#texts.failed(error)
  }
}

/** Returns the functions of a streamed call that the stages of the stream need. */
function answerCallOf(screen: AnswerScreen, inner: OpenStream): AnswerCall {
  const { context, reserved, candidate } = screen
  const model = candidate.model.id
  const failedFor = (point: 'text' | 'answer'): AnswerCall['failed'] => {
    const told = new Set<string>()
    return (hook, fault, error) => {
      // Emits one event per hook and stream, however many windows the hook fails on.
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
