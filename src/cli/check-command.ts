import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { CatalogModel } from '../catalog/model.ts'
import type { Credential } from '../core/credential.ts'
import { textOfError } from '../core/errors.ts'
import { parseVendorJson } from '../core/json.ts'
import { silentLogger } from '../core/logger.ts'
import { ENDPOINTS } from '../endpoints/registry.ts'
import type { CatalogState } from '../gateway/catalog-options.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { listUnpricedModels, nameOfUnpriced } from '../pipeline/model-notices.ts'
import { BufferedCall, headersAt, pathAt, withCredential } from '../pipeline/vendor-access.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { DEFAULT_SCHEMA, type MigrationMode, readSchema, startObstacle } from '../stores/postgres/migrations/migrate.ts'
import { postgresConnection } from '../stores/postgres/postgres-connection.ts'
import { openWithEngine } from '../stores/sqlite/sqlite-engine.ts'
import { pendingSqliteMigrations } from '../stores/sqlite/sqlite-migrations.ts'
import type { Transport, TransportFailure } from '../transport/transport.ts'
import { undiciTransport } from '../transport/undici.ts'
import type { Vendor, WireAnswer } from '../vendors/vendor.ts'
import { asBuffer, joinChunks } from '../wire/chunks.ts'
import type { ActionDefinition, CommandArguments, OptionDefinition } from './command.ts'
import { CONFIG_OPTION, type Configuration, readConfiguration } from './configuration.ts'
import { type ConfiguredVendor, configuredVendors } from './configured-vendors.ts'
import { optionsWithExamples, withExamples } from './example-run.ts'
import type { FileOnlyOptions } from './file-only-options.ts'
import {
  connectRedis,
  DEFAULT_STORE,
  describeStore,
  describeUrl,
  ENGINE_COMMAND,
  isReadyInTime,
  loadOptionalPackage,
  missingEngine,
  openPool,
  type StoreSetting,
} from './open-store.ts'
import { readServeFlags, readServeSettings, SERVE_FLAGS, type ServeSettings } from './serve-settings.ts'
import { consoleKey, memoryInstead, namedVendors, servedGateway } from './served-gateway.ts'
import { SettingError } from './setting-values.ts'
import { misspeltVariables, SETTING_OPTIONS, secretLines } from './settings.ts'
import { printRows, type Terminal } from './terminal.ts'

const OPTIONS: Readonly<Record<string, OptionDefinition>> = {
  json: { text: 'print one line of JSON instead of text' },
  ...SERVE_FLAGS,
  ...CONFIG_OPTION,
  ...SETTING_OPTIONS,
}

/** Placeholder origin: the command starts and calls no stand-ins. */
const STAND_IN_ORIGIN = 'http://127.0.0.1'

/** Maximum number of unpriced models that are printed; JSON contains all of them. */
const SHOWN_MODELS = 8

/** Command `signalbox check`. */
export const checkCommand: ActionDefinition = {
  summary: 'check the configuration of serve: settings, store, Redis, every vendor’s key, prices',
  options: OPTIONS,
  after: `Exits with status 0 if serve can start and no vendor rejects its key, else with status 1. No call is charged.\n\n${secretLines()}`,
  run: check,
}

async function check(given: CommandArguments, terminal: Terminal): Promise<void> {
  const asJson = given.flag('json')
  const checks: Check[] = []
  await allChecks(given, terminal, checks)
  printChecks(checks, terminal, asJson)
  if (checks.some(({ status }) => status === 'failed')) terminal.fail?.()
}

