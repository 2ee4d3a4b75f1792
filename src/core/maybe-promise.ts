/** A value that a driver may give at once or later. In-memory drivers answer at once, which spares a turn of the queue. */
export type MaybePromise<Value> = Value | PromiseLike<Value>

/** True when a value has yet to come. Awaiting a value that is there already costs a turn of the queue, which a hot path avoids. */
export function isPending<Value>(value: MaybePromise<Value>): value is PromiseLike<Value> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
