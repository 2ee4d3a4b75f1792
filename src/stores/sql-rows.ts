import type { StoredAnswer } from './idempotency-store.ts'
import {
  type ChargeDetails,
  ENTRY_KINDS,
  entryId,
  type JournalSums,
  type LedgerEntry,
  type OpenHold,
} from './journal.ts'
import type { Account, AccountChange, NewAccount } from './ledger.ts'
import type { SpendingCap } from './principal.ts'
import type { SpendingCounts } from './spending.ts'

/** Row of the SQL drivers, whose columns have the same names. Integers are numbers, bigints, or strings. */
export type SqlRow = Readonly<Record<string, unknown>>

/** Converts Unix milliseconds to a parameter. Clocks may return fractions; the columns store whole numbers. */
type ToTime<Time> = (timeMs: number) => Time

export const ACCOUNT_COLUMNS = 'id, tier, cap_amount, cap_period, name, plan, billing, credit_limit, created_at_ms'
export function accountOf(row: SqlRow): Account {
  return {
    id: row['id'] as string,
    balance: BigInt(row['balance'] as string),
    held: BigInt(row['held'] as string),
    owed: BigInt(row['owed'] as string),
    creditHeld: BigInt(row['credit_held'] as string),
    tier: row['tier'] as Account['tier'],
    spendingCap: capOf(row),
    name: (row['name'] as string | null) ?? undefined,
    plan: (row['plan'] as string | null) ?? undefined,
    billing: (row['billing'] as Account['billing'] | null) ?? undefined,
    creditLimit: optionalAmountOf(row['credit_limit']),
    frozen:
      row['frozen_at_ms'] === null
        ? undefined
        : { reason: row['frozen_reason'] as string, atMs: Number(row['frozen_at_ms']) },
    createdAtMs: Number(row['created_at_ms']),
  }
}

/** Values of {@link ACCOUNT_COLUMNS}. */
export function accountValues<Time>(account: NewAccount, createdAtMs: Time): (string | null | Time)[] {
  const { id, tier = 'paid', spendingCap, name, plan, billing, creditLimit } = account
  return [
    id,
    tier,
    ...capValues(spendingCap),
    name ?? null,
    plan ?? null,
    billing ?? null,
    creditLimit === undefined ? null : String(creditLimit),
    createdAtMs,
  ]
}

/** Returns the columns that a change sets, with their values. */
export function accountChanges<Time>(change: AccountChange, toTime: ToTime<Time>): [string, string | null | Time][] {
  const { tier, spendingCap, name, plan, billing, creditLimit, frozen } = change
  const changes: [string, string | null | Time][] = []
  if (tier !== undefined) changes.push(['tier', tier])
  if (spendingCap !== undefined) {
    const [amount, period] = capValues(spendingCap)
    changes.push(['cap_amount', amount], ['cap_period', period])
  }
  if (name !== undefined) changes.push(['name', name])
  if (plan !== undefined) changes.push(['plan', plan])
  if (billing !== undefined) changes.push(['billing', billing])
  if (creditLimit !== undefined) changes.push(['credit_limit', creditLimit === null ? null : String(creditLimit)])
  if (frozen !== undefined)
    changes.push(['frozen_at_ms', frozen && toTime(frozen.atMs)], ['frozen_reason', frozen?.reason ?? null])
  return changes
}

export function entryOf(row: SqlRow): LedgerEntry {
  const details = row['details'] as string | null
  return {
    id: entryId(row['id']),
    accountId: row['account_id'] as string,
    kind: row['kind'] as LedgerEntry['kind'],
    amount: BigInt(row['amount'] as string),
    owed: BigInt(row['owed'] as string),
    holdId: (row['hold_id'] as string | null) ?? undefined,
    description: row['description'] as string,
    createdAtMs: Number(row['created_at_ms']),
    due: optionalAmountOf(row['due']),
    balanceAfter: BigInt(row['balance_after'] as string),
    details: details === null ? undefined : (JSON.parse(details) as ChargeDetails),
    operationId: ((row['operation_id'] ?? row['credit_id']) as string | null) ?? undefined,
    chargeId: row['charge_id'] === null ? undefined : entryId(row['charge_id']),
  }
}

