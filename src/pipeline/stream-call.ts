import type { Clock, Timer } from '../core/clock.ts'
import type { GatewayError } from '../core/errors.ts'
import { freeMemory } from '../core/memory-use.ts'
import type { ChunkedAnswer } from '../endpoints/operation.ts'
import type { IncrementalEncoder, StreamTransform, VendorFailure } from '../endpoints/stream-transform.ts'
import type {
  Transport,
  TransportControl,
  TransportFailure,
  TransportHandler,
  TransportRequest,
} from '../transport/transport.ts'
import { joinChunks } from '../wire/chunks.ts'
import { firstHeader, type HeaderMap, mediaType, NO_HEADERS, requestIdOf } from '../wire/headers.ts'
import type { VendorActivity } from './call-timers.ts'

/** Maximum time that headers wait for a first content. Then they are sent, with a comment if there is nothing else. */
export const MAX_HOLD_BACK_MS = 15_000

/** Maximum size of an error body from a vendor. */
const MAX_ERROR_BYTES = 1024 * 1024

/** Number of bytes of a stream after which other work runs, because the system may hold megabytes of events for one turn. */
const MAX_BYTES_BETWEEN_TURNS = 128 * 1024

/** Schedules microtasks by a resolved promise, because Node's `queueMicrotask` creates an async resource per call. */
const END_OF_TURN = Promise.resolve()

const ABORTED: VendorStreamEnd = {
  kind: 'transport-failure',
  failure: { phase: 'body', kind: 'aborted', error: new Error('aborted when a body had ended') },
}

/** The result of the start of a streamed call. */
export type StreamOpening =
  /** Content has arrived, or the waiting time has expired: the caller may get headers. */
  | { readonly kind: 'open' }
  /** The vendor answered without a stream, usually with an error. */
  | { readonly kind: 'answer'; readonly answer: ChunkedAnswer }
  /** An error event before any content. */
  | { readonly kind: 'vendor-failure'; readonly failure: VendorFailure }
  | { readonly kind: 'transport-failure'; readonly failure: TransportFailure }
  /** The stream ended, complete or cut, before any content. */
  | { readonly kind: 'empty'; readonly isComplete: boolean }

/** How a stream ended on the vendor's side. */
export type VendorStreamEnd =
  | { readonly kind: 'ended' }
  | { readonly kind: 'transport-failure'; readonly failure: TransportFailure }

/** How a stream ended: on the vendor's side, or by a hook. */
export type StreamEnd =
  | VendorStreamEnd
  | { readonly kind: 'denied'; readonly error: GatewayError; readonly isCharged: boolean }

/** Receives the caller's bytes of an open stream. Must not throw. */
export interface StreamReceiver {
  /** @param mayFree Whether nobody else reads the bytes again. Default false. */
  onBytes(bytes: Uint8Array | string, mayFree?: boolean): void
  onStreamEnd(end: StreamEnd): void
}

/** Additional calls of an answer that needs several. Their bodies go into the same stream one after another. */
export interface FollowingCalls {
  /** Sends the next call; undefined after the last. */
  send(handler: TransportHandler): TransportControl | undefined
  /** Returns the failure of such a call that is answered without a stream. */
  refusal(answer: ChunkedAnswer): TransportFailure
}

/**
 * Stream response of a vendor, from one call or several consecutive ones. The stream's `end` is called after each body, and the
 * next call is sent unless the stream has failed. Network reads of one turn of the event loop are merged, so that a burst of
 * events costs one write. Bytes are buffered until a receiver is attached.
 */
