import { lesserOf } from './ledger.ts'

/** What is left of a credit that expires. */
export interface ExpiringCredit {
  readonly creditId: string
  /** Nano-dollars. */
  readonly remaining: bigint
  /** Unix milliseconds. */
  readonly expiresAtMs: number
}

/** What goes from one credit. */
export interface CreditTake {
  readonly creditId: string
  readonly amount: bigint
}

/**
 * Spends money: the credit that expires first goes first, and money that does not expire last.
 * @param credits of the account, in the order of their expiry.
 * @param atMs when the money was promised: credits that had expired then are not used.
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

/**
 * Takes what has expired from the balance. Money that open holds from before the expiry may still charge stays in its credit
 * until they end.
 * @param credits of the account, in the order of their expiry.
 * @param heldBefore money of the open holds that were placed before a moment.
 */
export function expireCredits(
  credits: readonly ExpiringCredit[],
  { nowMs, balance, heldBefore }: { nowMs: number; balance: bigint; heldBefore: (timeMs: number) => bigint },
): CreditTake[] {
  const takes: CreditTake[] = []
  let free = balance
  let kept = 0n
  for (const { creditId, remaining, expiresAtMs } of credits) {
    if (expiresAtMs > nowMs) break
    const held = heldBefore(expiresAtMs) - kept
    const staying = held <= 0n ? 0n : lesserOf(remaining, held)
    kept += staying
    const taken = lesserOf(remaining - staying, free)
    free -= taken
    if (taken > 0n) takes.push({ creditId, amount: taken })
  }
  return takes
}

/** What the journal says of an expiry. */
export function expiryText(creditId: string): string {
  return `what was left of the credit ${creditId}`
}
