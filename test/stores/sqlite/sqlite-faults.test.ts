import { openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { isTrusted } from '../../../src/stores/sqlite/sqlite-engine.ts'
import { MIGRATIONS, migrate } from '../../../src/stores/sqlite/sqlite-migrations.ts'
import { SqliteStoreError, sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { defaultEngine, testEngines } from './support/sqlite-engines.ts'
import { temporaryPaths } from './support/temporary-folder.ts'

const newPath = temporaryPaths()
const NOW_MS = 1_750_000_000_000
const CREDIT = { creditId: 'credit_1', accountId: 'account_1', amount: 1_000_000n, description: 'start' }

function hold(holdId: string, keyId = 'key_1') {
  return { holdId, accountId: 'account_1', keyId, amount: 10n, expiresAtMs: NOW_MS + 1_000 }
}

async function seededPath(): Promise<string> {
  const path = newPath()
  const store = sqliteStore({ path, clock: 'caller' })
  await store.start()
  await store.ledger.createAccount({ id: 'account_1' }, NOW_MS)
  await store.ledger.credit(CREDIT, NOW_MS)
  await store.close()
  return path
}

async function failureOf(promise: PromiseLike<unknown>): Promise<SqliteStoreError> {
  const error = await Promise.resolve(promise).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(SqliteStoreError)
  return error as SqliteStoreError
}

describe('sqlite store on a database that cannot be used', () => {
  it('names a file that is not a database, and leaves it as it is', async () => {
    const path = newPath()
    writeFileSync(path, 'not a database at all. '.repeat(500))
    const error = await failureOf(sqliteStore({ path, clock: 'caller' }).start())

    expect(error).toMatchObject({ name: 'SqliteStoreError', fault: 'corrupt' })
    expect(error.message).toContain(path)
    expect(readFileSync(path, 'utf8').startsWith('not a database at all. ')).toBe(true)
  })

  it('names a database whose pages are damaged', async () => {
    const path = await seededPath()
    const file = openSync(path, 'r+')
    // The header stays whole: only the pages are overwritten.
    writeSync(file, Buffer.alloc(8_000, 0xa5), 0, 8_000, 100)

    expect(await failureOf(sqliteStore({ path, clock: 'caller' }).start())).toMatchObject({ fault: 'corrupt' })
  })

  it('names a folder that does not exist', async () => {
    const error = await failureOf(sqliteStore({ path: `${newPath()}/missing/store.db`, clock: 'caller' }).start())

    expect(error.fault).toBe('cannot_open')
    expect(error.message).toMatch(/folder must exist/)
  })

  it('can be started again after a start that failed', async () => {
    const path = newPath()
    const locker = defaultEngine.open(path)
    locker.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE host (a)')
    const store = sqliteStore({ path, busyTimeoutMs: 20, clock: 'caller' })
    const error = await failureOf(store.start())
    locker.exec('ROLLBACK')
    locker.close()

    expect(error.fault).toBe('locked')
    await store.start()
    await store.close()
  })

  it('refuses a database that newer code has written, and leaves it as it is', async () => {
    const path = await seededPath()
    const database = defaultEngine.open(path)
    database.exec(`INSERT INTO signalbox_migrations VALUES (${MIGRATIONS.length + 1}, 1)`)
    const error = await failureOf(sqliteStore({ path, clock: 'caller' }).start())

    expect(error.fault).toBe('schema_too_new')
    expect(error.message).toMatch(/update signalbox/)
    database.close()
  })

  it('applies only the steps that are missing, and none of them when one fails', () => {
    const database = defaultEngine.open(newPath())
    const steps = ['CREATE TABLE a (x)', 'CREATE TABLE b (x)']
    migrate(database, 'it', steps.slice(0, 1))
    migrate(database, 'it', steps)
    const failing = () => migrate(database, 'it', [...steps, 'CREATE TABLE c (x)', 'CREATE TABLE a (x)'])

    expect(failing).toThrow(/already exists/)
    expect(database.prepare("SELECT name FROM sqlite_schema WHERE name = 'c'").get()).toBeUndefined()
    expect(database.prepare('SELECT max(version) AS v FROM signalbox_migrations').get()).toMatchObject({ v: 2 })
    database.close()
  })

  it('trusts a SQLite from 3.51.3 on', () => {
    const versions = ['3.51.3', '3.51.10', '3.52.0', '4.0.0', '3.51.2', '3.50.9', '3.9.0', '2.99.99']

    expect(versions.filter(isTrusted)).toEqual(['3.51.3', '3.51.10', '3.52.0', '4.0.0'])
  })

  it('says what to update when a given database has an old SQLite', async () => {
    const old = {
      exec: () => undefined,
      close: () => undefined,
      prepare: () => ({ run: () => ({ changes: 0 }), get: () => ({ version: '3.45.1' }), all: () => [] }),
    }
    const error = await failureOf(sqliteStore({ database: old, clock: 'caller' }).start())

    expect(error.fault).toBe('engine_too_old')
    expect(error.message).toMatch(/3\.45\.1.*3\.51\.3 or newer/)
  })
})

for (const engine of testEngines) {
  describe(`sqlite store in trouble on ${engine.name}`, () => {
    it('waits while another connection writes, without blocking the process', async () => {
      const path = await seededPath()
      const locker = engine.open(path)
      const database = engine.open(path)
      const store = sqliteStore({ database, clock: 'caller' })
      await store.start()
      locker.exec('BEGIN IMMEDIATE')
      const reserved = store.ledger.reserve(hold('hold_1'), NOW_MS)
      const turns = await new Promise<number>((resolve) => {
        let count = 0
        const tick = (): unknown => (++count < 20 ? setImmediate(tick) : resolve(count))
        tick()
      })
      locker.exec('COMMIT')

      expect(turns).toBe(20)
      expect(await reserved).toEqual({ status: 'held' })
      await store.close()
      database.close()
      locker.close()
    })

    it('fails clearly when the lock is not to be had in time, and has done nothing', async () => {
      const path = await seededPath()
      const locker = engine.open(path)
      const database = engine.open(path)
      const store = sqliteStore({ database, busyTimeoutMs: 30, clock: 'caller' })
      await store.start()
      locker.exec('BEGIN IMMEDIATE')
      const error = await failureOf(store.ledger.reserve(hold('hold_1'), NOW_MS) as Promise<unknown>)
      locker.exec('COMMIT')

      expect(error.fault).toBe('locked')
      expect(await store.ledger.account('account_1')).toMatchObject({ balance: 1_000_000n, held: 0n })
      expect(await store.ledger.reserve(hold('hold_1'), NOW_MS)).toEqual({ status: 'held' })
      await store.close()
      database.close()
      locker.close()
    })

    it('says that the disk is full, acknowledges nothing that is lost, and goes on when there is room', async () => {
      const path = await seededPath()
      const database = engine.open(path)
      const store = sqliteStore({ database, clock: 'caller' })
      await store.start()
      const { page_count: pages } = database.prepare('PRAGMA page_count').get() as { page_count: number }
      database.exec(`PRAGMA max_page_count = ${Number(pages) + 2}`)
      const filler = 'x'.repeat(3_000)
      const outcomes = await Promise.allSettled(
        Array.from({ length: 100 }, async (_, index) => store.ledger.reserve(hold(`hold_${index}`, filler), NOW_MS)),
      )
      const held = outcomes.filter((outcome) => outcome.status === 'fulfilled').length
      const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
      const account = await store.ledger.account('account_1')
      database.exec('PRAGMA max_page_count = 1000000')

      expect(failures.length).toBeGreaterThan(0)
      expect(failures.every((error) => error instanceof SqliteStoreError && error.fault === 'full')).toBe(true)
      expect(account).toMatchObject({ balance: 1_000_000n - 10n * BigInt(held), held: 10n * BigInt(held) })
      expect(await store.ledger.reserve(hold('hold_after'), NOW_MS)).toEqual({ status: 'held' })
      await store.close()
      database.close()
    })

    it('says that the database is read-only', async () => {
      const database = engine.open(await seededPath())
      const store = sqliteStore({ database, clock: 'caller' })
      await store.start()
      database.exec('PRAGMA query_only = ON')
      const error = await failureOf(store.ledger.reserve(hold('hold_1'), NOW_MS) as Promise<unknown>)
      database.exec('PRAGMA query_only = OFF')

      expect(error.fault).toBe('read_only')
      expect(await store.ledger.account('account_1')).toMatchObject({ balance: 1_000_000n })
      await store.close()
      database.close()
    })
  })
}
