import { describe, expect, it, test } from 'vitest'
import type { GatewayClient } from '../../../src/client/gateway-client.ts'
import type { CommitWith } from '../../../src/pipeline/commit-with.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { defaultEngine } from '../../stores/sqlite/support/sqlite-engines.ts'
import { migratedPaths } from '../../stores/sqlite/support/temporary-folder.ts'
import { startGateway } from '../../support/start-gateway.ts'
import { CHAT, type HostedStore, inserting, PRINCIPAL, testCommitWith, withGateway } from './commit-with-cases.ts'

const newPath = migratedPaths()

async function onSqlite(): Promise<HostedStore> {
  const database = defaultEngine.open(newPath())
  database.exec('CREATE TABLE answers (request TEXT, cost INTEGER)')
  return {
    store: sqliteStore({ database, busyTimeoutMs: 400 }),
    insert: 'INSERT INTO answers (request, cost) VALUES (?, ?)',
    async requests() {
      const rows = database.prepare('SELECT request FROM answers').all() as { readonly request: string }[]
      return rows.map(({ request }) => request)
    },
    async dispose() {
      database.close()
    },
  }
}

describe('commitWith on SQLite', () => {
  testCommitWith(onSqlite)

  it('reads rows, and lets other calls wait until the transaction has ended', () =>
    withGateway(onSqlite, async ({ gateway, account }, host) => {
      const other = gateway.client(PRINCIPAL)
      let otherCall: Promise<unknown> | undefined
      let isOtherHeld = false
      const rows: unknown[] = []
      const commitWith: CommitWith = async (transaction, call) => {
        await transaction.query(host.insert, [call.requestId, call.costNanoDollars])
        otherCall = other.chat.completions.create(CHAT).finally(() => {
          isOtherHeld = true
        })
        // Other operations of the gateway run meanwhile.
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
        rows.push(...(await transaction.query('SELECT cost FROM answers')).rows)
        expect(isOtherHeld).toBe(false)
      }

      await gateway.client(PRINCIPAL, { commitWith }).chat.completions.create(CHAT)
      await otherCall

      expect(rows).toHaveLength(1)
      expect(await host.requests()).toHaveLength(1)
      expect((await account()).held).toBe(0n)
    }))

  it('fails a call whose statements wait for another call of the gateway', () =>
    withGateway(onSqlite, async ({ gateway, account }, host) => {
      const nested: Promise<unknown>[] = []
      const commitWith: CommitWith = async () => {
        const call = gateway.client(PRINCIPAL).chat.completions.create(CHAT)
        nested.push(call)
        await call
      }

      const call = gateway.client(PRINCIPAL, { commitWith }).chat.completions.create(CHAT)

      await expect(call).rejects.toMatchObject({ code: 'commit_failed' })
      await expect(Promise.all(nested)).resolves.toHaveLength(1)
      expect((await account()).held).toBe(0n)
      expect(await host.requests()).toEqual([])
    }))

  it('rejects statements after the transaction has ended', () =>
    withGateway(onSqlite, async ({ gateway }, host) => {
      let late: (() => PromiseLike<unknown>) | undefined
      const commitWith: CommitWith = async (transaction, { requestId }) => {
        late = () => transaction.query(host.insert, [requestId, 0n])
      }

      await gateway.client(PRINCIPAL, { commitWith }).chat.completions.create(CHAT)

      await expect(late!()).rejects.toThrow('the transaction has ended')
      expect(await host.requests()).toEqual([])
    }))

  it.each([
    ['embeddings', { endpoint: 'embeddings', model: 'embedding-relayed' }],
    ['messages', { endpoint: 'messages', model: 'chat-relayed' }],
    ['responses', { endpoint: 'responses', model: 'chat-relayed' }],
  ] as const)('commits a row of the host with %s', (name, expected) =>
    withGateway(onSqlite, async ({ gateway }, host) => {
      const { calls, commitWith } = inserting(host)
      const client = gateway.client(PRINCIPAL, { commitWith })

      const answer = await {
        embeddings: () => client.embeddings.create({ model: 'embedding-relayed', input: 'hello' }),
        messages: () => client.messages.create({ model: 'chat-relayed', max_tokens: 20, messages: CHAT.messages }),
        responses: () => client.responses.create({ model: 'chat-relayed', input: 'hello' }),
      }[name]()

      expect(calls).toMatchObject([expected])
      if (name !== 'embeddings') expect(calls[0]?.body).toEqual(answer)
      expect(await host.requests()).toEqual([calls[0]?.requestId])
    }),
  )

  it('commits a row for a stream whose caller disconnects', () =>
    withGateway(onSqlite, async (started, host) => {
      const { calls, commitWith } = inserting(host)
      const client = started.gateway.client(PRINCIPAL, { commitWith })
      const ended = started.nextEnded()

      const stream = await client.chat.completions.create({ ...CHAT, stream: true })
      for await (const _chunk of stream) break

      await ended
      expect(calls).toHaveLength(1)
      expect(await host.requests()).toEqual([calls[0]?.requestId])
    }))

  it.each([
    ['a video', (client: GatewayClient) => client.videos.generate({ model: 'wv2.7-t2v', input: { prompt: 'a boat' } })],
    [
      'a background answer',
      (client: GatewayClient) =>
        client.responses.create({ model: 'chat-relayed', input: 'hello', background: true, store: true }),
    ],
    [
      'a batch of messages',
      (client: GatewayClient) =>
        client.messages.batches.create({
          requests: [{ custom_id: '1', params: { model: 'chat-relayed', max_tokens: 20, messages: CHAT.messages } }],
        }),
    ],
    [
      'a batch',
      (client: GatewayClient) =>
        client.batches.create({ input_file_id: 'file-1', endpoint: '/v1/chat/completions', completion_window: '24h' }),
    ],
  ])('rejects %s, which is charged later', (_name, submit) =>
    withGateway(onSqlite, async ({ gateway, sandbox, account }) => {
      const client = gateway.client(PRINCIPAL, { commitWith: async () => undefined })

      await expect(submit(client)).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining('Use a client without commitWith.'),
      })

      expect(sandbox.requests).toEqual([])
      expect((await account()).held).toBe(0n)
    }),
  )
})

const nothing: CommitWith = async () => undefined

test.each([
  ['with the memory store', {}, nothing, 'commitWith needs a store with transactions'],
  ['without billing', { billing: 'off' }, nothing, 'commitWith needs billing'],
  ['with another value', {}, 'commit', 'commitWith must be a function'],
] as const)('refuses commitWith %s when the client is created', async (_name, options, commitWith, message) => {
  const { gateway, close } = await startGateway(options as never)

  expect(() => gateway.client(PRINCIPAL, { commitWith: commitWith as CommitWith })).toThrow(message)

  await close()
})
