/** Where a list of tasks or messages, newest first, goes on: behind what was made then and has this id. */
export interface ListPlace {
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Orders those of the same time. */
  readonly id: string
}

/** What of all accounts to list, newest first: by creation, then id. */
export interface NewestFirstQuery<State extends string> {
  /** Undefined: of all accounts. */
  readonly accountId?: string | undefined
  /** Undefined: in any state. */
  readonly state?: State | undefined
  /** Only what is behind this place. */
  readonly after?: ListPlace | undefined
  /** Most records. */
  readonly limit: number
}
