import type { GatewayStore } from '../stores/gateway-store.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { type PostgresPool, postgresStore } from '../stores/postgres/postgres-store.ts'
import { sqliteStore } from '../stores/sqlite/sqlite-store.ts'
import { loadOptionalPackage } from './optional-package.ts'
import { SettingError } from './setting-error.ts'
import { describeStore, type StoreSetting } from './store-setting.ts'

/** A store, not started yet, and what was opened for it. */
export interface OpenStore {
  readonly store: GatewayStore
  /** Closes the connections that were made for the store; the store itself is closed before, by whoever started it. */
  release(): Promise<void>
}

/** What is used of the package `pg`. */
interface EndablePool extends PostgresPool {
  end(): Promise<void>
}

type PoolConstructor = new (options: { readonly connectionString: string }) => EndablePool

/**
 * Makes the store that a setting asks for.
 * @param name of the setting, for the error.
 * @throws SettingError when a package is missing.
 */
export async function openStore(name: string, setting: StoreSetting): Promise<OpenStore> {
  const nothing = async (): Promise<void> => undefined
  if (setting.kind === 'memory') return { store: memoryStore(), release: nothing }
  if (setting.kind === 'sqlite') return { store: sqliteStore({ path: setting.path }), release: nothing }
  const loaded = await loadOptionalPackage('pg', `${name}=postgres://…`)
  const { Pool } = (loaded['default'] ?? loaded) as { readonly Pool: PoolConstructor }
  const pool = new Pool({ connectionString: setting.url })
  return { store: postgresStore({ pool }), release: () => pool.end() }
}

/** The error for a store that could not be started, in words for the operator. */
export function storeError(name: string, setting: StoreSetting, cause: unknown): SettingError {
  const text = cause instanceof Error ? messageOf(cause) : String(cause)
  const error = new SettingError(`${name}: ${describeStore(setting)} cannot be used: ${text}`)
  error.cause = cause
  return error
}

/** Node reports a refused connection to several addresses as one error without a text of its own. */
function messageOf(error: Error): string {
  if (error.message !== '') return error.message
  const [first] = error instanceof AggregateError ? error.errors : []
  return first instanceof Error ? first.message : ((error as NodeJS.ErrnoException).code ?? error.name)
}
