import type { ThresholdCrossing } from './spending.ts'

/** Outcome of settling or voiding. `resolved` is false when nothing was changed. */
export interface Resolution {
  /** Did this call end the hold? */
  readonly resolved: boolean
  /** Charged by this call, nano-dollars: to the balance, or to the credit of a metered account. */
  readonly charged: bigint
  /** What the balance of a prepaid account lacked, nano-dollars: the account owes it from now on. */
  readonly shortfall: bigint
  /** The thresholds of the settlement that this charge has passed; absent when it has passed none. */
  readonly crossings?: readonly ThresholdCrossing[] | undefined
  /** How the hold had ended before, when nothing was changed; undefined: the ledger does not know the hold, or not any more. */
  readonly endedBy?: 'settled' | 'voided' | 'expired' | undefined
  /**
   * Where a charge had ended the hold, and the settlement has thresholds: what it came to. Told for a settlement that is made again because
   * the answer of the first was lost. Absent: the store loses no answers, or does not know it.
   */
  readonly earlier?: Pick<Resolution, 'charged' | 'shortfall' | 'crossings'> | undefined
  /** The database's refusal of the record; the charge was made without it. Absent: it was written, or none was given. */
  readonly recordFault?: unknown
}
