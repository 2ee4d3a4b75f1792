import type {
  AccountObject,
  AuditEntryObject,
  EntryObject,
  KeyObject,
  NewKeyObject,
  ResolutionObject,
  SpendingObject,
  StatementObject,
} from '../admin/objects/accounts.ts'
import type { DeliveryObject } from '../admin/objects/task.ts'
import type { RequestDetailObject, RequestObject, UsageRowObject } from '../admin/objects/usage.ts'
import type { MoneyChangeObject } from '../admin/routes/account-routes.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { CatalogModel } from '../catalog/model.ts'
import { isScopeRule } from '../catalog/model-scope.ts'
import { systemClock } from '../core/clock.ts'
import { hintAt } from '../core/known-members.ts'
import { formatDollars } from '../core/money.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { storedScopes } from '../gateway/check-principal.ts'
import type { KeyScopes } from '../stores/principal.ts'
import { DAY_MS, USAGE_DIMENSIONS, type UsageDimension } from '../usage/usage-store.ts'
import {
  type AdminAction,
  adminCommand,
  dollarsOf,
  type List,
  type MemberOption,
  type MemberPosition,
  type MemberValues,
  timeOf,
} from './admin-command.ts'
import type { GroupDefinition } from './command.ts'
import { configuredCatalog, configuredPlans } from './serve-settings.ts'
import {
  checkDollars,
  checkMoment,
  checkSignedDollars,
  parseCap,
  parseCount,
  parseDelay,
  parseDuration,
  parseId,
  parseLabel,
  parseMonth,
  parseNames,
  SettingError,
} from './setting-values.ts'
import { printRows, type Terminal } from './terminal.ts'

const ACCOUNT: MemberPosition = { name: 'ACCOUNT', text: 'the account’s id' }
const AMOUNT: MemberPosition = { name: 'AMOUNT', text: 'the amount', read: checkDollars }
const HOLD: MemberPosition = { name: 'HOLD', text: 'the hold’s id' }
const KEY: MemberPosition = { name: 'KEY_ID', text: 'the key’s id' }

const TIME = { value: 'TIME', read: checkMoment }
const NAMES = { value: 'NAME,NAME', read: parseNames }
const COUNT = { value: 'N', read: parseCount }
const TEXT = { value: 'TEXT' }

type Actions = Readonly<Record<string, AdminAction>>

