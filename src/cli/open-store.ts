import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { auditState, type ChangeSubject } from '../admin/audit-state.ts'
import { systemClock } from '../core/clock.ts'
import { GatewayError, textOfError } from '../core/errors.ts'
import type { EventListener } from '../core/events.ts'
import { timeOrderedIds } from '../core/ids.ts'
import type { Logger } from '../core/logger.ts'
import { type Accounts, accountStorageOf, accountsOf } from '../gateway/accounts.ts'
import { type Audit, auditOf } from '../gateway/audit.ts'
import { type Holds, holdsOf } from '../gateway/holds.ts'
import { type Keys, keysOf } from '../gateway/keys.ts'
import { type UsageReports, usageOf } from '../gateway/usage.ts'
import { type Webhooks, webhooksOf } from '../gateway/webhooks.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Account } from '../stores/ledger.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { type PostgresPool, postgresStore } from '../stores/postgres/postgres-store.ts'
import type { ConcurrencyLimiter, RateLimiter } from '../stores/rate-limiter.ts'
import { type RedisClient, redisLimits } from '../stores/redis/redis-limits.ts'
import { Retention } from '../stores/retention.ts'
import { SqliteStoreError, sqliteStore } from '../stores/sqlite/sqlite-store.ts'
import { StoredBounds } from '../stores/stored-bounds.ts'
import { SettingError } from './setting-values.ts'
import { oneLine, type Terminal } from './terminal.ts'

/** Location of accounts, keys and balances. */
export type StoreSetting =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string }

/** Database in the working directory. */
export const DEFAULT_STORE = { kind: 'sqlite', path: 'signalbox.db' } as const satisfies StoreSetting

/** Command that installs an engine for SQLite if Node has none. */
export const ENGINE_COMMAND = 'npm install @photostructure/sqlite'

/** Returns the message about a missing or outdated SQLite engine, or `undefined` for any other error. */
export function missingEngine(error: unknown): string | undefined {
  const isMissing =
    error instanceof SqliteStoreError && (error.fault === 'engine_missing' || error.fault === 'engine_too_old')
  return isMissing ? error.message : undefined
}

/**
 * Reads `memory:`, `sqlite:PATH` or `postgres://…`.
 * @param name Name of the variable or option, for the error.
 * @throws SettingError, which never contains the text: a URL may contain a password.
 */
export function parseStoreSetting(name: string, text: string): StoreSetting {
  if (text === 'memory:' || text === 'sqlite::memory:') return { kind: 'memory' }
  if (text.startsWith('sqlite:') && text.length > 'sqlite:'.length)
    return { kind: 'sqlite', path: text.slice('sqlite:'.length) }
  if (/^postgres(?:ql)?:\/\/./.test(text) && URL.canParse(text)) return { kind: 'postgres', url: text }
  throw new SettingError(`${name}: must be memory:, sqlite:PATH or postgres://user:password@host/database`)
}

/** Returns a store as text, without user, password and parameters. */
export function describeStore(setting: StoreSetting): string {
  if (setting.kind === 'memory') return 'memory:'
  if (setting.kind === 'sqlite') return `sqlite:${setting.path}`
  return describeUrl(setting.url)
}

/** Returns scheme, host, port and path of a URL. */
export function describeUrl(text: string): string {
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`
}

/** Options of every command that uses a store. */
export const STORE_OPTIONS = {
  store: { value: 'STORE', text: 'store to use instead of SIGNALBOX_STORE: sqlite:PATH or postgres://…' },
  json: { text: 'print one line of JSON instead of text' },
} as const

/** Store that is not started yet, and its open connections. */
interface OpenStore {
  readonly store: GatewayStore
  /** Closes the connections. Called after the store itself was closed. */
  release(): Promise<void>
}

/** Used part of the package `pg`. */
interface EndablePool extends PostgresPool {
  end(): Promise<void>
}

type PoolConstructor = new (options: PoolOptions & { readonly connectionString: string }) => EndablePool

interface PoolOptions {
  /** Timeout for a connection in milliseconds. By default it waits indefinitely. */
  readonly connectionTimeoutMillis?: number
}

/**
 * Creates a pool of connections to PostgreSQL.
 * @param name Name of the setting, for the error.
 * @throws SettingError if the package is missing.
 */
export async function openPool(name: string, url: string, options: PoolOptions = {}): Promise<EndablePool> {
  const loaded = await loadOptionalPackage('pg', `${name}=postgres://…`)
  const { Pool } = (loaded['default'] ?? loaded) as { readonly Pool: PoolConstructor }
  return new Pool({ ...options, connectionString: url })
}