async function allChecks(given: CommandArguments, terminal: Terminal, checks: Check[]): Promise<void> {
  const configuration = await settle(checks, undefined, () =>
    readConfiguration(given, terminal.environment, (name) => Object.hasOwn(OPTIONS, name)),
  )
  if (configuration === undefined) return
  const { environment, documents, file } = configuration
  for (const message of misspeltVariables(environment))
    checks.push({ name: 'configuration', status: 'warning', message })
  const flags = readServeFlags(given, configuration)
  const { useStandIns } = flags
  const settings = await settle(checks, configuration, () =>
    withExamples(readServeSettings(environment, documents), flags),
  )
  if (settings === undefined) return
  const vendors = await settle(checks, configuration, () =>
    configuredVendors(environment, useStandIns ? STAND_IN_ORIGIN : undefined, namedVendors(settings), documents),
  )
  const store = settings.store ?? (useStandIns ? ({ kind: 'memory' } as const) : undefined)
  let gateway: Gateway | undefined
  if (vendors !== undefined) {
    gateway = await settle(checks, configuration, async () => {
      if (flags.serveConsole) consoleKey(settings.operatorKey, useStandIns && store?.kind === 'memory')
      return await checkGateway(settings, vendors, optionsWithExamples(configuration.gateway, flags))
    })
    if (gateway !== undefined) {
      checks.push({
        name: 'configuration',
        status: 'ok',
        message: file === undefined ? 'from variables and flags' : `${file}, variables and flags`,
      })
      checks.push(checkCatalog((await gateway.health()).catalog))
    }
  }
  const fallback = store === undefined ? await memoryInstead(settings) : undefined
  checks.push(
    fallback === undefined
      ? await checkStore(store ?? DEFAULT_STORE, settings.migrate)
      : withoutEngine(fallback.reason),
  )
  if (settings.redisUrl !== undefined) checks.push(await checkRedis(settings.redisUrl))
  if (vendors === undefined) return
  checks.push(...(useStandIns ? vendors.flatMap(offlineCheck) : await checkVendors(vendors, namedVendors(settings))))
  const prices = gateway === undefined ? undefined : checkPrices(settings, vendors, gateway)
  if (prices !== undefined) checks.push(prices)
  checks.push(await checkMcp())
}

function withoutEngine(reason: string): Check {
  const message = `serve would keep everything in memory, until the process ends: ${reason}`
  return { name: 'store', status: 'warning', message, remedy: ENGINE_COMMAND }
}

/** Runs a step. An invalid setting becomes a failed check. */
async function settle<Value>(
  checks: Check[],
  configuration: Configuration | undefined,
  run: () => Value | Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await run()
  } catch (error) {
    const named = configuration?.named(error) ?? error
    if (!(named instanceof SettingError)) throw named
    checks.push({ name: 'configuration', status: 'failed', message: named.message })
    return undefined
  }
}

/** Creates the gateway, which checks its options, loads its catalog, and closes it without a start. */
async function checkGateway(
  settings: ServeSettings,
  vendors: readonly ConfiguredVendor[],
  further: FileOnlyOptions | undefined,
): Promise<Gateway> {
  const gateway = servedGateway(settings, vendors, further, { store: memoryStore(), logger: silentLogger })
  // The state of the catalog contains a failure.
  if (settings.catalog !== undefined) await gateway.loadCatalog().catch(() => undefined)
  await gateway.close({ drainMs: 0 })
  return gateway
}

function checkCatalog({ date, ageDays, isOld, error }: CatalogState): Check {
  const message = `models and list prices of ${date}, ${ageDays} days old`
  if (error === undefined && !isOld) return { name: 'catalog', status: 'ok', message }
  return {
    name: 'catalog',
    status: 'warning',
    message: error === undefined ? message : `${message}; newer ones cannot be loaded from ${error}`,
    remedy: 'update signalbox, or name in SIGNALBOX_CATALOG what signalbox catalog update --snapshot FILE writes',
  }
}

/** Checks of a vendor with --sandbox, which makes no call. */
function offlineCheck({ vendor, state }: ConfiguredVendor): readonly Check[] {
  const name = `vendor ${vendor.id}`
  if (state === 'stand-in') return [{ name, status: 'ok', message: 'a stand-in answers for it' }]
  if (state === 'not configured') return []
  return [
    { name, status: 'unchecked', message: 'serve would call it with its key; --sandbox asks no vendor for a check' },
  ]
}

