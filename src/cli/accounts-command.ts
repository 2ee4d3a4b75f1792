import { formatDollars } from '../core/money.ts'
import type { Account } from '../stores/ledger.ts'
import { bookActions, entryJson, entryRow } from './account-books-command.ts'
import { commandArguments, runAction } from './command-arguments.ts'
import { existingAccount, withStore } from './open-store.ts'
import {
  checkDollars,
  parseCap,
  parseCount,
  parseGiven,
  parseId,
  parseMoment,
  parseTier,
  SettingError,
} from './setting-values.ts'
import { capJson, capText, dollarsText, printNext, printRows, type Terminal } from './terminal.ts'

const DEFAULT_LEDGER_LINES = '20'
const DEFAULT_ACCOUNTS = '100'

/**
 * `signalbox accounts list|create|credit|adjust|refund|show|statement|journal|ledger`.
 * @throws SettingError naming the argument.
 */
export async function accountsCommand(words: readonly string[], terminal: Terminal): Promise<void> {
  const actions = {
    list: listAccounts,
    create: createAccount,
    credit: creditAccount,
    ...bookActions,
    show: showAccount,
    ledger: showLedger,
  }
  return runAction('accounts', actions, words, terminal)
}

async function listAccounts(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['search', 'limit', 'cursor', 'store'],
    flags: ['json'],
    positionals: [],
  })
  const limit = parseCount('--limit', given.option('limit') ?? DEFAULT_ACCOUNTS)
  const page = await withStore(terminal, { store: given.option('store') }, ({ accounts }) =>
    accounts.list({ search: given.option('search'), cursor: given.option('cursor'), limit }),
  )
  if (given.flag('json')) {
    const next = page.nextCursor ?? null
    terminal.print(JSON.stringify({ object: 'list', data: page.accounts.map(accountJson), next_cursor: next }))
    return
  }
  const rows = page.accounts.map(({ id, balance, held, owed, tier, createdAtMs }) => {
    return [id, ...[balance, held, owed].map(dollarsText), tier, new Date(createdAtMs).toISOString()]
  })
  printRows(terminal, [['account', 'balance', 'held', 'owed', 'tier', 'made'], ...rows])
  printNext(terminal, page.nextCursor)
}

async function createAccount(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['id', 'tier', 'cap', 'store'],
    flags: ['json'],
    positionals: [],
  })
  const id = parseGiven(given.option('id'), (text) => parseId('--id', text))
  const tier = parseGiven(given.option('tier'), (text) => parseTier('--tier', text))
  const spendingCap = parseGiven(given.option('cap'), (text) => parseCap('--cap', text))
  const account = await withStore(terminal, { store: given.option('store'), mayCreate: true }, async ({ accounts }) => {
    if (id !== undefined && (await accounts.get(id)) !== undefined)
      throw new SettingError(`--id: the account ${JSON.stringify(id)} exists already; nothing was changed`)
    return accounts.create({ ...(id === undefined ? {} : { id }), tier, spendingCap })
  })
  printAccount(account, terminal, given.flag('json'))
}

async function creditAccount(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['id', 'expires', 'store'],
    flags: ['json'],
    positionals: ['the account’s id', 'the amount'],
  })
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

async function showAccount(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, { options: ['store'], flags: ['json'], positionals: ['the account’s id'] })
  const [accountId = ''] = given.positionals
  const account = await withStore(terminal, { store: given.option('store') }, (administration) =>
    existingAccount(administration, accountId),
  )
  printAccount(account, terminal, given.flag('json'))
}

async function showLedger(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['limit', 'store'],
    flags: ['json'],
    positionals: ['the account’s id'],
  })
  const [accountId = ''] = given.positionals
  const limit = parseCount('--limit', given.option('limit') ?? DEFAULT_LEDGER_LINES)
  const entries = await withStore(terminal, { store: given.option('store') }, async (administration) => {
    await existingAccount(administration, accountId)
    return administration.accounts.ledger(accountId, { limit })
  })
  if (given.flag('json')) terminal.print(JSON.stringify({ object: 'list', data: entries.map(entryJson) }))
  else printRows(terminal, entries.map(entryRow))
}

function printAccount(account: Account, terminal: Terminal, asJson: boolean): void {
  if (asJson) {
    terminal.print(JSON.stringify(accountJson(account)))
    return
  }
  printRows(terminal, [
    ['account', account.id],
    ['balance', dollarsText(account.balance)],
    ['held', dollarsText(account.held)],
    ['owed', dollarsText(account.owed)],
    ['tier', account.tier],
    ['cap', account.spendingCap === undefined ? 'none' : capText(account.spendingCap)],
    ['made', new Date(account.createdAtMs).toISOString()],
  ])
}

/** The members of `GET /v1/account`, and those for the operator only. */
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
    created_at: Math.floor(account.createdAtMs / 1000),
  }
}
