import type { StreamRecording } from '../stream-recording.ts'
import type { Flight } from './flight.ts'

/** Result of a request at the cache. */
export type CacheStatus = 'hit' | 'miss' | 'refresh' | 'stale' | 'bypass'

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
  /** Stale answer to use if no vendor answers. */
  stale: Uint8Array | undefined = undefined
  /** Whole answer before hooks, or `undefined` if no hook has read it. */
  unscreened: UnscreenedAnswer | undefined = undefined
  /** Stream before hooks, or `undefined` if no hook reads it. */
  recording: StreamRecording | undefined = undefined
  /** Requests that wait for the answer of this one. */
  flight: Flight | undefined = undefined
}
