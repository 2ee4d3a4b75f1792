import { isYoungerThan } from '../core/clock.ts'
import type { WebhookDelivery } from '../stores/webhook-store.ts'

/** Maximum number of concurrent messages, to all receivers and to one host. */
const MOST_AT_ONCE = 32
const MOST_TO_ONE_HOST = 4

/** Maximum number of messages that wait for a place in this process. */
const MOST_WAITING = 512

/** After this time a message that waits for its host makes room for messages to others, if there is no other room. */
const PATIENCE_MS = 10_000

/** Message that this process holds the lease of. */
export interface TakenDelivery {
  readonly delivery: WebhookDelivery
  /** Host and port of the receiver; empty if the address is not a URL. */
  readonly host: string
  /** Start of the lease, in Unix milliseconds. */
  readonly takenAtMs: number
  /** Time after which no attempt may begin, in Unix milliseconds: the lease could expire during it. */
  readonly startUntilMs: number
}

/**
 * Messages that were leased and not yet sent. At most 32 are in flight at the same time and 4 to one host, so that a receiver that
 * hangs does not delay the others. An account may have receivers under many names, so the account with the fewest messages in flight
 * comes first. A dropped message is leased again from the store after its lease has expired.
 */
export class WebhookQueue {
  #waiting: TakenDelivery[] = []
  #active = 0
  readonly #activeByHost = new Map<string, number>()
  readonly #activeByAccount = new Map<string, number>()

  /** Returns how many more messages may be leased. */
  room(nowMs: number): number {
    if (this.#waiting.length >= MOST_WAITING)
      this.#keep(({ takenAtMs }) => isYoungerThan(PATIENCE_MS, takenAtMs, nowMs))
    return MOST_WAITING - this.#waiting.length
  }

  add(taken: TakenDelivery): void {
    this.#waiting.push(taken)
  }

  /** Returns the next message to send, in leasing order within an account. It counts as in flight until {@link ended}. */
  next(nowMs: number): TakenDelivery | undefined {
    this.#keep(({ startUntilMs }) => nowMs <= startUntilMs)
    if (this.#active >= MOST_AT_ONCE) return undefined
    const index = this.#nextIndex()
    const taken = this.#waiting[index]
    if (taken === undefined) return undefined
    this.#waiting.splice(index, 1)
    this.#active++
    count(this.#activeByHost, taken.host, 1)
    count(this.#activeByAccount, taken.delivery.accountId, 1)
    return taken
  }

  #nextIndex(): number {
    let found = -1
    let fewest = MOST_AT_ONCE
    for (const [index, { host, delivery }] of this.#waiting.entries()) {
      if ((this.#activeByHost.get(host) ?? 0) >= MOST_TO_ONE_HOST) continue
      const active = this.#activeByAccount.get(delivery.accountId) ?? 0
      if (active >= fewest) continue
      found = index
      fewest = active
      if (active === 0) break
    }
    return found
  }

  /** Drops the waiting messages. Returns the ids of those whose leases certainly still belong to this process. */
  giveUp(nowMs: number): readonly string[] {
    const given = this.#waiting.filter(({ startUntilMs }) => nowMs <= startUntilMs)
    this.#waiting = []
    return given.map(({ delivery }) => delivery.id)
  }

  /** Frees the place of a message. */
  ended({ host, delivery }: TakenDelivery): void {
    this.#active--
    count(this.#activeByHost, host, -1)
    count(this.#activeByAccount, delivery.accountId, -1)
  }

  #keep(fits: (taken: TakenDelivery) => boolean): void {
    if (this.#waiting.every(fits)) return
    this.#waiting = this.#waiting.filter(fits)
  }
}

/** Names without messages in flight are removed. */
function count(active: Map<string, number>, name: string, change: 1 | -1): void {
  const now = (active.get(name) ?? 0) + change
  if (now > 0) active.set(name, now)
  else active.delete(name)
}
