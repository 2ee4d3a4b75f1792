import { systemClock } from '../core/clock.ts'
import type { NewKey } from '../gateway/keys.ts'
import { ENDPOINTS } from '../gateway/routes.ts'
import type { KeyRecord } from '../stores/key-store.ts'
import type { KeyScopes } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import { alignedRows } from './aligned-rows.ts'
import { type CommandArguments, commandArguments } from './command-arguments.ts'
import { keyJson, keyRows, keyState } from './key-text.ts'
import { configuredCatalog } from './serve-settings.ts'
import { SettingError } from './setting-error.ts'
import { parseCap, parseCount, parseDuration, parseLabel, parseNames } from './setting-values.ts'
import type { Terminal } from './terminal.ts'
import { withStore } from './with-store.ts'

const CREATE_OPTIONS = [
  ...['account', 'label', 'endpoints', 'models', 'expires'],
  ...['rpm', 'tpm', 'concurrency', 'cap', 'store'],
] as const

/**
 * `signalbox keys create|list|revoke|rotate`.
 * @throws SettingError naming the argument.
 */
export async function keysCommand(words: readonly string[], terminal: Terminal): Promise<void> {
  const [action, ...rest] = words
  switch (action) {
    case 'create':
      return createKey(rest, terminal)
    case 'list':
      return listKeys(rest, terminal)
    case 'revoke':
      return revokeKey(rest, terminal)
    case 'rotate':
      return rotateKey(rest, terminal)
    default:
      throw new SettingError('keys: say create, list, revoke or rotate; see signalbox --help')
  }
}

async function createKey(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, { options: CREATE_OPTIONS, flags: ['json'], positionals: [] })
  const wanted = newKey(given, terminal)
  const made = await withStore(terminal, { store: given.option('store') }, ({ keys }) => keys.create(wanted))
  printNewKey(made, terminal, given.flag('json'))
}

async function listKeys(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, { options: ['account', 'store'], flags: ['json'], positionals: [] })
  const account = given.option('account')
  const records = await withStore(terminal, { store: given.option('store') }, ({ keys }) => keys.list(account))
  if (given.flag('json')) {
    terminal.print(JSON.stringify({ object: 'list', data: records.map(keyJson) }))
    return
  }
  const nowMs = systemClock.now()
  const rows = records.map((record) => [record.id, record.accountId, keyState(record, nowMs), record.label])
  for (const line of alignedRows(rows)) terminal.print(line)
}

async function revokeKey(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, { options: ['store'], flags: ['json'], positionals: ['the key’s id'] })
  const [keyId = ''] = given.positionals
  const isKnown = await withStore(terminal, { store: given.option('store') }, ({ keys }) => keys.revoke(keyId))
  if (!isKnown) throw new SettingError(`there is no key ${JSON.stringify(keyId)}; see signalbox keys list`)
  if (given.flag('json')) terminal.print(JSON.stringify({ object: 'key', id: keyId, revoked: true }))
  else terminal.print(`revoked ${keyId}; every gateway refuses it within 5 seconds`)
}

async function rotateKey(words: readonly string[], terminal: Terminal): Promise<void> {
  const given = commandArguments(words, {
    options: ['overlap', 'store'],
    flags: ['json'],
    positionals: ['the key’s id'],
  })
  const [keyId = ''] = given.positionals
  const overlap = given.option('overlap')
  const options = overlap === undefined ? {} : { overlapMs: parseDuration('--overlap', overlap) }
  const made = await withStore(terminal, { store: given.option('store') }, ({ keys }) => keys.rotate(keyId, options))
  printNewKey(made, terminal, given.flag('json'))
  if (!given.flag('json')) terminal.print(`${keyId} ends in ${overlap ?? '1d'} at the latest`)
}

function newKey(given: CommandArguments<(typeof CREATE_OPTIONS)[number], 'json'>, terminal: Terminal): NewKey {
  const read = <Value>(
    name: (typeof CREATE_OPTIONS)[number],
    parse: (option: string, text: string) => Value,
  ): Value | undefined => {
    const text = given.option(name)
    return text === undefined ? undefined : parse(`--${name}`, text)
  }
  const accountId = given.option('account')
  if (accountId === undefined || accountId === '') throw new SettingError('--account: say which account pays')
  const label = read('label', parseLabel)
  const endpoints = read('endpoints', parseEndpoints)
  const models = read('models', (option, text) => parseModels(option, text, terminal))
  const scopes: KeyScopes = {
    ...(endpoints === undefined ? {} : { endpoints }),
    ...(models === undefined ? {} : { models }),
  }
  const limits: RateLimits = {
    requestsPerMinute: read('rpm', parseCount),
    tokensPerMinute: read('tpm', parseCount),
    concurrency: read('concurrency', parseCount),
  }
  const hasLimits = Object.values(limits).some((limit) => limit !== undefined)
  const lifeMs = read('expires', parseDuration)
  const spendingCap = read('cap', parseCap)
  return {
    accountId,
    scopes,
    ...(label === undefined ? {} : { label }),
    ...(hasLimits ? { limits } : {}),
    ...(lifeMs === undefined ? {} : { expiresAtMs: systemClock.now() + lifeMs }),
    ...(spendingCap === undefined ? {} : { spendingCap }),
  }
}

function parseEndpoints(option: string, text: string): string[] {
  const known = [...new Set(ENDPOINTS.map(({ id }) => id))]
  return parseNames(option, text).map((name) => {
    if (known.includes(name)) return name
    throw new SettingError(`${option}: there is no endpoint ${JSON.stringify(name)}; there are ${known.join(', ')}`)
  })
}

/** Scopes hold public ids, so aliases are written as what they stand for. */
function parseModels(option: string, text: string, terminal: Terminal): string[] {
  const catalog = configuredCatalog(terminal.environment)
  const ids = parseNames(option, text).map((name) => {
    const model = catalog.find(name)
    if (model !== undefined) return model.id
    throw new SettingError(
      `${option}: there is no model ${JSON.stringify(name)}; see signalbox models, or set SIGNALBOX_MODELS as for serve`,
    )
  })
  return [...new Set(ids)]
}

function printNewKey(
  { key, record }: { readonly key: string; readonly record: KeyRecord },
  { print }: Terminal,
  asJson: boolean,
): void {
  if (asJson) {
    print(JSON.stringify({ ...keyJson(record), key }))
    return
  }
  for (const line of alignedRows([['key', key], ...keyRows(record)])) print(line)
  print('Keep the key now: only its SHA-256 is stored, and it cannot be shown again.')
}