export class StreamCall implements TransportHandler {
  readonly opening: Promise<StreamOpening>
  readonly transform: StreamTransform
  readonly #activity: VendorActivity | undefined
  readonly #following: FollowingCalls | undefined
  #isAborted = false
  #isPaused = false
  #bytesLeft = Number.POSITIVE_INFINITY
  #bytesSinceTurn = 0
  readonly #encoder: IncrementalEncoder | undefined
  /** Whether reading from the vendor pauses, because steps of an encoder remain or other work of the process runs. */
  #isResting = false
  #isWaitingForTurn = false
  /** End of the vendor's side while steps remain. */
  #afterWork: (() => void) | undefined
  #resolveOpening: ((opening: StreamOpening) => void) | undefined
  #control: TransportControl | undefined
  /** Whether the transport passes on the ownership of its bytes. */
  #ownsReads = false
  #receiver: StreamReceiver | undefined
  #holdBack: Timer | undefined
  #isHoldBackOver = false
  #status = 0
  #headers = NO_HEADERS
  #vendorRequestId: string | undefined
  #isStream = false
  readonly #plainChunks: Uint8Array[] = []
  #plainByteLength = 0
  // Emptied instead of replaced: V8 moves arrays that live as long as a stream into its old space, together with their contents.
  readonly #reads: Uint8Array[] = []
  readonly #kept: (Uint8Array | string)[] = []
  #mayFreeKept = true
  #end: VendorStreamEnd | undefined
  #flushScheduled = false
  readonly #flushTurn = (): void => this.#flush()

  constructor(transform: StreamTransform, following?: FollowingCalls, activity?: VendorActivity) {
    this.#activity = activity
    this.transform = transform
    this.#encoder = transform.encoder
    this.#following = following
    this.opening = new Promise((resolve) => {
      this.#resolveOpening = resolve
    })
  }

  /** The vendor's id of the answer, after headers arrived; that of the first answer if there are several. */
  get vendorRequestId(): string | undefined {
    return this.#vendorRequestId
  }

  /** Whether the vendor answered with a stream. */
  get hasHead(): boolean {
    return this.#isStream
  }

