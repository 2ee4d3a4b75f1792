/** A value that a driver may give at once or later. In-memory drivers answer at once, which spares a turn of the queue. */
export type MaybePromise<Value> = Value | PromiseLike<Value>
