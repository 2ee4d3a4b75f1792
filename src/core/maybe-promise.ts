/**
 * A value that a driver may give at once or later. Callers may `await` it either way; on the way of every request a value that is
 * there is taken as it is, because each `await` allocates (`bench/allocations.mjs`).
 */
export type MaybePromise<Value> = Value | PromiseLike<Value>

/** True when a value has yet to come. */
export function isPending<Value>(value: MaybePromise<Value>): value is PromiseLike<Value> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
