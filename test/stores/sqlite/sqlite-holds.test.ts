import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { Ledger, Reservation } from '../../../src/stores/ledger.ts'
import { memoryLedger } from '../../../src/stores/memory/memory-ledger.ts'
import type { SqliteDatabase } from '../../../src/stores/sqlite/sqlite-database.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { expectClaimsByOneClock } from '../support/claims-by-one-clock.ts'
import { expectToldAgain } from '../support/settled-again.ts'
import { type CountedDatabase, countedDatabase } from './support/counted-database.ts'
import { testEngines } from './support/sqlite-engines.ts'
import { temporaryPaths } from './support/temporary-folder.ts'

const newPath = temporaryPaths()
const isLong = process.env['DRILL'] === 'long'
const NOW_MS = 1_750_000_000_000
const TWO_HOURS_MS = 2 * 60 * 60 * 1000
const UNRESOLVED = { resolved: false, charged: 0n, shortfall: 0n }
const ACCOUNTS = ['account_1', 'account_2']

type Step = (ledger: Ledger) => unknown

const accountIds = fc.constantFrom(...ACCOUNTS)
const holdIds = fc.integer({ min: 1, max: 20 }).map((number) => `hold_${number}`)
const amounts = fc.bigInt({ min: 0n, max: 1_000n })
const times = fc.integer({ min: NOW_MS, max: NOW_MS + 2 })

/** Steps that may meet: few holds, few accounts, little money, and some with keys or limits between plain ones. */
const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(holdIds, accountIds, amounts, times).map(reserveStep) },
  { weight: 1, arbitrary: fc.tuple(holdIds, accountIds, amounts, times).map(limitedStep) },
  { weight: 1, arbitrary: fc.tuple(holdIds, accountIds, amounts, times).map(claimedStep) },
  {
    weight: 5,
    arbitrary: fc.tuple(holdIds, amounts, times).map(([holdId, amount, nowMs]): Step => {
      return (ledger) => ledger.settle({ holdId, amount, description: `chat ${amount}` }, nowMs)
    }),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(holdIds, times).map(
      ([holdId, nowMs]): Step =>
        (ledger) =>
          ledger.void(holdId, nowMs),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(holdIds, accountIds, times).map(
      ([creditId, accountId, nowMs]): Step =>
        (ledger) =>
          ledger.credit({ creditId: `${creditId}_${accountId}`, accountId, amount: 700n, description: 'more' }, nowMs),
    ),
  },
)

/** Steps that are asked at once, several times. As long as allowed, so that they do meet. */
const waveLists = fc.array(fc.array(steps, { maxLength: 40, size: 'max' }), { maxLength: 4, size: 'max' })

type ReserveArguments = [holdId: string, accountId: string, amount: bigint, nowMs: number]

function reservation([holdId, accountId, amount, nowMs]: ReserveArguments): Reservation {
  return { holdId, accountId, keyId: 'key_1', amount, expiresAtMs: nowMs + 60_000 }
}

function reserveStep(given: ReserveArguments): Step {
  return (ledger) => ledger.reserve(reservation(given), given[3])
}

function limitedStep(given: ReserveArguments): Step {
  const caps = { key: { amount: 300n, period: 'day' as const } }
  return (ledger) => ledger.reserve({ ...reservation(given), keyId: `key_of_${given[1]}`, caps }, given[3])
}

function claimedStep(given: ReserveArguments): Step {
  const claim = { accountId: given[1], key: 'k', fingerprint: 'f', expiresAtMs: NOW_MS + 600_000 }
  return (ledger) => ledger.reserve({ ...reservation(given), claim }, given[3])
}

/** Returns the visible state of a ledger's accounts, without the numbers of journal lines. */
async function stateOf(ledger: Ledger): Promise<unknown> {
  return Promise.all(
    ACCOUNTS.map(async (accountId) => {
      const lines = await ledger.entries(accountId, 1_000)
      return { account: await ledger.account(accountId), lines: lines.map((line) => ({ ...line, id: undefined })) }
    }),
  )
}

async function fund(ledger: Ledger, amount = 1_000n): Promise<void> {
  for (const id of ACCOUNTS) {
    await ledger.createAccount({ id }, NOW_MS)
    await ledger.credit({ creditId: `start_${id}`, accountId: id, amount, description: 'start' }, NOW_MS)
  }
}