/**
 * Creates the store of a setting.
 * @param name Name of the setting, for the error.
 * @throws SettingError if a package is missing.
 */
export async function openStore(name: string, setting: StoreSetting): Promise<OpenStore> {
  const nothing = async (): Promise<void> => undefined
  if (setting.kind === 'memory') return { store: memoryStore(), release: nothing }
  if (setting.kind === 'sqlite') return { store: sqliteStore({ path: setting.path }), release: nothing }
  const pool = await openPool(name, setting.url)
  return { store: postgresStore({ pool }), release: () => pool.end() }
}

/** Creates the error for a store that could not be started. */
export function storeError(name: string, setting: StoreSetting, cause: unknown): SettingError {
  const error = new SettingError(`${name}: ${describeStore(setting)} cannot be used: ${textOfError(cause)}`)
  error.cause = cause
  return error
}

/**
 * Runs a command on the store of `--store`, else of `SIGNALBOX_STORE`, else on `sqlite:signalbox.db`, and closes it.
 * @param wanted `mayCreate` allows the command to create the SQLite database: other commands, run in the wrong folder, would leave an
 *   empty one. `webhookSecret` signs webhooks of accounts without their own.
 * @throws SettingError for a store that keeps nothing or cannot be used, and for input that the store rejects.
 */
export async function withStore<Result>(
  terminal: Terminal,
  wanted: {
    readonly store: string | undefined
    readonly mayCreate?: boolean
    readonly webhookSecret?: string | undefined
  },
  run: (administration: Administration) => Promise<Result>,
): Promise<Result> {
  const name = wanted.store === undefined ? 'SIGNALBOX_STORE' : '--store'
  const text = wanted.store ?? terminal.environment['SIGNALBOX_STORE']?.trim()
  const setting = text === undefined || text === '' ? DEFAULT_STORE : parseStoreSetting(name, text)
  if (setting.kind === 'memory')
    throw new SettingError(
      `${name}: this command needs a durable store, sqlite:PATH or postgres://…; memory: keeps nothing`,
    )
  if (setting.kind === 'sqlite' && wanted.mayCreate !== true && !existsSync(setting.path))
    throw new SettingError(
      `${name}: there is no database ${describeStore(setting)}; signalbox serve or signalbox accounts create makes one`,
    )
  const { store, release } = await openStore(name, setting)
  try {
    try {
      await store.start()
    } catch (cause) {
      throw storeError(name, setting, cause)
    }
    const ready = async (): Promise<void> => undefined
    const storedBounds = new StoredBounds(store, systemClock, accountStorageOf(undefined))
    const audit = auditOf(store, systemClock, timeOrderedIds, ready)
    // A command only reads the retention: that of its own file may be an older one.
    const retention = new Retention(store.settings, terminal.usageRetention ?? {}, (line) => terminal.warn?.(line))
    const administration = {
      accounts: accountsOf(store, systemClock, timeOrderedIds, ready),
      keys: keysOf(store, systemClock, timeOrderedIds, ready),
      holds: holdsOf(store, systemClock, ready),
      webhooks: webhooksOf(store, systemClock, ready, { ...wanted, storedBounds }),
      usage: usageOf({ store: store.usage, clock: systemClock, retention }, ready),
      audit,
    }
    return await run(audited(administration, audit, terminal))
  } catch (error) {
    // Rejected input is for the operator to correct; other errors are bugs and keep their stack.
    if (GatewayError.isInstance(error) && error.status < 500) throw new SettingError(error.message)
    const fault = GatewayError.isInstance(error) && error.code === 'store_unavailable' ? error.cause : error
    if (fault instanceof SqliteStoreError) throw storeError(name, setting, fault)
    throw fault
  } finally {
    await store.close()
    await release()
  }
}

