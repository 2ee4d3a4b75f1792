import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { HOLD_RETENTION_MS, REFUSAL_RETENTION_MS } from '../../../src/stores/ledger.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/sqlite-database.ts'
import { MIGRATIONS } from '../../../src/stores/sqlite/sqlite-migrations.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { describeAuditStore } from '../../../src/testing/contracts/audit-store-contract.ts'
import { describeBlobStore } from '../../../src/testing/contracts/blob-store-contract.ts'
import { describeConversationStore } from '../../../src/testing/contracts/conversation-store-contract.ts'
import { describeBatchStore, describeFileStore } from '../../../src/testing/contracts/file-store-contract.ts'
import { describeIdempotencyStore } from '../../../src/testing/contracts/idempotency-store-contract.ts'
import { describeKeyStore } from '../../../src/testing/contracts/key-store-contract.ts'
import { describeLedger } from '../../../src/testing/contracts/ledger-contract.ts'
import {
  describeInteractionStore,
  describeResponseStore,
} from '../../../src/testing/contracts/response-store-contract.ts'
import { describeSettingStore } from '../../../src/testing/contracts/setting-store-contract.ts'
import { describeStoredUsage } from '../../../src/testing/contracts/stored-usage-contract.ts'
import { describeTaskStore } from '../../../src/testing/contracts/task-store-contract.ts'
import { describeUsageStore } from '../../../src/testing/contracts/usage-store-contract.ts'
import { describeWebhookStore } from '../../../src/testing/contracts/webhook-store-contract.ts'
import { expectLikeModel, ledgerHistories } from '../support/ledger-model.ts'
import { releasedDatabase } from './support/released-database.ts'
import { defaultEngine, defaultEngineName, testEngines } from './support/sqlite-engines.ts'
import { migratedMemories, migratedPaths, temporaryPaths } from './support/temporary-folder.ts'

const runner = { describe, it, expect }
const newPath = temporaryPaths()
const newMigratedPath = migratedPaths()
const newMigratedMemory = migratedMemories()
const isLong = process.env['DRILL'] === 'long'
const NOW_MS = 1_750_000_000_000
const CREDIT = { creditId: 'credit_1', accountId: 'account_1', amount: 1_000n, description: 'start' }
const HOLD = { holdId: 'hold_1', accountId: 'account_1', keyId: 'key_1', amount: 400n, expiresAtMs: NOW_MS + 1_000 }

async function started(store: GatewayStore): Promise<GatewayStore> {
  await store.start()
  return store
}

function describeStore(name: string, open: () => { store: GatewayStore; database?: SqliteDatabase }): void {
  const databases = new WeakMap<GatewayStore, SqliteDatabase>()
  const create = async (): Promise<GatewayStore> => {
    const { store, database } = open()
    if (database !== undefined) databases.set(store, database)
    return started(store)
  }
  const dispose = async (store: GatewayStore): Promise<void> => {
    await store.close()
    databases.get(store)?.close()
  }
  describe(name, () => {
    let current: GatewayStore
    describeLedger(
      runner,
      remember(create, (store) => store),
    )
    describeKeyStore(
      runner,
      remember(create, (store) => store.keys),
    )
    describeIdempotencyStore(
      runner,
      remember(create, (store) => store.idempotency),
    )
    describeAuditStore(
      runner,
      remember(create, (store) => store.audit!),
    )
    describeSettingStore(
      runner,
      remember(create, (store) => store.settings!),
    )
    describeInteractionStore(
      runner,
      remember(create, (store) => store.interactions),
    )
    describeResponseStore(
      runner,
      remember(create, (store) => store.responses),
    )
    describeFileStore(
      runner,
      remember(create, (store) => store.files!),
    )
    describeBlobStore(
      runner,
      remember(create, (store) => store.blobs!),
    )
    describeBatchStore(
      runner,
      remember(create, (store) => store.batches!),
    )
    describeConversationStore(
      runner,
      remember(create, (store) => store),
    )
    describeStoredUsage(
      runner,
      remember(create, (store) => store),
    )
    describeTaskStore(
      runner,
      remember(create, (store) => store),
    )
    describeUsageStore(
      runner,
      remember(create, (store) => store),
    )
    describeWebhookStore(
      runner,
      remember(create, (store) => store),
    )

    function remember<Driver>(make: () => Promise<GatewayStore>, part: (store: GatewayStore) => Driver) {
      return {
        create: async () => {
          current = await make()
          return part(current)
        },
        dispose: () => dispose(current),
      }
    }

    it(
      'agrees with a simple model over random histories, to the nano-dollar',
      async () => {
        await fc.assert(
          fc.asyncProperty(
            ledgerHistories(isLong ? { minLength: 100, maxLength: 100 } : { maxLength: 50 }),
            async (history) => {
              const store = await create()
              try {
                await expectLikeModel(store.ledger, history)
              } finally {
                await dispose(store)
              }
            },
          ),
          { numRuns: isLong ? 1_000 : 60 },
        )
      },
      isLong ? 900_000 : 60_000,
    )
  })
}

