import type { ThresholdCrossing } from './spending.ts'

/** Outcome of settling or voiding. `resolved` is false if nothing was changed. */
export interface Resolution {
  /** Whether this call ended the hold. */
  readonly resolved: boolean
  /** Charge by this call in nano-dollars: to the balance, or to the credit of a metered account. */
  readonly charged: bigint
  /** Part of the charge that a prepaid account's balance lacked, in nano-dollars. The account owes it. */
  readonly shortfall: bigint
  /** Thresholds of the settlement that this charge has passed; omitted if it has passed none. */
  readonly crossings?: readonly ThresholdCrossing[] | undefined
  /** How the hold had ended before, if nothing was changed; `undefined` if the ledger does not know the hold, or no longer. */
  readonly endedBy?: 'settled' | 'voided' | 'expired' | undefined
  /**
   * Result of an earlier charge that had ended the hold, if the settlement has thresholds. For a settlement that is retried
   * because the first answer was lost. Omitted if the store loses no answers, or does not know it.
   */
  readonly earlier?: Pick<Resolution, 'charged' | 'shortfall' | 'crossings'> | undefined
  /** Error with which the database rejected the record; the charge was made without it. Omitted if it was written, or there was none. */
  readonly recordFault?: unknown
}

/** Cursor of a list, newest first: it continues after the object with this creation time and id. */
export interface ListPlace {
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Id that orders objects of the same time. */
  readonly id: string
}

/** Orders the older object first, and objects of the same time by id. */
export function byAge(one: ListPlace, other: ListPlace): number {
  return one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)
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
