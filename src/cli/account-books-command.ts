import { formatDollars } from '../core/money.ts'
import type { AccountStatement } from '../gateway/account-books.ts'
import { monthOf } from '../gateway/account-books.ts'
import type { ChargeDetails, LedgerEntry } from '../stores/journal.ts'
import type { ActionDefinition, CommandArguments } from './command.ts'
import { existingAccount, STORE_OPTIONS, withStore } from './open-store.ts'
import {
  checkDollars,
  checkSignedDollars,
  parseCount,
  parseGiven,
  parseId,
  parseMoment,
  parseMonth,
  SettingError,
} from './setting-values.ts'
import { dollarsText, printNext, printRows, type Terminal } from './terminal.ts'

const DEFAULT_LINES = '100'

/** Actions of `signalbox accounts` on the books of an account. Each throws a SettingError naming the argument. */
export const bookActions = {
  adjust: {
    summary: 'correct a balance; a negative amount takes money',
    positionals: [
      { name: 'ID', text: 'the account’s id' },
      { name: 'AMOUNT', text: 'the amount' },
    ],
    options: {
      reason: { value: 'TEXT', text: 'why; required' },
      id: { value: 'ADJUSTMENT_ID', text: 'a repeated adjustment id has no effect' },
      ...STORE_OPTIONS,
    },
    allowNegative: true,
    run: adjustAccount,
  },
  refund: {
    summary: 'refund a charge, by the id of its journal line',
    positionals: [{ name: 'LINE', text: 'the id of the charge’s line' }],
    options: {
      reason: { value: 'TEXT', text: 'why; required' },
      amount: { value: 'DOLLARS', text: 'amount to refund (default: the rest of the charge)' },
      id: { value: 'REFUND_ID', text: 'a repeated refund id has no effect' },
      ...STORE_OPTIONS,
    },
    run: refundCharge,
  },
  statement: {
    summary: 'show a month’s opening balance, sums and closing balance',
    positionals: [{ name: 'ID', text: 'the account’s id' }],
    options: { month: { value: '2026-11', text: 'month (default: the current one)' }, ...STORE_OPTIONS },
    run: showStatement,
  },
  journal: {
    summary: 'list journal lines with their ids and the balance after each',
    positionals: [{ name: 'ID', text: 'the account’s id' }],
    options: {
      month: { value: '2026-11', text: 'lines of a month' },
      from: { value: 'TIME', text: 'lines since a UTC day or time' },
      until: { value: 'TIME', text: 'lines before a UTC day or time' },
      'oldest-first': { text: 'start with the oldest line' },
      limit: { value: 'N', text: `maximum number of lines (default: ${DEFAULT_LINES})` },
      cursor: { value: 'CURSOR', text: 'continue after the previous page' },
      csv: { text: 'all lines as CSV' },
      ...STORE_OPTIONS,
    },
    run: showJournal,
  },
} as const satisfies Readonly<Record<string, ActionDefinition>>

async function adjustAccount(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = '', text = ''] = given.positionals
  const amount = checkSignedDollars('the amount', text)
  const adjustmentId = parseGiven(given.option('id'), (value) => parseId('--id', value))
  const reason = requiredReason(given.option('reason'))
  const { isNew, balance } = await withStore(terminal, { store: given.option('store') }, async (administration) => {
    await existingAccount(administration, accountId)
    const isNew = await administration.accounts.adjust(accountId, { amount, reason, adjustmentId })
    return { isNew, balance: (await existingAccount(administration, accountId)).balance }
  })
  if (given.flag('json')) {
    const adjusted = isNew ? amount : '0'
    terminal.print(
      JSON.stringify({ object: 'adjustment', account: accountId, adjusted, balance: formatDollars(balance) }),
    )
    return
  }
  const left = `the balance is ${dollarsText(balance)}`
  if (isNew) terminal.print(`adjusted ${accountId} by ${amount.replace(/^-?/, '$&$')}; ${left}`)
  else terminal.print(`${adjustmentId} was made before, so nothing was changed; ${left}`)
}

async function refundCharge(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [chargeId = ''] = given.positionals
  const amount = parseGiven(given.option('amount'), (value) => checkDollars('--amount', value))
  const refundId = parseGiven(given.option('id'), (value) => parseId('--id', value))
  const reason = requiredReason(given.option('reason'))
  const refund = await withStore(terminal, { store: given.option('store') }, ({ accounts }) =>
    accounts.refund(chargeId, { amount, reason, refundId }),
  )
  if (given.flag('json')) {
    const refunded = refund.isNew ? formatDollars(refund.amount) : '0'
    terminal.print(JSON.stringify({ object: 'refund', account: refund.accountId, charge_id: chargeId, refunded }))
    return
  }
  const text = `${dollarsText(refund.amount)} of ${chargeId} to ${refund.accountId}`
  terminal.print(refund.isNew ? `refunded ${text}` : `${refundId} was made before, so nothing was changed: ${text}`)
}

