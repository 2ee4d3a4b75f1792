import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { textOfError } from '../core/errors.ts'
import { pendingPostgresMigrations } from '../stores/postgres/migrations/migrate.ts'
import { postgresConnection } from '../stores/postgres/postgres-connection.ts'
import { openWithEngine } from '../stores/sqlite/sqlite-engine.ts'
import { pendingSqliteMigrations } from '../stores/sqlite/sqlite-migrations.ts'
import type { Check } from './check-report.ts'
import { connectRedis, isReadyInTime } from './open-redis-limits.ts'
import { describeStore, describeUrl, ENGINE_COMMAND, missingEngine, openPool, type StoreSetting } from './open-store.ts'
import { SettingError } from './setting-values.ts'

const NAME = 'store'

const CHECK_TIMEOUT_MS = 10_000

/** Connects to the store and counts the schema migrations that the next start will run. Changes nothing. */
export async function checkStore(setting: StoreSetting): Promise<Check> {
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
    return await checkPostgres(setting.url, shown)
  } catch (error) {
    const engine = missingEngine(error)
    const message = engine ?? `${error instanceof SettingError ? '' : `${shown} cannot be used: `}${textOfError(error)}`
    return { name: NAME, status: 'failed', message, remedy: remedyFor(setting, error) }
  }
}

function remedyFor(setting: StoreSetting, error: unknown): string {
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

async function checkPostgres(url: string, shown: string): Promise<Check> {
  const pool = await openPool(NAME, url, { connectionTimeoutMillis: 5_000 })
  try {
    // Uses a transaction, because the store needs transactions and not every pooler supports them.
    const { transaction } = postgresConnection(pool, CHECK_TIMEOUT_MS)
    return upToDate(shown, await transaction((session) => pendingPostgresMigrations(session, 'signalbox')))
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
export async function checkRedis(url: string): Promise<Check> {
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
