import { expect, it, vi } from 'vitest'
import type { GatewayClient } from '../../../src/client/gateway-client.ts'
import type { ChargedCall, CommitWith } from '../../../src/pipeline/commit-with.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'

/** Store with a table `answers (request text, cost bigint)` of the host in its database. */
export interface HostedStore {
  readonly store: GatewayStore
  /** Text of the statement that inserts a row. */
  readonly insert: string
  /** Requests of the committed rows. */
  requests(): Promise<string[]>
  dispose(): Promise<void>
}

export const PRINCIPAL = { accountId: TEST_ACCOUNT, keyId: 'host', tier: 'paid' } as const
export const CHAT = { model: 'chat-relayed' as const, messages: [{ role: 'user' as const, content: 'hello' }] }

/** Runs a test with a gateway on a new store. */
export async function withGateway(
  create: () => Promise<HostedStore>,
  run: (started: StartedGateway, host: HostedStore) => Promise<void>,
): Promise<void> {
  const host = await create()
  const started = await startGateway({ store: host.store, batches: { native: false } })
  try {
    await run(started, host)
  } finally {
    await started.close()
    await host.dispose()
  }
}

/** Returns host statements that insert a row, and the calls that they got. */
export function inserting({ insert }: HostedStore): { readonly calls: ChargedCall[]; readonly commitWith: CommitWith } {
  const calls: ChargedCall[] = []
  return {
    calls,
    async commitWith(transaction, call) {
      calls.push(call)
      await transaction.query(insert, [call.requestId, call.costNanoDollars])
    },
  }
}

const chat = (client: GatewayClient) => client.chat.completions.create(CHAT)

async function readAll(events: PromiseLike<AsyncIterable<unknown>>): Promise<void> {
  for await (const _event of await events);
}

/** Expects that a call fails without a charge and without a row, and that the operator knows. */
export async function expectUncharged(
  started: StartedGateway,
  host: HostedStore,
  call: (client: GatewayClient) => Promise<unknown>,
  commitWith: CommitWith,
): Promise<void> {
  const before = await started.account()
  const client = started.gateway.client(PRINCIPAL, { commitWith })
  await expect(call(client)).rejects.toThrow('The statements of the host failed')
  expect(await started.account()).toEqual(before)
  expect(await host.requests()).toEqual([])
  const ended = started.events.filter(({ type }) => type === 'request-ended')
  const unbilled = started.events.filter(({ type }) => type === 'unbilled-usage')
  expect(ended).toMatchObject([{ ending: 'failed', code: 'commit_failed', costNanoDollars: 0n }])
  expect(unbilled).toMatchObject([
    { requestId: ended[0]!['requestId' as never], model: 'chat-relayed', isEstimated: false },
  ])
}

