import { type CreditTake, type ExpiringCredit, expireCredits, spendCredits } from '../expiring-credits.ts'

/** Expiring credits of one account, and the rest of each. */
export class MemoryCredits {
  /** Credits in the order of their expiry. */
  #credits: readonly ExpiringCredit[] = []

  /** Time at which the first one expires, or `undefined` if there is none. */
  get firstExpiryMs(): number | undefined {
    return this.#credits[0]?.expiresAtMs
  }

  add(credit: ExpiringCredit): void {
    const later = this.#credits.findIndex(({ expiresAtMs }) => expiresAtMs > credit.expiresAtMs)
    const place = later === -1 ? this.#credits.length : later
    this.#credits = [...this.#credits.slice(0, place), credit, ...this.#credits.slice(place)]
  }

  /** Spends money; see {@link spendCredits}. */
  spend(amount: bigint, atMs: number): void {
    if (this.#credits.length > 0) this.#take(spendCredits(this.#credits, amount, atMs))
  }

  /** Removes expired credits and returns the removed amounts; see {@link expireCredits}. */
  expire(state: Parameters<typeof expireCredits>[1]): CreditTake[] {
    const takes = expireCredits(this.#credits, state)
    this.#take(takes)
    return takes
  }

  #take(takes: readonly CreditTake[]): void {
    if (takes.length === 0) return
    const amounts = new Map(takes.map(({ creditId, amount }) => [creditId, amount]))
    this.#credits = this.#credits
      .map((credit) => ({ ...credit, remaining: credit.remaining - (amounts.get(credit.creditId) ?? 0n) }))
      .filter(({ remaining }) => remaining > 0n)
  }
}
