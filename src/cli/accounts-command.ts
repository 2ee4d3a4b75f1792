import { formatDollars } from '../core/money.ts'
import type { AccountSpending, Spent } from '../gateway/account-spending.ts'
import type { Accounts } from '../gateway/accounts.ts'
import type { Account, AccountFreeze } from '../stores/ledger.ts'
import { bookActions, entryJson, entryRow, requiredReason } from './account-books-command.ts'
import { ACCOUNT_OPTIONS, changedAccountSettings, newAccountSettings, printUncheckedPlan } from './account-settings.ts'
import type { CommandArguments, GroupDefinition } from './command.ts'
import { existingAccount, STORE_OPTIONS, withStore } from './open-store.ts'
import {
  checkDollars,
  parseCount,
  parseGiven,
  parseId,
  parseLabel,
  parseMoment,
  SettingError,
} from './setting-values.ts'
import { capJson, capText, dollarsText, printNext, printRows, type Terminal } from './terminal.ts'

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
