import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'
import { SSE_COMMENT } from '../wire/sse.ts'
import type { Reserved } from './call-record.ts'
import { failureOfTransport, failureOfVendor } from './error-classification.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { EVENT_STREAM, streamHead, streamTypeOf } from './respond.ts'
import type { StreamEnd, StreamReceiver } from './stream-call.ts'
import { abandonedPictures, cutUsage, estimatedUsage } from './usage-estimate.ts'
import type { CallEnding, StreamResponse } from './vendor-response.ts'

/** A comment line is sent after so much silence, because proxies on the way cut idle connections. */
const COMMENT_AFTER_MS = 15_000

/** Most bytes of a stream that are kept for replay under an Idempotency-Key. */
const MAX_REPLAY_BYTES = 8 * 1024 * 1024

/** How long a report of usage is awaited for a caller who has left, when the text has ended; and how much is read for it. */
const USAGE_WAIT_MS = 2_000
const MAX_USAGE_BYTES = 64 * 1024

/** What a finished stream leaves behind. */
export interface PumpedStream {
  readonly ending: CallEnding
  readonly contentType: string
  /** The caller's bytes, for replay; undefined when nobody asked to keep them or they grew too large. */
  readonly recorded: Uint8Array | undefined
  /** Set when the caller's side failed by a fault of its own, and not because the caller left. */
  readonly sinkFault: GatewayError | undefined
}

/**
 * Sends an open stream to the caller until it ends, fails or is abandoned. Resolves once, with what to charge for; the
 * caller's side is already ended then.
 * @param beforeEnd Called once a whole answer has come, before its end is sent. Must not reject.
 */
export function pumpStream(
  context: PipelineContext,
  reserved: Reserved,
  response: StreamResponse,
  beforeEnd?: () => Promise<void>,
): Promise<PumpedStream> {
  return new Promise((resolve) => {
    new StreamPump(context, reserved, response, { resolve, beforeEnd }).begin()
  })
}

class StreamPump implements StreamReceiver {
  readonly #context: PipelineContext
  readonly #reserved: Reserved
  readonly #response: StreamResponse
  readonly #resolve: (pumped: PumpedStream) => void
  readonly #beforeEnd: (() => Promise<void>) | undefined
  #recorded: Buffer[] | undefined
  readonly #type: string
  #recordedByteLength = 0
  #lastWriteMs = 0
  #silenceTimer: Timer | undefined
  #hasHead = false
  /** True once bytes or the end came. */
  #hasBegun = false
  #sinkFault: GatewayError | undefined
  #awaitsUsage = false

  constructor(
    context: PipelineContext,
    reserved: Reserved,
    response: StreamResponse,
    ending: {
      readonly resolve: (pumped: PumpedStream) => void
      readonly beforeEnd: (() => Promise<void>) | undefined
    },
  ) {
    this.#context = context
    this.#reserved = reserved
    this.#response = response
    this.#resolve = ending.resolve
    this.#beforeEnd = ending.beforeEnd
    this.#recorded = reserved.claim === undefined ? undefined : []
    this.#type = streamTypeOf(reserved)
  }

