import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { RecentMap } from '../core/maps.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { GatewayStore } from './gateway-store.ts'
import { STORED_KINDS, type StoredKind, type StoredUsage } from './sql-rows.ts'

/** Limits of each kind for one account. */
export type AccountStorage = Readonly<Record<StoredKind, StoredUsage>>

/** Data that is about to be stored. */
export interface Creation {
  readonly kind: StoredKind
  /** Number of new objects. Default 1. */
  readonly count?: number
  /** Size of the new data in bytes. If omitted, it is not known yet. */
  readonly byteLength?: number
}

/** Share of the maximum number, and of the room in bytes, that a process uses before it counts again. */
const SPARE_SHARE = 0.01
/** Assumed size of data that does not exist yet, such as an answer. */
const ASSUMED_BYTES = 256 * 1024
const COUNTED_FOR_MS = 10_000
const REFUSED_FOR_MS = 1_000
const MAX_ENTRIES = 10_000

/** State of one kind of one account. */
interface Entry {
  spare: StoredUsage & { readonly untilMs: number }
  refused: (StoredUsage & { readonly untilMs: number }) | undefined
  /** Creations in progress, which a count may miss. */
  readonly pending: Set<Promise<void>>
  /** Resolves when the previous count has ended. */
  turn: Promise<void>
}

/**
 * Limits the stored data of each account. In one process the limits are exact for data of known size. Each additional process may
 * exceed them by 1 %, and answers that are stored at the end of their calls may exceed them by those in flight.
 */
export class StoredBounds {
  readonly #store: GatewayStore
  readonly #clock: Clock
  readonly #bounds: AccountStorage
  readonly #entries = new RecentMap<Entry>(MAX_ENTRIES)

  constructor(store: GatewayStore, clock: Clock, bounds: AccountStorage) {
    this.#store = store
    this.#clock = clock
    this.#bounds = bounds
  }

  /**
   * Creates an object if the account has room for it.
   * @param creations Creations in the order of {@link STORED_KINDS}, so that two creations never wait for each other.
   * @throws GatewayError `storage_limit_reached`, and the errors of `create` and the store.
   */
  async add<Value>(
    accountId: string,
    creations: readonly Creation[],
    create: () => MaybePromise<Value>,
  ): Promise<Value> {
    let end = (): void => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const entries: Entry[] = []
    try {
      for (const creation of creations) {
        const entry = this.#entryOf(accountId, creation.kind)
        if (!isTaken(entry, creation, this.#clock.now())) {
          const counted = entry.turn.then(() => this.#count(accountId, entry, creation))
          entry.turn = counted.catch(() => undefined)
          await counted
        }
        entry.pending.add(ended)
        entries.push(entry)
      }
      return await create()
    } finally {
      end()
      for (const { pending } of entries) pending.delete(ended)
    }
  }

  /** Notes that an account has deleted something, so that the next creation counts again. */
  freed(accountId: string, kind: StoredKind): void {
    this.#entryOf(accountId, kind).refused = undefined
  }

  #entryOf(accountId: string, kind: StoredKind): Entry {
    const name = `${kind} ${accountId}`
    const nowMs = this.#clock.now()
    const known = this.#entries.get(name, nowMs)
    if (known !== undefined) return known
    const spare = { count: 0, byteLength: 0, untilMs: 0 }
    const entry: Entry = { spare, refused: undefined, pending: new Set(), turn: Promise.resolve() }
    this.#entries.set(name, entry, nowMs, Number.POSITIVE_INFINITY)
    return entry
  }

  async #count(accountId: string, entry: Entry, creation: Creation): Promise<void> {
    const { kind, count = 1, byteLength = 1 } = creation
    const nowMs = this.#clock.now()
    // The previous waiting creation may have counted.
    if (isTaken(entry, creation, nowMs)) return
    const { refused } = entry
    if (refused !== undefined && nowMs < refused.untilMs && count >= refused.count && byteLength >= refused.byteLength)
      throw this.#refusal(accountId, kind)
    entry.spare = { count: 0, byteLength: 0, untilMs: 0 }
    await Promise.all(entry.pending)
    const { [kind]: bound } = this.#bounds
    const used = await this.#store.stored(accountId, kind, nowMs)
    const room = { count: bound.count - used.count, byteLength: bound.byteLength - used.byteLength }
    if (count > room.count || byteLength > room.byteLength) {
      entry.refused = { count, byteLength, untilMs: nowMs + REFUSED_FOR_MS }
      throw this.#refusal(accountId, kind)
    }
    entry.refused = undefined
    const { byteLength: assumed = ASSUMED_BYTES } = creation
    entry.spare = {
      // Part of the remaining room, so that an account near its limit is not counted for each creation.
      count: Math.min(room.count, Math.floor(bound.count * SPARE_SHARE)) - count,
      byteLength: Math.floor(room.byteLength * SPARE_SHARE) - assumed,
      untilMs: nowMs + COUNTED_FOR_MS,
    }
  }

  #refusal(accountId: string, kind: StoredKind): GatewayError {
    // Operators' keys are stored under names with a space, which no account id has.
    const owner = accountId.includes(' ') ? 'operator' : 'account'
    const { label, remedy } = STORED_KINDS[kind]
    const { count, byteLength } = this.#bounds[kind]
    const bound = `at most ${count} objects and ${byteLength} bytes`
    return new GatewayError('storage_limit_reached', {
      message: `This ${owner} has no room for more ${label} (${kind}: ${bound}). ${remedy}`,
    })
  }
}

/** Subtracts a creation from the room until the next count. */
function isTaken(entry: Entry, { count = 1, byteLength = ASSUMED_BYTES }: Creation, nowMs: number): boolean {
  const { spare } = entry
  if (nowMs >= spare.untilMs || count > spare.count || byteLength > spare.byteLength) return false
  entry.spare = { ...spare, count: spare.count - count, byteLength: spare.byteLength - byteLength }
  return true
}
