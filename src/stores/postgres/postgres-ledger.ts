import {
  assertAdjustment,
  assertRefund,
  assertRepeated,
  entryNumber,
  type Journal,
  type LedgerEntry,
} from '../journal.ts'
import {
  type Account,
  assertAmount,
  assertCreditOf,
  type EnlargeStatus,
  HOLD_RETENTION_MS,
  type Ledger,
  REFUSAL_RETENTION_MS,
  type Settlement,
} from '../ledger.ts'
import type { Resolution } from '../resolution.ts'
import { NOTHING_SPENT, oldestKept, spendingPeriod } from '../spending.ts'
import {
  ACCOUNT_COLUMNS,
  accountChanges,
  accountOf,
  accountValues,
  entryOf,
  journalSumsOf,
  openHoldOf,
  type SqlRow,
  spendingCountsOf,
} from '../sql-rows.ts'
import { chargeHold, chargeOf, chargeWithHost, earlierCharge, endedBefore } from './postgres-charge.ts'
import { codeOf, isStorable, journalTime, type PostgresConnection, timeParameter } from './postgres-connection.ts'
import { WriteCombiner, type WriteCombinerOptions } from './write-combiner.ts'

/** Maximum number of rows of each kind that a purge deletes in one transaction, so that it takes tens of milliseconds. */
const PURGED_PER_ROUND = 2_000
/** Maximum number of rounds of a sweep. A gateway sweeps every 30 seconds, so it deletes up to 10,000 rows of each kind a second. */
const MAX_PURGE_ROUNDS = 150
/** Columns of an account, 64-bit integers as text: a host may have configured its client library to read them as floats. */
const SELECTED = `id, balance::text, held::text, owed::text, credit_held::text, tier, cap_amount::text, cap_period, name, plan,
  billing, credit_limit::text, frozen_at_ms::text, frozen_reason, created_at_ms::text`

/**
 * Balances and holds in PostgreSQL. Each method is one statement, so one transaction and one round trip. The migrations create
 * the functions that it calls.
 */
