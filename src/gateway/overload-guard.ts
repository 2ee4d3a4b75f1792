import { performance } from 'node:perf_hooks'
import type { Clock, Timer } from '../core/clock.ts'
import type { BodyListener, GatewayRequest } from '../core/exchange.ts'
import { type HeldBytes, overloaded } from '../core/held-bytes.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'

/** When a process takes no further requests to models. Each bound is optional; none is set by default. */
export interface OverloadOptions {
  /** Most requests to models in progress. */
  readonly maxInFlight?: number | undefined
  /**
   * Maximum number of bytes of their bodies and of the media that are fetched for them. A body counts from when it is read, by the
   * length that it announces, until its request is over. Media count while they arrive, until the answer begins.
   */
  readonly maxHeldBytes?: number | undefined
  /** Longest time by which the event loop may lag behind, in milliseconds. */
  readonly maxEventLoopDelayMs?: number | undefined
}

const SAMPLE_INTERVAL_MS = 100

/** Refuses requests that this process has no room for, before their bodies are read. */
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

  /** Begins to watch the event loop, if it has a bound. */
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

  /** The same request, whose body counts; undefined: bodies have no bound. */
  held(request: GatewayRequest): HeldRequest | undefined {
    if (this.#heldBytes.max === undefined) return undefined
    return new HeldRequest(request, (from, to) => this.#heldBytes.add(to - from))
  }

  /** A late timer tells how long everything else waits, too. Lateness is forgotten by halves. */
  #watch(): void {
    this.#dueMs = performance.now() + SAMPLE_INTERVAL_MS
    this.#timer = this.#clock.schedule(SAMPLE_INTERVAL_MS, () => {
      this.#delayMs = Math.max(performance.now() - this.#dueMs, this.#delayMs / 2)
      this.#watch()
    })
  }
}

/** Every member of a request is handed on but `streamBody`: a body that is streamed is not held, so nothing of it is counted. */
type WholeRequest = Required<Omit<GatewayRequest, 'streamBody'>>

/** A request whose body is counted while it is held. */
export class HeldRequest implements WholeRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly originalPath: string | undefined
  readonly remoteAddress: string | undefined
  readonly #inner: GatewayRequest
  readonly #change: (from: number, to: number) => void
  #bytes = 0

  /** @param change Counts a body of another size; throws where a larger one has no room. */
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

  /** @throws GatewayError `overloaded` where the body has no room. */
  readBody(limitBytes: number, listener: BodyListener): void {
    const announced = Number(this.header('content-length') ?? 0)
    // A length beyond the limit is refused by who reads, as such.
    this.#resize(announced >= 0 && announced <= limitBytes ? announced : 0)
    this.#inner.readBody(limitBytes, (failure, chunks) => {
      // It is here now, whether there is room or not.
      const byteLength = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0)
      if (byteLength < this.#bytes) this.#resize(byteLength)
      listener(failure, chunks)
    })
  }

  /** The request is over. */
  release(): void {
    this.#resize(0)
  }

  #resize(bytes: number): void {
    this.#change(this.#bytes, bytes)
    this.#bytes = bytes
  }
}

const OVERLOAD_OPTIONS = {
  maxInFlight: true,
  maxHeldBytes: true,
  maxEventLoopDelayMs: true,
} satisfies MemberNames<OverloadOptions>

/**
 * The guard that these options describe; undefined: none.
 * @throws TypeError naming the option.
 */
export function overloadGuardOf(
  options: OverloadOptions | undefined,
  clock: Clock,
  heldBytes: HeldBytes,
): OverloadGuard | undefined {
  if (options === undefined) return undefined
  if (typeof options !== 'object' || options === null) throw new TypeError('createGateway: overload must be an object')
  checkMembers(options, OVERLOAD_OPTIONS, 'createGateway', 'overload')
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    if (value !== undefined && !(typeof value === 'number' && value > 0))
      throw new TypeError(`createGateway: overload.${name} must be a positive number`)
  }
  return new OverloadGuard(options, clock, heldBytes)
}
