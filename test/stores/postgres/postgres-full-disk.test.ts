import { execFileSync } from 'node:child_process'
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { leftOut, missingProgram } from '../../support/real-servers.ts'
import { type StartedPostgres, startPostgres } from '../../support/start-postgres.ts'
import { expectExactChats, openAccounts, startChats } from './support/chats.ts'
import { freshSchemaName } from './support/fresh-schema.ts'

const DISK_SIZE = '128m'
const MIB = Buffer.alloc(1024 * 1024)

/** A small disk of our own, or the reason why this machine allows none. */
function mountDisk(): { readonly folder: string } | { readonly missing: string } {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_SIZE}`, 'tmpfs', folder], { stdio: 'pipe' })
  } catch (error) {
    rmSync(folder, { recursive: true })
    return { missing: leftOut(`no rights to mount a small disk: ${String(error)}`) }
  }
  chmodSync(folder, 0o777)
  return { folder }
}

const disk = missingProgram('postgres') === undefined ? mountDisk() : { missing: 'no PostgreSQL' }

describe.skipIf('missing' in disk)('PostgreSQL on a full disk', () => {
  const folder = 'folder' in disk ? disk.folder : ''
  const filler = join(folder, 'filler')
  let server: StartedPostgres
  let pool: pg.Pool
  let store: GatewayStore
  let accountIds: string[]
  /** Codes of the errors of the server. */
  const refused = new Set<string>()

  beforeAll(async () => {
    server = await startPostgres({ fsync: 'off', min_wal_size: '32MB', max_wal_size: '32MB' }, folder)
  })
  afterAll(async () => {
    await server.stop()
    execFileSync('umount', [folder])
    rmSync(folder, { recursive: true })
  })

  beforeEach(async () => {
    pool = new pg.Pool({ connectionString: server.url })
    pool.on('connect', (client) => {
      client.connection.on('errorMessage', ({ code }: { code: string }) => refused.add(code))
    })
    store = postgresStore({ pool, schema: freshSchemaName() })
    await store.start()
    accountIds = await openAccounts(store, 12, Date.now())
    return async () => {
      rmSync(filler, { force: true })
      await store.close()
      await pool.end()
    }
  })

  function fillDisk(): void {
    const file = openSync(filler, 'w')
    try {
      for (;;) writeSync(file, MIB)
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' })
    } finally {
      closeSync(file)
    }
  }

  test('refuses calls while no table can grow, and charges each call once when there is room again', async () => {
    refused.clear()
    const chats = startChats(store, accountIds)
    await chats.moreSettled(12)
    fillDisk()
    await chats.moreRepeated(100)
    rmSync(filler)
    await chats.end()

    expect([...refused]).toEqual(['53100'])
    await expectExactChats(store, chats)
  })

  test('charges each call once after a crash for want of room in the write-ahead log', async () => {
    const chats = startChats(store, accountIds)
    await chats.moreSettled(12)
    fillDisk()
    await expect(endSegments(pool)).rejects.not.toMatchObject({ severity: 'ERROR' })
    await chats.moreRepeated(20)
    await server.crash()
    rmSync(filler)
    await server.resume()
    await chats.end()

    await expectExactChats(store, chats)
  })
})

/** Begins a new file of the log again and again, until the server ends for want of room. */
async function endSegments(pool: pg.Pool): Promise<never> {
  for (;;) await pool.query('SELECT pg_switch_wal(), txid_current()')
}