describeStore('sqlite store on a path', () => ({ store: sqliteStore({ path: newMigratedPath(), clock: 'caller' }) }))
describeStore('sqlite store in memory', () => {
  const database = newMigratedMemory()
  return { store: sqliteStore({ database, clock: 'caller' }), database }
})
for (const version of MIGRATIONS.map((_, index) => index + 1)) {
  describeStore(`sqlite store on a database of version ${version}`, () => {
    const database = releasedDatabase(version, false)
    return { store: sqliteStore({ database, clock: 'caller' }), database }
  })
}
// The default engine is the one of the databases above.
for (const engine of testEngines.filter(({ name }) => name !== defaultEngineName)) {
  describeStore(`sqlite store on ${engine.name}`, () => {
    const database = engine.open(newMigratedPath())
    return { store: sqliteStore({ database, clock: 'caller' }), database }
  })
}

describe('sqlite store', () => {
  it('keeps everything over a restart', async () => {
    const path = newPath()
    const first = await started(sqliteStore({ path, clock: 'caller' }))
    await first.ledger.createAccount({ id: 'account_1', spendingCap: { amount: 5_000n, period: 'day' } }, NOW_MS)
    await first.ledger.credit(CREDIT, NOW_MS)
    await first.ledger.reserve(HOLD, NOW_MS)
    await first.close()
    const second = await started(sqliteStore({ path, clock: 'caller' }))

    expect(await second.ledger.account('account_1')).toMatchObject({
      id: 'account_1',
      balance: 600n,
      held: 400n,
      owed: 0n,
      tier: 'paid',
      spendingCap: { amount: 5_000n, period: 'day' },
      createdAtMs: NOW_MS,
    })
    expect(await second.ledger.credit(CREDIT, NOW_MS)).toBe(false)
    expect(await second.ledger.void('hold_1', NOW_MS)).toMatchObject({ resolved: true })
    await second.close()
  })

  it('sees at once what another connection to the file has written', async () => {
    const path = newPath()
    const one = await started(sqliteStore({ path, clock: 'caller' }))
    const other = await started(sqliteStore({ path, clock: 'caller' }))
    await one.ledger.createAccount({ id: 'account_1' }, NOW_MS)
    await other.ledger.credit(CREDIT, NOW_MS)

    expect((await one.ledger.account('account_1'))?.balance).toBe(1_000n)
    await one.close()
    await other.close()
  })

  it('finishes what was asked before it closes, and refuses what is asked later', async () => {
    const path = newPath()
    const store = await started(sqliteStore({ path, clock: 'caller' }))
    await store.ledger.createAccount({ id: 'account_1' }, NOW_MS)
    const credited = store.ledger.credit(CREDIT, NOW_MS)
    await store.close()

    expect(await credited).toBe(true)
    await expect(store.ledger.account('account_1')).rejects.toMatchObject({ fault: 'closed' })
    await expect(store.start()).rejects.toMatchObject({ fault: 'closed' })
  })

  it('says that it must be started first', async () => {
    const store = sqliteStore({ path: newPath(), clock: 'caller' })

    await expect(store.ledger.account('account_1')).rejects.toThrow(/call start\(\) first/)
  })

  it('undoes only the operation that fails among those written together', async () => {
    const store = await started(sqliteStore({ path: newPath(), clock: 'caller' }))
    await store.ledger.createAccount({ id: 'account_1' }, NOW_MS)
    await store.keys.insert(keyOf('1'))
    const outcomes = await Promise.allSettled([
      store.ledger.credit(CREDIT, NOW_MS),
      store.ledger.credit({ ...CREDIT, creditId: 'credit_2', accountId: 'nobody' }, NOW_MS),
      store.keys.insert({ ...keyOf('2'), id: keyOf('1').id }),
      store.ledger.credit({ ...CREDIT, creditId: 'credit_3' }, NOW_MS),
    ])

    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    expect((await store.ledger.account('account_1'))?.balance).toBe(2_000n)
    await store.close()
  })

  it('does not let the journal be changed, even past the store', async () => {
    const database = defaultEngine.open(newPath())
    const store = await started(sqliteStore({ database, clock: 'caller' }))
    await store.ledger.createAccount({ id: 'account_1' }, NOW_MS)
    await store.ledger.credit(CREDIT, NOW_MS)

    expect(() => database.exec('UPDATE signalbox_entries SET amount = 5')).toThrow(/append-only/)
    expect(() => database.exec('DELETE FROM signalbox_entries')).toThrow(/append-only/)
    expect(() => database.exec('UPDATE signalbox_accounts SET balance = -1')).toThrow(/CHECK/)
    await store.close()
    database.close()
  })

  it('deletes refusals an hour and ended holds a day after their deadline, so that a late settlement is known until then', async () => {
    const database = defaultEngine.open(newPath())
    const store = await started(sqliteStore({ database, clock: 'caller' }))
    const settlement = { holdId: 'hold_1', amount: 1n, description: 'chat' }
    const deadlineMs = HOLD.expiresAtMs
    const rows = () =>
      ['holds', 'refusals'].map((name) => database.prepare(`SELECT * FROM signalbox_${name}`).all().length)
    await store.ledger.createAccount({ id: 'account_1' }, NOW_MS)
    await store.ledger.credit(CREDIT, NOW_MS)
    await store.ledger.reserve(HOLD, NOW_MS)
    await store.ledger.reserve({ ...HOLD, holdId: 'hold_2', amount: 10n ** 15n }, NOW_MS)
    await store.ledger.settle(settlement, NOW_MS)
    await store.ledger.expire(deadlineMs + REFUSAL_RETENTION_MS - 1, 10)
    const beforeAnHour = rows()
    await store.ledger.expire(deadlineMs + HOLD_RETENTION_MS - 1, 10)
    const late = await store.ledger.settle(settlement, deadlineMs + HOLD_RETENTION_MS - 1)
    const beforeADay = rows()
    await store.ledger.expire(deadlineMs + HOLD_RETENTION_MS, 10)

    expect([beforeAnHour, beforeADay, rows()]).toEqual([
      [1, 1],
      [1, 0],
      [0, 0],
    ])
    expect(late).toMatchObject({ resolved: false, endedBy: 'settled' })
    await store.close()
    database.close()
  })

  it('deletes in one sweep the Idempotency-Keys that 1,000 calls a second leave behind in 30 seconds', async () => {
    const database = defaultEngine.open(newPath())
    const store = await started(sqliteStore({ database, clock: 'caller' }))
    database.exec(`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 30000)
      INSERT INTO signalbox_idempotency (account_id, key, fingerprint, expires_at_ms)
      SELECT 'account_1', n, 'f', ${NOW_MS} FROM numbers`)

    await store.ledger.expire(NOW_MS, 10)

    expect(database.prepare('SELECT count(*) AS n FROM signalbox_idempotency').get()).toEqual({ n: 0 })
    await store.close()
    database.close()
  })

  it('forgets ended holds, refusals, Idempotency-Keys and what keys have spent when they have expired', async () => {
    const database = defaultEngine.open(newPath())
    const store = await started(sqliteStore({ database, clock: 'caller' }))
    const claim = { accountId: 'account_1', key: 'k', fingerprint: 'f', expiresAtMs: NOW_MS + 1_000 }
    const caps = { key: { amount: 500n, period: 'day' as const } }
    await store.ledger.createAccount({ id: 'account_1' }, NOW_MS)
    await store.ledger.credit(CREDIT, NOW_MS)
    await store.ledger.reserve({ ...HOLD, claim, caps }, NOW_MS)
    await store.ledger.reserve({ ...HOLD, holdId: 'hold_2', caps }, NOW_MS)
    const answer = { status: 200, headers: [], body: new Uint8Array(1) }
    await store.ledger.settle({ holdId: 'hold_1', amount: 1n, description: 'chat', answer }, NOW_MS)
    const twoMonthsLaterMs = NOW_MS + 62 * 86_400_000
    const count = (table: string) =>
      Number((database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n)
    const tables = ['holds', 'refusals', 'key_spending', 'idempotency'].map((name) => `signalbox_${name}`)
    const before = tables.map(count)
    await store.ledger.expire(twoMonthsLaterMs, 10)

    expect(before).toEqual([1, 1, 1, 1])
    expect(tables.map(count)).toEqual([0, 0, 0, 0])
    expect(count('signalbox_entries')).toBe(2)
    await store.close()
    database.close()
  })
})

function keyOf(id: string) {
  return {
    id,
    accountId: 'account_1',
    hash: id.repeat(64),
    label: '',
    scopes: {},
    limits: undefined,
    spendingCap: undefined,
    createdAtMs: NOW_MS,
    expiresAtMs: undefined,
    revokedAtMs: undefined,
  }
}
