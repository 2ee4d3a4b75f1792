import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import type { TaskChange } from '../../../src/stores/task-store.ts'
import {
  exampleAnswer,
  exampleClaim,
  exampleDelivery,
  exampleReservation,
  exampleTask,
  fundedLedger,
} from '../../../src/testing/contracts/contract-runner.ts'
import { realServer } from '../../support/real-servers.ts'
import { type Schemas, schemasOn } from './support/fresh-schema.ts'

const server = await realServer('postgres')
const NOW_MS = 1_750_000_000_000

describe.skipIf(server.missing !== undefined)('tasks on PostgreSQL', () => {
  let schemas: Schemas
  let store: GatewayStore
  let schema: string

  beforeAll(() => {
    schemas = schemasOn(server.url)
  })
  afterAll(() => schemas.end())

  beforeEach(async () => {
    store = await schemas.create()
    schema = schemas.schemaOf(store)
    return () => schemas.dispose(store)
  })

  const countOf = async (table: string): Promise<number> => {
    const { rows } = await schemas.pool.query(`SELECT count(*)::integer AS count FROM ${schema}.${table}`)
    return (rows[0] as { count: number }).count
  }

  test.each([{ kind: 'void' }, { kind: 'settle', amount: 10n, description: 'video' }] as const)(
    'a change with resolution $kind waits for the account before it touches the key, as reserving does',
    async (resolve) => {
      const claim = exampleClaim()
      await fundedLedger(store, 1_000n)
      const task = exampleTask({ holdId: 'hold_1' })
      await store.ledger.reserve(exampleReservation({ claim, task, amount: 400n }), NOW_MS)
      const other = await schemas.pool.connect()
      await other.query(`BEGIN; SELECT 1 FROM ${schema}.accounts FOR UPDATE`)
      const answered = { claim, answer: exampleAnswer('accepted') }
      const change = { id: 'task_1', from: ['queued'], set: { state: 'failed' }, resolve, answered } as const
      const changing = store.tasks.change(change, NOW_MS)
      await untilSomebodyWaits()

      const key = await other.query(`SELECT 1 FROM ${schema}.claims FOR UPDATE NOWAIT`).then(
        () => 'free',
        () => 'locked',
      )
      await other.query('COMMIT')
      other.release()

      expect(key).toBe('free')
      expect(await changing).toBeDefined()
      expect((await store.idempotency.claim(claim, NOW_MS)).status).toBe('replay')
    },
  )

  test('forgets expired conversations as new ones come', async () => {
    for (let index = 0; index < 30; index++) await store.interactions.save(interaction(index, NOW_MS + 10))
    for (let index = 30; index < 45; index++) await store.interactions.save(interaction(index, NOW_MS + 10_000))

    expect(await countOf('interactions')).toBe(15)
  })

  test('a task with characters that SQL and JSON treat in a special way comes back as it was', async () => {
    const text = 'a\u0000b\\u0000 \' " \\ \ud800 \u2028 \u{1F600}'
    const details = { ...exampleTask().details, output: { [text]: [text] } }
    await fundedLedger(store, 1_000n)
    await store.ledger.reserve(exampleReservation({ task: exampleTask({ details }) }), NOW_MS)
    await store.tasks.change({ id: 'task_1', from: ['queued'], set: { details: { ...details, polls: 1 } } }, NOW_MS)

    expect((await store.tasks.find('account_1', 'task_1'))?.details).toEqual({ ...details, polls: 1 })
  })

  test('a change that the server cannot finish leaves task, hold, key and messages as they were', async () => {
    const claim = exampleClaim()
    await fundedLedger(store, 1_000n)
    const task = exampleTask({ holdId: 'hold_1' })
    await store.ledger.reserve(exampleReservation({ claim, task, amount: 400n }), NOW_MS)
    await schemas.pool.query(`ALTER TABLE ${schema}.deliveries ADD CHECK (body <> 'refused')`)
    const change: TaskChange = {
      id: 'task_1',
      from: ['queued'],
      set: { state: 'completed' },
      resolve: { kind: 'settle', amount: 150n, description: 'video' },
      answered: { claim, answer: exampleAnswer('accepted') },
      delivery: exampleDelivery({ body: 'refused' }),
    }

    await expect(store.tasks.change(change, NOW_MS)).rejects.toMatchObject({ code: '23514' })

    expect(await store.tasks.find('account_1', 'task_1')).toEqual(task)
    expect(await store.ledger.account('account_1')).toMatchObject({ balance: 600n, held: 400n })
    expect(await store.idempotency.claim(claim, NOW_MS)).toEqual({ status: 'in_flight' })
    expect(await countOf('deliveries')).toBe(0)
  })

  /** Until a statement on this schema waits for a lock. */
  async function untilSomebodyWaits(): Promise<void> {
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1`
    while ((await schemas.pool.query(waiting, [`%${schema}%change_task(%`])).rows.length === 0);
  }

  function interaction(index: number, expiresAtMs: number) {
    const ids = {
      id: `v1_${index}`,
      accountId: 'account_1',
      vendor: 'gemini',
      credentialId: 'f',
      upstreamId: 'u',
      model: 'm',
    }
    return { ...ids, createdAtMs: expiresAtMs - 10 - (index < 30 ? 1_000 : 0), expiresAtMs }
  }
})
