import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { parseDollars } from '../core/money.ts'
import { type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { OpenHold } from '../stores/journal.ts'
import { assertAmount } from '../stores/ledger.ts'
import type { Resolution } from '../stores/resolution.ts'
import { administer, checkArgument, checkReason } from './audit.ts'
import { checkPageSize, type PageOptions, pageOf, partsOfPlace, placeOf } from './page-cursor.ts'

/** Selects a page of open holds. */
export interface HoldsPageOptions extends PageOptions {
  /** Account whose holds are listed. */
  readonly accountId?: string | undefined
}

const HOLDS_PAGE_OPTIONS = memberNames<HoldsPageOptions>()('accountId cursor limit')

/** Page of open holds. */
export interface HoldsPage {
  /** Holds, oldest first. */
  readonly holds: readonly OpenHold[]
  /** Cursor of the next page, or `undefined` if there is none. */
  readonly next: string | undefined
}

/**
 * Operations on money held for calls in progress, for operators. A hold ends once: if the call has ended it, `settle` and `void`
 * change nothing and report in `endedBy` how it ended.
 */
export interface Holds {
  /**
   * Lists a page of the money held for calls in progress, oldest first.
   * @throws GatewayError `invalid_request` for an invalid limit or cursor.
   */
  list(options?: HoldsPageOptions): Promise<HoldsPage>
  /**
   * Charges an open hold manually, or one that expired without a charge. The account owes what its balance lacks. The call's own
   * settlement then changes nothing.
   * @param amount Decimal dollars; zero is allowed.
   * @param options `reason` is stored in the journal; one line of at most 500 characters.
   * @throws GatewayError `invalid_request` if the store does not know the hold or has deleted it, or for an invalid amount or reason.
   */
  settle(holdId: string, amount: string, options?: { readonly reason?: string | undefined }): Promise<Resolution>
  /**
   * Releases a hold without a charge. The event `settlement-given-up` then reports the call's own settlement.
   * @throws GatewayError `invalid_request` if the store does not know the hold or has deleted it.
   */
  void(holdId: string): Promise<Resolution>
}

const SETTLE_OPTIONS = { reason: true } as const

/** Creates the administration of a store's holds. `ready` resolves once the store can be used. */
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

/** @throws GatewayError `invalid_request` if the ledger does not know the hold. */
function known(holdId: string, resolution: Resolution): Resolution {
  if (resolution.resolved || resolution.endedBy !== undefined) return resolution
  const message = `there is no hold ${JSON.stringify(holdId)}, or it ended long ago`
  throw new GatewayError('invalid_request', { message, param: 'holdId' })
}

/** @throws RangeError for an invalid amount of a charge. */
function amountOf(amount: string): bigint {
  const nanoDollars = parseDollars(amount)
  assertAmount(nanoDollars)
  return nanoDollars
}

/** Maximum number of holds ended in one transaction. */
const SWEEP_BATCH = 500

/** Ends expired holds, then expired credits, until `isOver`. Never rejects. */
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