async function checkVendors(
  vendors: readonly ConfiguredVendor[],
  named: ReadonlySet<string>,
): Promise<readonly Check[]> {
  const configured = vendors.filter(({ state }) => state === 'configured')
  const missing = vendors.filter(({ vendor, state }) => state === 'not configured' && named.has(vendor.id))
  const lacking = missing.map(({ vendor }): Check => {
    const message = 'a model of yours names it, and it has no key'
    return { name: `vendor ${vendor.id}`, status: 'failed', message, remedy: `set ${variablesOf(vendor.configuredBy)}` }
  })
  if (configured.length === 0) {
    const others = vendors.map(({ vendor }) => variablesOf(vendor.configuredBy)).join(', ')
    return [
      ...lacking,
      {
        name: 'vendors',
        status: 'failed',
        message: 'no vendor has a key, so no model can be called',
        remedy: `set one of ${others}`,
      },
    ]
  }
  const transport = undiciTransport()
  try {
    const found = await Promise.all(configured.map(({ vendor }) => checkVendor(vendor, transport)))
    return [...found.flat(), ...lacking]
  } finally {
    await transport.close()
  }
}

function checkPrices(
  { prices, billing, models }: ServeSettings,
  vendors: readonly ConfiguredVendor[],
  { catalog }: Gateway,
): Check | undefined {
  if (prices === undefined || billing === 'off')
    return { name: 'prices', status: 'ok', message: 'billing is off; nobody is charged' }
  const list = 'forCatalog' in prices.prices ? prices.prices.forCatalog(catalog) : prices.prices
  const byId = new Map(vendors.map(({ vendor }) => [vendor.id, vendor]))
  const found = listUnpricedModels({ catalog, vendors: byId, prices: list, endpoints: { all: ENDPOINTS } })
  if (found === undefined) return undefined
  const { models: count } = found
  const unpriced = found.unpriced.map((model) => nameOfUnpriced(model))
  if (unpriced.length === 0) return { name: 'prices', status: 'ok', message: `all ${count} models have a price` }
  const shown = unpriced.slice(0, SHOWN_MODELS).join(', ')
  const more = unpriced.length > SHOWN_MODELS ? ` and ${unpriced.length - SHOWN_MODELS} more` : ''
  const added = new Set(models.map(({ id }) => id))
  const own = found.unpriced.filter(({ id }) => added.has(id)).map((model) => nameOfUnpriced(model))
  return {
    name: 'prices',
    // A model that the operator has added is intended to be called.
    status: own.length > 0 ? 'failed' : 'warning',
    message: `${unpriced.length} of ${count} models have no price, and are refused: ${own.length > 0 ? `${own.join(', ')} of your own; ` : ''}${shown}${more}`,
    remedy: `name them in SIGNALBOX_PRICES, or charge list prices by SIGNALBOX_LIST_PRICES=1`,
  }
}

async function checkMcp(): Promise<Check> {
  try {
    await loadOptionalPackage('@modelcontextprotocol/server', '/mcp')
    return { name: 'mcp', status: 'ok', message: 'served at /mcp' }
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    return {
      name: 'mcp',
      status: 'warning',
      message: 'not served: its package is not installed',
      remedy: 'npm install @modelcontextprotocol/server, if you want it',
    }
  }
}

const NAME = 'store'

const CHECK_TIMEOUT_MS = 10_000

/** Connects to the store, counts the migrations that the next start will run, and checks the rights of the role. Changes nothing. */
export async function checkStore(setting: StoreSetting, migrate: MigrationMode = 'start'): Promise<Check> {
  const shown = describeStore(setting)
  try {
    if (setting.kind === 'memory')
      return {
        name: NAME,
        status: 'warning',
        message: 'memory: keeps accounts, keys and balances until the process ends',
        remedy: 'set SIGNALBOX_STORE to sqlite:PATH or postgres://… to keep them',
      }
    if (setting.kind === 'sqlite') return await checkSqlite(setting.path, shown)
    return await checkPostgres(setting.url, shown, migrate)
  } catch (error) {
    const engine = missingEngine(error)
    const message = engine ?? `${error instanceof SettingError ? '' : `${shown} cannot be used: `}${textOfError(error)}`
    return { name: NAME, status: 'failed', message, remedy: storeRemedy(setting, error) }
  }
}

function storeRemedy(setting: StoreSetting, error: unknown): string {
  if (missingEngine(error) !== undefined) return ENGINE_COMMAND
  if (error instanceof SettingError) return 'npm install pg'
  if (/update signalbox/.test(textOfError(error))) return 'update signalbox: a newer version has written this store'
  if (/statement pooling mode/.test(textOfError(error))) return 'set pool_mode of PgBouncer to transaction or session'
  return setting.kind === 'sqlite'
    ? `check ${setting.path} and the rights of this user`
    : 'check SIGNALBOX_STORE: host, port, database, user and password, and that PostgreSQL runs'
}

