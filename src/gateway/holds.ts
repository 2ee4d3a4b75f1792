import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import { parseDollars } from '../core/money.ts'
import { type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { OpenHold } from '../stores/journal.ts'
import { assertAmount } from '../stores/ledger.ts'
import type { Resolution } from '../stores/resolution.ts'
import { administer, checkArgument, checkReason } from './administer.ts'
import { checkPageSize, pageOf, partsOfPlace, placeOf } from './page-cursor.ts'

/** A page of open holds. */
export interface HoldsPageOptions {
  /** Of this account only. */
  readonly accountId?: string | undefined
  /** `next` of the page before. */
  readonly cursor?: string | undefined
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined
}

const HOLDS_PAGE_OPTIONS = {
  accountId: true,
  cursor: true,
  limit: true,
} satisfies MemberNames<HoldsPageOptions>

/** Open holds, oldest first. */
export interface HoldsPage {
  /** Oldest first. */
  readonly holds: readonly OpenHold[]
  /** Undefined: there are no more. */
  readonly next: string | undefined
}

/**
 * Money held for calls in progress, for operators. A hold ends once: after the call has ended it, `settle` and `void` change
 * nothing and say in `endedBy` how it ended.
 */
export interface Holds {
  /**
   * A page of the money held for calls in progress, the oldest first.
   * @throws GatewayError `invalid_request` for a bad limit or cursor.
   */
  list(options?: HoldsPageOptions): Promise<HoldsPage>
  /**
   * Charges a hold by hand: one that is open, or one that expired without a charge. What the balance lacks is owed. The call's
   * own settlement changes nothing then.
   * @param amount decimal dollars; zero is allowed.
   * @param options `reason`: kept in the journal; one line of at most 500 characters.
   * @throws GatewayError `invalid_request` for a hold that the store does not know or not any more, or a bad amount or reason.
   */
  settle(holdId: string, amount: string, options?: { readonly reason?: string | undefined }): Promise<Resolution>
  /**
   * Gives a hold back without a charge. The call's own settlement is told by the event `settlement-given-up` then.
   * @throws GatewayError `invalid_request` for a hold that the store does not know or not any more.
   */
  void(holdId: string): Promise<Resolution>
}

const SETTLE_OPTIONS = { reason: true } as const

/** Makes the administration of a store's holds. `ready` resolves once the store can be used. */
export function holdsOf({ ledger }: GatewayStore, clock: Clock, ready: () => Promise<void>): Holds {
  return {
    async list(options = {}) {
      checkMembers(options, HOLDS_PAGE_OPTIONS, 'holds.list')
      const { accountId, cursor, limit = 100 } = options
      return administer(ready, async () => {
        checkPageSize(limit)
        const rows = await ledger.openHolds({ accountId, after: placeOf(cursor), limit: limit + 1 })
        const page = pageOf(rows, limit, partsOfPlace)
        return { holds: page.rows, next: page.next }
      })
    },
    async settle(holdId, amount, options = {}) {
      checkMembers(options, SETTLE_OPTIONS, 'holds.settle')
      const { reason = 'charged by hand' } = options
      return administer(ready, async () => {
        const nanoDollars = checkArgument('amount', () => amountOf(amount))
        checkReason(reason)
        return known(holdId, await ledger.settle({ holdId, amount: nanoDollars, description: reason }, clock.now()))
      })
    },
    void: (holdId) => administer(ready, async () => known(holdId, await ledger.void(holdId, clock.now()))),
  }
}

/** @throws GatewayError `invalid_request` where the ledger does not know the hold. */
function known(holdId: string, resolution: Resolution): Resolution {
  if (resolution.resolved || resolution.endedBy !== undefined) return resolution
  const message = `there is no hold ${JSON.stringify(holdId)}, or it ended long ago`
  throw new GatewayError('invalid_request', { message, param: 'holdId' })
}

/** @throws RangeError for what cannot be charged. */
function amountOf(amount: string): bigint {
  const nanoDollars = parseDollars(amount)
  assertAmount(nanoDollars)
  return nanoDollars
}

/** Maximum number of holds ended in one transaction. */
const SWEEP_BATCH = 500

/** Ends the holds that have expired, then the credits, until `isOver`. Never rejects. */
export async function expireHolds(context: PipelineContext, isOver: () => boolean): Promise<void> {
  try {
    let expired = SWEEP_BATCH
    while (expired === SWEEP_BATCH && !isOver())
      expired = await context.store.ledger.expire(context.clock.now(), SWEEP_BATCH)
    await context.store.ledger.expireCredits(context.clock.now(), SWEEP_BATCH)
  } catch (error) {
    reportFault(context, undefined, 'holds', error)
  }
}
