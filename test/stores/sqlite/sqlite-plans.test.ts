import { beforeEach, describe, expect, it, test } from 'vitest'
import { BLOB_ROW_BYTES, type BlobStore } from '../../../src/stores/blob-store.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/sqlite-database.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { ACCOUNT_ID, exampleTask, NOW_MS } from '../../../src/testing/contracts/contract-runner.ts'
import { defaultEngine } from './support/sqlite-engines.ts'

const place = { createdAtMs: NOW_MS, id: 'x' }

/** Queries, and the only index that leads to their rows in order. */
const QUESTIONS: readonly (readonly [title: string, index: string, ask: (store: Required<GatewayStore>) => unknown])[] =
  [
    ['tasks that ended long ago', 'ended_tasks', ({ tasks }) => tasks.purge({ changedUntilMs: NOW_MS, limit: 10 })],
    [
      'tasks whose time is over',
      'tasks_by_deadline',
      ({ tasks }) => tasks.leaseExpired({ nowMs: NOW_MS, leaseUntilMs: NOW_MS, limit: 10 }),
    ],
    [
      'tasks of one account',
      'tasks_by_account',
      ({ tasks }) => tasks.listAll({ accountId: 'a', after: place, limit: 10 }),
    ],
    [
      'tasks of one account in one state',
      'tasks_by_account',
      ({ tasks }) => tasks.listAll({ accountId: 'a', state: 'failed', limit: 10 }),
    ],
    [
      'tasks in one state',
      'tasks_by_state',
      ({ tasks }) => tasks.listAll({ state: 'failed', after: place, limit: 10 }),
    ],
    [
      'messages that are due',
      'deliveries_due',
      ({ webhooks }) => webhooks.leaseDue({ nowMs: NOW_MS, leaseUntilMs: NOW_MS, limit: 10 }),
    ],
    [
      'messages of one account',
      'deliveries_by_account',
      ({ webhooks }) => webhooks.listAll({ accountId: 'a', after: place, limit: 10 }),
    ],
    [
      'messages of one account in one state',
      'deliveries_by_account',
      ({ webhooks }) => webhooks.listAll({ accountId: 'a', state: 'failed', limit: 10 }),
    ],
    ['messages of all accounts', 'deliveries_by_time', ({ webhooks }) => webhooks.listAll({ after: place, limit: 10 })],
  ]

describe('what SQLite reads', () => {
  let store: Required<GatewayStore>
  let asked: string[]
  let database: SqliteDatabase

  beforeEach(async () => {
    database = defaultEngine.open(':memory:')
    store = sqliteStore({ database: noted(database, (sql) => asked.push(sql)), clock: 'caller' }) as typeof store
    asked = []
    await store.start()
    return async () => {
      await store.close()
      database.close()
    }
  })

  const plansOf = (sql: string): string[] =>
    (database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { readonly detail: string }[]).map(({ detail }) => detail)

  it.each(QUESTIONS)('finds %s by their index, and sorts nothing', async (_title, index, ask) => {
    // Some questions are asked only where there is anything to be done.
    await store.tasks.insert(exampleTask({ state: 'completed', accountId: ACCOUNT_ID, updatedAtMs: NOW_MS - 1 }))
    asked = []

    await ask(store)

    const [plan] = asked.filter((sql) => sql.startsWith('SELECT')).map(plansOf)
    expect(plan?.[0]).toMatch(new RegExp(`USING INDEX signalbox_${index}\\b`))
    expect(plan?.join()).not.toContain('TEMP B-TREE')
  })
})

describe('what SQLite reads of the answers of an account', () => {
  test.each([
    ['a conversation', ({ responses }: GatewayStore) => responses.conversation('a', 'resp_1', NOW_MS)],
    ['answers by their items', ({ responses }: GatewayStore) => responses.findByItems('a', ['msg_1'], NOW_MS)],
    ['known items', ({ responses }: GatewayStore) => responses.knownItems('a', ['msg_1'], NOW_MS)],
  ])('reads %s by their keys, and not all answers of the account', async (_what, ask) => {
    const database = defaultEngine.open(':memory:')
    const asked: string[] = []
    const store = sqliteStore({ database: noted(database, (sql) => asked.push(sql)), clock: 'caller' })
    await store.start()
    asked.length = 0

    await ask(store)

    const plan = database.prepare(`EXPLAIN QUERY PLAN ${asked.at(-1)}`).all() as { readonly detail: string }[]
    expect(plan.map(({ detail }) => detail).join()).toMatch(/account_id=\? AND (id|item_id)=\?/)
    expect(plan.map(({ detail }) => detail).join()).not.toContain('signalbox_responses_stored')
    await store.close()
    database.close()
  })
})

/** Large content, in rows. */
const ROWS = 30

describe('what one transaction of SQLite deletes', () => {
  test.each([
    ['deleted', (blobs: BlobStore) => blobs.delete('blob_1')],
    ['expired', (blobs: BlobStore) => blobs.purge(NOW_MS, 10)],
    ['replaced', (blobs: BlobStore) => blobs.put({ id: 'blob_1', expiresAtMs: NOW_MS }, pieces(1))],
  ])('is a small part of large content that was %s', async (_how, remove) => {
    const database = defaultEngine.open(':memory:')
    const left: number[] = []
    const count = (): number =>
      Number((database.prepare('SELECT count(*) AS count FROM signalbox_blob_rows').get() as { count: number }).count)
    const store = sqliteStore({ database: noted(database, (sql) => sql === 'COMMIT' && left.push(count())) })
    await store.start()
    await store.blobs!.put({ id: 'blob_1', expiresAtMs: NOW_MS - 1 }, pieces(ROWS))
    left.length = 0

    await remove(store.blobs!)
    await store.blobs!.purge(NOW_MS - 1, 10)

    const steps = left.map((rows, index) => (left[index - 1] ?? ROWS) - rows)
    expect(Math.max(...steps)).toBeLessThanOrEqual(10)
    expect(left.at(-1)).toBeLessThanOrEqual(1)
    await store.close()
    database.close()
  })
})

async function* pieces(count: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index++) yield new Uint8Array(BLOB_ROW_BYTES)
}

/** Calls `note` with each statement that is run. */
function noted(database: SqliteDatabase, note: (sql: string) => unknown): SqliteDatabase {
  return {
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    prepare(sql) {
      const statement = database.prepare(sql)
      const { setReadBigInts } = statement
      const told = <Result>(call: (...values: never[]) => Result) =>
        ((...values: never[]) => {
          note(sql)
          return call.apply(statement, values)
        }) as never
      return {
        run: told(statement.run),
        get: told(statement.get),
        all: told(statement.all),
        ...(setReadBigInts && { setReadBigInts: (enabled: boolean) => setReadBigInts.call(statement, enabled) }),
      }
    },
  }
}
