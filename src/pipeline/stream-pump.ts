import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'
import type { StreamTransform } from '../endpoints/stream-transform.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { SSE_COMMENT } from '../wire/sse.ts'
import type { AbortScope } from './abort-scope.ts'
import { StreamRecording } from './cache/cache-plan.ts'
import type { Reserved } from './call-record.ts'
import { failedAttempt, failedUsage } from './charge.ts'
import {
  type AttemptFailure,
  failureOfTransport,
  failureOfVendor,
  unusableResponse,
  withBillOf,
} from './error-classification.ts'
import { abandonedPictures, cutUsage, estimatedUsage, innerImagesUsage } from './estimate.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { EVENT_STREAM, streamHead, streamTypeOf } from './respond.ts'
import type { StreamEnd, StreamReceiver, VendorStreamEnd } from './stream-call.ts'
import { withoutSecrets } from './vendor-access.ts'
import { type CallEnding, refusedEnding, type StreamResponse, uncharged } from './vendor-response.ts'

/** Silence after which a comment line is sent, because proxies on the way close idle connections. */
const COMMENT_AFTER_MS = 15_000

/** Maximum number of bytes of a stream that are stored for replay under an Idempotency-Key. */
const MAX_REPLAY_BYTES = 8 * 1024 * 1024

/** Time that a usage report is awaited after the text has ended and the caller has disconnected, and bytes to read for it. */
const USAGE_WAIT_MS = 2_000
const MAX_USAGE_BYTES = 64 * 1024

/** Result of a finished stream. */
export interface PumpedStream {
  readonly ending: CallEnding
  readonly contentType: string
  /** The caller's bytes, for replay or the cache; undefined if nobody needs them or they grew too large. */
  readonly recorded: Uint8Array | undefined
  /**
   * Sends the end to the caller, once, or an error instead. Returns the fault of the caller's side, or `undefined` if that side was
   * not at fault.
   */
  readonly sendEnd: (failure?: GatewayError) => GatewayError | undefined
}

