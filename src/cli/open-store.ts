import { existsSync } from 'node:fs'
import { systemClock } from '../core/clock.ts'
import { GatewayError, textOfError } from '../core/errors.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { accountStorageOf } from '../gateway/account-storage.ts'
import { accountsOf } from '../gateway/accounts.ts'
import { auditOf } from '../gateway/audit.ts'
import { holdsOf } from '../gateway/holds.ts'
import { keysOf } from '../gateway/keys.ts'
import { usageOf } from '../gateway/usage.ts'
import { webhooksOf } from '../gateway/webhooks.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Account } from '../stores/ledger.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { type PostgresPool, postgresStore } from '../stores/postgres/postgres-store.ts'
import { Retention } from '../stores/retention.ts'
import { SqliteStoreError, sqliteStore } from '../stores/sqlite/sqlite-store.ts'
import { StoredBounds } from '../stores/stored-bounds.ts'
import type { Administration } from './administration.ts'
import { audited } from './audited-changes.ts'
import { SettingError } from './setting-values.ts'
import type { Terminal } from './terminal.ts'

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
