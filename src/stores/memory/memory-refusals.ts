import type { ReserveResult } from '../ledger.ts'
import type { MutableAccount } from './memory-by-hand.ts'

const CREDIT_LIMIT: ReserveResult = { status: 'credit_limit' }
const IN_ARREARS: ReserveResult = { status: 'in_arrears' }
const INSUFFICIENT_BALANCE: ReserveResult = { status: 'insufficient_balance' }

/** Why an account's money does not allow a hold; undefined: it does. */
export function moneyRefusal(account: MutableAccount, amount: bigint, isMetered: boolean): ReserveResult | undefined {
  const { creditLimit, balance, owed, creditHeld } = account
  if (isMetered)
    return creditLimit !== undefined && owed + creditHeld + amount > creditLimit + balance ? CREDIT_LIMIT : undefined
  if (owed > 0n) return IN_ARREARS
  return balance < amount ? INSUFFICIENT_BALANCE : undefined
}
