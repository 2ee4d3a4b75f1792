import type { StreamRecording } from '../stream-recording.ts'
import type { Flight } from './flight.ts'

/** How a request fared at the cache. */
export type CacheStatus = 'hit' | 'miss' | 'refresh' | 'stale' | 'bypass'

/** Largest answer that is kept, in bytes before compression. */
export const MAX_ENTRY_BYTES = 1024 * 1024

/** A whole answer as its vendor gave it, before hooks. */
export interface UnscreenedAnswer {
  readonly chunks: readonly Uint8Array[]
  readonly dropped: readonly string[]
  readonly isRefusal: boolean
}

/** What is to be done with the answer of a request. */
export class CachePlan {
  status: CacheStatus = 'bypass'
  /** Undefined: nothing is read or written. */
  key: string | undefined = undefined
  ttlMs = 0
  /** Does the caller want an answer of the cache or none? */
  isOnly = false
  /** Public id of the requested model. */
  model = ''
  /** Settles when those who wait for the answer have it; undefined: they have, or there is none. */
  kept: PromiseLike<void> | undefined = undefined
  /** An answer that is no longer fresh, for when no vendor answers. */
  stale: Uint8Array | undefined = undefined
  /** The whole answer before hooks; undefined: no hook has read it. */
  unscreened: UnscreenedAnswer | undefined = undefined
  /** The stream before hooks; undefined: no hook reads it. */
  recording: StreamRecording | undefined = undefined
  /** The requests that wait for the answer of this one. */
  flight: Flight | undefined = undefined
}
