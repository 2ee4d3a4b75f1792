import { type BodyFailure, type BodyListener, type ByteSink, bodyError, type GatewayRequest } from '../core/exchange.ts'

const encoder = new TextEncoder()

// Statuses of answers without a body (Fetch standard, "null body status"). `Response` rejects a body for them.
const BODILESS = new Set([204, 205, 304])

/** Web request and its `Response`, which is available as soon as its head is known. */
export class FetchExchange implements GatewayRequest, ByteSink {
  readonly method: string
  readonly path: string
  readonly query: string
  /** Rejects only if the answer ends before its head. */
  readonly response: Promise<Response>
  readonly #request: Request
  readonly #signal: AbortSignal
  #resolve!: (response: Response) => void
  #reject!: (reason: Error) => void
  #status = 0
  #headers: Headers | undefined
  #body: ResponseBody | undefined
  #resolved = false
  #ended = false
  #left = false
  #endsConnection = false
  #closeListener: (() => void) | undefined
  #drainListener: (() => void) | undefined

  /** `path` and `query` have the format of {@link GatewayRequest}: the path is already below the mount. */
  constructor(request: Request, path: string, query: string) {
    this.method = request.method.toUpperCase()
    this.path = path
    this.query = query
    this.#request = request
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#signal = request.signal
    if (this.#signal.aborted) this.#callerLeft()
    else this.#signal.addEventListener('abort', this.#onAbort)
  }

  get originalPath(): string {
    return new URL(this.#request.url).pathname
  }

  get origin(): string {
    return new URL(this.#request.url).origin
  }

  get hostRequest(): Request {
    return this.#request
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined
  }

  readBody(limitBytes: number, listener: BodyListener): void {
    readFetchBody(this.#request, limitBytes, listener)
  }

  async *streamBody(limitBytes: number): AsyncIterable<Uint8Array> {
    const { body, bodyUsed, headers, signal } = this.#request
    if (bodyUsed || body?.locked === true) throw bodyError('consumed', limitBytes)
    if (Number(headers.get('content-length')) > limitBytes) throw bodyError('too_large', limitBytes)
    if (signal.aborted) throw bodyError('aborted', limitBytes)
    if (body === null) return
    const reader = body.getReader()
    try {
      let sizeBytes = 0
      for (;;) {
        const { done, value } = await nextPiece(reader, signal, limitBytes)
        if (done) return
        sizeBytes += value.byteLength
        if (sizeBytes > limitBytes) throw bodyError('too_large', limitBytes)
        yield value
      }
    } finally {
      reader.releaseLock()
    }
  }

  get closed(): boolean {
    return this.#left
  }

  head(status: number, headers: readonly string[]): void {
    if (this.#left) return
    this.#status = status
    const list = new Headers()
    for (let index = 0; index + 1 < headers.length; index += 2) list.append(headers[index]!, headers[index + 1]!)
    if (this.#endsConnection) list.set('connection', 'close')
    this.#headers = list
    // An answer that ends in the same turn gets a plain body, which every server sends in one chunk.
    queueMicrotask(() => this.#openBody())
  }

  write(bytes: Uint8Array | string): boolean {
    if (this.#ended || this.#left || this.#isBodiless()) return true
    this.#openBody()
    return this.#body?.push(toBytes(bytes)) ?? true
  }

  end(bytes?: Uint8Array | string): void {
    if (this.#ended || this.#left) return
    this.#ended = true
    this.#signal.removeEventListener('abort', this.#onAbort)
    if (!this.#resolved) {
      this.#respond(bytes === undefined || bytes.length === 0 || this.#isBodiless() ? null : toBytes(bytes))
      return
    }
    if (bytes !== undefined && bytes.length > 0) this.#body?.push(toBytes(bytes))
    this.#body?.close()
  }

  destroy(): void {
    if (this.#ended || this.#left) return
    this.#ended = true
    this.#left = true
    this.#signal.removeEventListener('abort', this.#onAbort)
    const error = new Error('The gateway cut the answer short.')
    if (this.#resolved) this.#body?.fail(error)
    else {
      this.#resolved = true
      this.#reject(error)
    }
  }

  endConnection(): void {
    this.#endsConnection = true
  }

  onDrain(listener: () => void): void {
    this.#drainListener = listener
  }

  onClose(listener: () => void): void {
    if (this.#ended) return
    if (this.#left) listener()
    else this.#closeListener = listener
  }

  readonly #onAbort = (): void => {
    this.#callerLeft()
    // Servers cancel the body in the same turn; other readers get an error.
    queueMicrotask(() => this.#body?.fail(this.#signal.reason))
  }

  #callerLeft(): void {
    if (this.#ended || this.#left) return
    this.#left = true
    this.#signal.removeEventListener('abort', this.#onAbort)
    const listener = this.#closeListener
    this.#closeListener = undefined
    listener?.()
    // Nobody reads this response; it only ends the host's wait. 499: client closed request.
    if (!this.#resolved) {
      this.#resolved = true
      this.#resolve(new Response(null, { status: 499 }))
    }
  }

  #openBody(): void {
    if (this.#resolved) return
    if (this.#isBodiless()) {
      this.#respond(null)
      return
    }
    this.#body = new ResponseBody({
      onPull: () => {
        if (!this.#ended) this.#drainListener?.()
      },
      onCancel: () => this.#callerLeft(),
    })
    this.#respond(this.#body.stream)
  }

  #respond(body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | null): void {
    this.#resolved = true
    this.#resolve(new Response(body, { status: this.#status, headers: this.#headers ?? new Headers() }))
  }

  #isBodiless(): boolean {
    return this.method === 'HEAD' || BODILESS.has(this.#status)
  }
}

function toBytes(bytes: Uint8Array | string): Uint8Array<ArrayBuffer> {
  return typeof bytes === 'string' ? encoder.encode(bytes) : (bytes as Uint8Array<ArrayBuffer>)
}

/**
 * Reads the body of a web request, up to `limitBytes`, or nothing if its declared length is larger. A rejected body is not
 * cancelled, because servers would close the connection before the rejection is sent.
 */
function readFetchBody(request: Request, limitBytes: number, listener: BodyListener): void {
  const { body } = request
  if (request.bodyUsed) listener('consumed', [])
  else if (Number(request.headers.get('content-length')) > limitBytes) listener('too_large', [])
  else if (body === null) listener(undefined, [])
  else if (body.locked) listener('consumed', [])
  else if (request.signal.aborted) listener('aborted', [])
  else readAll(body.getReader(), request.signal, limitBytes, listener)
}

/** Returns the next chunk of a body. A body created in this process does not fail when its request is aborted. */
async function nextPiece(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
  limitBytes: number,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  let abort = (): void => undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(bodyError('aborted', limitBytes))
    signal.addEventListener('abort', abort)
  })
  try {
    return await Promise.race([reader.read(), aborted])
  } catch {
    throw bodyError('aborted', limitBytes)
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function readAll(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
  limitBytes: number,
  listener: BodyListener,
): void {
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  let settled = false
  const settle = (failure: BodyFailure | undefined): void => {
    if (settled) return
    settled = true
    signal.removeEventListener('abort', abort)
    listener(failure, failure === undefined ? chunks : [])
  }
  const abort = (): void => settle('aborted')
  const take = (result: ReadableStreamReadResult<Uint8Array>): void => {
    if (settled) return
    if (result.done) {
      settle(undefined)
      return
    }
    sizeBytes += result.value.byteLength
    if (sizeBytes > limitBytes) {
      reader.releaseLock()
      settle('too_large')
      return
    }
    chunks.push(result.value)
    reader.read().then(take, abort)
  }
  // A body created in this process does not fail when its request is aborted.
  signal.addEventListener('abort', abort)
  reader.read().then(take, abort)
}

/** Number of bytes that may wait in the stream before the writer must stop; about a socket's buffer. */
const HIGH_WATER_MARK_BYTES = 64 * 1024

/** Signals of the reader to the writer. */
export interface ResponseBodyListeners {
  /** Called when there is room again after `push` returned false. */
  readonly onPull: () => void
  /** Called when the reader cancels the stream. */
  readonly onCancel: () => void
}

/** `ReadableStream` for a writer that pushes. Passes the reader's backpressure on to the writer. */
class ResponseBody {
  readonly stream: ReadableStream<Uint8Array>
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #isFull = false
  #closed = false

  constructor(listeners: ResponseBodyListeners) {
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => {
          if (!this.#isFull) return
          this.#isFull = false
          listeners.onPull()
        },
        cancel: () => {
          this.#closed = true
          listeners.onCancel()
        },
      },
      { highWaterMark: HIGH_WATER_MARK_BYTES, size: (chunk) => chunk.byteLength },
    )
  }

  /** Adds bytes. Returns false if the writer must wait for `onPull`. */
  push(bytes: Uint8Array): boolean {
    if (this.#closed || bytes.byteLength === 0) return !this.#isFull
    this.#controller.enqueue(bytes)
    this.#isFull = (this.#controller.desiredSize ?? 0) <= 0
    return !this.#isFull
  }

  /** Ends the stream after its buffered bytes. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#controller.close()
  }

  /** Ends the stream with an error and drops its buffered bytes. */
  fail(reason: unknown): void {
    if (this.#closed) return
    this.#closed = true
    this.#controller.error(reason)
  }
}
