import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { RecentMap } from '../core/recent-map.ts'
import type { GatewayStore } from './gateway-store.ts'
import { STORED_KINDS, type StoredKind, type StoredUsage } from './stored-usage.ts'

/** Bounds of each kind for one account. */
export type AccountStorage = Readonly<Record<StoredKind, StoredUsage>>

/** Data that is about to be stored. */
export interface Creation {
  readonly kind: StoredKind
  /** Number of new objects. Default 1. */
  readonly count?: number
  /** Size of the new data in bytes. If omitted, it is not known yet. */
  readonly byteLength?: number
}

/** Share of the room that a process uses before it counts again. */
const SPARE_SHARE = 0.01
/** Size that is assumed for data that is not known yet, such as an answer. */
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
  /** Ends when the count before has ended. */
  turn: Promise<void>
}

/**
 * Bounds what each account has stored. In one process they are exact for data whose size is known. Each further process may exceed them
 * by 1 %, and answers that are stored at the end of their calls may exceed them by those in flight.
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
   * Creates something if the account has room for it.
   * @param creations in the order of {@link STORED_KINDS}, so that no two creations wait for each other.
   * @throws GatewayError `storage_limit_reached`, and what `create` and the store throw.
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
    // The creation that waited before may have counted.
    if (isTaken(entry, creation, nowMs)) return
    const { refused } = entry
    if (refused !== undefined && nowMs < refused.untilMs && count >= refused.count && byteLength >= refused.byteLength)
      throw this.#refusal(kind)
    entry.spare = { count: 0, byteLength: 0, untilMs: 0 }
    await Promise.all(entry.pending)
    const { [kind]: bound } = this.#bounds
    const used = await this.#store.stored(accountId, kind, nowMs)
    const room = { count: bound.count - used.count, byteLength: bound.byteLength - used.byteLength }
    if (count > room.count || byteLength > room.byteLength) {
      entry.refused = { count, byteLength, untilMs: nowMs + REFUSED_FOR_MS }
      throw this.#refusal(kind)
    }
    entry.refused = undefined
    const { byteLength: assumed = ASSUMED_BYTES } = creation
    entry.spare = {
      count: Math.floor(room.count * SPARE_SHARE) - count,
      byteLength: Math.floor(room.byteLength * SPARE_SHARE) - assumed,
      untilMs: nowMs + COUNTED_FOR_MS,
    }
  }

  #refusal(kind: StoredKind): GatewayError {
    const { label, remedy } = STORED_KINDS[kind]
    const { count, byteLength } = this.#bounds[kind]
    const bound = `at most ${count} objects and ${byteLength} bytes`
    return new GatewayError('storage_limit_reached', {
      message: `This account has no room for more ${label} (${kind}: ${bound}). ${remedy}`,
    })
  }
}

/** Takes a creation from what may be stored before the next count. */
function isTaken(entry: Entry, { count = 1, byteLength = ASSUMED_BYTES }: Creation, nowMs: number): boolean {
  const { spare } = entry
  if (nowMs >= spare.untilMs || count > spare.count || byteLength > spare.byteLength) return false
  entry.spare = { ...spare, count: spare.count - count, byteLength: spare.byteLength - byteLength }
  return true
}
