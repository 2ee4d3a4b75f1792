import type { MaybePromise } from '../core/maybe-promise.ts'

/** Longest time that an entry is kept, in milliseconds: 24 hours fresh, and as long again for when no vendor answers. */
export const LONGEST_CACHE_KEEP_MS = 48 * 60 * 60 * 1000

/**
 * Keeps answers for a while. It may forget any of them at any time, so a driver that fails or is too slow should give nothing
 * and not throw: a request then asks its vendor.
 */
export interface ResponseCache {
  /** The entry as it was set, for as long as it was to be kept; undefined: there is none. The bytes must not be changed. */
  get(key: string, nowMs: number): MaybePromise<Uint8Array | undefined>
  /**
   * Replaces the entry of a key.
   * @param keepMs At most {@link LONGEST_CACHE_KEEP_MS}.
   */
  set(key: string, entry: Uint8Array, keepMs: number, nowMs: number): MaybePromise<void>
  /**
   * How often a scope was cleared, at most a second old; 0 for one that never was. It is part of the keys of its entries, so that
   * clearing needs no search. Undefined: not known at present, and nothing may be read or written.
   */
  generation(scope: string, nowMs: number): MaybePromise<number | undefined>
  /**
   * Makes the entries of a scope unreachable: raises its generation, at once for this process.
   * @throws Error if it cannot.
   */
  clear(scope: string, nowMs: number): MaybePromise<void>
}