export function postgresLedger(
  connection: PostgresConnection,
  schema: string,
  { clock, ...options }: Pick<WriteCombinerOptions, 'clock' | 'statementTimeoutMs' | 'durableReservations'>,
): Ledger {
  const { run, runAccepted: send } = connection
  const timeOf = (nowMs: number): string | null => journalTime(clock, nowMs)
  const combiner = new WriteCombiner(connection, schema, {
    clock,
    ...options,
    endAlone: (end, nowMs) => (end.amount === undefined ? voidHold(end.holdId, nowMs) : settle(end, nowMs)),
  })

  async function settle(settlement: Settlement, nowMs: number): Promise<Resolution> {
    const { holdId, thresholds } = settlement
    const resolution = await chargeHold(send, { schema, clock }, settlement, nowMs)
    if (resolution.endedBy !== 'settled' || thresholds === undefined) return resolution
    const [row] = await send(earlierCharge(schema), [holdId])
    return row === undefined
      ? resolution
      : { ...resolution, earlier: chargeOf(row, BigInt(row['due'] as string), thresholds) }
  }

  async function voidHold(holdId: string, nowMs: number): Promise<Resolution> {
    const [row] = await send(`SELECT ${schema}.end_holds(ARRAY[$1::text], 'voided', $2) AS count`, [
      holdId,
      timeOf(nowMs),
    ])
    if (row!['count'] === 1) return { resolved: true, charged: 0n, shortfall: 0n }
    // In a statement of its own, because the one before may have waited for the other end of the hold.
    const [hold] = await send(`SELECT status FROM ${schema}.holds WHERE id = $1 AND status <> 'refused'`, [holdId])
    return endedBefore(hold?.['status'])
  }

  async function account(accountId: string): Promise<Account | undefined> {
    const [row] = await run(`SELECT ${SELECTED} FROM ${schema}.accounts WHERE id = $1`, [accountId])
    return row === undefined ? undefined : accountOf(row)
  }

  return {
    async createAccount(wanted, nowMs) {
      if (wanted.spendingCap !== undefined) assertAmount(wanted.spendingCap.amount)
      if (wanted.creditLimit !== undefined) assertAmount(wanted.creditLimit)
      const [row] = await run(
        `INSERT INTO ${schema}.accounts (${ACCOUNT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (id) DO NOTHING RETURNING ${SELECTED}`,
        accountValues(wanted, timeParameter(nowMs)),
      )
      return row === undefined ? (await account(wanted.id))! : accountOf(row)
    },

    async updateAccount(accountId, change) {
      if (change.spendingCap != null) assertAmount(change.spendingCap.amount)
      if (change.creditLimit != null) assertAmount(change.creditLimit)
      const changes = accountChanges(change, timeParameter)
      if (changes.length === 0) return account(accountId)
      const set = changes.map(([column], index) => `${column} = $${index + 2}`).join(', ')
      const [row] = await run(`UPDATE ${schema}.accounts SET ${set} WHERE id = $1 RETURNING ${SELECTED}`, [
        accountId,
        ...changes.map(([, value]) => value),
      ])
      return row === undefined ? undefined : accountOf(row)
    },

    account,

    async listAccounts({ search = '', after = '', limit }) {
      if (!isStorable(search) || !isStorable(after)) return []
      const rows = await run(
        `SELECT ${SELECTED} FROM ${schema}.accounts
        WHERE id COLLATE "C" > $1 AND position($2 in id) > 0 ORDER BY id COLLATE "C" LIMIT $3`,
        [after, search, Math.max(0, limit)],
      )
      return rows.map(accountOf)
    },

    async credit({ creditId, accountId, amount, description, expiresAtMs }, nowMs) {
      assertAmount(amount)
      if (amount === 0n) throw new RangeError('a credit must be above zero')
      const expires = expiresAtMs === undefined ? null : timeParameter(expiresAtMs)
      const values = [creditId, accountId, String(amount), description, timeOf(nowMs), expires]
      const [row] = await run(`SELECT ${schema}.credit($1, $2, $3, $4, $5, $6) AS credited`, values).catch(
        refuseOverflow,
      )
      if (row!['credited'] === null) throw new RangeError(`there is no account ${JSON.stringify(accountId)}`)
      if (row!['credited'] === true) return true
      const [known] = await run(`SELECT ${schema}.credited_account($1) AS id`, [creditId])
      assertCreditOf(accountId, { id: creditId, accountId: known!['id'] as string })
      return false
    },

    async reserve(reservation, nowMs) {
      // Checked before others share the statement, so that a wrong value affects only its own request.
      assertAmount(reservation.amount)
      timeParameter(reservation.expiresAtMs)
      for (const cap of Object.values(reservation.caps ?? {})) if (cap !== undefined) assertAmount(cap.amount)
      return connection.accept(() => combiner.reserve(reservation, nowMs))
    },

    async enlarge(holdId, amount, nowMs) {
      assertAmount(amount)
      const values = [holdId, String(amount), timeOf(nowMs)]
      const [row] = await run(`SELECT ${schema}.enlarge_hold($1, $2, $3) AS status`, values)
      return row!['status'] as EnlargeStatus
    },

    async settle(settlement, nowMs) {
      assertAmount(settlement.amount)
      return connection.accept(() =>
        settlement.answer === undefined ? combiner.end(settlement, nowMs) : settle(settlement, nowMs),
      )
    },

    settleWith: chargeWithHost(connection, { schema, clock }),

    async void(holdId, nowMs) {
      return connection.accept(() => combiner.end({ holdId }, nowMs))
    },

    async expire(nowMs, limit) {
      const serverTime = async () => (await run(`SELECT ${schema}.now_ms()::text AS now`, []))[0]!['now'] as string
      const now = clock === 'caller' ? timeParameter(nowMs) : await serverTime()
      const [row] = await run(`SELECT ${schema}.expire_holds($1, $2) AS count`, [now, limit])
      const count = row!['count'] as number
      // The caller sweeps again after a full batch, and money that expired holds keep is more urgent than obsolete rows.
      if (count >= limit) return count
      const oldestPeriod = oldestKept(spendingPeriod(Number(now)))
      const values = [now, REFUSAL_RETENTION_MS, HOLD_RETENTION_MS, oldestPeriod, PURGED_PER_ROUND]
      for (let round = 0; round < MAX_PURGE_ROUNDS; round++) {
        const [purged] = await run(`SELECT ${schema}.forget($1, $2, $3, $4, $5) AS count`, values)
        if (purged!['count'] !== PURGED_PER_ROUND) break
      }
      return count
    },

    async entries(accountId, limit): Promise<readonly LedgerEntry[]> {
      const rows = await run(
        `SELECT ${ENTRY_SELECTED} FROM ${schema}.entries e
        WHERE account_id = $1 ORDER BY e.created_at_ms DESC, e.id DESC LIMIT $2`,
        [accountId, Math.max(0, limit)],
      )
      return rows.map(entryOf)
    },

    ...postgresByHand(connection, schema, clock),
  }
}

/** Columns of a journal line `e`. */
const ENTRY_SELECTED = `e.id::text, account_id, kind, amount::text, owed::text, hold_id, credit_id,
  operation_id, charge_id::text, description, created_at_ms::text, due::text, balance_after::text, details`

/** `numeric_value_out_of_range` (PostgreSQL, appendix A). */
const OUT_OF_RANGE = '22003'

/** @throws RangeError for an amount that exceeds the maximum of the account, otherwise the original error. */
function refuseOverflow(error: unknown): never {
  if (codeOf(error) !== OUT_OF_RANGE) throw error
  throw new RangeError('the account cannot hold more than 2^63 - 1 nano-dollars', { cause: error })
}

/** Manual changes and the journal, in PostgreSQL. Each method is one statement. */
function postgresByHand({ run }: PostgresConnection, schema: string, clock: 'database' | 'caller'): Journal {
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
      return rows.map(entryOf)
    },

    async sums({ accountId, fromMs, untilMs }) {
      const rows = await run(
        `WITH opening AS (
          SELECT 'opening' AS kind, 0::bigint AS lines, e.balance_after AS amount, e.owed_after AS owed
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