/**
 * Sends an open stream to the caller until it ends, fails or is abandoned. Resolves once, with the usage to charge; the caller
 * gets the end from `sendEnd`.
 * @param beforeEnd Called after a whole answer has arrived, before its end is sent. Must not reject.
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
  readonly #recording: StreamRecording | undefined
  readonly #type: string
  #lastWriteMs = 0
  #silenceTimer: Timer | undefined
  #hasHead = false
  /** Whether bytes or the end have arrived. */
  #hasBegun = false
  #hasEnded = false
  #sinkFault: GatewayError | undefined
  #awaitsUsage = false
  /** Bytes without which the answer does not look complete, until the host's statements are committed with its charge. */
  #withheld: (Uint8Array | string)[] | undefined

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
    const { claim, cachePlan } = reserved
    // The cache stores the bytes before hooks.
    const isRecorded = claim !== undefined || (cachePlan?.key !== undefined && cachePlan.recording === undefined)
    this.#recording = isRecorded ? new StreamRecording(MAX_REPLAY_BYTES) : undefined
    this.#type = streamTypeOf(reserved)
  }

  begin(): void {
    this.#reserved.sink.onDrain(() => this.#response.call.resume())
    this.#toCaller(() => this.#sendHead())
    this.#reserved.releaseBeginning()
    // In other formats a comment would be content.
    if (this.#type === EVENT_STREAM) this.#watchSilence(COMMENT_AFTER_MS)
    this.#reserved.caller.onDisconnect(() => this.#abandon())
    this.#response.call.attach(this)
    // The hold-back time ended without content. Headers alone would wait in the host's server for the first bytes.
    if (!this.#hasBegun && this.#type === EVENT_STREAM) this.#comment()
  }

  onBytes(bytes: Uint8Array | string, mayFree = false): void {
    this.#recording?.add(bytes)
    const { caller, sink } = this.#reserved
    if (caller.isDisconnected) {
      // Another text has begun, and the caller does not wait for it.
      if (this.#awaitsUsage && this.#response.call.transform.hasTextEnded !== true) this.#reserved.calls.abort()
      return
    }
    this.#lastWriteMs = this.#context.clock.now()
    this.#hasBegun = true
    if (this.#reserved.hostCommit !== undefined && this.#response.call.transform.isComplete) {
      this.#withheld ??= []
      this.#withheld.push(bytes)
      return
    }
    if (this.#sinkFault !== undefined) return
    // Like `#toCaller`, but without a closure for every chunk of every stream.
    try {
      if (!sink.write(bytes, mayFree && this.#recording === undefined)) this.#response.call.pause()
    } catch (cause) {
      this.#failed(cause)
    }
  }

  onStreamEnd(end: StreamEnd): void {
    this.#hasBegun = true
    this.#hasEnded = true
    this.#silenceTimer?.cancel()
    const ending = this.#endingOf(end)
    const { calls, caller, requestId } = this.#reserved
    const { transform } = this.#response.call
    if (transform.isComplete && transform.failure === undefined) this.#response.end('completed')
    else if (end.kind === 'denied' || calls.isAborted || caller.isDisconnected) this.#response.end('aborted')
    else this.#response.end({ requestId, failure: failureOf(transform, end, this.#response.candidate.vendor) })
    const { error } = ending
    if (error === undefined && this.#beforeEnd !== undefined) {
      // Never rejects, because a failure to store an answer must not withhold it.
      void this.#beforeEnd().then(() => this.#complete(ending))
      return
    }
    if (error === undefined) this.#complete(ending)
    else this.#end(ending, () => this.#sendError(error))
  }

  #sendError(error: GatewayError): void {
    const { sink, endpoint } = this.#reserved
    if (this.#type === EVENT_STREAM)
      sink.end(this.#response.call.transform.failed?.(error) ?? endpoint.errors.streamEvent(error))
    // Other formats have no place for an error.
    else sink.destroy()
  }

  #complete(ending: CallEnding): void {
    const { closing } = this.#response.call.transform
    if (closing !== undefined) this.#recording?.add(closing)
    this.#end(ending, () => {
      for (const bytes of this.#withheld ?? []) this.#reserved.sink.write(bytes)
      this.#reserved.sink.end(closing)
    })
  }

  #end(ending: CallEnding, send: () => void): void {
    let isSent = false
    const sendEnd = (failure?: GatewayError): GatewayError | undefined => {
      if (!isSent) this.#toCaller(failure === undefined ? send : () => this.#sendError(failure))
      isSent = true
      return this.#sinkFault
    }
    const chunks = ending.kind === 'completed' ? this.#recording?.chunks : undefined
    const recorded = chunks && Buffer.concat(chunks)
    this.#resolve({ ending, contentType: this.#type, recorded, sendEnd })
  }

  /**
   * Runs a step that writes to the caller. Exceptions of the sink must reach neither the network's callbacks nor the settlement:
   * the vendor is stopped, and the output so far is charged. A caller that already has bytes gets no clean end.
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
    if (end.kind === 'denied') return deniedEnding(this.#reserved, this.#response, end)
    const { transform } = this.#response.call
    const { usage: reported } = transform
    if (transform.isComplete && transform.failure === undefined) {
      if (transform.isRefusal === true) return refusedEnding(reported)
      const seen = this.#seen(reported === undefined && this.#isUnseen)
      // A report may count reasoning that is not in the text, without its amount.
      const isInText = !this.#response.hasHiddenReasoning || reported?.reasoningTokens !== undefined
      const textBytes = isInText ? transform.outputBytesSeen : undefined
      return { kind: 'completed', usage: reported, estimatedUsage: seen, textBytes, error: undefined }
    }
    const seen = this.#seen(this.#isUnseen)
    const made = { usage: reported && cutUsage(reported, seen), estimatedUsage: seen }
    // The caller received no content, as with a failed whole answer.
    const isBare = !transform.hasContent
    if (transform.failure !== undefined) {
      const failure = failureOf(transform, end, this.#response.candidate.vendor)
      return { kind: 'failed', ...(isBare ? this.#failedUsage(failure) : made), error: failure.error }
    }
    const { caller, calls } = this.#reserved
    if (calls.refusal !== undefined || caller.isDisconnected)
      return this.#abandonedEnding(calls.refusal ?? new GatewayError('client_closed_request'))
    if (this.#sinkFault !== undefined) return { kind: 'failed', ...made, error: this.#sinkFault }
    const came = isBare ? this.#failedUsage(failureOf(transform, end, this.#response.candidate.vendor)) : made
    return { kind: 'failed', ...came, error: cutError(end, calls) }
  }

  /** Usage to charge or report if no content arrived. */
  #failedUsage(failure: AttemptFailure): ReturnType<typeof failedUsage> {
    const { candidate, hasHiddenReasoning, call } = this.#response
    const billed = withBillOf(failure, call.transform)
    const attempt = failedAttempt(this.#reserved, candidate, billed, { hasHiddenReasoning, isMaking: false })
    return failedUsage(attempt)
  }

  #abandonedEnding(error: GatewayError): CallEnding {
    const { estimate } = this.#reserved
    const { usage: reported } = this.#response.call.transform
    const seen = this.#seen(this.#isUnseen, true)
    if (reported === undefined) return { kind: 'abandoned', usage: undefined, estimatedUsage: seen, error }
    const usage = estimate.images === undefined ? cutUsage(reported, seen) : abandonedPictures(estimate, reported)
    return { kind: 'abandoned', usage, estimatedUsage: seen, error }
  }

  /** Usage to charge without a report. */
  #seen(isUnseen: boolean, isStopped = false): Usage {
    const { transform } = this.#response.call
    const stoppedAfterMs = this.#context.clock.now() - this.#reserved.startedAtMs
    return seenUsage(this.#reserved, transform, { isUnseen, isStopped, stoppedAfterMs })
  }

  /** Whether the model has used tokens that neither its text nor a report contains so far. */
  get #isUnseen(): boolean {
    const { transform } = this.#response.call
    return this.#response.hasHiddenReasoning && !(transform.hasRunningUsage === true && transform.usage !== undefined)
  }

  #sendHead(): void {
    const { caller, sink } = this.#reserved
    if (caller.isDisconnected) return
    sink.head(200, streamHead(this.#reserved, this.#response, this.#type))
    this.#hasHead = true
  }

  #abandon(): void {
    // The answer is complete. Callers that stop at its last event disconnect before they get the end.
    if (this.#hasEnded) return
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
    // The sink will never drain again, and a drained call must not wait for it.
    this.#response.call.resume()
  }

  #comment(): void {
    const { transform } = this.#response.call
    this.#toCaller(() => {
      const bytes = transform.keepAlive?.()
      if (bytes !== undefined) this.#recording?.add(bytes)
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

/** Estimates a stream, at the service tier that its vendor has named if there is no report. */
function seenUsage(
  reserved: Reserved,
  transform: StreamTransform,
  facts: Omit<Parameters<typeof estimatedUsage>[1], 'outputBytes'>,
): Usage {
  const { serviceTier, outputBytesSeen: outputBytes, innerImagesSeen } = transform
  const text = estimatedUsage(reserved, { outputBytes, ...facts })
  const images = innerImagesUsage(reserved.estimate, innerImagesSeen)
  const seen = images === undefined ? text : { ...text, otherModels: [images] }
  return serviceTier === undefined || transform.usage !== undefined ? seen : { ...seen, serviceTier }
}

/** Returns the usage to charge for a stream that a hook has ended: all of it if the vendor has reported it, else the output so far. */
export function deniedEnding(
  reserved: Reserved,
  { call: { transform }, hasHiddenReasoning }: StreamResponse,
  { error, isCharged }: Pick<Extract<StreamEnd, { kind: 'denied' }>, 'error' | 'isCharged'>,
): CallEnding {
  const { usage: reported, hasRunningUsage, isComplete } = transform
  const isUnseen = hasHiddenReasoning && !((hasRunningUsage === true || isComplete) && reported !== undefined)
  const seen = seenUsage(reserved, transform, { isUnseen })
  const usage = isComplete ? reported : reported && cutUsage(reported, seen)
  const ending: CallEnding = { kind: 'failed', usage, estimatedUsage: seen, error }
  return isCharged ? ending : uncharged(ending)
}

/** Returns why a started stream is incomplete. */
function failureOf({ failure }: StreamTransform, end: VendorStreamEnd, vendor: Vendor): AttemptFailure {
  if (failure !== undefined) return failureOfVendor(withoutSecrets(failure, vendor))
  return end.kind === 'ended' ? unusableResponse(CUT, undefined) : failureOfTransport(end.failure)
}

/** Coding clients retry by the words "premature close" or "ended without". */
const CUT = "Premature close: the model vendor's stream ended without a complete answer."

function cutError(end: VendorStreamEnd, { isOverdue }: AbortScope): GatewayError {
  if (end.kind === 'ended') return new GatewayError('upstream_invalid_response', { message: CUT })
  if (isOverdue) return new GatewayError('upstream_timeout', { cause: end.failure.error })
  const { error } = failureOfTransport(end.failure)
  return end.failure.kind === 'reset'
    ? new GatewayError('upstream_unavailable', { message: CUT, cause: end.failure.error })
    : error
}
