import { performance } from 'node:perf_hooks'
import type { Clock, Timer } from '../core/clock.ts'
import type { BodyListener, GatewayRequest } from '../core/exchange.ts'
import { type HeldBytes, overloaded } from '../core/memory-use.ts'

/** Limits above which a process rejects requests to models. Each limit is optional; none is set by default. */
export interface OverloadOptions {
  /** Maximum number of requests to models in flight. */
  readonly maxInFlight?: number | undefined
  /**
   * Maximum number of bytes of their bodies and of the media that are fetched for them. A body counts by its announced length from
   * the start of its reading until its request ends. Media count while they arrive, until the answer begins.
   */
  readonly maxHeldBytes?: number | undefined
  /** Maximum delay of the event loop, in milliseconds. */
  readonly maxEventLoopDelayMs?: number | undefined
}

const SAMPLE_INTERVAL_MS = 100

/** Rejects requests that this process has no room for, before their bodies are read. */
export class OverloadGuard {
  readonly #options: OverloadOptions
  readonly #clock: Clock
  readonly #heldBytes: HeldBytes
  #delayMs = 0
  #dueMs = 0
  #timer: Timer | undefined

  constructor(options: OverloadOptions, clock: Clock, heldBytes: HeldBytes) {
    this.#options = options
    this.#clock = clock
    this.#heldBytes = heldBytes
  }

  /** Starts to watch the event loop, if it has a limit. */
  start(): void {
    if (this.#options.maxEventLoopDelayMs === undefined || this.#timer !== undefined) return
    this.#watch()
  }

  close(): void {
    this.#timer?.cancel()
  }

  /**
   * Checks whether there is room for a request, which counts already.
   * @throws GatewayError `overloaded`.
   */
  check(inFlight: number): void {
    const { maxInFlight, maxEventLoopDelayMs } = this.#options
    if (maxInFlight !== undefined && inFlight > maxInFlight) throw overloaded('in-flight')
    if (maxEventLoopDelayMs !== undefined && this.#delayMs > maxEventLoopDelayMs) throw overloaded('event-loop-delay')
  }

  /** Returns the request with its body counted, or `undefined` if bodies have no limit. */
  held(request: GatewayRequest): HeldRequest | undefined {
    if (this.#heldBytes.max === undefined) return undefined
    return new HeldRequest(request, (from, to) => this.#heldBytes.add(to - from))
  }

  /** The delay of a timer also shows how long everything else waits. The stored delay halves with each measurement. */
  #watch(): void {
    this.#dueMs = performance.now() + SAMPLE_INTERVAL_MS
    this.#timer = this.#clock.schedule(SAMPLE_INTERVAL_MS, () => {
      this.#delayMs = Math.max(performance.now() - this.#dueMs, this.#delayMs / 2)
      this.#watch()
    })
  }
}

/** All members of a request but `streamBody`: a streamed body is not held, so it is not counted. */
type WholeRequest = Required<Omit<GatewayRequest, 'streamBody'>>

/** Request whose body is counted while it is held. */
export class HeldRequest implements WholeRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly originalPath: string | undefined
  readonly remoteAddress: string | undefined
  readonly #inner: GatewayRequest
  readonly #change: (from: number, to: number) => void
  #bytes = 0

  /** @param change Counts a body of another size; throws if there is no room for a larger one. */
  constructor(inner: GatewayRequest, change: (from: number, to: number) => void) {
    this.method = inner.method
    this.path = inner.path
    this.query = inner.query
    this.originalPath = inner.originalPath
    this.remoteAddress = inner.remoteAddress
    this.#inner = inner
    this.#change = change
  }

  get origin(): string | undefined {
    return this.#inner.origin
  }

  get hostRequest(): unknown {
    return this.#inner.hostRequest
  }

  get ownsBody(): boolean {
    return this.#inner.ownsBody === true
  }

  header(name: string): string | undefined {
    return this.#inner.header(name)
  }

  /** @throws GatewayError `overloaded` if there is no room for the body. */
  readBody(limitBytes: number, listener: BodyListener): void {
    const announced = Number(this.header('content-length') ?? 0)
    // The reader rejects a length beyond the limit with its own error.
    this.#resize(announced >= 0 && announced <= limitBytes ? announced : 0)
    this.#inner.readBody(limitBytes, (failure, chunks) => {
      // The body has arrived, whether there is room or not.
      const byteLength = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0)
      if (byteLength < this.#bytes) this.#resize(byteLength)
      listener(failure, chunks)
    })
  }

  /** Releases the bytes of a finished request. */
  release(): void {
    this.#resize(0)
  }

  #resize(bytes: number): void {
    this.#change(this.#bytes, bytes)
    this.#bytes = bytes
  }
}

/** Returns the guard of these options, or `undefined` if no limit is set. */
export function overloadGuardOf(
  options: OverloadOptions | undefined,
  clock: Clock,
  heldBytes: HeldBytes,
): OverloadGuard | undefined {
  if (options === undefined) return undefined
  return new OverloadGuard(options, clock, heldBytes)
}
