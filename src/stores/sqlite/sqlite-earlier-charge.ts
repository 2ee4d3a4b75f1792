import type { Resolution } from '../resolution.ts'
import { crossingsOf, type SpendingCounts, type SpendingThresholds } from '../spending.ts'
import { prepareExact, type SqliteDatabase } from './sqlite-database.ts'
import type { SqliteMoney } from './sqlite-money.ts'
import type { HoldRow } from './sqlite-placed-holds.ts'

interface ChargeRow {
  readonly id: bigint
  readonly amount: bigint
  readonly due: bigint
  readonly balance_after: bigint
  readonly owed_after: bigint
  readonly created_at_ms: bigint
}

interface LaterRow {
  readonly key_id: string | null
  readonly day: bigint
  readonly month: bigint
}

/** Reads the result of an earlier charge from the journal; see {@link Resolution.earlier}. */
export type SqliteEarlierCharge = (
  holdId: string,
  hold: HoldRow,
  thresholds: SpendingThresholds,
) => Resolution['earlier']

/** Prepares the statements. `money` must have flushed its buffer. */
export function sqliteEarlierCharge(database: SqliteDatabase, money: SqliteMoney): SqliteEarlierCharge {
  // By the index of account and time: the journal has no index of holds, and few lines are younger than a hold.
  const selectCharge = prepareExact(
    database,
    `SELECT id, amount, due, balance_after, owed_after, created_at_ms FROM signalbox_entries
     WHERE account_id = ? AND created_at_ms >= ? AND kind = 'charge' AND hold_id = ? AND due IS NOT NULL`,
  )
  const selectLater = prepareExact(
    database,
    `SELECT key_id, ifnull(sum(due) FILTER (WHERE period = ?), 0) AS day, ifnull(sum(due), 0) AS month
     FROM signalbox_entries
     WHERE account_id = ? AND (created_at_ms, id) > (?, ?) AND kind = 'charge' AND period / 100 = ? / 100 GROUP BY key_id`,
  )
  const selectCredit = database.prepare(
    'SELECT 1 FROM signalbox_entries WHERE account_id = ? AND (created_at_ms, id) > (?, ?) AND amount > 0 LIMIT 1',
  )
  return (holdId, { account_id: accountId, key_id: keyId, created_at_ms: heldAtMs, ...hold }, thresholds) => {
    const charge = selectCharge.get(accountId, heldAtMs, holdId) as ChargeRow | undefined
    const account = money.account(accountId)
    if (charge === undefined || account === undefined) return undefined
    const { amount: moved, due: amount, balance_after: balance, owed_after: owedBefore } = charge
    const paid = -moved
    const isMetered = hold.is_metered === 1n
    const later = selectLater.all(hold.period, accountId, charge.created_at_ms, charge.id, hold.period) as LaterRow[]
    const isCredited = selectCredit.get(accountId, charge.created_at_ms, charge.id) !== undefined
    const key = money.key(keyId)
    const facts = {
      amount,
      paid,
      period: Number(hold.period),
      isMetered,
      account: { cap: account.cap, counts: countsWithout(account.counts, later) },
      key: {
        cap: key.cap,
        counts: countsWithout(
          key.counts,
          later.filter((row) => row.key_id === keyId),
        ),
      },
      money: balance,
      // If there was a later credit, the latest credit of that time is not known, so no balance threshold is reported.
      funded: isCredited ? 0n : account.funded,
      owed: owedBefore + amount - paid,
      creditLimit: account.creditLimit,
    }
    const charged = isMetered ? amount : paid
    return { charged, shortfall: amount - charged, crossings: crossingsOf(facts, thresholds) }
  }
}

/** Returns the spending without later charges of the same day and month. */
function countsWithout(counts: SpendingCounts, later: readonly LaterRow[]): SpendingCounts {
  const sumOf = (member: 'day' | 'month') => later.reduce((sum, row) => sum + row[member], 0n)
  return {
    ...counts,
    chargedDay: counts.chargedDay - sumOf('day'),
    chargedMonth: counts.chargedMonth - sumOf('month'),
  }
}
