/**
 * Value that a driver may return directly or as a promise. Callers may `await` either. Small steps of
 * every request return it instead of being `async`, because each `async` function allocates (`bench/allocations.mjs`).
 */
export type MaybePromise<Value> = Value | PromiseLike<Value>

/** Returns whether a value is a promise. */
export function isPending<Value>(value: MaybePromise<Value>): value is PromiseLike<Value> {
  // Not `'then' in value` first: V8 caches the place of a property that is read, but repeats the search for `in`.
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