/** @throws SettingError if there is no such account. */
export async function existingAccount({ accounts }: Administration, accountId: string): Promise<Account> {
  const account = await accounts.get(accountId)
  if (account === undefined) throw new SettingError(`there is no account ${JSON.stringify(accountId)}`)
  return account
}

/**
 * Loads a package that only one setting needs.
 * @param setting Name of the setting, for the error.
 * @throws SettingError with the installation command.
 */
export async function loadOptionalPackage(name: string, setting: string): Promise<Record<string, unknown>> {
  try {
    // The name is not a literal, so bundlers ignore the import.
    return (await import(/* @vite-ignore */ name)) as Record<string, unknown>
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new SettingError(`${setting}: needs the package ${name}; install it next to signalbox (npm install ${name})`)
  }
}

type Method = (...args: readonly unknown[]) => Promise<unknown>

/** Changes of the command line by their name in the admin API, and the kind of object that their first argument identifies. */
const CHANGES: Readonly<Record<string, readonly [action: string, subject?: 'account' | 'key']>> = {
  'accounts.create': ['create_account'],
  'accounts.update': ['update_account', 'account'],
  'accounts.freeze': ['freeze_account', 'account'],
  'accounts.unfreeze': ['unfreeze_account', 'account'],
  'accounts.credit': ['credit_account', 'account'],
  'accounts.adjust': ['adjust_account', 'account'],
  'accounts.refund': ['refund_charge'],
  'holds.settle': ['settle_hold'],
  'holds.void': ['void_hold'],
  'keys.create': ['create_key'],
  'keys.update': ['update_key', 'key'],
  'keys.revoke': ['revoke_key', 'key'],
  'keys.rotate': ['rotate_key', 'key'],
  'webhooks.secret': ['read_webhook_secret'],
  'webhooks.rotateSecret': ['rotate_webhook_secret'],
  'webhooks.resend': ['resend_delivery'],
  'usage.rebuild': ['rebuild_usage'],
}

/**
 * Returns the administration of a store whose changes are recorded in its audit. If an entry cannot be written, the change stays and
 * its result is returned. The terminal gets a warning that names the change, and the process exits with status 1.
 */
function audited(administration: Administration, audit: Audit, terminal: Terminal): Administration {
  const changed = new Map<string, Record<string, unknown>>()
  for (const [name, [action, kind]] of Object.entries(CHANGES)) {
    const [group = '', method = ''] = name.split('.')
    const methods = changed.get(group) ?? { ...administration[group as keyof Administration] }
    changed.set(group, methods)
    const change = methods[method] as Method
    methods[method] = async (...args: readonly unknown[]) => {
      const first = typeof args[0] === 'string' ? args[0] : undefined
      const subject: ChangeSubject = kind === undefined ? {} : { [kind]: first }
      const before = await auditState(administration, subject)
      const result = await change(...args)
      const id = first ?? idOf(args[0]) ?? idOf(result)
      try {
        await audit.record({
          operator: userName(),
          action,
          subject: id,
          source: 'command_line',
          address: undefined,
          requestId: undefined,
          code: undefined,
          input: { arguments: args },
          before,
          after: await auditState(administration, subject),
        })
      } catch (cause) {
        // Without the result, the operator would repeat the change.
        const change = id === undefined ? action : `${action} of ${id}`
        const text = `the change ${change} was made, but could not be added to the audit: ${reasonOf(cause)}`
        terminal.warn?.(oneLine(text))
        terminal.fail?.()
      }
      return result
    }
  }
  return { ...administration, ...Object.fromEntries(changed) }
}