/** Members of routes as options. A member without an entry has no option. */
const MEMBERS: Readonly<Record<string, MemberOption>> = {
  account: { value: 'ID', text: 'only entries of this account' },
  after: { flag: 'cursor', value: 'CURSOR', text: 'continue after the previous page' },
  amount: { value: 'DOLLARS', text: 'amount to refund (default: the rest of the charge)', read: checkDollars },
  billing: { text: 'billing mode (default: that of the gateway)' },
  code: { ...TEXT, text: 'only calls with this error code' },
  concurrency: { ...COUNT, text: 'requests at the same time' },
  credit_limit: { value: 'DOLLARS', text: 'maximum that a metered account may owe', read: checkDollars },
  description: { ...TEXT, text: 'description in the journal', read: parseLabel },
  end_user: { value: 'ID', text: 'only of this end user' },
  ended_at: { ...TIME, text: 'end of the call; required if it lasted longer than 15 minutes' },
  ending: { text: 'only calls that ended like this' },
  endpoint: { value: 'ID', text: 'only of this endpoint' },
  endpoints: { ...NAMES, text: 'only these endpoints (default: all)' },
  expires_at: { flag: 'expires', ...TIME, text: 'when the rest of the credit expires (default: never)' },
  from: { ...TIME, text: 'first UTC day or time' },
  group_by: {
    flag: 'by',
    value: 'day,model',
    text: `hour, day or month, and ${USAGE_DIMENSIONS.map(flagOf).join(', ')} (default: day,model; with --top model)`,
    read: (name, text) => parseNames(name, text).join(',').replaceAll('-', '_'),
  },
  id: { value: 'ID', text: 'a repeated id has no effect', read: parseId },
  key: { value: 'ID', text: 'only of this key' },
  label: { ...TEXT, text: 'display name', read: parseLabel },
  limit: { value: 'N', text: 'maximum number of rows', read: checkCount },
  model: { value: 'ID', text: 'only of this model' },
  models: { ...NAMES, text: 'only these models: ids, patterns, groups (default: all)' },
  month: { value: '2026-11', text: 'lines of a month', read: parseMonth },
  name: { ...TEXT, text: 'display name', read: parseLabel },
  names_end_users: { text: 'requests with the key may name their end user', whenSet: true },
  order: { flag: 'oldest-first', text: 'start with the oldest line', whenSet: 'oldest' },
  overlap_ms: { flag: 'overlap', value: '1h', text: 'validity of the old one (default: 1d)', read: parseDelay },
  percentiles: { text: 'also show percentiles of durations', whenSet: 'true' },
  plan: { value: 'NAME', text: 'name of a plan of the gateway', read: parseLabel },
  reason: { ...TEXT, text: 'why' },
  requests_per_minute: { flag: 'rpm', ...COUNT, text: 'requests per minute (default: that of the gateway)' },
  search: { ...TEXT, text: 'only accounts with this text in their id' },
  spending_cap: { flag: 'cap', value: '50/month|5/day', text: 'maximum spending in dollars', read: readCap },
  subject: { value: 'ID', text: 'only changes of this account, key or hold' },
  tag: { ...TEXT, text: 'only of this tag' },
  tags: { ...NAMES, text: 'tags of its usage' },
  tier: { text: 'models and limits of the account (default: paid)' },
  to: { ...TIME, text: 'UTC day or time after the last one (default: now)' },
  tokens_per_minute: { flag: 'tpm', ...COUNT, text: 'tokens per minute' },
  top: { value: 'N', text: 'only the rows with the highest cost', read: checkCount },
  until: { ...TIME, text: 'lines before a UTC day or time' },
  user: { flag: 'end-user', value: 'ID', text: 'only of this end user' },
  vendor: { value: 'ID', text: 'only of this vendor' },
}

/** Queries carry numbers as text. */
function checkCount(name: string, text: string): string {
  return String(parseCount(name, text))
}

function readCap(name: string, text: string) {
  const { amount, period } = parseCap(name, text)
  return { amount: formatDollars(amount), period }
}

function flagOf(dimension: UsageDimension): string {
  return dimension === 'endUser' ? 'end-user' : dimension
}

function day(timeMs: number): string {
  return timeOf(timeMs).slice(0, 10)
}

function capText(cap: AccountObject['spending_cap']): string {
  return cap === null ? 'none' : `${dollarsOf(cap.amount)} a ${cap.period}`
}

/** Prints names with their values, and omits those without a value. */
function printFacts(terminal: Terminal, facts: Readonly<Record<string, string | null>>): void {
  printRows(
    terminal,
    Object.entries(facts).filter((fact): fact is [string, string] => fact[1] !== null),
  )
}

function printAccount(account: AccountObject & { readonly spending?: SpendingObject }, terminal: Terminal): void {
  const { spending, credit_limit: limit, frozen } = account
  printFacts(terminal, {
    account: account.id,
    balance: dollarsOf(account.balance),
    held: dollarsOf(account.held),
    owed: dollarsOf(account.owed),
    tier: account.tier,
    cap: capText(account.spending_cap),
    spent: spending === undefined ? null : spentText(spending),
    made: timeOf(account.created_at_ms),
    name: account.name,
    plan: account.plan,
    billing: account.billing,
    limit: limit === null ? null : `${dollarsOf(limit)} of credit`,
    frozen: frozen === null ? null : `since ${timeOf(frozen.at_ms)}: ${frozen.reason}`,
  })
}

function spentText({ spent_day, spent_month, left }: SpendingObject): string {
  const spent = `${dollarsOf(spent_day)} today, ${dollarsOf(spent_month)} this month`
  return left === null ? spent : `${spent}; the cap allows ${dollarsOf(left)} more`
}

/** @throws SettingError for a plan that is not configured. Without any plans, a gateway in code may have it. */
function checkPlan(body: MemberValues, terminal: Terminal): MemberValues {
  const { plan } = body
  const known = plansOf(terminal)
  if (typeof plan !== 'string' || known.length === 0 || known.includes(plan)) return body
  const fault = `there is no plan ${JSON.stringify(plan)} in the configuration`
  throw new SettingError(`--plan: ${fault}; ${hintAt(plan, known)}`)
}