  begin(transport: Transport, request: TransportRequest, clock: Clock): void {
    this.#holdBack = clock.schedule(MAX_HOLD_BACK_MS, () => {
      this.#isHoldBackOver = true
      if (this.#isStream) this.#open({ kind: 'open' })
    })
    this.#ownsReads = transport.givesBytesAway === true
    this.#control = transport.send(request, this)
  }

  abort(): void {
    this.#isAborted = true
    this.#control?.abort()
    // The transport reports nothing after that.
    if (this.#afterWork !== undefined) this.#waitForTurn()
  }

  /** Aborts the call after this many more bytes. */
  readAtMost(byteLength: number): void {
    this.#bytesLeft = byteLength
  }

  pause(): void {
    this.#isPaused = true
    if (this.#activity !== undefined) this.#activity.isPaused = true
    this.#control?.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (this.#activity !== undefined) {
      this.#activity.isPaused = false
      this.#activity.hasBytes = true
    }
    if (this.#isResting) this.#waitForTurn()
    else this.#control?.resume()
  }

  /** Attaches the receiver, which first gets all buffered bytes. */
  attach(receiver: StreamReceiver): void {
    this.#receiver = receiver
    for (const bytes of this.#kept) receiver.onBytes(bytes, this.#mayFreeKept)
    this.#kept.length = 0
    // If the stream ends while buffered bytes are passed on, the receiver is notified directly.
    if (this.#end !== undefined && this.#receiver === receiver) receiver.onStreamEnd(this.#end)
  }

  onHead(status: number, headers: HeaderMap): void {
    if (this.#activity !== undefined) this.#activity.hasBytes = true
    // Not the headers, which would live as long as the stream.
    this.#vendorRequestId ??= requestIdOf(headers)
    const type = mediaType(firstHeader(headers, 'content-type'))
    this.#isStream = status >= 200 && status < 300 && (this.transform.takes?.(type) ?? type === 'text/event-stream')
    if (this.#isStream) {
      if (this.#isHoldBackOver) this.#open({ kind: 'open' })
      return
    }
    this.#status = status
    this.#headers = headers
  }

  onData(chunk: Uint8Array): void {
    if (this.#activity !== undefined) this.#activity.hasBytes = true
    if (!this.#isStream) {
      this.#plainByteLength += chunk.byteLength
      if (this.#plainByteLength <= MAX_ERROR_BYTES) this.#plainChunks.push(chunk)
      else this.#refuse(new Error(`a response without a stream is larger than ${MAX_ERROR_BYTES} bytes`))
      return
    }
    this.#reads.push(chunk)
    this.#bytesLeft -= chunk.byteLength
    if (this.#bytesLeft < 0) {
      this.abort()
      return
    }
    if (this.#flushScheduled) return
    this.#flushScheduled = true
    void END_OF_TURN.then(this.#flushTurn)
  }

  onEnd(): void {
    if (!this.#isStream) {
      this.#answered({ status: this.#status, headers: this.#headers, chunks: this.#plainChunks })
      return
    }
    this.#flush()
    if (this.#end !== undefined) return
    if (this.#hasWork) this.#continueAfterWork(() => this.#endBody())
    else this.#endBody()
  }

  onFailure(failure: TransportFailure): void {
    this.#flush()
    // A call that did not connect was not sent. If a first call broke before its answer, the vendor may not have received it: it
    // is free, and an event reports it. A later call counts, because its caller has read the output before it.
    const isUnknown = !this.#isStream && failure.kind !== 'aborted' && failure.kind !== 'timeout'
    if (failure.phase === 'connect' || isUnknown) this.transform.withdrawCall?.()
    const end: VendorStreamEnd = { kind: 'transport-failure', failure }
    if (this.#hasWork) this.#continueAfterWork(() => this.#finish(end))
    else this.#finish(end)
  }

  #continueAfterWork(step: () => void): void {
    this.#afterWork = step
  }

  get #hasWork(): boolean {
    return this.#encoder?.hasWork === true && !this.#isAborted
  }

  #endBody(): void {
    if (!this.#read(undefined)) return
    if (this.#following === undefined || !this.#beginNext(this.#following)) this.#finish({ kind: 'ended' })
  }

  /** Handles a response that is not a stream. It decides how the first call opens, and ends a later one. */
  #answered(answer: ChunkedAnswer): void {
    const following = this.#resolveOpening === undefined ? this.#following : undefined
    this.transform.withdrawCall?.()
    if (following === undefined) this.#open({ kind: 'answer', answer })
    else this.#finish({ kind: 'transport-failure', failure: following.refusal(answer) })
  }

  /** Starts the next call. Returns false if there is none. */
  #beginNext(following: FollowingCalls): boolean {
    if (this.transform.failure !== undefined) return false
    if (this.transform.hasContent) this.#open({ kind: 'open' })
    if (this.#isAborted) {
      this.transform.withdrawCall?.()
      this.#finish(ABORTED)
      return true
    }
    const control = following.send(this)
    if (control === undefined) return false
    this.#control = control
    if (this.#isPaused || this.#isResting) control.pause()
    return true
  }

  #flush(): void {
    this.#flushScheduled = false
    if (this.#reads.length === 0) return
    const ownsBytes = this.#reads.length > 1 || this.#ownsReads
    const bytes = joinChunks(this.#reads)
    this.#reads.length = 0
    // Counted before reading, because a reader that owns the bytes may free them, and freed bytes have no length.
    this.#bytesSinceTurn += bytes.byteLength
    if (!this.#read(bytes, ownsBytes)) return
    if (this.#encoder === undefined) this.#look()
    if (this.#end !== undefined || (this.#encoder === undefined && this.#bytesSinceTurn < MAX_BYTES_BETWEEN_TURNS))
      return
    this.#bytesSinceTurn = 0
    this.#rest()
  }

  /** Updates the state of the call from the bytes so far. */
  #look(): void {
    if (this.transform.failure !== undefined) {
      // Bytes after an error event are ignored, and the vendor's connection is closed.
      this.#finish({ kind: 'ended' })
      this.abort()
    } else if (this.transform.hasContent) this.#open({ kind: 'open' })
  }

  #rest(): void {
    if (this.#isResting) return
    this.#isResting = true
    this.#control?.pause()
    this.#waitForTurn()
  }

  #waitForTurn(): void {
    if (this.#isWaitingForTurn) return
    this.#isWaitingForTurn = true
    yieldToEventLoop(() => {
      this.#isWaitingForTurn = false
      if (this.#end === undefined) this.#takeTurn()
    })
  }

  /** Runs one step; reading resumes when all steps are done. Nothing runs while the caller is slow. */
  #takeTurn(): void {
    if (this.#isAborted && this.#afterWork !== undefined) {
      this.#finish(ABORTED)
      return
    }
    if (this.#hasWork && this.#isPaused) return
    if (this.#hasWork && !this.#step()) return
    if (this.#hasWork) {
      if (this.transform.hasContent) this.#open({ kind: 'open' })
      this.#waitForTurn()
      return
    }
    this.#isResting = false
    this.#look()
    if (this.#end !== undefined) return
    const after = this.#afterWork
    this.#afterWork = undefined
    if (after !== undefined) after()
    else if (!this.#isPaused) this.#control?.resume()
  }

  /**
   * Passes bytes to the decoder, or undefined at the end of the body. If the decoder throws, this call ends: the caller is
   * a network callback, where no one catches errors.
   */
  #read(bytes: Uint8Array | undefined, ownsBytes = false): boolean {
    try {
      if (bytes === undefined) this.#deliver(this.transform.end())
      else if (this.#encoder === undefined) this.#push(bytes, ownsBytes)
      else this.#encoder.take(bytes)
      return true
    } catch (cause) {
      this.#refuse(new Error('the stream could not be read', { cause }))
      return false
    }
  }

  /** @param ownsBytes Whether nobody else has the bytes. */
  #push(bytes: Uint8Array, ownsBytes: boolean): void {
    const given = this.transform.push(bytes)
    const isAlone = this.transform.holdsNoBytes === true
    const isGivenOn = given instanceof Uint8Array && given.buffer === bytes.buffer
    this.#deliver(given, isAlone && (ownsBytes || !isGivenOn))
    if (isAlone && ownsBytes && !isGivenOn) freeMemory(bytes)
  }

  #step(): boolean {
    try {
      this.#deliver(this.#encoder?.next())
      return true
    } catch (cause) {
      this.#refuse(new Error('the stream could not be read', { cause }))
      return false
    }
  }

  /** The vendor's data is unusable. The failure is recorded before the abort, which would otherwise count as `ignored`. */
  #refuse(error: Error): void {
    this.#finish({ kind: 'transport-failure', failure: { phase: 'body', kind: 'protocol', error } })
    this.abort()
  }

  #deliver(bytes: Uint8Array | string | undefined, mayFree = false): void {
    if (bytes === undefined || bytes.length === 0 || this.#end !== undefined) return
    if (this.#receiver === undefined) {
      this.#kept.push(bytes)
      this.#mayFreeKept &&= mayFree
    } else this.#receiver.onBytes(bytes, mayFree)
  }

  #finish(end: VendorStreamEnd): void {
    if (this.#end !== undefined) return
    this.#end = end
    if (this.#resolveOpening !== undefined) this.#open(this.#openingAtEnd(end))
    const receiver = this.#receiver
    // A call may stay in V8's old space, so it must not retain the caller's side and the vendor's.
    this.#receiver = undefined
    receiver?.onStreamEnd(end)
  }

  #openingAtEnd(end: VendorStreamEnd): StreamOpening {
    if (end.kind === 'transport-failure' && !this.transform.hasContent) return end
    if (this.transform.failure !== undefined && !this.transform.hasContent)
      return { kind: 'vendor-failure', failure: this.transform.failure }
    return this.transform.hasContent ? { kind: 'open' } : { kind: 'empty', isComplete: this.transform.isComplete }
  }

  #open(opening: StreamOpening): void {
    if (this.#resolveOpening === undefined) return
    this.#holdBack?.cancel()
    this.#holdBack = undefined
    this.#resolveOpening(opening)
    this.#resolveOpening = undefined
  }
}

/** Calls that wait to resume reading. */
const waiting: (() => void)[] = []

/**
 * Resumes CPU-bound calls one after another, one in each turn of the event loop, so that everything else in the process
 * runs in between.
 * @param resume Resumes reading; called once, never before this function has returned.
 */
function yieldToEventLoop(resume: () => void): void {
  waiting.push(resume)
  if (waiting.length === 1) setImmediate(nextTurn)
}

function nextTurn(): void {
  const resume = waiting.shift()
  if (waiting.length > 0) setImmediate(nextTurn)
  resume?.()
}