async function checkSqlite(path: string, shown: string): Promise<Check> {
  if (!existsSync(path)) {
    const probe = await openWithEngine(':memory:')
    probe.close()
    accessSync(dirname(resolve(path)), constants.W_OK)
    return { name: NAME, status: 'ok', message: `${shown} is not there yet; serve makes it` }
  }
  accessSync(path, constants.R_OK | constants.W_OK)
  const database = await openWithEngine(path)
  try {
    return upToDate(shown, pendingSqliteMigrations(database, path))
  } finally {
    database.close()
  }
}

async function checkPostgres(url: string, shown: string, migrate: MigrationMode): Promise<Check> {
  const pool = await openPool(NAME, url, 5_000)
  try {
    // Uses a transaction, because the store needs transactions and not every pooler supports them.
    const { transaction } = postgresConnection(pool, CHECK_TIMEOUT_MS)
    const state = await transaction((session) => readSchema(session, DEFAULT_SCHEMA))
    const obstacle = startObstacle(state, migrate)
    if (obstacle !== undefined)
      return {
        name: NAME,
        status: 'failed',
        message: `${shown} answers, but ${obstacle.message}`,
        remedy: obstacle.remedy,
      }
    const { version = 0, needed, changedFunctions } = state
    const message = `${shown} answers; the next start creates these functions again: ${changedFunctions}`
    if (version === needed && changedFunctions !== null) return { name: NAME, status: 'warning', message }
    return upToDate(shown, { pending: needed - version, isNew: version === 0 })
  } finally {
    await pool.end()
  }
}

function upToDate(shown: string, { pending, isNew }: { readonly pending: number; readonly isNew: boolean }): Check {
  if (isNew) return { name: NAME, status: 'ok', message: `${shown} answers, and is empty; serve makes its schema` }
  if (pending === 0) return { name: NAME, status: 'ok', message: `${shown} answers; its schema is up to date` }
  return {
    name: NAME,
    status: 'warning',
    message: `${shown} answers; the next start brings its schema ${pending} steps forward`,
    remedy: 'back it up before you start the new version',
  }
}

/** Connects to Redis and sends a query. */
async function checkRedis(url: string): Promise<Check> {
  const name = 'redis'
  const shown = describeUrl(url)
  try {
    const faults: Error[] = []
    const client = await connectRedis(url, (error) => void faults.push(error))
    try {
      if (await isReadyInTime(client)) return { name, status: 'ok', message: `${shown} answers` }
      const reason = faults.at(-1) === undefined ? 'no answer in time' : textOfError(faults.at(-1))
      return {
        name,
        status: 'failed',
        message: `${shown} cannot be used: ${reason}; each process would count limits by itself`,
        remedy: 'check REDIS_URL: host, port, user and password, and that Redis runs',
      }
    } finally {
      client.disconnect()
    }
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    return { name, status: 'failed', message: error.message, remedy: 'npm install ioredis' }
  }
}

/** Timeout of one answer, and of one credential, in milliseconds. */
const WAIT_MS = 10_000

/**
 * Requests a vendor's list of models, once with each of its keys, free of charge. A public list does not verify a key, so the list is
 * also requested without one.
 */
async function checkVendor(vendor: Vendor, transport: Transport): Promise<readonly Check[]> {
  const { apiKeys, credentialProviders = [] } = vendor
  const named = (index: number): string =>
    apiKeys.length > 1 ? `vendor ${vendor.id}, key ${index + 1} of ${apiKeys.length}` : `vendor ${vendor.id}`
  return Promise.all(
    apiKeys.map(async (apiKey, index): Promise<Check> => {
      const provider = credentialProviders[index]
      const name = named(index)
      let credential: Credential | undefined
      if (provider !== undefined) {
        try {
          credential = await provider({ signal: AbortSignal.timeout(WAIT_MS), nowMs: Date.now() })
        } catch (error) {
          const message = `no credential: ${textOfError(error)}`
          return { name, status: 'failed', message, remedy: `set ${variablesOf(vendor.configuredBy)}` }
        }
      }
      return { name, ...(await checkKey(vendor, transport, apiKey, credential)) }
    }),
  )
}

