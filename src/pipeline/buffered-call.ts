import type { ChunkedAnswer } from '../endpoints/operation.ts'
import type {
  Transport,
  TransportControl,
  TransportFailure,
  TransportHandler,
  TransportRequest,
} from '../transport/transport.ts'
import { firstHeader, type HeaderMap } from '../wire/headers.ts'

/** Largest response that is buffered for a caller. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024

/** Outcome of one call: the buffered response with any status, or the reason why there is none. */
export type BufferedOutcome =
  | { readonly answer: ChunkedAnswer }
  | { readonly failure: TransportFailure }
  | { readonly oversize: true }

/** Buffers one response. */
export class BufferedCall implements TransportHandler {
  readonly outcome: Promise<BufferedOutcome>
  #resolve!: (outcome: BufferedOutcome) => void
  #control: TransportControl | undefined
  #status = 0
  #headers: HeaderMap = {}
  #byteLength = 0
  readonly #chunks: Uint8Array[] = []

  constructor() {
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  /** Bytes of the body that a 2xx response has announced, or sent so far; undefined without one. */
  get answerBytes(): number | undefined {
    if (this.#status < 200 || this.#status >= 300) return undefined
    const announced = Number(firstHeader(this.#headers, 'content-length'))
    return Math.max(this.#byteLength, announced >= 0 && announced <= MAX_ANSWER_BYTES ? announced : 0)
  }

  begin(transport: Transport, request: TransportRequest): void {
    this.#control = transport.send(request, this)
  }

  abort(): void {
    this.#control?.abort()
  }

  onHead(status: number, headers: HeaderMap): void {
    this.#status = status
    this.#headers = headers
  }

  onData(chunk: Uint8Array): void {
    this.#byteLength += chunk.byteLength
    if (this.#byteLength > MAX_ANSWER_BYTES) {
      this.#resolve({ oversize: true })
      this.abort()
      return
    }
    this.#chunks.push(chunk)
  }

  onEnd(): void {
    this.#resolve({ answer: { status: this.#status, headers: this.#headers, chunks: this.#chunks } })
  }

  onFailure(failure: TransportFailure): void {
    this.#resolve({ failure })
  }
}
