import pg from 'pg'
import { describe, expect, it, vi } from 'vitest'
import type { CommitWith } from '../../../src/pipeline/commit-with.ts'
import type { PostgresClient, PostgresPreparedStatement } from '../../../src/stores/postgres/postgres-connection.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import {
  CHAT,
  expectUncharged,
  type HostedStore,
  inserting,
  PRINCIPAL,
  testCommitWith,
  withGateway,
} from '../../gateway/money/commit-with-cases.ts'
import { missingProgram, realServer } from '../../support/real-servers.ts'
import { startPostgres } from '../../support/start-postgres.ts'
import { dropSchema, freshSchemaName } from './support/fresh-schema.ts'

const server = await realServer('postgres')

/** Creates a store on a pool whose clients may be replaced, with a table of the host in the same schema. */
async function onPostgres(
  url = server.url,
  wrap = (client: pg.PoolClient): PostgresClient => client,
  statementTimeoutMs = 1_000,
): Promise<HostedStore> {
  const own = new pg.Pool({ connectionString: url, max: 4 })
  own.on('error', () => undefined)
  const schema = freshSchemaName()
  await own.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.answers (request text, cost bigint)`)
  const query = (text: string, values?: unknown[]) => own.query(text, values as unknown[])
  const pool = { query, connect: async () => wrap(await own.connect()) }
  return {
    store: postgresStore({ pool, schema, statementTimeoutMs }),
    insert: `INSERT INTO ${schema}.answers (request, cost) VALUES ($1, $2)`,
    async requests() {
      const { rows } = await own.query(`SELECT request FROM ${schema}.answers`)
      return rows.map(({ request }: { request: string }) => request)
    },
    async dispose() {
      await dropSchema(own, schema)
      await own.end()
    },
  }
}

/** Returns a connection whose commits of a transaction with host statements lose their answer, or do not reach the server. */
function losingCommits(isSent: boolean): (client: pg.PoolClient) => PostgresClient {
  return (client) => {
    let isCharging = false
    return {
      async query(statement: string | PostgresPreparedStatement, values?: unknown[]) {
        if (typeof statement !== 'string') return client.query({ ...statement })
        if (statement.startsWith('SAVEPOINT')) isCharging = true
        if (statement !== 'COMMIT' || !isCharging) return client.query(statement, values)
        if (isSent) await client.query(statement)
        throw new Error('the connection broke before the answer')
      },
      release: (error) => client.release(error),
      on: () => undefined,
    }
  }
}

describe.skipIf(server.missing !== undefined)('commitWith on PostgreSQL', () => {
  testCommitWith(onPostgres)

  it('passes a client of the pool to the host, which can call the gateway meanwhile', () =>
    withGateway(onPostgres, async ({ gateway }, host) => {
      const { commitWith } = inserting(host)
      const clients: unknown[] = []
      const nesting: CommitWith = async (transaction, call) => {
        clients.push(transaction)
        await gateway.client(PRINCIPAL).chat.completions.create(CHAT)
        await commitWith(transaction, call)
      }

      await gateway.client(PRINCIPAL, { commitWith: nesting }).chat.completions.create(CHAT)

      expect(clients[0]).toBeInstanceOf(pg.Client)
      expect(await host.requests()).toHaveLength(1)
    }))

  it('charges nothing if the host ignores a failed statement', () =>
    withGateway(onPostgres, async (started, host) => {
      const ignoring: CommitWith = async (transaction) => {
        await Promise.resolve(transaction.query('SELECT 1 / 0')).catch(() => undefined)
      }

      await expectUncharged(started, host, (client) => client.chat.completions.create(CHAT), ignoring)
    }))

  it('passes the answer if only the acknowledgement of the commit is lost', () =>
    withGateway(
      () => onPostgres(server.url, losingCommits(true)),
      async ({ gateway, account, events }, host) => {
        const before = await account()
        const { calls, commitWith } = inserting(host)
        let cost: string | undefined
        const onResponse = (facts: { readonly cost: string | undefined }): void => {
          cost = facts.cost
        }

        await gateway.client(PRINCIPAL, { commitWith }).chat.completions.create(CHAT, { onResponse })

        const charged = before.balance - (await account()).balance
        expect(charged).toBe(calls[0]?.costNanoDollars)
        expect(Number(cost)).toBe(Number(charged) / 1e9)
        expect(await host.requests()).toEqual([calls[0]?.requestId])
        expect(events.filter(({ type }) => type === 'unbilled-usage')).toEqual([])
      },
    ))

  it('charges nothing if the commit does not reach the server', () =>
    withGateway(
      () => onPostgres(server.url, losingCommits(false)),
      async (started, host) => {
        const { commitWith } = inserting(host)

        await expectUncharged(started, host, (client) => client.chat.completions.create(CHAT), commitWith)
      },
    ))

  it('never leaves a row without a charge, or a charge without a row, for many calls at once', () =>
    withGateway(onPostgres, async ({ gateway, account }, host) => {
      const before = await account()
      const { calls, commitWith } = inserting(host)
      let count = 0
      const client = gateway.client(PRINCIPAL, {
        async commitWith(transaction, call) {
          await commitWith(transaction, call)
          if (++count % 3 === 0) throw new Error('the host failed')
        },
      })

      const outcomes = await Promise.allSettled(Array.from({ length: 24 }, () => client.chat.completions.create(CHAT)))

      const rows = new Set(await host.requests())
      const due = calls
        .filter(({ requestId }) => rows.has(requestId))
        .reduce((sum, { costNanoDollars }) => sum + costNanoDollars, 0n)
      const { balance, held } = await account()
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(16)
      expect(rows.size).toBe(16)
      expect([before.balance - balance, held]).toEqual([due, 0n])
    }))
})

describe.skipIf(missingProgram('postgres') !== undefined)('commitWith on a PostgreSQL that crashes', () => {
  it('charges nothing, and voids the hold when the server is back', async () => {
    const crashing = await startPostgres()
    await withGateway(
      () => onPostgres(crashing.url),
      async (started, host) => {
        const { commitWith } = inserting(host)
        const before = await started.account()
        const dying: CommitWith = async (transaction, call) => {
          await commitWith(transaction, call)
          await crashing.crash()
        }

        const call = started.gateway.client(PRINCIPAL, { commitWith: dying }).chat.completions.create(CHAT)
        await expect(call).rejects.toMatchObject({ code: 'commit_failed', status: 503 })
        expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([])
        await crashing.resume()

        await vi.waitFor(() => expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toHaveLength(1), {
          timeout: 15_000,
        })
        expect(await started.account()).toEqual(before)
        expect(await host.requests()).toEqual([])
      },
    )
    await crashing.stop()
  }, 60_000)
})
