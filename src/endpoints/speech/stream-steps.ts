/**
 * The work of a stream whose bytes take milliseconds to work on, in steps, so that everything else in the process gets its
 * turns in between. `push` and `end` of the stream do at once whatever is left.
 */
export interface StreamSteps {
  /** Takes one network read, as `push` does, but leaves the work for {@link next}. */
  take(chunk: Uint8Array): void
  /** Is anything left to do? `end` should not be called before it is done. */
  readonly hasWork: boolean
  /** Does a millisecond or so of the work; gives the caller's bytes for it, or undefined when there are none. */
  next(): Uint8Array | string | undefined
}
