import { formatDollars } from '../core/money.ts'
import type { Account, LedgerEntry } from '../stores/ledger.ts'
import { alignedRows } from './aligned-rows.ts'
import { commandArguments } from './command-arguments.ts'
import { capJson, capText, dollarsText } from './dollars-text.ts'
import { SettingError } from './setting-error.ts'
import { checkDollars, parseCap, parseCount, parseId, parseTier } from './setting-values.ts'
import type { Terminal } from './terminal.ts'
import { type Administration, withStore } from './with-store.ts'

const DEFAULT_LEDGER_LINES = '20'

/**
 * `signalbox accounts create|credit|show|ledger`.
 * @throws SettingError naming the argument.
 */
export async function accountsCommand(words: readonly string[], terminal: Terminal): Promise<void> {
  const [action, ...rest] = words
  switch (action) {
    case 'create':
      return createAccount(rest, terminal)
    case 'credit':
      return creditAccount(rest, terminal)
    case 'show':
      return showAccount(rest, terminal)
    case 'ledger':
      return showLedger(rest, terminal)
    default:
      throw new SettingError('accounts: say create, credit, show or ledger; see signalbox --help')
  }
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
    options: ['id', 'store'],
    flags: ['json'],
    positionals: ['the account’s id', 'the amount'],
  })
  const [accountId = '', text = ''] = given.positionals
  const amount = checkDollars('the amount', text)
  const creditId = parseGiven(given.option('id'), (value) => parseId('--id', value))
  const { isNew, account } = await withStore(terminal, { store: given.option('store') }, async (administration) => {
    await existing(administration, accountId)
    const options = { description: 'credit by hand', ...(creditId === undefined ? {} : { creditId }) }
    const isNew = await administration.accounts.credit(accountId, amount, options)
    return { isNew, account: await existing(administration, accountId) }
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
    existing(administration, accountId),
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
    await existing(administration, accountId)
    return administration.accounts.ledger(accountId, { limit })
  })
  if (given.flag('json')) terminal.print(JSON.stringify({ object: 'list', data: entries.map(entryJson) }))
  else for (const line of alignedRows(entries.map(entryRow))) terminal.print(line)
}

async function existing({ accounts }: Administration, accountId: string): Promise<Account> {
  const account = await accounts.get(accountId)
  if (account === undefined) throw new SettingError(`there is no account ${JSON.stringify(accountId)}`)
  return account
}

function parseGiven<Value>(text: string | undefined, parse: (text: string) => Value): Value | undefined {
  return text === undefined ? undefined : parse(text)
}

function printAccount(account: Account, { print }: Terminal, asJson: boolean): void {
  if (asJson) {
    print(JSON.stringify(accountJson(account)))
    return
  }
  const rows = [
    ['account', account.id],
    ['balance', dollarsText(account.balance)],
    ['held', dollarsText(account.held)],
    ['tier', account.tier],
    ['cap', account.spendingCap === undefined ? 'none' : capText(account.spendingCap)],
    ['made', new Date(account.createdAtMs).toISOString()],
  ]
  for (const line of alignedRows(rows)) print(line)
}

/** The members of `GET /v1/account`, and what only the operator sees. */
function accountJson(account: Account) {
  return {
    object: 'account',
    id: account.id,
    balance: formatDollars(account.balance),
    held: formatDollars(account.held),
    currency: 'USD',
    tier: account.tier,
    cap: capJson(account.spendingCap),
    created_at: Math.floor(account.createdAtMs / 1000),
  }
}

function entryRow(entry: LedgerEntry): string[] {
  return [new Date(entry.createdAtMs).toISOString(), entry.kind, dollarsText(entry.amount), entry.description]
}

function entryJson(entry: LedgerEntry) {
  return {
    object: 'ledger.entry',
    id: entry.id,
    kind: entry.kind,
    amount: formatDollars(entry.amount),
    hold_id: entry.holdId ?? null,
    description: entry.description,
    created_at: Math.floor(entry.createdAtMs / 1000),
  }
}