function printPlannedAccount(account: AccountObject, terminal: Terminal, { plan }: MemberValues): void {
  printAccount(account, terminal)
  if (plan == null || plansOf(terminal).length > 0) return
  const unchecked = 'The name of the plan was not checked: no plans are configured here.'
  terminal.print(`${unchecked} Calls get 503 if the gateway does not have it.`)
}

function plansOf({ environment, documents }: Terminal): string[] {
  return Object.keys(configuredPlans(environment['SIGNALBOX_PLANS'], documents))
}

/** Returns a printer of changes of money. */
function changePrinter(didOf: (change: MoneyChangeObject, amount: string, values: MemberValues) => string) {
  return (change: MoneyChangeObject, terminal: Terminal, values: MemberValues): void => {
    const did = change.amount === null ? '' : didOf(change, dollarsOf(change.amount), values)
    const done = change.is_new ? did : `${values['id']} was made before, so nothing was changed`
    terminal.print(`${done}; the balance is ${dollarsOf(change.balance)}`)
  }
}

const ENTRY_COLUMNS = { time: 'created_at_ms', kind: 'kind', amount: 'amount' }

/** The text contains the size of a debt, because a debt does not change the balance. */
function entryText({ kind, owed, description }: EntryObject): string {
  return kind === 'owed' ? `${dollarsOf(owed)} owed: ${description}` : description
}

const accounts: Actions = {
  list: {
    route: 'list_accounts',
    columns: { account: 'id', balance: 'balance', held: 'held', owed: 'owed', tier: 'tier', made: 'created_at_ms' },
  },
  create: {
    route: 'create_account',
    summary: 'create an account',
    members: { id: { value: 'ID', text: 'id of the account (default: a random one)', read: parseId } },
    prepare: checkPlan,
    print: printPlannedAccount,
  },
  update: {
    route: 'update_account',
    summary: 'change an account; none removes a value',
    positionals: { account: ACCOUNT },
    prepare: checkPlan,
    print: printPlannedAccount,
  },
  freeze: { route: 'freeze_account', positionals: { account: ACCOUNT }, print: printAccount },
  unfreeze: { route: 'unfreeze_account', positionals: { account: ACCOUNT }, print: printAccount },
  credit: {
    route: 'credit_account',
    positionals: { account: ACCOUNT, amount: AMOUNT },
    defaults: () => ({ description: 'credit by hand' }),
    print: changePrinter(({ account }, amount) => `credited ${amount} to ${account}`),
  },
  adjust: {
    route: 'adjust_account',
    positionals: { account: ACCOUNT, amount: { ...AMOUNT, read: checkSignedDollars } },
    print: changePrinter(({ account }, amount) => `adjusted ${account} by ${amount}`),
  },
  refund: {
    route: 'refund_charge',
    positionals: { charge: { name: 'LINE', text: 'the id of the charge’s line' } },
    print: changePrinter(({ account }, amount, { charge }) => `refunded ${amount} of ${charge} to ${account}`),
  },
  statement: {
    route: 'get_statement',
    positionals: { account: ACCOUNT },
    members: { month: { value: '2026-11', text: 'month (default: the current one)', read: parseMonth } },
    defaults: () => ({ month: new Date().toISOString().slice(0, 7) }),
    print(statement: StatementObject, terminal) {
      const { opening_balance, opening_owed, closing_balance, closing_owed } = statement
      printRows(terminal, [
        [`${statement.account} ${statement.month}`, 'lines', 'balance', 'owed'],
        ['opening', '', dollarsOf(opening_balance), dollarsOf(opening_owed)],
        ...statement.sums.map((sum) => [sum.kind, String(sum.lines), dollarsOf(sum.amount), dollarsOf(sum.owed)]),
        ['closing', '', dollarsOf(closing_balance), dollarsOf(closing_owed)],
      ])
    },
  },
  journal: {
    route: 'list_journal',
    positionals: { account: ACCOUNT },
    members: { from: { ...TIME, text: 'lines since a UTC day or time' } },
    csv: 'export_journal',
    columns: { line: 'id', ...ENTRY_COLUMNS, balance: 'balance_after', text: entryText },
  },
  show: {
    route: 'get_account',
    positionals: { account: ACCOUNT },
    also: { route: 'get_spending', member: 'spending' },
    print: printAccount,
  },
  ledger: {
    route: 'list_journal',
    summary: 'list the newest credits and charges',
    positionals: { account: ACCOUNT },
    defaults: () => ({ limit: '20' }),
    columns: { ...ENTRY_COLUMNS, text: entryText },
  },
}