/** Defines the tests that each store with transactions passes. */
export function testCommitWith(create: () => Promise<HostedStore>): void {
  it('commits a row of the host together with the charge, and passes the whole answer', () =>
    withGateway(create, async ({ gateway, account, ...started }, host) => {
      const before = await account()
      const { calls, commitWith } = inserting(host)

      const answer = await gateway.client(PRINCIPAL, { commitWith }).chat.completions.create(CHAT)

      const [call] = calls
      const { balance, held } = await account()
      expect(call).toMatchObject({
        ...{ accountId: TEST_ACCOUNT, keyId: 'host', endpoint: 'chat', model: 'chat-relayed', vendor: 'openai' },
        ...{ ending: 'completed', usage: { inputTokens: answer.usage?.prompt_tokens } },
      })
      expect(call?.body).toEqual(answer)
      expect(call?.costNanoDollars).toBe(before.balance - balance)
      expect(before.balance > balance && held === 0n).toBe(true)
      expect(await host.requests()).toEqual([call?.requestId])
      expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([])
    }))

  it('charges nothing and withholds the answer if the host throws after its statements', () =>
    withGateway(create, async (started, host) => {
      const { commitWith } = inserting(host)
      const failing: CommitWith = async (transaction, call) => {
        await commitWith(transaction, call)
        throw new Error('the host failed')
      }

      await expectUncharged(started, host, chat, failing)

      const [fault] = started.events.filter(({ type }) => type === 'internal-error')
      expect(fault).toMatchObject({ where: 'commitWith', error: { message: 'the host failed' } })
      const record = { ending: 'failed', status: 503, code: 'commit_failed', chargedNanoDollars: 0n }
      await vi.waitFor(async () => {
        const { records } = await started.gateway.usage.records({ accountId: TEST_ACCOUNT })
        expect(records).toMatchObject([record])
      }, 5_000)
    }))

  it('charges nothing if the host takes too long, and serves other calls afterwards', () =>
    withGateway(create, async (started, host) => {
      const { commitWith } = inserting(host)
      let isHanging = true
      const hanging: CommitWith = async (transaction, call) => {
        await commitWith(transaction, call)
        if (isHanging) await new Promise(() => {})
      }

      await expectUncharged(started, host, chat, hanging)

      isHanging = false
      await chat(started.gateway.client(PRINCIPAL, { commitWith: hanging }))
      expect(await host.requests()).toHaveLength(1)
    }))

  it('charges nothing if the host ends the transaction itself', () =>
    withGateway(create, async (started, host) => {
      const commitWith: CommitWith = (transaction) => transaction.query('ROLLBACK')

      await expectUncharged(started, host, chat, commitWith)
    }))

  it('commits a row when a stream ends, with its usage', () =>
    withGateway(create, async ({ gateway, account }, host) => {
      const before = await account()
      const { calls, commitWith } = inserting(host)
      const client = gateway.client(PRINCIPAL, { commitWith })

      const stream = await client.chat.completions.create({ ...CHAT, stream: true })
      for await (const _chunk of stream);

      const [call] = calls
      expect(call).toMatchObject({ ending: 'completed', body: undefined })
      expect(call?.usage.outputTokens).toBeGreaterThan(0)
      expect(before.balance - (await account()).balance).toBe(call?.costNanoDollars)
      expect(await host.requests()).toEqual([call?.requestId])
    }))

  it.each([
    ['a chat', (client: GatewayClient) => readAll(client.chat.completions.create({ ...CHAT, stream: true }))],
    [
      'a message',
      (client: GatewayClient) =>
        readAll(client.messages.stream({ model: 'chat-relayed', max_tokens: 20, messages: CHAT.messages })),
    ],
    [
      'a response',
      (client: GatewayClient) => readAll(client.responses.stream({ model: 'chat-relayed', input: 'hello' })),
    ],
  ])('ends the stream of %s with an error if the host throws', (_name, call) =>
    withGateway(create, async (started, host) => {
      await expectUncharged(started, host, call, () => Promise.reject(new Error('the host failed')))
    }),
  )

  it('does not run again for a replay of an Idempotency-Key, but after a failure', () =>
    withGateway(create, async ({ gateway, account }, host) => {
      const { calls, commitWith } = inserting(host)
      let failures = 1
      const client = gateway.client(PRINCIPAL, {
        async commitWith(transaction, call) {
          await commitWith(transaction, call)
          if (failures-- > 0) throw new Error('the host failed')
        },
      })
      const options = { idempotencyKey: 'order-1' }

      await expect(client.chat.completions.create(CHAT, options)).rejects.toMatchObject({ code: 'commit_failed' })
      const answer = await client.chat.completions.create(CHAT, options)
      const charged = await account()
      const replay = await client.chat.completions.create(CHAT, options)

      expect(replay).toEqual(answer)
      expect(calls).toHaveLength(2)
      expect(await account()).toEqual(charged)
      expect(await host.requests()).toEqual([calls[1]?.requestId])
    }))

  it('undoes the statements of the host if an operator has voided the hold', () =>
    withGateway(create, async (started, host) => {
      const { commitWith } = inserting(host)
      const ledger = host.store.ledger as { settleWith: NonNullable<GatewayStore['ledger']['settleWith']> }
      const { settleWith } = ledger
      ledger.settleWith = async (settlement, run, nowMs) => {
        await host.store.ledger.void(settlement.holdId, nowMs)
        return await settleWith(settlement, run, nowMs)
      }

      await expectUncharged(started, host, chat, commitWith)
    }))
}
