import { TransientMap } from '../../core/transient-map.ts'
import type { Resolution } from '../resolution.ts'

/** How a hold ended. */
export type HoldEnd = NonNullable<Resolution['endedBy']>

/** Columns of {@link HoldRow}: few, because settlements read them; those of a claim are read when there is one. */
export const HOLD_COLUMNS =
  'account_id, key_id, amount, is_metered, period, created_at_ms, claim_key IS NOT NULL AS has_claim'

/** What a hold's end needs of its row. */
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

/** A hold as it was written. */
export interface PlacedHold extends HoldRow {
  readonly expiresAtMs: number
}

/** Most holds whose rows are kept: more than are under way at once. */
const MAX_PLACED = 10_000

/**
 * Holds that this process has placed and not ended, so that their ends need not read them: what the database writes of a hold does not
 * change before its end. That another process has ended one, or that its transaction was undone, is found when the end is written, which
 * then ends no row; see {@link EndedElsewhere}.
 */
export class PlacedHolds {
  readonly #holds = new TransientMap<string, PlacedHold>()

  add(holdId: string, hold: PlacedHold): void {
    if (this.#holds.size >= MAX_PLACED) this.#forgetOldest()
    this.#holds.set(holdId, hold)
  }

  /** Undefined as soon as its time is over: then the id may be another hold's. */
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

/** A hold that was taken for open has ended, so what the group has decided is undone, and decided anew by what the database holds. */
export class EndedElsewhere extends Error {
  override readonly name = 'EndedElsewhere'
}