function printEnd({ hold, charged, shortfall }: ResolutionObject, terminal: Terminal): void {
  const owed = shortfall === '0' ? '' : `, and ${dollarsOf(shortfall)} is owed`
  terminal.print(`${hold} has ended: ${dollarsOf(charged)} was charged${owed}`)
}

/** @throws SettingError if the hold had ended before: nothing was changed then. */
function checkEnd({ hold, resolved, ended_by }: ResolutionObject): void {
  if (!resolved) throw new SettingError(`the hold ${JSON.stringify(hold)} was ${ended_by} before; nothing was changed`)
}

const holds: Actions = {
  list: {
    route: 'list_holds',
    columns: {
      ...{ hold: 'id', account: 'account', key: 'key', amount: 'amount' },
      ...{ made: 'created_at_ms', expires: 'expires_at_ms' },
    },
  },
  settle: { route: 'settle_hold', positionals: { hold: HOLD, amount: AMOUNT }, check: checkEnd, print: printEnd },
  void: { route: 'void_hold', positionals: { hold: HOLD }, check: checkEnd, print: printEnd },
}

/** @throws SettingError for an unknown model, and GatewayError `invalid_request` for an unknown endpoint. */
function checkScopes(body: MemberValues, { environment, documents }: Terminal): MemberValues {
  const scopes = body as KeyScopes
  let catalog: Catalog | undefined
  const find = (name: string): CatalogModel | undefined => {
    catalog ??= configuredCatalog(environment, documents)
    return catalog.find(name)
  }
  const unknown = scopes.models?.find((name) => !isScopeRule(name) && find(name) === undefined)
  if (unknown !== undefined) {
    const message = `--models: there is no model ${JSON.stringify(unknown)}`
    throw new SettingError(`${message}; see signalbox models, or set SIGNALBOX_MODELS as for serve`)
  }
  return { ...body, ...storedScopes(scopes, { endpoints: { all: ENDPOINTS }, catalog: { find } }) }
}

function printNewKey(made: NewKeyObject, terminal: Terminal): void {
  const { limits } = made
  const limited = Object.entries({
    rpm: limits?.requests_per_minute,
    tpm: limits?.tokens_per_minute,
    concurrency: limits?.concurrency,
  }).filter(([, limit]) => limit != null)
  printFacts(terminal, {
    key: made.key,
    id: made.id,
    account: made.account,
    label: made.label || null,
    endpoints: made.endpoints?.join(', ') ?? 'all',
    models: made.models?.join(', ') ?? 'all',
    limits: limited.map(([name, limit]) => `${name}=${limit}`).join(',') || 'those of the gateway',
    cap: capText(made.spending_cap),
    tags: made.tags.join(', ') || null,
    'end users': made.names_end_users ? 'named by its requests' : null,
    expires: made.expires_at_ms === null ? 'never' : timeOf(made.expires_at_ms),
  })
  terminal.print('Keep the key now: only its SHA-256 is stored, and it cannot be shown again.')
}

/** Describes whether a key may be used, and until when. */
function keyState({ revoked_at_ms: revokedAtMs, expires_at_ms: expiresAtMs }: KeyObject): string {
  if (revokedAtMs !== null) return `revoked ${day(revokedAtMs)}`
  if (expiresAtMs === null) return 'valid'
  return expiresAtMs <= systemClock.now() ? `expired ${day(expiresAtMs)}` : `valid until ${day(expiresAtMs)}`
}

