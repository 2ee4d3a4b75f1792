import { assertAmount } from '../amount.ts'
import type { Ledger } from '../ledger.ts'
import type { SqliteSession } from './sqlite-session.ts'

/** Steps of forgetting after one sweep at most: with 500 rows a step, more than a busy gateway makes between two sweeps. */
const MAX_FORGETTING_STEPS = 40

/** The ledger on a session. Amounts are checked before anything is queued. */
export function sqliteLedger(session: () => SqliteSession): Ledger {
  return {
    async createAccount(account, nowMs) {
      if (account.spendingCap !== undefined) assertAmount(account.spendingCap.amount)
      return session().write(({ accounts }) => accounts.create(account, nowMs))
    },
    async updateAccount(accountId, change) {
      if (change.spendingCap != null) assertAmount(change.spendingCap.amount)
      return session().write(({ accounts }) => accounts.update(accountId, change))
    },
    async account(accountId) {
      return session().read(({ accounts }) => accounts.find(accountId))
    },
    async credit(credit, nowMs) {
      return session().write(({ accounts }) => accounts.credit(credit, nowMs))
    },
    reserve: (reservation, nowMs) =>
      promised(() => {
        assertAmount(reservation.amount)
        return session().writeHolds((holds) => holds.reserve(reservation, nowMs))
      }),
    settle: (settlement, nowMs) =>
      promised(() => {
        assertAmount(settlement.amount)
        return session().writeHolds((holds) => holds.settle(settlement, nowMs))
      }),
    async void(holdId, nowMs) {
      return session().writeHolds((holds) => holds.void(holdId, nowMs))
    },
    async expire(nowMs, limit) {
      const count = await session().writeHolds((holds) => holds.expire(nowMs, limit))
      // Steps of their own, so that other writers and the event loop get their turn in between.
      for (let step = 0; step < MAX_FORGETTING_STEPS; step++) {
        const { isDone } = await session().write(({ forgetting }) => forgetting.step(nowMs))
        if (isDone) break
      }
      return count
    },
    async entries(accountId, limit) {
      return session().read(({ accounts }) => accounts.entries(accountId, limit))
    },
  }
}

/** What an `async` function does, without its own promise and turns of the queue around the one that it returns. */
function promised<Value>(run: () => Promise<Value>): Promise<Value> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}