/** Returns sums of lines by kind, from rows of kind, number of lines, amount and owed. The kind `opening` is the state before them. */
export function journalSumsOf(rows: readonly SqlRow[]): JournalSums {
  const byKind = new Map(
    rows.map((row) => {
      const [amount, owed] = [BigInt(row['amount'] as string), BigInt(row['owed'] as string)]
      return [row['kind'] as string, { lines: Number(row['lines']), amount, owed }]
    }),
  )
  const opening = byKind.get('opening')
  return {
    openingBalance: opening?.amount ?? 0n,
    openingOwed: opening?.owed ?? 0n,
    sums: ENTRY_KINDS.flatMap((kind) => {
      const sum = byKind.get(kind)
      return sum === undefined ? [] : [{ kind, ...sum }]
    }),
  }
}

export function openHoldOf(row: SqlRow): OpenHold {
  return {
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    keyId: row['key_id'] as string,
    amount: BigInt(row['amount'] as string),
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: Number(row['expires_at_ms']),
  }
}

export function answerOf(row: SqlRow): StoredAnswer {
  return {
    status: Number(row['answer_status']),
    headers: JSON.parse(row['answer_headers'] as string) as string[],
    body: row['answer_body'] as Uint8Array,
  }
}

/** Returns status, headers and body of an answer. The body is a Buffer, the only byte array that every engine and client binds. */
export function answerValues({ status, headers, body }: StoredAnswer): [number, string, Uint8Array] {
  return [status, JSON.stringify(headers), Buffer.from(body.buffer, body.byteOffset, body.byteLength)]
}

/** Returns amount and period of a cap as two values that are null together. */
export function capValues(cap: SpendingCap | null | undefined): [string | null, string | null] {
  return cap == null ? [null, null] : [String(cap.amount), cap.period]
}

export function optionalTimeOf(column: unknown): number | undefined {
  return column === null ? undefined : Number(column)
}

export function optionalAmountOf(column: unknown): bigint | undefined {
  return column == null ? undefined : BigInt(column as string)
}

/** Returns the cap in the columns `cap_amount` and `cap_period`. */
export function capOf(row: SqlRow): SpendingCap | undefined {
  const amount = row['cap_amount']
  return amount == null
    ? undefined
    : { amount: BigInt(amount as string), period: row['cap_period'] as SpendingCap['period'] }
}

/** Returns the spending of an account or a key. Amounts may be text. */
export function spendingCountsOf(row: SqlRow): SpendingCounts {
  return {
    period: Number(row['period']),
    chargedDay: BigInt(row['charged_day'] as string | bigint),
    chargedMonth: BigInt(row['charged_month'] as string | bigint),
    heldDay: BigInt(row['held_day'] as string | bigint),
    heldMonth: BigInt(row['held_month'] as string | bigint),
  }
}

/** Number and size of an account's stored data. */
export interface StoredUsage {
  readonly count: number
  /** Size of texts and contents, in bytes. */
  readonly byteLength: number
}

/** Default limits of one account's stored data by kind, with the name of the kind and the remedy for messages. */
export const STORED_KINDS = {
  idempotencyKeys: {
    count: 100_000,
    byteLength: 2 ** 30,
    label: 'Idempotency-Keys with their answers',
    remedy: 'Send no Idempotency-Key, or wait: keys are removed after 24 hours.',
  },
  responses: {
    count: 200_000,
    byteLength: 4 * 2 ** 30,
    label: 'stored responses',
    remedy: 'Delete some of them, or send store: false.',
  },
  conversations: {
    count: 10_000,
    byteLength: 2 ** 28,
    label: 'conversations with their items',
    remedy: 'Delete some of them, or some of their items.',
  },
  files: { count: 10_000, byteLength: 2 ** 31, label: 'files', remedy: 'Delete some of them.' },
  tasks: {
    count: 100_000,
    byteLength: 2 ** 30,
    label: 'videos, background responses and batches',
    remedy: 'Wait: they are removed some days after their end.',
  },
  webhookSecrets: {
    count: 10,
    byteLength: 2 ** 16,
    label: 'webhook secrets',
    remedy: 'Wait until the overlap of an older secret ends, or send an overlap of 0, which ends all of them.',
  },
} as const

/** Kind of stored data. */
export type StoredKind = keyof typeof STORED_KINDS
