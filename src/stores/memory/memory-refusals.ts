import type { EnlargeStatus } from '../ledger.ts'
import type { MutableAccount } from './memory-by-hand.ts'

/** Returns why an account's money does not allow a hold, or `undefined` if it does. */
export function moneyRefusal(
  account: MutableAccount,
  amount: bigint,
  isMetered: boolean,
): (EnlargeStatus & ('credit_limit' | 'in_arrears' | 'insufficient_balance')) | undefined {
  const { creditLimit, balance, owed, creditHeld } = account
  if (isMetered)
    return creditLimit !== undefined && owed + creditHeld + amount > creditLimit + balance ? 'credit_limit' : undefined
  if (owed > 0n) return 'in_arrears'
  return balance < amount ? 'insufficient_balance' : undefined
}
