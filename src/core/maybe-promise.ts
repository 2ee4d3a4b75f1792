/**
 * A value that a driver may give at once or later. In-memory drivers answer at once, which spares the hot path a promise
 * and a turn of the queue for each of them.
 */
export type MaybePromise<Value> = Value | PromiseLike<Value>

/** True when a value has yet to come. */
export function isPending<Value>(value: MaybePromise<Value>): value is PromiseLike<Value> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** Goes on with a value: at once when it is there, else when it comes. */
export function andThen<Value, Next>(
  value: MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Next>,
): MaybePromise<Next> {
  return isPending(value) ? value.then(next) : next(value)
}

/** Runs something that may fail at once or later, and goes on either way. */
export function settled<Value, Next>(
  run: () => MaybePromise<Value>,
  onValue: (value: Value) => MaybePromise<Next>,
  onError: (error: unknown) => MaybePromise<Next>,
): MaybePromise<Next> {
  let value: MaybePromise<Value>
  try {
    value = run()
  } catch (error) {
    return onError(error)
  }
  return isPending(value) ? value.then(onValue, onError) : onValue(value)
}