type Finding = Omit<Check, 'name'>

async function checkKey(
  vendor: Vendor,
  transport: Transport,
  apiKey: string,
  credential: Credential | undefined,
): Promise<Finding> {
  const path = modelsPath(vendor, apiKey)
  const given = credential === undefined ? '' : 'a credential was given; '
  if (path === undefined)
    return { status: 'unchecked', message: `${given}it has no list of models to ask for, so nothing was tried there` }
  const answer = await ask(vendor, transport, apiKey, credential)
  if ('failure' in answer) return unreachable(vendor, answer.failure)
  const { status } = answer
  if (status === 404 || status === 405)
    return {
      status: 'unchecked',
      message: `${vendor.origin} answers, and has no list of models at ${path} (${status}), so the key was not tried; if calls fail too, its base URL is wrong`,
    }
  // Some vendors report errors with status 200.
  const isRefused = status < 200 || status >= 300 || vendor.errorFrom(answer, Date.now()).kind !== 'invalid_response'
  if (isRefused) return refused(vendor, answer, [apiKey, credential?.token ?? ''])
  if (parseVendorJson(asBuffer(answer.body).toString('utf8')) === undefined)
    return {
      status: 'failed',
      message: `${vendor.origin} answers ${path} with something else than a list of models`,
      remedy: CHECK_ADDRESS,
    }
  if (apiKey === '' && credential === undefined)
    return { status: 'ok', message: `${vendor.origin} answers; it needs no key` }
  const open = await ask(vendor, transport, '', undefined)
  if (!('failure' in open) && open.status >= 200 && open.status < 300)
    return {
      status: 'unchecked',
      message: `${vendor.origin} answers, and everybody may read its list of models, so the key was not tried`,
    }
  return { status: 'ok', message: `${vendor.origin} accepts the ${credential === undefined ? 'key' : 'credential'}` }
}

const CHECK_ADDRESS = 'check its address (base URL)'

/** Request that is never sent: only its address and headers are used. Responses accept no smaller limit. */
const REQUEST = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 16 } as const
const MODEL: CatalogModel = {
  ...{ id: REQUEST.model, upstream: REQUEST.model, vendor: '', kinds: ['chat'], aliases: [], fallbacks: [] },
  ...{ created: 0, displayName: REQUEST.model, limits: {} },
}

/** Endings of vendors' chat paths, and the path of the list of models in their place. */
const ENDINGS: readonly (readonly [ending: RegExp, list: string])[] = [
  [/\/deployments\/[^/]+\/chat\/completions(?=$|\?)/, '/models'],
  [/\/(?:chat\/completions|responses)(?=$|\?)/, '/models'],
  [/\/v1\/messages(?=$|\?)/, '/v1/models'],
  // Below a publisher of a cloud there is no such list.
  [/(?<!\/publishers\/[^/]+)\/models\/[^/]+:generateContent(?=$|\?)/, '/models'],
]

function chatWire(vendor: Vendor, apiKey: string) {
  return vendor.chat?.toWire({
    request: REQUEST as never,
    bytes: undefined,
    model: { ...MODEL, vendor: vendor.id },
    publicModel: MODEL.id,
    apiKey,
    stream: false,
    nowMs: Date.now(),
  })
}

/** Returns path and query of the list of models, or `undefined` if the vendor has no known one. */
function modelsPath(vendor: Vendor, apiKey: string): string | undefined {
  const path = chatWire(vendor, apiKey)?.path ?? ''
  const found = ENDINGS.find(([ending]) => ending.test(path))
  return found === undefined ? undefined : path.replace(found[0], found[1])
}

