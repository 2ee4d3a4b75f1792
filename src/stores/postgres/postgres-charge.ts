import { assertAmount, endedNow, type Ledger, type Settlement } from '../ledger.ts'
import type { Resolution } from '../resolution.ts'
import {
  type ChargeFacts,
  crossingsOf,
  NOTHING_SPENT,
  type SpendingCounts,
  type SpendingThresholds,
} from '../spending.ts'
import { capOf, optionalAmountOf, type SqlRow } from '../sql-rows.ts'
import { answerParameters, detailsParameter, journalTime, type PostgresConnection } from './postgres-connection.ts'
import { retryWithoutRecord } from './postgres-usage.ts'

/** Result columns of the functions `settle` and `change_task`, named `s`, for {@link chargeOf}. */
export const CHARGE_COLUMNS = 's.charged::text, s.shortfall::text, s.ended_by, s.facts::text'

/** Schema and clock of a ledger. */
interface LedgerPlace {
  readonly schema: string
  readonly clock: 'database' | 'caller'
}

/** Ends a hold with a charge, by the function `settle`. */
export async function chargeHold(
  run: PostgresConnection['run'],
  { schema, clock }: LedgerPlace,
  { holdId, amount, description, details, answer, record, thresholds, owner }: Settlement,
  nowMs: number,
): Promise<Resolution> {
  assertAmount(amount)
  const time = journalTime(clock, nowMs)
  const wantsFacts = thresholds !== undefined
  const charge = [holdId, String(amount), description, time, ...answerParameters(answer), detailsParameter(details)]
  const { value, ...refused } = await retryWithoutRecord(record, (sent) =>
    run(`SELECT ${CHARGE_COLUMNS} FROM ${schema}.settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS s`, [
      ...charge,
      wantsFacts,
      sent,
      ...[owner?.accountId, owner?.keyId, owner?.billing].map((value) => value ?? null),
    ]),
  )
  return { ...chargeOf(value[0]!, amount, thresholds), ...refused }
}

/** Returns `settleWith`. The charge comes last, so that the account is locked for a short time. */
export function chargeWithHost(
  { transaction }: PostgresConnection,
  place: LedgerPlace,
): NonNullable<Ledger['settleWith']> {
  return (settlement, hostStatements, nowMs) =>
    transaction(async (session) => {
      await hostStatements(session)
      // Rejected if the host has ended the transaction, or has ignored a failed statement.
      await session.query('SAVEPOINT signalbox_charge')
      const run = async (text: string, values?: unknown[]): Promise<readonly SqlRow[]> => {
        try {
          return (await session.query(text, values)).rows as readonly SqlRow[]
        } catch (error) {
          await session.query('ROLLBACK TO SAVEPOINT signalbox_charge')
          throw error
        }
      }
      return endedNow(await chargeHold(run, place, settlement, nowMs))
    })
}

/** Returns the result of a hold with a charge of `amount`. */
export function chargeOf(row: SqlRow, amount: bigint, thresholds: SpendingThresholds | undefined): Resolution {
  if (row['charged'] === null) return endedBefore(row['ended_by'])
  const { facts } = row
  const charge = (typeof facts === 'string' ? JSON.parse(facts) : facts) as ChargeRow
  const crossings = thresholds && crossingsOf(chargeFactsOf(charge, amount), thresholds)
  return {
    resolved: true,
    charged: BigInt(row['charged'] as string),
    shortfall: BigInt(row['shortfall'] as string),
    ...(crossings === undefined ? {} : { crossings }),
  }
}

/** Account and key after a charge, as the functions `settle` and `apply_group` return them; amounts are text. */
export interface ChargeRow extends SqlRow {
  /** Period, charges of the day and of the month. */
  readonly account: readonly [string, string, string]
  readonly key: readonly [string, string, string]
}

/** Returns the result of a hold that the function `apply_group` ended. @param shortfall What a prepaid account owes. */
export function endedInGroup(
  end: Settlement | { readonly amount?: undefined },
  shortfall: string | undefined,
  facts: ChargeRow | undefined,
): Resolution {
  if (end.amount === undefined) return { resolved: true, charged: 0n, shortfall: 0n }
  const charged = String(end.amount - BigInt(shortfall ?? 0))
  const row = { charged, shortfall: shortfall ?? '0', facts: facts ?? null }
  return chargeOf(row, end.amount, end.thresholds)
}

