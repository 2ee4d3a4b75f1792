import { TransientMap } from '../../core/transient-map.ts'
import type { Resolution } from '../resolution.ts'

/** How a hold ended. */
export type HoldEnd = NonNullable<Resolution['endedBy']>

/** Columns of {@link HoldRow}: few, because settlements read them; those of a claim are read if there is one. */
export const HOLD_COLUMNS =
  'account_id, key_id, amount, is_metered, period, created_at_ms, claim_key IS NOT NULL AS has_claim'

/** Columns that the end of a hold needs. */
export interface HoldRow {
  readonly created_at_ms: bigint
  readonly account_id: string
  readonly key_id: string
  readonly amount: bigint
  readonly is_metered: bigint
  readonly period: bigint
  readonly has_claim: bigint
}

export interface EndedRow extends HoldRow {
  readonly ended_by: HoldEnd | null
}

/** Hold as it was written. */
export interface PlacedHold extends HoldRow {
  readonly expiresAtMs: number
}

/** Maximum number of cached rows: more than are in flight at a time. */
const MAX_PLACED = 10_000

/**
 * Holds that this process has placed and not ended, so that their ends need not read them: the row of a hold does not change
 * before its end. If another process has ended one, or its transaction was undone, the write of its end changes no row; see
 * {@link EndedElsewhere}.
 */
export class PlacedHolds {
  readonly #holds = new TransientMap<string, PlacedHold>()

  add(holdId: string, hold: PlacedHold): void {
    if (this.#holds.size >= MAX_PLACED) this.#forgetOldest()
    this.#holds.set(holdId, hold)
  }

  /** Returns a hold, or undefined after its expiry, because the id may then belong to another hold. */
  find(holdId: string, timeMs: number): HoldRow | undefined {
    const hold = this.#holds.get(holdId)
    return hold !== undefined && hold.expiresAtMs > timeMs ? hold : undefined
  }

  delete(holdId: string): void {
    this.#holds.delete(holdId)
  }

  clear(): void {
    this.#holds.clear()
  }

  #forgetOldest(): void {
    for (const oldest of this.#holds.keys()) {
      this.#holds.delete(oldest)
      return
    }
  }
}

/** Thrown if a cached hold has ended, so that the decisions of the group are undone and repeated with the data of the database. */
export class EndedElsewhere extends Error {
  override readonly name = 'EndedElsewhere'
}
