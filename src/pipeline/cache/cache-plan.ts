import { Buffer } from 'node:buffer'

/** Result of a request at the cache. */
export type CacheStatus = 'hit' | 'miss' | 'refresh' | 'bypass'

/** Maximum size of a cached answer, in bytes before compression. */
export const MAX_ENTRY_BYTES = 1024 * 1024

/** Whole answer from its vendor, before hooks. */
export interface UnscreenedAnswer {
  readonly chunks: readonly Uint8Array[]
  readonly dropped: readonly string[]
  readonly isRefusal: boolean
}

/** Plan for the answer of a request. */
export class CachePlan {
  status: CacheStatus = 'bypass'
  /** Key of the entry, or `undefined` if nothing is read or written. */
  key: string | undefined = undefined
  ttlMs = 0
  /** Whether the caller accepts only a cached answer. */
  isOnly = false
  /** Public id of the requested model. */
  model = ''
  /** Settles when the waiting requests have the answer; `undefined` if none wait any more. */
  kept: PromiseLike<void> | undefined = undefined
  /** Whole answer before hooks, or `undefined` if no hook has read it. */
  unscreened: UnscreenedAnswer | undefined = undefined
  /** Stream before hooks, or `undefined` if no hook reads it. */
  recording: StreamRecording | undefined = undefined
  /** Requests that wait for the answer of this one. */
  flight: Flight | undefined = undefined
}

/** Result for a request that waited for an equal one: the entry, `lead` to call a vendor for all, or `alone` for itself. */
export type FlightOutcome = Uint8Array | 'lead' | 'alone'

/** Number of times that a waiting request replaces a failed leader. After that, each request calls a vendor itself. */
const MAX_SUCCESSIONS = 2

/**
 * Equal concurrent requests: one calls the vendor, and the others wait for its answer. Errors of the leader stay its own; one of
 * the waiting requests then replaces it.
 */
export class Flight {
  /** Created for the first waiting request, because most requests have no equal. */
  #waiting: Set<(outcome: FlightOutcome) => void> | undefined
  readonly #over: () => void
  #successions = 0
  #isOver = false

  /** @param over Called once, when no other request may join. */
  constructor(over: () => void) {
    this.#over = over
  }

  /** Whether a request waits for the leader. */
  get isAwaited(): boolean {
    return this.#waiting !== undefined && this.#waiting.size > 0
  }

  /** Waits for the outcome. The returned function ends the waiting. */
  join(listener: (outcome: FlightOutcome) => void): () => void {
    this.#waiting ??= new Set()
    const waiting = this.#waiting
    waiting.add(listener)
    return () => void waiting.delete(listener)
  }

  /** Passes the leader's answer on. */
  answered(entry: Uint8Array): void {
    this.#end(entry)
  }

  /** Ends the leader. Without an answer another request leads, or all go alone. Without effect after {@link answered}. */
  leaderOver(): void {
    if (this.#isOver) return
    const waiting = this.#waiting
    const next = waiting?.values().next().value
    if (waiting === undefined || next === undefined || this.#successions >= MAX_SUCCESSIONS) {
      this.#end('alone')
      return
    }
    this.#successions += 1
    waiting.delete(next)
    next('lead')
  }

  #end(outcome: FlightOutcome): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#over()
    const waiting = this.#waiting
    if (waiting === undefined) return
    for (const listener of waiting) listener(outcome)
    waiting.clear()
  }
}

/** Bytes of a stream, up to a maximum size. */
export class StreamRecording {
  readonly #maxBytes: number
  #chunks: Buffer[] | undefined = []
  #byteLength = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Recorded chunks, or `undefined` if there were too many bytes. */
  get chunks(): readonly Buffer[] | undefined {
    return this.#chunks
  }

  add(bytes: Uint8Array | string): void {
    if (this.#chunks === undefined) return
    const buffer =
      typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#byteLength += buffer.byteLength
    if (this.#byteLength > this.#maxBytes) this.#chunks = undefined
    else this.#chunks.push(buffer)
  }
}