function chargeFactsOf(row: ChargeRow, amount: bigint): ChargeFacts {
  const [period, day, month] = row.account
  const [keyPeriod, keyDay, keyMonth] = row.key
  const keyCap = { cap_amount: row['key_cap_amount'], cap_period: row['key_cap_period'] }
  return {
    amount,
    paid: BigInt(row['paid'] as string),
    period: row['period'] as number,
    isMetered: row['metered'] === true,
    account: {
      spendingCap: capOf(row),
      spending: countsOf(period, day, month),
      balance: BigInt(row['money'] as string),
      held: 0n,
      funded: BigInt(row['funded'] as string),
      owed: BigInt(row['owed'] as string),
      creditLimit: optionalAmountOf(row['credit_limit']),
    },
    key: { spendingCap: capOf(keyCap), spending: countsOf(keyPeriod, keyDay, keyMonth) },
  }
}

function countsOf(period: string, day: string, month: string): SpendingCounts {
  return { ...NOTHING_SPENT, period: Number(period), chargedDay: BigInt(day), chargedMonth: BigInt(month) }
}

/** Maximum number of later lines that {@link earlierCharge} reads: less than a tenth of a second. */
const MAX_LATER_LINES = 50_000

/**
 * Reads the result of an earlier charge of hold `$1` from the journal, in {@link CHARGE_COLUMNS} plus `due`. If there was a later
 * credit, the latest credit of that time is not known, so no balance threshold is reported. Returns no row if the account has
 * more than {@link MAX_LATER_LINES} later lines, because a timeout of this query would repeat the settlement forever.
 */
export function earlierCharge(schema: string): string {
  return `WITH charge AS (
      SELECT e.*, h.is_metered FROM ${schema}.entries e JOIN ${schema}.holds h ON h.id = e.hold_id
      WHERE e.hold_id = $1 AND e.kind = 'charge'
    ), later AS (
      SELECT n.key_id, n.period, n.due, n.amount FROM charge c JOIN ${schema}.entries n ON n.account_id = c.account_id
      WHERE (n.kind = 'charge' OR n.amount > 0) AND (n.created_at_ms, n.id) > (c.created_at_ms, c.id)
      LIMIT ${MAX_LATER_LINES + 1}
    )
    SELECT c.due::text, (CASE WHEN c.is_metered THEN c.due ELSE -c.amount END)::text AS charged,
      (CASE WHEN c.is_metered THEN 0 ELSE c.due + c.amount END)::text AS shortfall,
      jsonb_build_object('paid', (-c.amount)::text, 'period', c.period, 'metered', c.is_metered,
        'cap_amount', a.cap_amount::text, 'cap_period', a.cap_period,
        'key_cap_amount', k.cap_amount::text, 'key_cap_period', k.cap_period,
        'account', to_jsonb(ARRAY[(a.spending).period, (a.spending).charged_day - l.account_day,
          (a.spending).charged_month - l.account_month]::text[]),
        'key', to_jsonb(ARRAY[(s.spending).period, (s.spending).charged_day - l.key_day,
          (s.spending).charged_month - l.key_month]::text[]),
        'money', c.balance_after::text,
        'funded', CASE WHEN EXISTS (SELECT FROM later WHERE later.amount > 0) THEN '0' ELSE a.funded::text END,
        'owed', (c.owed_after + c.due + c.amount)::text, 'credit_limit', a.credit_limit::text)::text AS facts
    FROM charge c JOIN ${schema}.accounts a ON a.id = c.account_id
      JOIN ${schema}.key_spending s ON s.key_id = c.key_id LEFT JOIN ${schema}.keys k ON k.id = c.key_id,
      LATERAL (
        SELECT coalesce(sum(due) FILTER (WHERE period = c.period), 0) AS account_day,
          coalesce(sum(due), 0) AS account_month,
          coalesce(sum(due) FILTER (WHERE period = c.period AND key_id = c.key_id), 0) AS key_day,
          coalesce(sum(due) FILTER (WHERE key_id = c.key_id), 0) AS key_month
        FROM later WHERE period / 100 = c.period / 100
      ) l
    WHERE (SELECT count(*) FROM later) <= ${MAX_LATER_LINES}`
}

/** Returns the result for an unchanged hold. @param status How it had ended. */
export function endedBefore(status: unknown): Resolution {
  const endedBy = (status as Resolution['endedBy'] | null) ?? undefined
  return { resolved: false, charged: 0n, shortfall: 0n, ...(endedBy === undefined ? {} : { endedBy }) }
}
