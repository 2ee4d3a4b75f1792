import fs, { copyFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { describe, expect, it, vi } from 'vitest'
import { type CommitLog, GroupCommit } from '../../../src/stores/sqlite/group-commit.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { defaultEngine } from './support/sqlite-engines.ts'
import { temporaryPaths } from './support/temporary-folder.ts'

/** Lets the next flush of a file by this process fail. */
function failNextFlush(fault: Error): void {
  const { fdatasync } = fs
  const failing = (_descriptor: number, done: (error: Error) => void): void => {
    fs.fdatasync = fdatasync
    syncBuiltinESMExports()
    setImmediate(done, fault)
  }
  fs.fdatasync = failing as typeof fdatasync
  syncBuiltinESMExports()
}

const newPath = temporaryPaths()

/** A group over a database in memory, whose flushes end when the test says so. */
function heldGroup() {
  const database = defaultEngine.open(':memory:')
  database.exec('CREATE TABLE numbers (value INTEGER NOT NULL)')
  const insert = database.prepare('INSERT INTO numbers VALUES (?)')
  const count = database.prepare('SELECT count(*) AS rows FROM numbers')
  const flushes: Parameters<CommitLog['flush']>[0][] = []
  /** Results of emptying the log, one per call; true if nothing is left. */
  const emptying: (boolean | Error)[] = []
  const empty = (): boolean => {
    const said = emptying.shift() ?? true
    if (said instanceof Error) throw said
    return said
  }
  const log: CommitLog = { flush: (done) => flushes.push(done), empty }
  const group = new GroupCommit(
    database,
    { label: 'the test', busyTimeoutMs: 100, log },
    { flush: () => undefined, discard: () => undefined },
  )
  const write = (value: number): Promise<number> =>
    group.write(() => {
      insert.run(value)
      return value
    })
  return {
    group,
    write,
    flushes,
    emptying,
    rows: () => Number((count.get() as { readonly rows: number | bigint }).rows),
  }
}

/** Everything that could run has run. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function watched<Value>(promise: Promise<Value>): { isOver: boolean } {
  const state = { isOver: false }
  const end = (): void => {
    state.isOver = true
  }
  promise.then(end, end)
  return state
}

describe('group commit with a flush of its own', () => {
  it('answers nothing before it is on the disk', async () => {
    const { write, flushes, rows } = heldGroup()
    const writing = write(1)
    const state = watched(writing)
    await settled()

    expect({ ...state, rows: rows(), flushes: flushes.length }).toEqual({ isOver: false, rows: 1, flushes: 1 })
    flushes[0]!(null)
    expect(await writing).toBe(1)
  })

  it('gathers what comes during a flush into one next group', async () => {
    const { write, flushes, rows } = heldGroup()
    const first = write(1)
    await settled()
    const later = [write(2), write(3), write(4)]
    await settled()

    expect({ rows: rows(), flushes: flushes.length }).toEqual({ rows: 1, flushes: 1 })
    flushes[0]!(null)
    expect(await first).toBe(1)
    await settled()
    expect({ rows: rows(), flushes: flushes.length }).toEqual({ rows: 4, flushes: 2 })
    flushes[1]!(null)
    expect(await Promise.all(later)).toEqual([2, 3, 4])
  })

  it('answers what needs no flush once it is committed, and makes no flush for it alone', async () => {
    const { group, write, flushes } = heldGroup()

    expect(await group.write(() => 'a hold', false)).toBe('a hold')
    expect(flushes).toHaveLength(0)
    const settling = write(1)
    const state = watched(settling)
    expect(await group.write(() => 'another', false)).toBe('another')
    expect({ ...state, flushes: flushes.length }).toEqual({ isOver: false, flushes: 1 })
    flushes[0]!(null)
    expect(await settling).toBe(1)
  })

  it('rejects a group whose flush failed, and goes on with the next one', async () => {
    const { write, flushes } = heldGroup()
    const first = write(1)
    const failure = first.catch((error: unknown) => error)
    await settled()
    const second = write(2)
    flushes[0]!(new Error('EIO: i/o error, fdatasync'))

    expect(await failure).toMatchObject({ name: 'SqliteStoreError', fault: 'io' })
    await settled()
    flushes[1]!(null)
    expect(await second).toBe(2)
  })

  it('acknowledges nothing after a failed flush until the log is in the database', async () => {
    const { group, write, flushes, emptying, rows } = heldGroup()
    emptying.push(Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' }), false, false)
    const lost = write(1).catch((error: unknown) => error)
    await settled()
    flushes[0]!(new Error('EIO: i/o error, fdatasync'))
    await lost

    // A settlement made again finds what it has written before, which must not be lost once that is said.
    expect(await write(2).catch((error: unknown) => error)).toMatchObject({ name: 'SqliteStoreError', fault: 'io' })
    expect(rows()).toBe(1)
    const third = write(3)
    await vi.waitFor(() => expect(flushes).toHaveLength(2))
    expect({ emptying, rows: rows() }).toEqual({ emptying: [], rows: 2 })
    flushes[1]!(null)
    expect(await third).toBe(3)
    emptying.push(new Error('is not asked again'))
    expect(await group.write(() => 'a hold', false)).toBe('a hold')
  })

  it('refuses what waits too long for another connection after a failed flush', async () => {
    const { write, flushes, emptying } = heldGroup()
    const lost = write(1).catch((error: unknown) => error)
    await settled()
    emptying.push(...Array<boolean>(1_000).fill(false))
    flushes[0]!(new Error('EIO: i/o error, fdatasync'))
    await lost

    expect(await write(2).catch((error: unknown) => error)).toMatchObject({ name: 'SqliteStoreError', fault: 'locked' })
  })

  it('is drained after the last flush only', async () => {
    const { group, write, flushes } = heldGroup()
    const writing = write(1)
    await settled()
    const drained = group.drained()
    const state = watched(drained)
    await settled()

    expect(state.isOver).toBe(false)
    flushes[0]!(null)
    await drained
    expect(await writing).toBe(1)
  })
})

describe('a SQLite file', () => {
  it('has everything after a failed flush, though its log is lost then', async () => {
    const path = newPath()
    const store = sqliteStore({ path })
    await store.start()
    await store.ledger.createAccount({ id: 'account_1' }, 0)
    failNextFlush(new Error('EIO: i/o error, fdatasync'))
    const credit = { creditId: 'credit_1', accountId: 'account_1', amount: 700n, description: 'paid' }

    await expect(store.ledger.credit(credit, 0)).rejects.toMatchObject({ fault: 'io' })
    // Made again, it finds itself and writes nothing.
    await store.ledger.credit(credit, 0)
    const kept = newPath()
    copyFileSync(path, kept)
    const other = sqliteStore({ path: kept })
    await other.start()
    expect(await other.ledger.account('account_1')).toMatchObject({ balance: 700n })
    await other.close()
    await store.close()
  })

  it('leaves the flush of commits to the store, and is flushed by it in WAL mode', async () => {
    const path = newPath()
    const database = defaultEngine.open(path)
    const store = sqliteStore({ database })
    await store.start()
    const mode = (name: string): unknown =>
      Object.values(database.prepare(`PRAGMA ${name}`).get() as Readonly<Record<string, unknown>>)[0]

    expect([mode('journal_mode'), Number(mode('synchronous'))]).toEqual(['wal', 1])
    await store.ledger.createAccount({ id: 'account_1' }, 0)
    expect(await store.ledger.account('account_1')).toBeDefined()
    await store.close()
    database.close()
  })
})
