/** Accounts of the drill: `account_0` to `account_49`. */
export const ACCOUNTS = 50
/** Ended steps between two messages. */
export const STEPS_PER_MESSAGE = 20

/** Job for a process that moves money until it gets the message `stop`. */
export interface MoneyJob {
  readonly url: string
  readonly schema: string
  readonly worker: number
  readonly seed: number
  readonly lanes: number
}

/** Hold that the store had confirmed, and how it ended for this process. */
export interface HoldReport {
  readonly holdId: string
  /** Unix milliseconds at which the reservation was sent, and at which its end was confirmed. */
  readonly sentAtMs: number
  readonly endedAtMs: number
  /**
   * `settled`: the charge is confirmed. `late`: confirmed after the hold had expired. `unpaid`: the store no longer charges the
   * hold, and `endedBy` says why. `left`: never ended by this process.
   */
  readonly end: 'settled' | 'late' | 'voided' | 'unpaid' | 'left'
  readonly endedBy?: string | undefined
  /** Amount of the settlement in nano-dollars. */
  readonly amount: bigint
  /** Idempotency-Key of a settlement with an answer. */
  readonly answered?: { readonly accountId: string; readonly key: string; readonly fingerprint: string } | undefined
}

/** Knowledge of a process at its end. The store has confirmed all of it, except `asked`. */
export interface MoneyReport {
  readonly holds: readonly HoldReport[]
  /** Amounts of all settlements that were sent, by hold. */
  readonly asked: ReadonlyMap<string, bigint>
  /** Amounts of journal lines by kind and operation. */
  readonly operations: ReadonlyMap<string, bigint>
  /** Number of confirmed outcomes by kind. */
  readonly outcomes: ReadonlyMap<string, number>
  /** Calls that were repeated because the server did not answer. */
  readonly repeated: number
  /** Errors that no outage explains, unhandled rejections included. */
  readonly faults: readonly string[]
}
