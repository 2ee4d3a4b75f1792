import type { Clock, Timer } from '../../core/clock.ts'
import {
  isStreamedBody,
  type StreamedBody,
  type Transport,
  type TransportControl,
  type TransportFailure,
  type TransportHandler,
  type TransportRequest,
} from '../../transport/transport.ts'
import type { CallReceiver, VendorConnection } from './delivery-steps.ts'
import type { IncomingCall } from './sandbox-operation.ts'

/** A transport within this process, without sockets, with a list of its running calls. */
export interface MemoryTransport extends Transport {
  /** Running calls. */
  readonly open: number
  /** Breaks all running calls. */
  resetAll(): void
}

/** Creates a transport that passes every call, for any origin, to `receive`. Applies both timeouts of the contract. */
export function memoryTransport(receive: CallReceiver, clock: Clock): MemoryTransport {
  const open = new Set<MemoryCall>()
  let whenIdle: (() => void)[] = []
  const ended = (call: MemoryCall): void => {
    open.delete(call)
    if (open.size > 0) return
    for (const callback of whenIdle) callback()
    whenIdle = []
  }
  return {
    get open() {
      return open.size
    },
    resetAll() {
      for (const call of [...open]) call.reset()
    },
    send(request, handler) {
      const call = new MemoryCall(request, handler, clock, ended)
      open.add(call)
      // A later turn: callbacks must not run before this method has returned.
      setImmediate(() => call.begin(receive))
      return call
    },
    close: () => (open.size === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve))),
  }
}

/** One call in process, seen from both ends: the gateway's control of it and the vendor's connection. */
export class MemoryCall implements TransportControl, VendorConnection {
  closed = false
  readonly #request: TransportRequest
  readonly #handler: TransportHandler
  readonly #clock: Clock
  readonly #onEnded: (call: MemoryCall) => void
  #waiting: Uint8Array[] = []
  #isPaused = false
  #isFull = false
  #hasHead = false
  #isEnding: 'end' | 'reset' | undefined
  #isOver = false
  #timer: Timer | undefined
  #drain: (() => void) | undefined
  #onDisconnect: (() => void) | undefined

  constructor(request: TransportRequest, handler: TransportHandler, clock: Clock, onEnded: (call: MemoryCall) => void) {
    this.#request = request
    this.#handler = handler
    this.#clock = clock
    this.#onEnded = onEnded
  }

  begin(receive: CallReceiver): void {
    if (this.closed) return
    this.#watch()
    const { body } = this.#request
    if (!isStreamedBody(body)) {
      receive(incomingCall(this.#request, bytesOf(body)), this)
      return
    }
    readWhole(body).then(
      (bytes) => {
        if (!this.closed) receive(incomingCall(this.#request, bytes), this)
      },
      (error: unknown) => this.#failBody(error as Error),
    )
  }

  abort(): void {
    this.#failWith('aborted', 'the call was aborted')
  }

  pause(): void {
    this.#isPaused = true
    this.#timer?.cancel()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    // A later turn: the contract's callbacks never run inside a call of the control.
    queueMicrotask(() => {
      this.#flush()
      if (!this.#isFull || this.#waiting.length > 0 || this.closed) return
      this.#isFull = false
      this.#drain?.()
    })
  }

  head(status: number, headers: readonly string[]): void {
    if (this.closed) return
    this.#hasHead = true
    this.#watch()
    this.#handler.onHead(status, headerMap(headers))
  }

  write(bytes: Uint8Array): boolean {
    if (this.closed) return false
    this.#waiting.push(bytes)
    this.#flush()
    this.#isFull = this.#waiting.length > 0
    return !this.#isFull && !this.closed
  }

  end(): void {
    if (this.closed) return
    this.closed = true
    this.#isEnding = 'end'
    this.#flush()
  }

  reset(): void {
    if (this.closed) return
    this.closed = true
    this.#isEnding = 'reset'
    this.#flush()
  }

  refuse(): void {
    if (this.closed) return
    this.closed = true
    this.#fail({ phase: 'connect', kind: 'refused', error: new Error('the connection was refused') })
  }

  onDrain(listener: () => void): void {
    this.#drain = listener
  }

  onDisconnect(listener: () => void): void {
    this.#onDisconnect = listener
  }

  /** Delivers waiting chunks as long as the caller accepts them. */
  #flush(): void {
    while (!this.#isPaused && !this.#isOver && this.#waiting.length > 0) {
      this.#watch()
      this.#handler.onData(this.#waiting.shift() as Uint8Array)
    }
    if (this.#isPaused || this.#isOver) return
    if (this.#isEnding === 'end') {
      this.#finish()
      this.#handler.onEnd()
    } else if (this.#isEnding === 'reset') {
      this.#fail({ phase: this.#phase(), kind: 'reset', error: new Error('the connection was reset') })
    }
  }

  /** Restarts the timeout of the current phase. */
  #watch(): void {
    this.#timer?.cancel()
    const limitMs = this.#hasHead ? this.#request.idleTimeoutMs : this.#request.firstByteTimeoutMs
    this.#timer = this.#clock.schedule(limitMs, () => this.#failWith('timeout', `nothing came within ${limitMs} ms`))
  }

  #failWith(kind: 'aborted' | 'timeout', text: string): void {
    if (this.#isOver) return
    const vendorWasBusy = !this.closed
    this.closed = true
    this.#isOver = true
    this.#waiting = []
    this.#timer?.cancel()
    if (vendorWasBusy) this.#onDisconnect?.()
    queueMicrotask(() => {
      this.#onEnded(this)
      this.#handler.onFailure({ phase: this.#phase(), kind, error: new Error(text) })
    })
  }

  #failBody(error: Error): void {
    if (this.closed) return
    this.closed = true
    this.#fail({ phase: 'sent', kind: 'protocol', error })
  }

  #fail(failure: TransportFailure): void {
    this.#finish()
    this.#handler.onFailure(failure)
  }

  #finish(): void {
    this.#isOver = true
    this.#timer?.cancel()
    this.#onEnded(this)
  }

  #phase(): 'sent' | 'body' {
    return this.#hasHead ? 'body' : 'sent'
  }
}

function incomingCall(request: TransportRequest, bytes: Uint8Array): IncomingCall {
  const [path = '', query = ''] = split(request.path)
  const headers: Record<string, string> = {}
  for (let position = 0; position + 1 < request.headers.length; position += 2) {
    const name = (request.headers[position] ?? '').toLowerCase()
    const value = request.headers[position + 1] ?? ''
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  return { method: request.method, path, query, headers, bytes }
}

async function readWhole({ byteLength, content }: StreamedBody): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of content) pieces.push(piece)
  const bytes = Buffer.concat(pieces)
  if (bytes.byteLength === byteLength) return bytes
  throw new Error(`the body has ${bytes.byteLength} bytes, not ${byteLength}`)
}

function bytesOf(body: Exclude<TransportRequest['body'], StreamedBody>): Uint8Array {
  if (body === null) return new Uint8Array(0)
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body)
  return Buffer.concat(body)
}

function split(path: string): [string, string] {
  const mark = path.indexOf('?')
  return mark === -1 ? [path, ''] : [path.slice(0, mark), path.slice(mark + 1)]
}

function headerMap(headers: readonly string[]): Record<string, string | string[]> {
  const map: Record<string, string | string[]> = {}
  for (let position = 0; position + 1 < headers.length; position += 2) {
    const name = headers[position] ?? ''
    const value = headers[position + 1] ?? ''
    const earlier = map[name]
    map[name] = earlier === undefined ? value : [...(typeof earlier === 'string' ? [earlier] : earlier), value]
  }
  return map
}
