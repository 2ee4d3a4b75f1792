import { auditEntryObject } from '../admin/objects/accounts.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { CatalogModel } from '../catalog/model.ts'
import { isScopeRule } from '../catalog/model-scope.ts'
import { systemClock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import { storedScopes } from '../gateway/check-principal.ts'
import type { NewKey } from '../gateway/keys.ts'
import type { KeyRecord } from '../stores/api-keys.ts'
import type { KeyScopes } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import type { CommandArguments, GroupDefinition } from './command.ts'
import { STORE_OPTIONS, withStore } from './open-store.ts'
import { configuredCatalog } from './serve-settings.ts'
import {
  parseCap,
  parseCount,
  parseDelay,
  parseDuration,
  parseLabel,
  parseNames,
  SettingError,
} from './setting-values.ts'
import { capJson, capText, printNext, printRows, type Terminal } from './terminal.ts'

const CREATE_OPTIONS = {
  account: { value: 'ID', text: 'the account that pays; required' },
  label: { value: 'TEXT', text: 'display name' },
  endpoints: { value: 'chat,embeddings', text: 'only these endpoints (default: all)' },
  models: { value: 'ID,ID', text: 'only these models: ids, patterns, groups (default: all)' },
  expires: { value: '30d', text: 'time until expiry (default: never)' },
  rpm: { value: 'N', text: 'requests per minute (default: that of the gateway)' },
  tpm: { value: 'N', text: 'tokens per minute' },
  concurrency: { value: 'N', text: 'requests at the same time' },
  cap: { value: '50/month|5/day', text: 'maximum spending in dollars per month or day' },
  tags: { value: 'team:a,beta', text: 'tags of its usage' },
  'names-end-users': { text: 'requests with the key may name their end user' },
} as const

const KEY = { name: 'KEY_ID', text: 'the key’s id' }

/** Commands `signalbox keys …`. The actions throw a SettingError naming the argument. */
export const keysCommand: GroupDefinition = {
  summary: 'manage keys of callers',
  actions: {
    create: {
      summary: 'create a key, which is shown only once',
      options: { ...CREATE_OPTIONS, ...STORE_OPTIONS },
      run: createKey,
    },
    list: {
      summary: 'list keys by id, without the keys themselves',
      options: { account: { value: 'ID', text: 'only entries of this account' }, ...STORE_OPTIONS },
      run: listKeys,
    },
    revoke: {
      summary: 'revoke a key; gateways reject it within 5 seconds',
      positionals: [KEY],
      options: STORE_OPTIONS,
      run: revokeKey,
    },
    rotate: {
      summary: 'replace a key; the old one expires after the overlap',
      positionals: [KEY],
      options: { overlap: { value: 'TIME', text: 'how long the old key stays valid (default: 1d)' }, ...STORE_OPTIONS },
      run: rotateKey,
    },
  },
}

async function createKey(given: CommandArguments, terminal: Terminal): Promise<void> {
  const wanted = newKey(given, terminal)
  const made = await withStore(terminal, { store: given.option('store') }, ({ keys }) => keys.create(wanted))
  printNewKey(made, terminal, given.flag('json'))
}

async function listKeys(given: CommandArguments, terminal: Terminal): Promise<void> {
  const account = given.option('account')
  const records = await withStore(terminal, { store: given.option('store') }, ({ keys }) => keys.list(account))
  if (given.flag('json')) {
    terminal.print(JSON.stringify({ object: 'list', data: records.map(keyJson) }))
    return
  }
  const nowMs = systemClock.now()
  const rows = records.map((record) => [record.id, record.accountId, keyState(record, nowMs), record.label])
  printRows(terminal, [['key', 'account', 'state', 'label'], ...rows])
}

async function revokeKey(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [keyId = ''] = given.positionals
  const isKnown = await withStore(terminal, { store: given.option('store') }, ({ keys }) => keys.revoke(keyId))
  if (!isKnown) throw new SettingError(`there is no key ${JSON.stringify(keyId)}; see signalbox keys list`)
  if (given.flag('json')) terminal.print(JSON.stringify({ object: 'key', id: keyId, revoked: true }))
  else terminal.print(`revoked ${keyId}; every gateway refuses it within 5 seconds`)
}

async function rotateKey(given: CommandArguments, terminal: Terminal): Promise<void> {
  const [keyId = ''] = given.positionals
  const overlap = given.option('overlap')
  const options = overlap === undefined ? {} : { overlapMs: parseDelay('--overlap', overlap) }
  const made = await withStore(terminal, { store: given.option('store') }, ({ keys }) => keys.rotate(keyId, options))
  printNewKey(made, terminal, given.flag('json'))
  if (!given.flag('json')) terminal.print(`${keyId} ends in ${overlap ?? '1d'} at the latest`)
}

function newKey(given: CommandArguments, terminal: Terminal): NewKey {
  const read = <Value>(
    name: keyof typeof CREATE_OPTIONS,
    parse: (option: string, text: string) => Value,
  ): Value | undefined => {
    const text = given.option(name)
    return text === undefined ? undefined : parse(`--${name}`, text)
  }
  const accountId = given.option('account')
  if (accountId === undefined || accountId === '') throw new SettingError('--account: say which account pays')
  const label = read('label', parseLabel)
  const scopes = checkedScopes(read('endpoints', parseNames), read('models', parseNames), terminal)
  const limits: RateLimits = {
    requestsPerMinute: read('rpm', parseCount),
    tokensPerMinute: read('tpm', parseCount),
    concurrency: read('concurrency', parseCount),
  }
  const hasLimits = Object.values(limits).some((limit) => limit !== undefined)
  const lifeMs = read('expires', parseDuration)
  const spendingCap = read('cap', parseCap)
  const tags = read('tags', parseNames)
  return {
    accountId,
    scopes,
    ...(label === undefined ? {} : { label }),
    ...(hasLimits ? { limits } : {}),
    ...(lifeMs === undefined ? {} : { expiresAtMs: systemClock.now() + lifeMs }),
    ...(spendingCap === undefined ? {} : { spendingCap }),
    ...(tags === undefined ? {} : { tags }),
    ...(given.flag('names-end-users') ? { namesEndUsers: true } : {}),
  }
}

/** @throws SettingError naming the option. */
function checkedScopes(
  endpoints: readonly string[] | undefined,
  models: readonly string[] | undefined,
  { environment, documents }: Terminal,
): KeyScopes {
  const given = {
    ...(endpoints === undefined ? {} : { endpoints }),
    ...(models === undefined ? {} : { models }),
  }
  let catalog: Catalog | undefined
  const find = (name: string): CatalogModel | undefined => {
    catalog ??= configuredCatalog(environment, documents)
    return catalog.find(name)
  }
  const unknown = models?.find((name) => !isScopeRule(name) && find(name) === undefined)
  if (unknown !== undefined) {
    const message = `--models: there is no model ${JSON.stringify(unknown)}`
    throw new SettingError(`${message}; see signalbox models, or set SIGNALBOX_MODELS as for serve`)
  }
  try {
    return storedScopes(given, { endpoints: { all: ENDPOINTS }, catalog: { find } })
  } catch (error) {
    if (!GatewayError.isInstance(error)) throw error
    throw new SettingError(`--${error.param}: ${error.message}`)
  }
}

function printNewKey(
  { key, record }: { readonly key: string; readonly record: KeyRecord },
  terminal: Terminal,
  asJson: boolean,
): void {
  if (asJson) {
    terminal.print(JSON.stringify({ ...keyJson(record), key }))
    return
  }
  printRows(terminal, [['key', key], ...keyRows(record)])
  terminal.print('Keep the key now: only its SHA-256 is stored, and it cannot be shown again.')
}

/** Returns a key as JSON, without the secret. */
function keyJson(record: KeyRecord) {
  const { limits } = record
  return {
    object: 'key',
    id: record.id,
    account: record.accountId,
    label: record.label,
    endpoints: record.scopes.endpoints ?? null,
    models: record.scopes.models ?? null,
    limits: {
      rpm: limits?.requestsPerMinute ?? null,
      tpm: limits?.tokensPerMinute ?? null,
      concurrency: limits?.concurrency ?? null,
    },
    cap: capJson(record.spendingCap),
    tags: record.tags ?? [],
    names_end_users: record.namesEndUsers === true,
    created_at: seconds(record.createdAtMs),
    expires_at: seconds(record.expiresAtMs),
    revoked_at: seconds(record.revokedAtMs),
  }
}

/** Returns a key as rows of text. */
function keyRows(record: KeyRecord): string[][] {
  return [
    ['id', record.id],
    ['account', record.accountId],
    ...(record.label === '' ? [] : [['label', record.label]]),
    ['endpoints', record.scopes.endpoints?.join(', ') ?? 'all'],
    ['models', record.scopes.models?.join(', ') ?? 'all'],
    ['limits', limitsText(record.limits)],
    ['cap', record.spendingCap === undefined ? 'none' : capText(record.spendingCap)],
    ...(record.tags === undefined ? [] : [['tags', record.tags.join(', ')]]),
    ...(record.namesEndUsers === true ? [['end users', 'named by its requests']] : []),
    ['expires', record.expiresAtMs === undefined ? 'never' : new Date(record.expiresAtMs).toISOString()],
  ]
}

/** Describes whether a key may be used, and until when. */
function keyState(record: KeyRecord, nowMs: number): string {
  if (record.revokedAtMs !== undefined) return `revoked ${day(record.revokedAtMs)}`
  if (record.expiresAtMs === undefined) return 'valid'
  return record.expiresAtMs <= nowMs ? `expired ${day(record.expiresAtMs)}` : `valid until ${day(record.expiresAtMs)}`
}

function limitsText(limits: RateLimits | undefined): string {
  const parts = [
    ['rpm', limits?.requestsPerMinute],
    ['tpm', limits?.tokensPerMinute],
    ['concurrency', limits?.concurrency],
  ].flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
  return parts.length === 0 ? 'those of the gateway' : parts.join(',')
}

function day(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10)
}

