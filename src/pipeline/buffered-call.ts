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

/** Maximum size of a response that is buffered for a caller, in bytes. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024

/** Outcome of one call: the buffered response with any status, or the reason for its absence. */
export type BufferedOutcome =
  | { readonly answer: ChunkedAnswer }
  | { readonly failure: TransportFailure }
  | { readonly oversize: true }

/** Buffers one response. */
export class BufferedCall<Result> implements TransportHandler {
  /** Result of `read`. Rejects with its exception. */
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
   * @param read Called once, when the call has ended.
   * @param activity Updated when bytes arrive, or undefined if nobody watches the call.
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

  /** Bytes of the body that a 2xx response has announced, or sent so far; undefined without such a response. */
  get answerBytes(): number | undefined {
    if (this.#status < 200 || this.#status >= 300) return undefined
    const announced = Number(firstHeader(this.#headers, 'content-length'))
    return Math.max(this.#byteLength, announced >= 0 && announced <= MAX_ANSWER_BYTES ? announced : 0)
  }

  /** Chunks of the body so far. */
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
    // Most answers arrive in one chunk, and V8 allocates 17 entries for a growing list.
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
