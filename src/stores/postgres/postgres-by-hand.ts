import { formatDollars } from '../../core/money.ts'
import {
  assertAdjustment,
  assertRefund,
  assertRepeated,
  entryNumber,
  type Journal,
  type LedgerEntry,
} from '../journal.ts'
import { NOTHING_SPENT } from '../spending.ts'
import { entryOf, journalSumsOf, openHoldOf, type SqlRow, spendingCountsOf } from '../sql-rows.ts'
import { isStorable, journalTime, timeParameter } from './column-values.ts'
import { codeOf, type PostgresConnection, type PostgresRow } from './postgres-connection.ts'

/** Columns of a journal line `e`. */
export const ENTRY_SELECTED = `e.id::text, account_id, kind, amount::text, owed::text, missing::text, hold_id, credit_id,
  operation_id, charge_id::text, description, created_at_ms::text, due::text, balance_after::text, details`

/** `numeric_value_out_of_range` (PostgreSQL, appendix A). */
const OUT_OF_RANGE = '22003'

/** @throws RangeError for an amount that exceeds the maximum of the account, otherwise the original error. */
export function refuseOverflow(error: unknown): never {
  if (codeOf(error) !== OUT_OF_RANGE) throw error
  throw new RangeError('the account cannot hold more than 2^63 - 1 nano-dollars', { cause: error })
}

/** Returns a journal line. A line of an earlier kind has its size in a column of its own. */
export function entryWithMissing(row: PostgresRow): LedgerEntry {
  const entry = entryOf(row)
  const missing = BigInt(row['missing'] as string)
  return missing === 0n
    ? entry
    : { ...entry, description: `${formatDollars(missing)} USD not covered: ${entry.description}` }
}

/** Manual changes and the journal, in PostgreSQL. Each method is one statement. */
export function postgresByHand({ run }: PostgresConnection, schema: string, clock: 'database' | 'caller'): Journal {
  return {
    async adjust({ adjustmentId, accountId, amount, description, billing }, nowMs) {
      assertAdjustment(amount)
      const time = journalTime(clock, nowMs)
      const values = [adjustmentId, accountId, String(amount), description, time, billing ?? null]
      const [row] = await run(`SELECT ${schema}.adjust($1, $2, $3, $4, $5, $6) AS result`, values).catch(refuseOverflow)
      const result = row!['result'] as 'adjusted' | 'repeated' | 'insufficient_balance' | 'conflict' | null
      if (result === null) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
      assertRepeated('adjustment', adjustmentId, result !== 'conflict')
      return result as Exclude<typeof result, 'conflict'>
    },

    async refund({ refundId, chargeId, amount: wanted, description }, nowMs) {
      assertRefund(wanted)
      const number = entryNumber(chargeId)
      const values = [
        refundId,
        number === undefined ? null : String(number),
        wanted === undefined ? null : String(wanted),
      ]
      const [row] = await run(
        `SELECT r.status, r.account, r.amount::text FROM ${schema}.refund($1, $2, $3, $4, $5) AS r`,
        [...values, description, journalTime(clock, nowMs)],
      ).catch(refuseOverflow)
      const status = row!['status'] as 'refunded' | 'repeated' | 'above_charge' | 'unknown_charge' | 'conflict'
      assertRepeated('refund', refundId, status !== 'conflict')
      if (status === 'unknown_charge') return { status }
      const amount = BigInt(row!['amount'] as string)
      if (status === 'above_charge') return { status, left: amount }
      return { status: status === 'refunded' ? status : 'repeated', accountId: row!['account'] as string, amount }
    },

    async lines({ accountId, fromMs, untilMs, order, after, limit }) {
      const [direction, behind] = order === 'newest' ? ['DESC', '<'] : ['ASC', '>']
      // There is no line beyond the ends of the range.
      const place =
        after ?? (order === 'newest' ? { createdAtMs: untilMs, number: 0n } : { createdAtMs: fromMs, number: 0n })
      const rows = await run(
        `SELECT ${ENTRY_SELECTED} FROM ${schema}.entries e
        WHERE account_id = $1 AND created_at_ms >= $2 AND created_at_ms < $3 AND (created_at_ms, e.id) ${behind} ($4, $5)
        ORDER BY e.created_at_ms ${direction}, e.id ${direction} LIMIT $6`,
        [
          accountId,
          timeParameter(fromMs),
          timeParameter(untilMs),
          timeParameter(place.createdAtMs),
          String(place.number),
          Math.max(0, limit),
        ],
      )
      return rows.map(entryWithMissing)
    },

    async sums({ accountId, fromMs, untilMs }) {
      const rows = await run(
        `WITH opening AS (
          SELECT 'opening' AS kind, 0::bigint AS lines,
            coalesce(e.balance_after, (
              SELECT sum(b.amount) FROM ${schema}.entries b WHERE b.account_id = $1 AND b.created_at_ms < $2
            )) AS amount,
            coalesce(e.owed_after, (
              SELECT sum(b.owed) FROM ${schema}.entries b WHERE b.account_id = $1 AND b.created_at_ms < $2
            )) AS owed
          FROM ${schema}.entries e WHERE e.account_id = $1 AND e.created_at_ms < $2
          ORDER BY e.created_at_ms DESC, e.id DESC LIMIT 1
        )
        SELECT kind, lines::text, amount::text, owed::text FROM opening UNION ALL
        SELECT kind, count(*)::text, sum(amount)::text, sum(owed)::text FROM ${schema}.entries
        WHERE account_id = $1 AND created_at_ms >= $2 AND created_at_ms < $3 GROUP BY kind`,
        [accountId, timeParameter(fromMs), timeParameter(untilMs)],
      )
      return journalSumsOf(rows as readonly SqlRow[])
    },

    async openHolds({ accountId, after, limit }) {
      if (!isStorable(`${accountId ?? ''}${after?.id ?? ''}`)) return []
      const rows = await run(
        `SELECT id, account_id, key_id, amount::text, created_at_ms::text, expires_at_ms::text FROM ${schema}.holds h
        WHERE status = 'held' AND ($1::text IS NULL OR account_id = $1) AND (h.created_at_ms, id COLLATE "C") > ($2, $3)
        ORDER BY h.created_at_ms, id COLLATE "C" LIMIT $4`,
        [accountId ?? null, timeParameter(after?.createdAtMs ?? -1), after?.id ?? '', Math.max(0, limit)],
      )
      return rows.map(openHoldOf)
    },

    async spending(accountId, keyIds) {
      const rows = await run(
        `SELECT owner, (s).period, (s).charged_day::text, (s).charged_month::text, (s).held_day::text, (s).held_month::text
        FROM (
          SELECT NULL AS owner, a.spending AS s FROM ${schema}.accounts a WHERE a.id = $1 UNION ALL
          SELECT k.key_id, k.spending FROM ${schema}.key_spending k WHERE k.key_id = ANY ($2::text[])
        ) AS counted`,
        [accountId, keyIds],
      )
      const byKey = new Map(rows.map((row) => [row['owner'], spendingCountsOf(row as SqlRow)]))
      const account = byKey.get(null)
      return account && { account, keys: keyIds.map((keyId) => byKey.get(keyId) ?? NOTHING_SPENT) }
    },

    async expireCredits(nowMs, limit) {
      const [row] = await run(`SELECT ${schema}.expire_due_credits(coalesce($1, ${schema}.now_ms()), $2) AS count`, [
        journalTime(clock, nowMs),
        limit,
      ])
      return row!['count'] as number
    },
  }
}
