import type { Resolution } from '../resolution.ts'
import {
  type ChargeFacts,
  crossingsOf,
  NOTHING_SPENT,
  type SpendingCounts,
  type SpendingThresholds,
} from '../spending.ts'
import { capOf, optionalAmountOf, type SqlRow } from '../sql-rows.ts'

/** Columns of what the functions `settle` and `change_task` give, named `s`, as {@link chargeOf} needs them. */
export const CHARGE_COLUMNS = 's.charged::text, s.shortfall::text, s.ended_by, s.facts::text'

/** How a hold ended with a charge of `amount`. */
export function chargeOf(row: SqlRow, amount: bigint, thresholds: SpendingThresholds | undefined): Resolution {
  if (row['charged'] === null) return endedBefore(row['ended_by'])
  const crossings =
    thresholds && crossingsOf(chargeFactsOf(JSON.parse(row['facts'] as string) as ChargeRow, amount), thresholds)
  return {
    resolved: true,
    charged: BigInt(row['charged'] as string),
    shortfall: BigInt(row['shortfall'] as string),
    ...(crossings === undefined ? {} : { crossings }),
  }
}

/** What `settle` tells of account and key; amounts are text. */
interface ChargeRow extends SqlRow {
  /** Period, charged in the day and in the month. */
  readonly account: readonly [string, string, string]
  readonly key: readonly [string, string, string]
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
    account: { cap: capOf(row), counts: countsOf(period, day, month) },
    key: { cap: capOf(keyCap), counts: countsOf(keyPeriod, keyDay, keyMonth) },
    money: BigInt(row['money'] as string),
    funded: BigInt(row['funded'] as string),
    owed: BigInt(row['owed'] as string),
    creditLimit: optionalAmountOf(row['credit_limit']),
  }
}

function countsOf(period: string, day: string, month: string): SpendingCounts {
  return { ...NOTHING_SPENT, period: Number(period), chargedDay: BigInt(day), chargedMonth: BigInt(month) }
}

/** A hold that was not changed. @param status how it had ended. */
export function endedBefore(status: unknown): Resolution {
  const endedBy = (status as Resolution['endedBy'] | null) ?? undefined
  return { resolved: false, charged: 0n, shortfall: 0n, ...(endedBy === undefined ? {} : { endedBy }) }
}