const keys: Actions = {
  create: {
    route: 'create_key',
    members: {
      account: { value: 'ID', text: 'the account that pays' },
      expires_at: {
        flag: 'expires',
        value: '30d',
        text: 'time until expiry (default: never)',
        read: (name, text) => systemClock.now() + parseDuration(name, text),
      },
    },
    prepare: checkScopes,
    print: printNewKey,
  },
  list: {
    route: 'list_keys',
    columns: { key: 'id', account: 'account', state: keyState, label: 'label' },
  },
  revoke: {
    route: 'revoke_key',
    positionals: { key: KEY },
    hint: 'signalbox keys list',
    print: ({ id }: KeyObject, terminal) => terminal.print(`revoked ${id}; every gateway refuses it within 5 seconds`),
  },
  rotate: {
    route: 'rotate_key',
    positionals: { key: KEY },
    print(made: NewKeyObject, terminal, { overlap_ms: overlapMs = DAY_MS }) {
      printNewKey(made, terminal)
      terminal.print(`${made.replaces} ends at ${timeOf(systemClock.now() + Number(overlapMs))} at the latest`)
    },
  },
}

/** Secret of an account's webhook messages. */
interface WebhookSecret {
  readonly account: string
  readonly secret: string
  readonly older_until_ms: number
}

function lastAttempt({ attempts }: DeliveryObject): string {
  const last = attempts.at(-1)
  return last === undefined ? '' : (last.error ?? `status ${last.status}`)
}

const webhooks: Actions = {
  list: {
    route: 'list_deliveries',
    positionals: { account: ACCOUNT, task: { name: 'TASK', text: 'the task’s id' } },
    columns: {
      ...{ message: 'id', made: 'created_at_ms', state: 'state' },
      attempts: ({ attempts }: DeliveryObject) =>
        `${attempts.length} ${attempts.length === 1 ? 'attempt' : 'attempts'}`,
      last: lastAttempt,
      next: ({ next_attempt_at_ms: nextMs }: DeliveryObject) => (nextMs === null ? '' : `next ${timeOf(nextMs)}`),
    },
  },
  resend: {
    route: 'resend_delivery',
    positionals: { account: ACCOUNT, delivery: { name: 'MESSAGE', text: 'the message’s id' } },
    hint: 'signalbox webhooks list',
    print({ delivery }: { readonly delivery: string }, terminal) {
      terminal.print(`${delivery} is due now; a running gateway sends it within 5 seconds`)
    },
  },
  secret: {
    route: 'read_webhook_secret',
    positionals: { account: ACCOUNT },
    print: ({ secret }: WebhookSecret, terminal) => terminal.print(secret),
  },
  'rotate-secret': {
    route: 'rotate_webhook_secret',
    positionals: { account: ACCOUNT },
    print({ account, secret, older_until_ms }: WebhookSecret, terminal) {
      printFacts(terminal, { secret, account, older: `still sign until ${timeOf(older_until_ms)}` })
      terminal.print('Give the secret to the receiver; signalbox webhooks secret shows it again.')
    },
  },
}

const audit: Actions = {
  list: {
    route: 'list_changes',
    columns: {
      ...{ time: 'created_at_ms', operator: 'operator' },
      address: ({ address }: AuditEntryObject) => address ?? 'command line',
      ...{ action: 'action', subject: 'subject' },
      change: ({ input, before, after }: AuditEntryObject) =>
        JSON.stringify(before === null && after === null ? input : { before, after }),
    },
  },
}

/** Number of days that are shown by default. */
const DEFAULT_DAYS = 30

/** Length of the prefix of an ISO time that identifies a step. */
const STEP_LENGTHS: Readonly<Record<string, number>> = { hour: 16, day: 10, month: 7 }

function groupText(row: UsageRowObject, group: string): string {
  const length = STEP_LENGTHS[group]
  if (length !== undefined) return timeOf(row.at_ms ?? 0).slice(0, length)
  return String((row as MemberValues)[group] ?? '') || '-'
}