/** An error of the gateway has the driver's error as its cause. */
function reasonOf(error: unknown): string {
  const { cause = error } = error as Error
  return cause instanceof Error ? cause.message : String(cause)
}

/** Keys are recorded with their account, as in the admin API. */
function idOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { accountId, id } = value as { readonly accountId?: unknown; readonly id?: unknown }
  return [accountId, id].find((text) => typeof text === 'string') as string | undefined
}

/** Some containers have no entry for their user. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** Administration of a store. */
interface Administration {
  readonly accounts: Accounts
  readonly keys: Keys
  readonly holds: Holds
  readonly webhooks: Webhooks
  readonly usage: UsageReports
  readonly audit: Audit
}

/** How long the start waits for Redis, in milliseconds. After that, each process counts separately until Redis answers. */
const START_WAIT_MS = 2_000

/** Maximum delay between attempts to reconnect, in milliseconds. */
const LONGEST_RETRY_MS = 1_000

/** Limits that several gateways share. */
export interface SharedLimits {
  readonly rateLimiter: RateLimiter
  readonly concurrencyLimiter: ConcurrencyLimiter
  close(): Promise<void>
}

/** Used part of the package `ioredis`. */
interface IoredisClient {
  readonly status: string
  on(event: 'error' | 'ready', listener: (error: Error) => void): unknown
  disconnect(): void
}

type IoredisConstructor = new (url: string, options: Readonly<Record<string, unknown>>) => IoredisClient & RedisClient

/**
 * Connects to Redis and keeps the limits there. The start succeeds while Redis is down; limits are local until it answers.
 * @param expectedInstances Number of processes that share the limits; each grants its share while Redis is down. Default 1.
 * @throws SettingError if the package `ioredis` is missing.
 */
export async function openRedisLimits(
  url: string,
  expectedInstances: number | undefined,
  logger: Logger,
  onEvent?: EventListener,
): Promise<SharedLimits> {
  // The limits log when they are shared and when they are not.
  const client = await connectRedis(url, () => undefined)
  if (!(await isReadyInTime(client)))
    logger.warn('Redis does not answer; this process enforces limits by itself until it does', {
      url: describeUrl(url),
    })
  const limits = redisLimits({
    client,
    logger,
    ...(expectedInstances === undefined ? {} : { expectedInstances }),
    ...(onEvent === undefined ? {} : { onEvent }),
  })
  return {
    rateLimiter: limits.rateLimiter,
    concurrencyLimiter: limits.concurrencyLimiter,
    async close() {
      limits.close()
      client.disconnect()
    },
  }
}

/**
 * Starts to connect.
 * @param onError Called for each failed attempt; without a listener an error would end the process.
 * @throws SettingError if the package `ioredis` is missing.
 */
export async function connectRedis(url: string, onError: (error: Error) => void): Promise<IoredisClient & RedisClient> {
  const loaded = await loadOptionalPackage('ioredis', 'REDIS_URL')
  const Redis = (loaded['Redis'] ?? loaded['default']) as IoredisConstructor
  const client = new Redis(url, {
    // A command that waits for a connection would arrive too late.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: START_WAIT_MS,
    retryStrategy: (attempt: number) => Math.min(attempt * 100, LONGEST_RETRY_MS),
    // A primary that became a replica keeps its connections; a new connection may find the new primary.
    reconnectOnError: ({ message }: Error) => message.includes('READONLY'),
  })
  client.on('error', onError)
  return client
}

/** Waits until the server has answered, for up to two seconds. Returns whether it did. */
export function isReadyInTime(client: IoredisClient): Promise<boolean> {
  return new Promise((resolve) => {
    if (client.status === 'ready') return resolve(true)
    // Uses its own timer: the timers of the shared clock do not keep the process alive, and nothing else may do so yet.
    const timer = setTimeout(() => resolve(false), START_WAIT_MS)
    client.on('ready', () => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}