async function ask(
  vendor: Vendor,
  transport: Transport,
  apiKey: string,
  credential: Credential | undefined,
): Promise<WireAnswer | { readonly failure: TransportFailure | 'oversize' }> {
  const { headers = [] } = chatWire(vendor, apiKey) ?? {}
  // A GET has no body.
  const own = headers.filter((_, place) => headers[place - (place % 2)]?.toLowerCase() !== 'content-type')
  const call = new BufferedCall()
  const request = {
    origin: vendor.origin,
    path: pathAt(vendor, modelsPath(vendor, apiKey) ?? '/'),
    method: 'GET' as const,
    headers: headersAt(vendor, own),
    body: null,
    firstByteTimeoutMs: WAIT_MS,
    idleTimeoutMs: WAIT_MS,
    egress: vendor.egress,
  }
  call.begin(transport, withCredential(request, credential, Date.now()))
  const outcome = await call.result
  if ('failure' in outcome) return { failure: outcome.failure }
  if ('oversize' in outcome) return { failure: 'oversize' }
  const { status, headers: received, chunks } = outcome.answer
  return { status, headers: received, body: joinChunks(chunks) }
}

function unreachable({ id, origin }: Vendor, failure: TransportFailure | 'oversize'): Finding {
  if (failure === 'oversize') return { status: 'unchecked', message: `${origin} answers with more than can be read` }
  const { kind, phase, error } = failure
  const reason = kind === 'timeout' ? `no answer (${phase} timeout)` : textOfError(error)
  const remedy =
    kind === 'tls'
      ? `set tls.ca of ${id} in the vendors’ options to the authority of its certificate`
      : `${CHECK_ADDRESS} and the network${kind === 'proxy' ? '; the proxy refuses' : ', HTTPS_PROXY included'}`
  return { status: 'failed', message: `${origin} cannot be reached: ${reason}`, remedy }
}

function refused(vendor: Vendor, answer: WireAnswer, secrets: readonly string[]): Finding {
  const { status } = answer
  const { kind, message, code } = vendor.errorFrom(answer, Date.now())
  const text = secrets
    .filter((secret) => secret.length > 3)
    .reduce(
      (shown, secret) => shown.replaceAll(secret, '[redacted]'),
      `${code === undefined ? '' : `${code}: `}${message}`,
    )
  const isKey = status === 401 || status === 403 || ((status === 400 || status < 300) && kind === 'operator')
  return {
    status: 'failed',
    message: `${vendor.origin} ${isKey ? 'refuses the key' : 'answers with an error'} (${status}${text === '' ? '' : ` ${text.slice(0, 300)}`})`,
    remedy: isKey ? `set ${variablesOf(vendor.configuredBy)} to a key that is valid` : vendorRemedy(status),
  }
}

function vendorRemedy(status: number): string {
  if (status === 402) return 'look at the account there: its credit and its limits'
  if (status === 400) return 'check the key, and the address (baseURL)'
  return status >= 300 && status < 400 ? CHECK_ADDRESS : 'try again; look at the vendor’s status page'
}

/** Result of one check by `signalbox check`. */
export interface Check {
  /** Name of the checked part: `store`, `vendor openai`, … */
  readonly name: string
  /** Status. Only `failed` makes the command exit with status 1. `unchecked` means that a check would have cost money. */
  readonly status: 'ok' | 'warning' | 'unchecked' | 'failed'
  readonly message: string
  /** Setting or step that solves the problem. */
  readonly remedy?: string
}

/** Returns the part of a vendor’s `configuredBy` that concerns the command line, without functions that a program would call. */
export function variablesOf(configuredBy: string): string {
  return configuredBy.replace(/,? or [\w.]+\(.*$/, '')
}

/** Prints all checks, as a table or as one line of JSON. */
function printChecks(checks: readonly Check[], terminal: Terminal, asJson: boolean): void {
  const isGood = checks.every(({ status }) => status !== 'failed')
  if (asJson) {
    const data = checks.map(({ remedy, ...check }) => ({ ...check, remedy: remedy ?? null }))
    terminal.print(JSON.stringify({ object: 'check', ok: isGood, data }))
    return
  }
  const rows = checks.flatMap(({ name, status, message, remedy }) => {
    const lines = message.split('\n')
    return [
      [status, name, lines[0] ?? ''],
      ...lines.slice(1).map((line) => ['', '', line]),
      ...(remedy === undefined ? [] : [['', '', `do: ${remedy}`]]),
    ]
  })
  printRows(terminal, [['result', 'of', 'what was found'], ...rows])
  const failed = checks.filter(({ status }) => status === 'failed').length
  terminal.print(isGood ? 'signalbox serve can start' : `${failed} of ${checks.length} checks failed`)
}
