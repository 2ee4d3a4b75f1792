import { hintAt } from '../core/known-members.ts'
import { formatDollars, parseDollars } from '../core/money.ts'
import { type AccountStatement, monthOf } from '../gateway/account-books.ts'
import type { AccountSpending, Accounts, AccountUpdate, Spent } from '../gateway/accounts.ts'
import type { ChargeDetails, LedgerEntry } from '../stores/journal.ts'
import type { Account, AccountFreeze, NewAccount } from '../stores/ledger.ts'
import type { BillingMode } from '../stores/principal.ts'
import type { ActionDefinition, CommandArguments, GroupDefinition, OptionDefinition } from './command.ts'
import { existingAccount, STORE_OPTIONS, withStore } from './open-store.ts'
import { configuredPlans } from './serve-settings.ts'
import {
  checkDollars,
  checkSignedDollars,
  parseBillingMode,
  parseCap,
  parseCount,
  parseGiven,
  parseId,
  parseLabel,
  parseMoment,
  parseMonth,
  parseTier,
  SettingError,
} from './setting-values.ts'
import { capJson, capText, dollarsText, printNext, printRows, type Terminal } from './terminal.ts'

const DEFAULT_LINES = '100'

/** Actions of `signalbox accounts` on the books of an account. Each throws a SettingError naming the argument. */
const bookActions = {
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
function requiredReason(reason: string | undefined): string {
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
function entryRow(entry: LedgerEntry): string[] {
  return [new Date(entry.createdAtMs).toISOString(), entry.kind, dollarsText(entry.amount), textOf(entry)]
}

/** Returns a journal line as JSON. Amounts are decimal dollars, the time Unix seconds. */
function entryJson(entry: LedgerEntry) {
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

/** Options of `accounts create` and `accounts update` for the properties of an account. */
const ACCOUNT_OPTIONS = {
  name: { value: 'TEXT', text: 'display name' },
  tier: { value: 'paid|free', text: 'models and limits of the account (default: paid)' },
  plan: { value: 'NAME', text: 'name of a plan of the gateway' },
  billing: { value: 'prepaid|metered', text: 'billing mode (default: that of the gateway)' },
  'credit-limit': { value: 'DOLLARS', text: 'maximum that a metered account may owe' },
  cap: { value: '50/month|5/day', text: 'maximum spending in dollars per month or day' },
} as const satisfies Readonly<Record<string, OptionDefinition>>

type Given = Pick<CommandArguments, 'option'>

/** Settings of a new account. */
export type NewAccountSettings = Pick<NewAccount, 'name' | 'tier' | 'plan' | 'billing' | 'creditLimit' | 'spendingCap'>

/**
 * Reads the settings of a new account; options that are not set are omitted.
 * @throws SettingError naming the option.
 */
function newAccountSettings(given: Given, terminal: Terminal): NewAccountSettings {
  return {
    name: parseGiven(given.option('name'), (text) => parseLabel('--name', text)),
    tier: parseGiven(given.option('tier'), (text) => parseTier('--tier', text)),
    plan: parseGiven(given.option('plan'), (text) => readPlan(text, terminal)),
    billing: parseGiven(given.option('billing'), readBilling),
    creditLimit: parseGiven(given.option('credit-limit'), readCreditLimit),
    spendingCap: parseGiven(given.option('cap'), (text) => parseCap('--cap', text)),
  }
}

/** Option value that removes a setting, so that the gateway's default applies again. */
const NONE = 'none'

/**
 * Reads the changes to an account; `none` removes a value, and options that are not set change nothing.
 * @throws SettingError naming the option.
 */
function changedAccountSettings(given: Given, terminal: Terminal): AccountUpdate {
  const orNone = <Value>(
    option: keyof typeof ACCOUNT_OPTIONS,
    read: (text: string) => Value,
  ): Value | null | undefined => parseGiven(given.option(option), (text) => (text === NONE ? null : read(text)))
  return {
    name: orNone('name', (text) => parseLabel('--name', text)),
    tier: parseGiven(given.option('tier'), (text) => parseTier('--tier', text)),
    plan: orNone('plan', (text) => readPlan(text, terminal)),
    billing: orNone('billing', readBilling),
    creditLimit: orNone('credit-limit', readCreditLimit),
    spendingCap: orNone('cap', (text) => parseCap('--cap', text)),
  }
}

/** Accepts every name if no plans are configured: a gateway in code has plans that the command cannot know. */
function readPlan(text: string, terminal: Terminal): string {
  const known = plansOf(terminal)
  if (known.length === 0 || known.includes(text)) return parseLabel('--plan', text)
  const fault = `there is no plan ${JSON.stringify(text)} in the configuration`
  throw new SettingError(`--plan: ${fault}; ${hintAt(text, known)}`)
}

/** Warns that the name of a plan could not be checked. */
function printUncheckedPlan(plan: string | null | undefined, terminal: Terminal, asJson: boolean): void {
  if (plan == null || asJson || plansOf(terminal).length > 0) return
  terminal.print(
    `The name of the plan was not checked: no plans are configured here. Calls get 503 if the gateway does not have it.`,
  )
}

function plansOf({ environment, documents }: Terminal): string[] {
  return Object.keys(configuredPlans(environment['SIGNALBOX_PLANS'], documents))
}

function readBilling(text: string): BillingMode {
  return parseBillingMode('--billing', text)
}

function readCreditLimit(text: string): bigint {
  return parseDollars(checkDollars('--credit-limit', text))
}

const DEFAULT_LEDGER_LINES = '20'
const DEFAULT_ACCOUNTS = '100'

const ACCOUNT = { name: 'ID', text: 'the account’s id' }

/** Commands `signalbox accounts …`. The actions throw a SettingError naming the argument. */
export const accountsCommand: GroupDefinition = {
  summary: 'manage accounts, their money and their books',
  actions: {
    list: {
      summary: 'list accounts',
      options: {
        search: { value: 'TEXT', text: 'only accounts with this text in their id' },
        limit: { value: 'N', text: `maximum number of accounts (default: ${DEFAULT_ACCOUNTS})` },
        cursor: { value: 'CURSOR', text: 'continue after the previous page' },
        ...STORE_OPTIONS,
      },
      run: listAccounts,
    },
    create: {
      summary: 'create an account',
      options: {
        id: { value: 'ID', text: 'id of the account (default: a random one)' },
        ...ACCOUNT_OPTIONS,
        ...STORE_OPTIONS,
      },
      run: createAccount,
    },
    update: {
      summary: 'change an account; none removes a value',
      positionals: [ACCOUNT],
      options: { ...ACCOUNT_OPTIONS, ...STORE_OPTIONS },
      run: updateAccount,
    },
    freeze: {
      summary: 'reject an account’s calls',
      positionals: [ACCOUNT],
      options: { reason: { value: 'TEXT', text: 'why; required' }, ...STORE_OPTIONS },
      run: freezeAccount,
    },
    unfreeze: {
      summary: 'accept an account’s calls again',
      positionals: [ACCOUNT],
      options: STORE_OPTIONS,
      run: unfreezeAccount,
    },
    credit: {
      summary: 'add credit in dollars; a repeated credit id has no effect',
      positionals: [ACCOUNT, { name: 'AMOUNT', text: 'the amount' }],
      options: {
        id: { value: 'CREDIT_ID', text: 'a repeated credit id has no effect' },
        expires: { value: '2026-12-31', text: 'when the rest of the credit expires (default: never)' },
        ...STORE_OPTIONS,
      },
      run: creditAccount,
    },
    ...bookActions,
    show: {
      summary: 'show balance, held money and settings',
      positionals: [ACCOUNT],
      options: STORE_OPTIONS,
      run: showAccount,
    },
    ledger: {
      summary: 'list credits and charges, newest first',
      positionals: [ACCOUNT],
      options: {
        limit: { value: 'N', text: `maximum number of lines (default: ${DEFAULT_LEDGER_LINES})` },
        ...STORE_OPTIONS,
      },
      run: showLedger,
    },
  },
}

async function listAccounts(given: CommandArguments, terminal: Terminal): Promise<void> {
  const limit = parseCount('--limit', given.option('limit') ?? DEFAULT_ACCOUNTS)
  const page = await withStore(terminal, { store: given.option('store') }, ({ accounts }) =>
    accounts.list({ search: given.option('search'), cursor: given.option('cursor'), limit }),
  )
  if (given.flag('json')) {
    const next = page.next ?? null
    terminal.print(JSON.stringify({ object: 'list', data: page.accounts.map(accountJson), next }))
    return
  }
  const rows = page.accounts.map(({ id, balance, held, owed, tier, createdAtMs }) => {
    return [id, ...[balance, held, owed].map(dollarsText), tier, new Date(createdAtMs).toISOString()]
  })
  printRows(terminal, [['account', 'balance', 'held', 'owed', 'tier', 'made'], ...rows])
  printNext(terminal, page.next)
}

async function createAccount(given: CommandArguments, terminal: Terminal): Promise<void> {
  const id = parseGiven(given.option('id'), (text) => parseId('--id', text))
  const settings = newAccountSettings(given, terminal)
  const account = await withStore(terminal, { store: given.option('store'), mayCreate: true }, async ({ accounts }) => {
    if (id !== undefined && (await accounts.get(id)) !== undefined)
      throw new SettingError(`--id: the account ${JSON.stringify(id)} exists already; nothing was changed`)
    return accounts.create({ ...(id === undefined ? {} : { id }), ...settings })
  })
  printAccount(account, terminal, given.flag('json'))
  printUncheckedPlan(settings.plan, terminal, given.flag('json'))
}

async function updateAccount(given: CommandArguments, terminal: Terminal): Promise<void> {
  const change = changedAccountSettings(given, terminal)
  if (Object.values(change).every((value) => value === undefined))
    throw new SettingError(`accounts update: say what to change: --${Object.keys(ACCOUNT_OPTIONS).join(', --')}`)
  const store = given.option('store')
  await printChanged(given.positionals, { store, asJson: given.flag('json') }, terminal, (accounts, id) =>
    accounts.update(id, change),
  )
  printUncheckedPlan(change.plan, terminal, given.flag('json'))
}

async function freezeAccount(given: CommandArguments, terminal: Terminal): Promise<void> {
  const reason = parseLabel('--reason', requiredReason(given.option('reason')))
  const store = given.option('store')
  await printChanged(given.positionals, { store, asJson: given.flag('json') }, terminal, (accounts, id) =>
    accounts.freeze(id, { reason }),
  )
}

async function unfreezeAccount(given: CommandArguments, terminal: Terminal): Promise<void> {
  const store = given.option('store')
  await printChanged(given.positionals, { store, asJson: given.flag('json') }, terminal, (accounts, id) =>
    accounts.unfreeze(id),
  )
}

/** Changes the account that the arguments name, and prints its new state. */
async function printChanged(
  [accountId = '']: readonly string[],
  { store, asJson }: { readonly store: string | undefined; readonly asJson: boolean },
  terminal: Terminal,
  change: (accounts: Accounts, accountId: string) => Promise<Account | undefined>,
): Promise<void> {
  const account = await withStore(terminal, { store }, async (administration) => {
    await existingAccount(administration, accountId)
    return (await change(administration.accounts, accountId)) ?? existingAccount(administration, accountId)
  })
  printAccount(account, terminal, asJson)
}

async function creditAccount(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = '', text = ''] = given.positionals
  const amount = checkDollars('the amount', text)
  const creditId = parseGiven(given.option('id'), (value) => parseId('--id', value))
  const expiresAtMs = parseGiven(given.option('expires'), (value) => parseMoment('--expires', value))
  const { isNew, account } = await withStore(terminal, { store: given.option('store') }, async (administration) => {
    await existingAccount(administration, accountId)
    const options = { description: 'credit by hand', expiresAtMs, ...(creditId === undefined ? {} : { creditId }) }
    const isNew = await administration.accounts.credit(accountId, amount, options)
    return { isNew, account: await existingAccount(administration, accountId) }
  })
  if (given.flag('json')) {
    terminal.print(JSON.stringify({ ...accountJson(account), credited: isNew ? amount : '0' }))
    return
  }
  const balance = `the balance is ${dollarsText(account.balance)}`
  if (isNew) terminal.print(`credited $${amount} to ${accountId}; ${balance}`)
  else terminal.print(`${creditId} was credited before, so nothing was changed; ${balance}`)
}

async function showAccount(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = ''] = given.positionals
  const { account, spending } = await withStore(terminal, { store: given.option('store') }, async (administration) => {
    const account = await existingAccount(administration, accountId)
    return { account, spending: await administration.accounts.spending(accountId) }
  })
  printAccount(account, terminal, given.flag('json'), spending)
}

async function showLedger(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [accountId = ''] = given.positionals
  const limit = parseCount('--limit', given.option('limit') ?? DEFAULT_LEDGER_LINES)
  const entries = await withStore(terminal, { store: given.option('store') }, async (administration) => {
    await existingAccount(administration, accountId)
    return administration.accounts.ledger(accountId, { limit })
  })
  if (given.flag('json')) terminal.print(JSON.stringify({ object: 'list', data: entries.map(entryJson) }))
  else printRows(terminal, [['time', 'kind', 'amount', 'text'], ...entries.map(entryRow)])
}

function printAccount(account: Account, terminal: Terminal, asJson: boolean, spending?: AccountSpending): void {
  if (asJson) {
    terminal.print(JSON.stringify({ ...accountJson(account), ...(spending === undefined ? {} : spentJson(spending)) }))
    return
  }
  printRows(terminal, [
    ['account', account.id],
    ['balance', dollarsText(account.balance)],
    ['held', dollarsText(account.held)],
    ['owed', dollarsText(account.owed)],
    ['tier', account.tier],
    ['cap', account.spendingCap === undefined ? 'none' : capText(account.spendingCap)],
    ...(spending === undefined ? [] : [['spent', spentText(spending)]]),
    ['made', new Date(account.createdAtMs).toISOString()],
    ...(account.name === undefined ? [] : [['name', account.name]]),
    ...(account.plan === undefined ? [] : [['plan', account.plan]]),
    ...(account.billing === undefined ? [] : [['billing', account.billing]]),
    ...(account.creditLimit === undefined ? [] : [['limit', `${dollarsText(account.creditLimit)} of credit`]]),
    ...(account.frozen === undefined ? [] : [['frozen', frozenText(account.frozen)]]),
  ])
}

function spentText({ day, month, left }: Spent): string {
  const spent = `${dollarsText(day)} today, ${dollarsText(month)} this month`
  return left === undefined ? spent : `${spent}; the cap allows ${dollarsText(left)} more`
}

/** Returns charges and open holds of the UTC day and month. */
function spentJson({ day, month, left }: Spent) {
  return {
    spent_day: formatDollars(day),
    spent_month: formatDollars(month),
    cap_left: left === undefined ? null : formatDollars(left),
  }
}

function frozenText({ reason, atMs }: AccountFreeze): string {
  return `since ${new Date(atMs).toISOString()}: ${reason}`
}

/** Returns the members of `GET /v1/account`, and those for the operator only. */
function accountJson(account: Account) {
  return {
    object: 'account',
    id: account.id,
    balance: formatDollars(account.balance),
    held: formatDollars(account.held),
    owed: formatDollars(account.owed),
    currency: 'USD',
    tier: account.tier,
    cap: capJson(account.spendingCap),
    name: account.name ?? null,
    plan: account.plan ?? null,
    billing: account.billing ?? null,
    credit_limit: account.creditLimit === undefined ? null : formatDollars(account.creditLimit),
    frozen:
      account.frozen === undefined
        ? null
        : { reason: account.frozen.reason, since: Math.floor(account.frozen.atMs / 1000) },
    created_at: Math.floor(account.createdAtMs / 1000),
  }
}
