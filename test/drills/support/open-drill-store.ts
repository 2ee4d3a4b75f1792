import pg from 'pg'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'

/** Where the processes of a drill keep their state. */
export type DrillStore =
  | { readonly kind: 'sqlite'; readonly path: string }
  /** A schema of its own: a drill sets clocks forward, and others may use the server. */
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string }

/** Makes the store, not started yet. `release` closes the connections that were made for it. */
export function openDrillStore(where: DrillStore): { readonly store: GatewayStore; release(): Promise<void> } {
  if (where.kind === 'sqlite') return { store: sqliteStore({ path: where.path }), release: async () => undefined }
  const pool = new pg.Pool({ connectionString: where.url })
  return { store: postgresStore({ pool, schema: where.schema }), release: () => pool.end() }
}
