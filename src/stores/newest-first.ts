/** Cursor of a list, newest first: it continues after the object with this creation time and id. */
export interface ListPlace {
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Id that orders objects of the same time. */
  readonly id: string
}

/** Query for objects of all accounts, newest first: by creation, then id. */
export interface NewestFirstQuery<State extends string> {
  /** Account of the objects. If omitted, all accounts are listed. */
  readonly accountId?: string | undefined
  /** State of the objects. If omitted, all states are listed. */
  readonly state?: State | undefined
  /** Cursor: lists the objects after this place. */
  readonly after?: ListPlace | undefined
  /** Maximum number of records. */
  readonly limit: number
}