async function showStatement(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = ''] = given.positionals
  const month = parseMonth('--month', given.option('month') ?? new Date().toISOString().slice(0, 7))
  const statement = await withStore(terminal, { store: given.option('store') }, ({ accounts }) =>
    accounts.statement(accountId, month),
  )
  if (given.flag('json')) {
    terminal.print(JSON.stringify(statementJson(statement)))
    return
  }
  const sums = statement.sums.map(({ kind, lines, amount, owed }) => {
    return [kind, String(lines), dollarsText(amount), dollarsText(owed)]
  })
  const { openingBalance, openingOwed, closingBalance, closingOwed } = statement
  printRows(terminal, [
    [`${accountId} ${month}`, 'lines', 'balance', 'owed'],
    ['opening', '', dollarsText(openingBalance), dollarsText(openingOwed)],
    ...sums,
    ['closing', '', dollarsText(closingBalance), dollarsText(closingOwed)],
  ])
}

async function showJournal(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = ''] = given.positionals
  const asCsv = given.flag('csv')
  if (given.option('month') !== undefined) refuseBeside('--month', given, ['from', 'until'])
  if (asCsv) refuseBeside('--csv', given, ['limit', 'cursor', 'oldest-first', 'json'])
  const month = parseGiven(given.option('month'), (text) => monthOf(parseMonth('--month', text)))
  const fromMs = parseGiven(given.option('from'), (text) => parseMoment('--from', text)) ?? month?.fromMs
  const untilMs = parseGiven(given.option('until'), (text) => parseMoment('--until', text)) ?? month?.untilMs
  const limit = parseCount('--limit', given.option('limit') ?? DEFAULT_LINES)
  const order = given.flag('oldest-first') ? 'oldest' : 'newest'
  await withStore(terminal, { store: given.option('store') }, async ({ accounts }) => {
    if (asCsv) {
      // `print` adds the line end.
      for await (const piece of accounts.journalCsv(accountId, { fromMs, untilMs }))
        terminal.print(piece.replace(/\r\n$/, '\r'))
      return
    }
    const cursor = given.option('cursor')
    const { entries, next } = await accounts.journal(accountId, { fromMs, untilMs, limit, cursor, order })
    if (given.flag('json')) {
      terminal.print(JSON.stringify({ object: 'list', data: entries.map(entryJson), next: next ?? null }))
      return
    }
    printRows(terminal, [['line', 'time', 'kind', 'amount', 'balance', 'text'], ...entries.map(journalRow)])
    printNext(terminal, next)
  })
}

/** @throws SettingError for an option that has no effect with another one. */
function refuseBeside(name: string, given: CommandArguments, others: readonly string[]): void {
  const other = others.find((option) => given.flag(option) || given.option(option) !== undefined)
  if (other !== undefined) throw new SettingError(`--${other}: has no effect with ${name}; give one of them`)
}

/** @throws SettingError if there is none. */
export function requiredReason(reason: string | undefined): string {
  if (reason === undefined || reason === '') throw new SettingError('--reason is missing; see signalbox --help')
  return reason
}

/** Returns a row like {@link entryRow}, with the id and the balance after the line. */
function journalRow(entry: LedgerEntry): string[] {
  const [time = '', kind = '', amount = '', text = ''] = entryRow(entry)
  return [entry.id, time, kind, amount, entry.balanceAfter === undefined ? '' : dollarsText(entry.balanceAfter), text]
}

function statementJson(statement: AccountStatement) {
  return {
    object: 'account.statement',
    account: statement.accountId,
    month: statement.month,
    opening_balance: formatDollars(statement.openingBalance),
    opening_owed: formatDollars(statement.openingOwed),
    sums: statement.sums.map(({ kind, lines, amount, owed }) => {
      return { kind, lines, amount: formatDollars(amount), owed: formatDollars(owed) }
    }),
    closing_balance: formatDollars(statement.closingBalance),
    closing_owed: formatDollars(statement.closingOwed),
  }
}

function detailsJson({ keyId, endpoint, model, vendor, usage }: ChargeDetails) {
  return { key: keyId, endpoint, model, vendor, usage }
}

/** The text contains the size of a debt, because a debt does not change the balance. */
function textOf({ kind, owed, description }: LedgerEntry): string {
  return kind === 'owed' ? `${dollarsText(owed)} owed: ${description}` : description
}

/** Returns the cells of a journal line. */
export function entryRow(entry: LedgerEntry): string[] {
  return [new Date(entry.createdAtMs).toISOString(), entry.kind, dollarsText(entry.amount), textOf(entry)]
}

/** Returns a journal line as JSON. Amounts are decimal dollars, the time Unix seconds. */
export function entryJson(entry: LedgerEntry) {
  return {
    object: 'ledger.entry',
    id: entry.id,
    kind: entry.kind,
    amount: formatDollars(entry.amount),
    owed: formatDollars(entry.owed),
    hold_id: entry.holdId ?? null,
    description: entry.description,
    due: entry.due === undefined ? null : formatDollars(entry.due),
    balance_after: entry.balanceAfter === undefined ? null : formatDollars(entry.balanceAfter),
    charge_id: entry.chargeId ?? null,
    operation_id: entry.operationId ?? null,
    details: entry.details === undefined ? null : detailsJson(entry.details),
    created_at: Math.floor(entry.createdAtMs / 1000),
  }
}