function printUsage({ data }: List<UsageRowObject>, terminal: Terminal, { group_by, percentiles }: MemberValues): void {
  const groups = String(group_by).split(',')
  const latency = percentiles === undefined ? [] : ['p50 ms', 'p95 ms', 'first byte p50 ms']
  const names = groups.map((group) => group.replaceAll('_', '-'))
  printRows(terminal, [
    [...names, 'requests', 'failed', 'input tokens', 'output tokens', 'due', 'charged', ...latency],
    ...data.map((row) => {
      const { duration, first_byte } = row.percentiles ?? {}
      const ms = [duration?.p50_ms, duration?.p95_ms, first_byte?.p50_ms].slice(0, latency.length)
      return [
        ...groups.map((group) => groupText(row, group)),
        ...[row.requests, row.failed, row.usage['inputTokens'] ?? 0, row.usage['outputTokens'] ?? 0].map(String),
        ...[row.due, row.charged].map(dollarsOf),
        ...ms.map((value) => String(value ?? '-')),
      ]
    }),
  ])
}

function printRequest(
  { object: _, attempts, journal: __, usage, tags, ...facts }: RequestDetailObject,
  terminal: Terminal,
): void {
  const shown = { ...facts, ended_at_ms: timeOf(facts.ended_at_ms), tags: tags.join(', '), ...usage }
  printRows(
    terminal,
    Object.entries(shown).map(([name, value]) => [name.replace(/_at_ms$/, '_at'), String(value ?? '') || '-']),
  )
  if (attempts.length === 0) return
  const rows = attempts.map(({ vendor, credential, model, outcome, status, reason, start_ms, end_ms }) => [
    ...[vendor, credential ?? '-', model, outcome, String(status ?? '-'), reason ?? '-'],
    ...[start_ms, end_ms - start_ms].map((ms) => String(Math.round(ms))),
  ])
  printRows(terminal, [['try of', 'key', 'model', 'outcome', 'status', 'reason', 'from ms', 'for ms'], ...rows])
}

function yesterday() {
  return { from: timeOf(systemClock.now() - DAY_MS) }
}

const usage: Actions = {
  show: {
    route: 'query_usage',
    summary: 'show usage and charges by UTC day and model (default action)',
    isDefault: true,
    defaults: ({ top }) => ({
      group_by: top === undefined ? 'day,model' : 'model',
      from: timeOf(systemClock.now() - (DEFAULT_DAYS - 1) * DAY_MS),
    }),
    csv: 'export_usage',
    print: printUsage,
  },
  records: {
    route: 'list_requests',
    defaults: () => ({ limit: '20' }),
    columns: {
      ...{ ended: 'ended_at_ms', request: 'id', account: 'account', model: 'model', vendor: 'vendor' },
      status: ({ status, code }: RequestObject) => (code === null ? String(status) : `${status} ${code}`),
      ms: ({ duration_ms }: RequestObject) => String(Math.round(duration_ms)),
      charged: 'charged',
    },
  },
  request: {
    route: 'get_request',
    positionals: { request: { name: 'REQUEST', text: 'the id of the request, x-request-id of its answer' } },
    print: printRequest,
  },
  verify: {
    route: 'verify_usage',
    summary: 'compare records, sums and journal; exit with status 1 if they differ',
    defaults: yesterday,
    check: ({ data }: List, terminal) => (data.length > 0 ? terminal.fail?.() : undefined),
    columns: { account: 'account', records: 'records', days: 'days', journal: 'journal' },
    empty: 'records, sums and journal agree',
  },
  rebuild: {
    route: 'rebuild_usage',
    defaults: yesterday,
    print: (_, terminal) => terminal.print('the sums were made again from the records'),
  },
}

/** Commands for the administration of a store, by name. Their actions throw a SettingError naming the argument. */
export const ADMIN_COMMANDS: Readonly<Record<string, GroupDefinition>> = {
  accounts: adminCommand('accounts', 'manage accounts, their money and their books', accounts, MEMBERS),
  holds: adminCommand('holds', 'manage money held for calls in progress', holds, MEMBERS),
  keys: adminCommand('keys', 'manage keys of callers', keys, MEMBERS),
  usage: adminCommand('usage', 'show usage and charges', usage, MEMBERS),
  webhooks: adminCommand('webhooks', 'manage messages to callers’ webhooks, and their secrets', webhooks, MEMBERS),
  audit: adminCommand('audit', 'show changes by operators', audit, MEMBERS),
}