function seconds(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : Math.floor(timeMs / 1000)
}

const DEFAULT_ENTRIES = '100'

/** Commands `signalbox audit …`. The action throws a SettingError naming the argument. */
export const auditCommand: GroupDefinition = {
  summary: 'show changes by operators',
  actions: {
    list: {
      summary: 'list changes of the last 365 days, newest first',
      options: {
        subject: { value: 'ID', text: 'only changes of this account, key or hold' },
        from: { value: 'TIME', text: 'first time, in ISO 8601' },
        to: { value: 'TIME', text: 'time before which the changes were made, in ISO 8601' },
        limit: { value: 'N', text: `maximum number of changes (default: ${DEFAULT_ENTRIES})` },
        cursor: { value: 'CURSOR', text: 'continue after the previous page' },
        ...STORE_OPTIONS,
      },
      run: listChanges,
    },
  },
}

async function listChanges(given: CommandArguments, terminal: Terminal): Promise<void> {
  const options = {
    subject: given.option('subject'),
    fromMs: timeOption('--from', given.option('from')),
    untilMs: timeOption('--to', given.option('to')),
    cursor: given.option('cursor'),
    limit: parseCount('--limit', given.option('limit') ?? DEFAULT_ENTRIES),
  }
  const page = await withStore(terminal, { store: given.option('store') }, ({ audit }) => audit.list(options))
  if (given.flag('json')) {
    const data = page.entries.map(auditEntryObject)
    terminal.print(JSON.stringify({ object: 'list', data, next: page.next ?? null }))
    return
  }
  const rows = page.entries.map(({ createdAtMs, operator, address, action, subject, before, after, input }) => {
    const change = before === undefined && after === undefined ? input : { before, after }
    const time = new Date(createdAtMs).toISOString()
    return [time, operator, address ?? 'command line', action, subject ?? '', JSON.stringify(change)]
  })
  printRows(terminal, [['time', 'operator', 'address', 'action', 'subject', 'change'], ...rows])
  printNext(terminal, page.next)
}

function timeOption(name: string, text: string | undefined): number | undefined {
  const timeMs = text === undefined ? undefined : Date.parse(text)
  if (Number.isNaN(timeMs)) throw new SettingError(`${name}: must be a time in ISO 8601, such as 2026-11-01`)
  return timeMs
}
