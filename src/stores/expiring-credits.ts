// See docs/decisions/0007-corrections-and-credits.md.

import { type Account, lesserOf } from './ledger.ts'

/** Rest of a credit that expires. */
export interface ExpiringCredit {
  readonly creditId: string
  /** Nano-dollars. */
  readonly remaining: bigint
  /** Unix milliseconds. */
  readonly expiresAtMs: number
}

/** Amount that is taken from one credit. */
export interface CreditTake {
  readonly creditId: string
  readonly amount: bigint
}

/**
 * Spends money: the credit that expires first is spent first, and money that does not expire last.
 * @param credits Credits of the account in the order of their expiry.
 * @param atMs Time at which the money was reserved. Credits that had expired then are not used.
 */
export function spendCredits(credits: readonly ExpiringCredit[], amount: bigint, atMs: number): CreditTake[] {
  const takes: CreditTake[] = []
  let left = amount
  for (const { creditId, remaining, expiresAtMs } of credits) {
    if (expiresAtMs <= atMs) continue
    const taken = lesserOf(remaining, left)
    if (taken > 0n) takes.push({ creditId, amount: taken })
    left -= taken
  }
  return takes
}

/** State that determines the expired amounts. */
interface ExpiryState {
  readonly nowMs: number
  readonly account: Pick<Account, 'balance' | 'held'>
  /** Returns the money of open holds that were placed before a time. Called only while there is any. */
  readonly heldBefore: (timeMs: number) => bigint
}

/**
 * Removes expired credits from the balance. Money that open holds from before the expiry may still charge stays in its credit
 * until they end.
 * @param credits Credits of the account in the order of their expiry.
 */
export function expireCredits(
  credits: readonly ExpiringCredit[],
  { nowMs, account: { balance, held }, heldBefore }: ExpiryState,
): CreditTake[] {
  const takes: CreditTake[] = []
  let free = balance
  let kept = 0n
  for (const { creditId, remaining, expiresAtMs } of credits) {
    if (expiresAtMs > nowMs) break
    const promised = held > kept ? heldBefore(expiresAtMs) - kept : 0n
    const staying = promised <= 0n ? 0n : lesserOf(remaining, promised)
    kept += staying
    const taken = lesserOf(remaining - staying, free)
    free -= taken
    if (taken > 0n) takes.push({ creditId, amount: taken })
  }
  return takes
}

/** Returns what is left of credits. */
export function creditsWithout(credits: readonly ExpiringCredit[], takes: readonly CreditTake[]): ExpiringCredit[] {
  const amounts = new Map(takes.map(({ creditId, amount }) => [creditId, amount]))
  return credits
    .map((credit) => ({ ...credit, remaining: credit.remaining - (amounts.get(credit.creditId) ?? 0n) }))
    .filter(({ remaining }) => remaining > 0n)
}

/** Returns the description of an expiry in the journal. */
export function expiryText(creditId: string): string {
  return `what was left of the credit ${creditId}`
}