  begin(): void {
    this.#reserved.releaseBody()
    this.#reserved.sink.onDrain(() => this.#response.call.resume())
    this.#toCaller(() => this.#sendHead())
    // In anything else a comment would be content.
    if (this.#type === EVENT_STREAM) this.#watchSilence(COMMENT_AFTER_MS)
    this.#reserved.caller.onDisconnect = () => this.#abandon()
    this.#response.call.attach(this)
    // The hold-back ended without content. Headers alone would wait in the host's server for the first bytes.
    if (!this.#hasBegun && this.#type === EVENT_STREAM) this.#comment()
  }

  onBytes(bytes: Uint8Array | string): void {
    this.#record(bytes)
    const { caller, sink } = this.#reserved
    if (caller.isDisconnected) {
      // Another text has begun, for which nobody waits.
      if (this.#awaitsUsage && this.#response.call.transform.hasTextEnded !== true) this.#reserved.calls.abort()
      return
    }
    this.#lastWriteMs = this.#context.clock.now()
    this.#hasBegun = true
    if (this.#sinkFault !== undefined) return
    // As `#toCaller`, but without a closure for every piece of every stream.
    try {
      if (!sink.write(bytes)) this.#response.call.pause()
    } catch (cause) {
      this.#failed(cause)
    }
  }

  onStreamEnd(end: StreamEnd): void {
    this.#hasBegun = true
    this.#silenceTimer?.cancel()
    const ending = this.#endingOf(end)
    const { sink, endpoint, calls, caller } = this.#reserved
    const { transform } = this.#response.call
    if (transform.isComplete && transform.failure === undefined) this.#response.end('completed')
    else this.#response.end(calls.isAborted || caller.isDisconnected ? 'aborted' : 'broken')
    const { error } = ending
    if (error === undefined && this.#beforeEnd !== undefined) {
      // Never rejects: an answer is not withheld because it cannot be kept.
      void this.#beforeEnd().then(() => this.#end(ending, () => sink.end(this.#closing())))
      return
    }
    this.#end(ending, () => {
      if (error === undefined) sink.end(this.#closing())
      else if (this.#type === EVENT_STREAM) sink.end(transform.failed?.(error) ?? endpoint.errors.streamEvent(error))
      // Anything else has no place for an error.
      else sink.destroy()
    })
  }

  #end(ending: CallEnding, send: () => void): void {
    this.#toCaller(send)
    const recorded =
      ending.kind === 'completed' && this.#recorded !== undefined ? Buffer.concat(this.#recorded) : undefined
    this.#resolve({ ending, contentType: this.#type, recorded, sinkFault: this.#sinkFault })
  }

  #closing(): Uint8Array | string | undefined {
    const { closing } = this.#response.call.transform
    if (closing !== undefined) this.#record(closing)
    return closing
  }

  /**
   * Whatever the sink throws must reach neither the network's callbacks nor the settlement: the vendor is stopped, and what
   * came is charged. A caller who has bytes already gets no clean end.
   */
  #toCaller(step: () => void): void {
    if (this.#sinkFault !== undefined) return
    try {
      step()
    } catch (cause) {
      this.#failed(cause)
    }
  }

  #failed(cause: unknown): void {
    this.#sinkFault = GatewayError.from(cause)
    if (this.#hasHead) this.#reserved.sink.destroy()
    this.#reserved.calls.abort()
  }

  #endingOf(end: StreamEnd): CallEnding {
    const { transform } = this.#response.call
    const { usage: reported } = transform
    const seen = this.#seen(this.#isUnseen)
    if (transform.isComplete && transform.failure === undefined) {
      if (transform.isRefusal === true)
        return { kind: 'completed', usage: undefined, estimatedUsage: undefined, error: undefined }
      const textBytes = this.#textBytes
      const told = reported === undefined ? seen : this.#seen(false)
      return { kind: 'completed', usage: reported, estimatedUsage: told, textBytes, error: undefined }
    }
    const made = { usage: reported && cutUsage(reported, seen), estimatedUsage: seen }
    // Paid job failed before any content: do not charge.
    const isBare = this.#reserved.endpoint.isPaidJob === true && !transform.hasContent
    const came = isBare ? { ...NOTHING_CAME, unbilledUsage: reported } : made
    if (transform.failure !== undefined) {
      return { kind: 'failed', ...came, error: failureOfVendor(transform.failure).error }
    }
    if (this.#reserved.caller.isDisconnected) return this.#abandonedEnding()
    if (this.#sinkFault !== undefined) return { kind: 'failed', ...made, error: this.#sinkFault }
    const error = end.kind === 'ended' ? new GatewayError('upstream_invalid_response', { message: CUT }) : cutError(end)
    return { kind: 'failed', ...came, error }
  }

  #abandonedEnding(): CallEnding {
    const { estimate } = this.#reserved
    const { usage: reported } = this.#response.call.transform
    const seen = this.#seen(this.#isUnseen)
    const error = new GatewayError('client_closed_request')
    if (reported === undefined) return { kind: 'abandoned', usage: undefined, estimatedUsage: seen, error }
    const usage = estimate.images === undefined ? cutUsage(reported, seen) : abandonedPictures(estimate, reported)
    return { kind: 'abandoned', usage, estimatedUsage: seen, error }
  }

  /** What is charged for without a report. */
  #seen(isUnseen: boolean): Usage {
    const outputBytes = this.#response.call.transform.outputBytesSeen
    return estimatedUsage(this.#reserved, { outputBytes, isUnseen })
  }

  /** Undefined where a report counts reasoning that is not in the text, and does not say how much. */
  get #textBytes(): number | undefined {
    const { usage, outputBytesSeen } = this.#response.call.transform
    return this.#response.reasonsUnseen && usage?.reasoningTokens === undefined ? undefined : outputBytesSeen
  }

  /** Has the model used tokens that neither its text nor a report tells so far? */
  get #isUnseen(): boolean {
    const { transform } = this.#response.call
    return this.#response.reasonsUnseen && !(transform.hasRunningUsage === true && transform.usage !== undefined)
  }

