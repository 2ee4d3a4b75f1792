import type { ChunkedAnswer } from '../endpoints/operation.ts'
import type {
  Transport,
  TransportControl,
  TransportFailure,
  TransportHandler,
  TransportRequest,
} from '../transport/transport.ts'
import { firstHeader, type HeaderMap, NO_HEADERS } from '../wire/headers.ts'
import type { VendorActivity } from './silence-watch.ts'

/** Largest response that is buffered for a caller. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024

/** Outcome of one call: the buffered response with any status, or the reason why there is none. */
export type BufferedOutcome =
  | { readonly answer: ChunkedAnswer }
  | { readonly failure: TransportFailure }
  | { readonly oversize: true }

/** Buffers one response. */
export class BufferedCall<Result> implements TransportHandler {
  /** What was read of the outcome; rejects with what reading threw. */
  readonly result: Promise<Result>
  #resolve!: (result: Result) => void
  #reject!: (fault: unknown) => void
  #read: ((outcome: BufferedOutcome) => Result) | undefined
  #control: TransportControl | undefined
  #status = 0
  #headers = NO_HEADERS
  #byteLength = 0
  #chunks: readonly Uint8Array[] = NO_CHUNKS
  readonly #activity: VendorActivity | undefined
  readonly #maxBytes: number

  /**
   * @param read Called once, when the call is over.
   * @param activity Updated when something arrives, or undefined if nobody watches the call.
   */
  constructor(read: (outcome: BufferedOutcome) => Result, maxBytes = MAX_ANSWER_BYTES, activity?: VendorActivity) {
    this.#read = read
    this.#activity = activity
    this.#maxBytes = maxBytes
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Bytes of the body that a 2xx response has announced, or sent so far; undefined without one. */
  get answerBytes(): number | undefined {
    if (this.#status < 200 || this.#status >= 300) return undefined
    const announced = Number(firstHeader(this.#headers, 'content-length'))
    return Math.max(this.#byteLength, announced >= 0 && announced <= MAX_ANSWER_BYTES ? announced : 0)
  }

  /** What has come of the body. */
  get chunks(): readonly Uint8Array[] {
    return this.#chunks
  }

  begin(transport: Transport, request: TransportRequest): void {
    this.#control = transport.send(request, this)
  }

  abort(): void {
    this.#control?.abort()
  }

  onHead(status: number, headers: HeaderMap): void {
    if (this.#activity !== undefined) this.#activity.hasBytes = true
    this.#status = status
    this.#headers = headers
  }

  onData(chunk: Uint8Array): void {
    if (this.#activity !== undefined) this.#activity.hasBytes = true
    this.#byteLength += chunk.byteLength
    if (this.#byteLength > this.#maxBytes) {
      this.#end({ oversize: true })
      this.abort()
      return
    }
    // Most answers come in one chunk, and a list that grows has room for seventeen.
    if (this.#chunks === NO_CHUNKS) this.#chunks = [chunk]
    else (this.#chunks as Uint8Array[]).push(chunk)
  }

  onEnd(): void {
    const isRequestSent = this.#control?.isBodySent === true
    this.#end({ answer: { status: this.#status, headers: this.#headers, chunks: this.#chunks, isRequestSent } })
  }

  onFailure(failure: TransportFailure): void {
    this.#end({ failure })
  }

  #end(outcome: BufferedOutcome): void {
    const read = this.#read
    if (read === undefined) return
    this.#read = undefined
    try {
      this.#resolve(read(outcome))
    } catch (fault) {
      this.#reject(fault)
    }
  }
}

const NO_CHUNKS: readonly Uint8Array[] = []
