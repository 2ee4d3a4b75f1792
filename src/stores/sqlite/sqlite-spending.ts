import type { SpendingLimit } from '../ledger.ts'
import { prepareExact, type SqliteDatabase } from './sqlite-database.ts'
import { wholeMilliseconds } from './whole-milliseconds.ts'

/** Counters of spending limits, inside the transaction of whoever calls. */
export interface SqliteSpending {
  /** Name of the first counter that an amount would take beyond its limit. Nothing is counted. Zero always fits. */
  exceeded(limits: readonly SpendingLimit[], amount: bigint, nowMs: number): string | undefined
  /** Counts a hold in all of the counters. */
  count(holdId: string, limits: readonly SpendingLimit[], amount: bigint, nowMs: number): void
  /** Corrects the counters of a hold that ends by the difference between charge and hold. */
  correct(holdId: string, difference: bigint): void
}

/** Prepares the statements of {@link SqliteSpending}. */
export function sqliteSpending(database: SqliteDatabase): SqliteSpending {
  const selectSpent = prepareExact(
    database,
    'SELECT spent FROM signalbox_counters WHERE name = ? AND expires_at_ms > ?',
  )
  const forget = database.prepare('DELETE FROM signalbox_counters WHERE name = ? AND expires_at_ms <= ?')
  const add = prepareExact(
    database,
    `INSERT INTO signalbox_counters (name, spent, expires_at_ms) VALUES (?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET spent = spent + excluded.spent,
       expires_at_ms = max(expires_at_ms, excluded.expires_at_ms)
     RETURNING id`,
  )
  const link = database.prepare('INSERT OR IGNORE INTO signalbox_hold_counters (hold_id, counter_id) VALUES (?, ?)')
  const correct = database.prepare(
    `UPDATE signalbox_counters SET spent = spent + ?
     WHERE id IN (SELECT counter_id FROM signalbox_hold_counters WHERE hold_id = ?)`,
  )

  return {
    exceeded(limits, amount, nowMs) {
      if (amount === 0n) return undefined
      return limits.find(({ counter, limit }) => {
        const row = selectSpent.get(counter, nowMs) as { readonly spent: bigint } | undefined
        return (row?.spent ?? 0n) + amount > limit
      })?.counter
    },
    count(holdId, limits, amount, nowMs) {
      const counters = new Map(limits.map((limit) => [limit.counter, limit.expiresAtMs]))
      for (const [counter, expiresAtMs] of counters) {
        forget.run(counter, nowMs)
        const row = add.get(counter, amount, wholeMilliseconds(expiresAtMs)) as { readonly id: bigint }
        link.run(holdId, row.id)
      }
    },
    correct(holdId, difference) {
      if (difference !== 0n) correct.run(difference, holdId)
    },
  }
}
