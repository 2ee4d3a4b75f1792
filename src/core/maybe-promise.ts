/**
 * A value that a driver may give at once or later. Callers may `await` it either way; on the way of every request a value that is
 * there is taken as it is, because each `await` allocates (`bench/allocations.mjs`).
 */
export type MaybePromise<Value> = Value | PromiseLike<Value>

/** True when a value has yet to come. */
export function isPending<Value>(value: MaybePromise<Value>): value is PromiseLike<Value> {
  // Not `'then' in value` first: V8 keeps where a property is read, but searches anew whether there is one.
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
