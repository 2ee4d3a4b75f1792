import { existsSync } from 'node:fs'
import { textOfError } from '../core/errors.ts'
import type { EventListener } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import type { MigrationMode } from '../stores/postgres/migrations/migrate.ts'
import { type PostgresPool, postgresStore } from '../stores/postgres/postgres-store.ts'
import { type RedisClient, type RedisLimits, redisLimits } from '../stores/redis/redis-limits.ts'
import { SqliteStoreError, sqliteStore } from '../stores/sqlite/sqlite-store.ts'
import { SettingError } from './setting-values.ts'
import type { Environment } from './terminal.ts'

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

/**
 * Reads the store of `--store`, else of `SIGNALBOX_STORE`, else `sqlite:signalbox.db`, and the name of that setting.
 * @param mayCreate Whether the command may create the SQLite database: other commands, run in the wrong folder, would leave an empty one.
 * @throws SettingError for a store that keeps nothing, and for a database that is not there.
 */
export function durableStore(option: string | undefined, environment: Environment, mayCreate = false) {
  const name = option === undefined ? 'SIGNALBOX_STORE' : '--store'
  const text = option ?? environment['SIGNALBOX_STORE']?.trim()
  const setting = text === undefined || text === '' ? DEFAULT_STORE : parseStoreSetting(name, text)
  if (setting.kind === 'memory')
    throw new SettingError(
      `${name}: this command needs a durable store, sqlite:PATH or postgres://…; memory: keeps nothing`,
    )
  if (setting.kind === 'sqlite' && !mayCreate && !existsSync(setting.path))
    throw new SettingError(
      `${name}: there is no database ${describeStore(setting)}; signalbox serve or signalbox accounts create makes one`,
    )
  return { name, setting }
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

/** Used part of the package `pg`. */
interface EndablePool extends PostgresPool {
  end(): Promise<void>
}

/**
 * Creates a pool of connections to PostgreSQL.
 * @param name Name of the setting, for the error.
 * @param connectionTimeoutMillis Timeout for a connection in milliseconds. Default 0, which waits indefinitely.
 * @throws SettingError if the package is missing.
 */
export async function openPool(name: string, url: string, connectionTimeoutMillis = 0): Promise<EndablePool> {
  const loaded = await loadOptionalPackage('pg', `${name}=postgres://…`)
  const { Pool } = (loaded['default'] ?? loaded) as { readonly Pool: new (options: object) => EndablePool }
  return new Pool({ connectionString: url, connectionTimeoutMillis })
}

/**
 * Creates the store of a setting. It is not started yet. `release` closes its connections after the store itself was closed.
 * @param name Name of the setting, for the error.
 * @param migrate When the schema of PostgreSQL is migrated. Default `start`.
 * @throws SettingError if a package is missing.
 */
export async function openStore(name: string, setting: StoreSetting, migrate?: MigrationMode) {
  const nothing = async (): Promise<void> => undefined
  if (setting.kind === 'memory') return { store: memoryStore(), release: nothing }
  if (setting.kind === 'sqlite') return { store: sqliteStore({ path: setting.path }), release: nothing }
  const pool = await openPool(name, setting.url)
  return { store: postgresStore({ pool, migrate }), release: () => pool.end() }
}

/** Creates the error for a store that could not be started. */
export function storeError(name: string, setting: StoreSetting, cause: unknown): SettingError {
  const error = new SettingError(`${name}: ${describeStore(setting)} cannot be used: ${textOfError(cause)}`)
  error.cause = cause
  return error
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

/** How long the start waits for Redis, in milliseconds. After that, each process counts separately until Redis answers. */
const START_WAIT_MS = 2_000

/** Maximum delay between attempts to reconnect, in milliseconds. */
const MAX_RETRY_MS = 1_000

/** Limits that several gateways share. */
export interface SharedLimits extends Omit<RedisLimits, 'close'> {
  close(): Promise<void>
}

/** Used part of the package `ioredis`. */
interface IoredisClient {
  readonly status: string
  on(event: 'error' | 'ready', listener: (error: Error) => void): unknown
  disconnect(): void
}

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
  const limits = redisLimits({ client, logger, expectedInstances, onEvent })
  return {
    ...limits,
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
  const Redis = (loaded['Redis'] ?? loaded['default']) as new (
    url: string,
    options: object,
  ) => IoredisClient & RedisClient
  const client = new Redis(url, {
    // A command that waits for a connection would arrive too late.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: START_WAIT_MS,
    retryStrategy: (attempt: number) => Math.min(attempt * 100, MAX_RETRY_MS),
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
