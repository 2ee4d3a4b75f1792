/** What a statement gives. */
export interface PostgresResult {
  readonly rows: readonly unknown[]
}

/** Something that runs one statement with `$1`, `$2` … as values. */
export interface PostgresSession {
  query(text: string, values?: unknown[]): PromiseLike<PostgresResult>
}

/** A connection lent by a pool. `release` with an error throws the connection away. */
export interface PostgresClient extends PostgresSession {
  release(error?: Error): void
  on?(event: 'error', listener: (error: Error) => void): unknown
}

/** A connection pool, such as `Pool` of `pg`. */
export interface PostgresPool extends PostgresSession {
  connect(): PromiseLike<PostgresClient>
  on?(event: 'error', listener: (error: Error) => void): unknown
  on?(event: 'connect', listener: (client: PostgresClient) => void): unknown
}

/** Any other client: one method for a statement of its own, one for several in a transaction. */
export interface PostgresTransactions extends PostgresSession {
  transaction<Value>(run: (session: PostgresSession) => Promise<Value>): PromiseLike<Value>
}
