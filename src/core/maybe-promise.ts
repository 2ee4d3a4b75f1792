/** A value that a driver may give at once or later: callers `await` it either way. */
export type MaybePromise<Value> = Value | PromiseLike<Value>