for (const engine of testEngines) {
  describe(`sqlite holds on ${engine.name}`, () => {
    /** Opens a funded store, lets a test use it, and closes everything. */
    async function withStore(
      test: (store: GatewayStore, database: CountedDatabase, path: string) => Promise<void>,
      amount?: bigint,
    ): Promise<void> {
      const path = newPath()
      const database = countedDatabase(engine.open(path))
      const store = sqliteStore({ database, clock: 'caller' })
      await store.start()
      await fund(store.ledger, amount)
      await test(store, database, path)
      await store.close()
      database.close()
    }

    async function withOther(path: string, test: (store: GatewayStore) => Promise<void>): Promise<void> {
      const database: SqliteDatabase = engine.open(path)
      const store = sqliteStore({ database, clock: 'caller' })
      await store.start()
      await test(store)
      await store.close()
      database.close()
    }

    it(
      'does what is asked at once as if it were asked one after the other',
      async () => {
        await fc.assert(
          fc.asyncProperty(waveLists, async (waves) => {
            await withStore(async ({ ledger }) => {
              const plain = memoryLedger()
              await fund(plain)
              for (const wave of waves) {
                const wanted = wave.map((step) => step(plain))
                expect(await Promise.all(wave.map((step) => step(ledger)))).toEqual(wanted)
              }
              expect(await stateOf(ledger)).toEqual(await stateOf(plain))
            })
          }),
          { numRuns: isLong ? 1_000 : 40 },
        )
      },
      isLong ? 900_000 : 60_000,
    )

    it('writes 64 reservations by little more than a call each, and their settlements by a few calls without a read each', async () => {
      await withStore(async ({ ledger }, database) => {
        const holds = Array.from({ length: 64 }, (_, index) => `hold_${index}`)
        database.calls.clear()
        await Promise.all(holds.map((holdId) => reserveStep([holdId, 'account_1', 10n, NOW_MS])(ledger)))
        const reserving = Object.fromEntries(database.calls)
        database.calls.clear()
        await Promise.all(holds.map((holdId) => ledger.settle({ holdId, amount: 4n, description: 'chat' }, NOW_MS)))

        expect(reserving).toEqual({ BEGIN: 1, SELECT: 2, INSERT: 65, UPDATE: 1, COMMIT: 1 })
        expect(Object.fromEntries(database.calls)).toEqual({ BEGIN: 1, SELECT: 2, UPDATE: 6, INSERT: 4, COMMIT: 1 })
        expect(await ledger.account('account_1')).toMatchObject({ balance: 1_000n - 64n * 4n, held: 0n })
      })
    })

    it('charges nothing for a hold that another process has ended, and charges the others', async () => {
      await withStore(async ({ ledger }, _database, path) => {
        const holds = ['hold_1', 'hold_2', 'hold_3']
        // The fourth stays open: what it holds must not make good for the one that is gone.
        for (const holdId of [...holds, 'hold_4']) await reserveStep([holdId, 'account_1', 100n, NOW_MS])(ledger)
        await withOther(path, async (other) => void (await other.ledger.void('hold_2', NOW_MS)))
        const ends = holds.map((holdId) => ledger.settle({ holdId, amount: 40n, description: 'chat' }, NOW_MS))
        const charged = { resolved: true, charged: 40n, shortfall: 0n }

        expect(await Promise.all(ends)).toEqual([charged, { ...UNRESOLVED, endedBy: 'voided' }, charged])
        expect(await ledger.account('account_1')).toMatchObject({ balance: 820n, held: 100n })
        expect((await ledger.entries('account_1', 10)).map(({ amount }) => amount)).toEqual([-40n, -40n, 1_000n])
      })
    })

    it('writes down for each hold of a group when it was ended', async () => {
      await withStore(async ({ ledger }, database) => {
        const holds = ['hold_1', 'hold_2', 'hold_3']
        for (const holdId of holds) await reserveStep([holdId, 'account_1', 100n, NOW_MS])(ledger)
        const settle = (holdId: string, nowMs: number) =>
          ledger.settle({ holdId, amount: 1n, description: 'chat' }, nowMs)
        await Promise.all(holds.map((holdId, index) => settle(holdId, NOW_MS + index)))
        const rows = database
          .prepare('SELECT CAST(ended_at_ms AS TEXT) AS ended FROM signalbox_holds ORDER BY id')
          .all()

        expect(rows.map((row) => Number((row as { ended: string }).ended) - NOW_MS)).toEqual([0, 1, 2])
      })
    })

    it('reads the balance again for every group, since other processes spend from it too', async () => {
      await withStore(async ({ ledger }, _database, path) => {
        const reserve = (holdId: string) => reserveStep([holdId, 'account_1', 400n, NOW_MS])
        expect(await reserve('hold_1')(ledger)).toEqual({ status: 'held' })
        await withOther(path, async (other) => void (await reserve('hold_2')(other.ledger)))

        expect(await reserve('hold_3')(ledger)).toEqual({ status: 'insufficient_balance' })
        expect(await ledger.account('account_1')).toMatchObject({ balance: 200n, held: 800n })
      })
    })

    it('repeats a refusal after money has come, while others of the group are held', async () => {
      await withStore(async ({ ledger }) => {
        const credit = { creditId: 'credit_2', accountId: 'account_1', amount: 9_000n, description: 'more' }
        await reserveStep(['hold_1', 'account_1', 1_001n, NOW_MS])(ledger)
        await ledger.credit(credit, NOW_MS)
        const outcomes = ['hold_1', 'hold_2'].map((id) => reserveStep([id, 'account_1', 1_001n, NOW_MS])(ledger))

        expect(await Promise.all(outcomes)).toEqual([{ status: 'insufficient_balance' }, { status: 'held' }])
        expect(await ledger.account('account_1')).toMatchObject({ balance: 8_999n, held: 1_001n })
      })
    })

    it('settles what the database knows of a hold whose id was given again after its time', async () => {
      await withStore(async ({ ledger }, _database, path) => {
        const laterMs = NOW_MS + TWO_HOURS_MS
        await reserveStep(['hold_1', 'account_1', 400n, NOW_MS])(ledger)
        await withOther(path, async (other) => {
          await other.ledger.expire(laterMs, 10)
          await reserveStep(['hold_1', 'account_1', 900n, laterMs])(other.ledger)
        })
        await ledger.settle({ holdId: 'hold_1', amount: 90n, description: 'chat' }, laterMs)

        expect(await ledger.account('account_1')).toMatchObject({ balance: 910n, held: 0n })
      })
    })

    it('expires holds by the clock of the machine, whatever the clocks of the processes say', async () => {
      const database = engine.open(newPath())
      const store = sqliteStore({ database })
      await store.start()
      await fund(store.ledger)
      const wrongMs = 16 * 60_000
      const live = (holdId: string, nowMs: number) =>
        store.ledger.reserve(
          { ...reservation([holdId, 'account_1', 100n, nowMs]), expiresAtMs: nowMs + 900_000 },
          nowMs,
        )
      await live('of a process in time', Date.now())
      await live('of a process that is slow', Date.now() - wrongMs)
      await live('of a process that is fast', Date.now() + wrongMs)

      expect(await store.ledger.expire(Date.now() + wrongMs, 10)).toBe(0)
      expect(await store.ledger.expire(Date.now(), 10)).toBe(0)
      await store.ledger.reserve(
        { ...reservation(['over', 'account_1', 100n, Date.now() - wrongMs]), expiresAtMs: Date.now() - wrongMs },
        Date.now() - wrongMs,
      )
      expect(await store.ledger.expire(Date.now() - wrongMs, 10)).toBe(1)
      await store.close()
      database.close()
    })

    it('has claims last by the clock of the machine, whatever the clocks of the processes say', async () => {
      const database = engine.open(newPath())
      const store = sqliteStore({ database })
      await store.start()
      await expectClaimsByOneClock(store.idempotency)
      await store.close()
      database.close()
    })

    it('tells a settlement that is made again what the first one charged and has passed', async () => {
      const database = engine.open(':memory:')
      const store = sqliteStore({ database, clock: 'caller' })
      await store.start()
      await expectToldAgain(store)
      await store.close()
      database.close()
    })

    it('keeps nothing of a group that could not be committed', async () => {
      await withStore(async ({ ledger }, database) => {
        database.failNext('COMMIT')
        const lost = [1, 2].map((number) => reserveStep([`hold_${number}`, 'account_1', 600n, NOW_MS])(ledger))
        const outcomes = await Promise.allSettled(lost)
        const held = await reserveStep(['hold_3', 'account_1', 1_000n, NOW_MS])(ledger)

        expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
        expect(held).toEqual({ status: 'held' })
        expect(await ledger.settle({ holdId: 'hold_1', amount: 1n, description: 'chat' }, NOW_MS)).toEqual(UNRESOLVED)
        expect(await ledger.account('account_1')).toMatchObject({ balance: 0n, held: 1_000n })
      })
    })
  })
}