  #sendHead(): void {
    const { caller, sink } = this.#reserved
    if (caller.isDisconnected) return
    sink.head(200, streamHead(this.#reserved, this.#response, this.#type))
    this.#hasHead = true
  }

  #abandon(): void {
    const { calls, endpoint } = this.#reserved
    const { disconnects, clock } = this.#context
    const { call } = this.#response
    const isUnseen = this.#isUnseen
    if (calls.isReadOn) call.resume()
    else if (disconnects.drains({ endpointId: endpoint.id, isUnseen }) || call.transform.hasTextEnded !== true)
      calls.abandon(disconnects, { endpointId: endpoint.id, isUnseen }, clock)
    else if (calls.awaitUsage(disconnects, USAGE_WAIT_MS, clock)) {
      this.#awaitsUsage = true
      call.readAtMost(MAX_USAGE_BYTES)
    } else calls.abort()
    // The sink will never drain again; a call that is drained must not wait for it.
    this.#response.call.resume()
  }

  #record(bytes: Uint8Array | string): void {
    if (this.#recorded === undefined) return
    const buffer =
      typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#recordedByteLength += buffer.byteLength
    if (this.#recordedByteLength > MAX_REPLAY_BYTES) this.#recorded = undefined
    else this.#recorded.push(buffer)
  }

  #comment(): void {
    const { transform } = this.#response.call
    this.#toCaller(() => {
      const bytes = transform.keepAlive?.()
      if (bytes !== undefined) this.#record(bytes)
      this.#reserved.sink.write(bytes ?? SSE_COMMENT)
    })
    this.#lastWriteMs = this.#context.clock.now()
  }

  #watchSilence(delayMs: number): void {
    this.#silenceTimer = this.#context.clock.schedule(delayMs, () => {
      const silentMs = this.#context.clock.now() - this.#lastWriteMs
      if (silentMs >= COMMENT_AFTER_MS && this.#response.call.transform.atBoundary) {
        this.#comment()
      }
      this.#watchSilence(Math.max(1_000, COMMENT_AFTER_MS - (this.#context.clock.now() - this.#lastWriteMs)))
    })
  }
}

const NOTHING_CAME = { usage: undefined, estimatedUsage: undefined }

const CUT = "The model vendor's stream ended before the answer was complete."

function cutError(end: StreamEnd & { kind: 'transport-failure' }): GatewayError {
  const { error } = failureOfTransport(end.failure)
  return end.failure.kind === 'reset'
    ? new GatewayError('upstream_unavailable', { message: CUT, cause: end.failure.error })
    : error
}
