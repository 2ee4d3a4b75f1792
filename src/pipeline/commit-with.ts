import type { Clock } from '../core/clock.ts'
import type { Ending } from '../core/events.ts'
import type { ChargeDetails } from '../stores/journal.ts'
import { HoldEndedError, type HostTransaction, type Ledger, type Settlement } from '../stores/ledger.ts'
import type { Resolution } from '../stores/resolution.ts'

/** Charged call, for the host's statements that are committed with its charge. */
export interface ChargedCall extends ChargeDetails {
  readonly requestId: string
  readonly accountId: string
  /** How the call ended. Streams that broke off and abandoned calls are charged for their part. */
  readonly ending: Ending
  /** Cost in nano-dollars. The account owes the part that exceeds its balance. */
  readonly costNanoDollars: bigint
  /** Whole answer as the caller gets it: the value of JSON, or the bytes of another format. `undefined` for streams. */
  readonly body: unknown
}

/**
 * Runs statements of the host that are committed with the charge of a call, or not at all. Called once for each charge. If it
 * throws or takes too long, the call is not charged and fails.
 */
export type CommitWith = (transaction: HostTransaction, call: ChargedCall) => PromiseLike<unknown>

/** Charge of one call that is committed together with the host's statements. */
export class HostCommit {
  readonly #commitWith: CommitWith
  #state: 'unused' | 'undone' | 'in-doubt' = 'unused'

  constructor(commitWith: CommitWith) {
    this.#commitWith = commitWith
  }

  /**
   * Charges the call, or ends its hold if that fails. The statements run once: a retry only ends the hold.
   * @param describe Returns the call for the host. If it throws, the call is not charged.
   * @param failed Called with the error of the transaction.
   */
  async charge(
    { ledger, clock }: { readonly ledger: Ledger; readonly clock: Clock },
    settlement: Settlement,
    describe: () => ChargedCall,
    failed: (error: unknown) => void,
  ): Promise<Resolution> {
    const run = async (transaction: HostTransaction): Promise<void> => {
      const call = describe()
      await this.#commitWith(transaction, call)
      this.#state = 'in-doubt'
    }
    try {
      if (this.#state === 'unused') {
        this.#state = 'undone'
        return await ledger.settleWith!(settlement, run, clock.now())
      }
    } catch (error) {
      if (error instanceof HoldEndedError) this.#state = 'undone'
      failed(error)
    }
    // Waits for a commit that is still in progress, because its transaction has locked the hold.
    const { endedBy } = await ledger.void(settlement.holdId, clock.now())
    if (this.#state === 'undone' || endedBy !== 'settled') return NOT_CHARGED
    // The transaction was committed, so this changes nothing and returns the charge.
    const { earlier } = await ledger.settle(settlement, clock.now())
    return { resolved: true, charged: settlement.amount, shortfall: 0n, ...earlier }
  }
}

const NOT_CHARGED: Resolution = { resolved: false, charged: 0n, shortfall: 0n }
