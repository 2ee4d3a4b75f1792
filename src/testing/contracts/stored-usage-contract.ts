import { type Clock, systemClock } from '../../core/clock.ts'
import type { GatewayStore } from '../../stores/gateway-store.ts'
import type { StoredKind, StoredUsage } from '../../stores/sql-rows.ts'
import { type AccountStorage, type Creation, StoredBounds } from '../../stores/stored-bounds.ts'
import {
  ACCOUNT_ID,
  type ContractRunner,
  type ContractSubject,
  contractCases,
  exampleAnswer,
  exampleClaim,
  exampleTask,
  NOW_MS,
} from './contract-runner.ts'
import { exampleConversation } from './conversation-store-contract.ts'
import { exampleFile } from './file-store-contract.ts'
import { exampleResponse } from './response-store-contract.ts'

const now = NOW_MS
const NOTHING: StoredUsage = { count: 0, byteLength: 0 }

/** How an example of each kind is created. `id` differs in each example. */
const CREATES: Readonly<
  Record<StoredKind, (store: GatewayStore, id: string, accountId: string, expiresAtMs: number) => unknown>
> = {
  idempotencyKeys: ({ idempotency }, key, accountId, expiresAtMs) =>
    idempotency.claim(exampleClaim({ key, accountId, expiresAtMs }), now),
  responses: ({ responses }, id, accountId, expiresAtMs) =>
    responses.save(exampleResponse({ id, accountId, expiresAtMs })),
  conversations: ({ conversations }, id, accountId, expiresAtMs) =>
    conversations.create(exampleConversation({ id, accountId, expiresAtMs }), [{ id: 'msg_1', text: 'four' }]),
  files: ({ files }, id, accountId, expiresAtMs) =>
    files?.save(exampleFile({ id, accountId, expiresAtMs, byteLength: 7 })),
  tasks: ({ tasks }, id, accountId) => tasks.insert(exampleTask({ id, accountId })),
  webhookSecrets: ({ webhooks }, id, accountId, expiresAtMs) =>
    webhooks.replaceSecret(accountId, `whsec_${id}`, expiresAtMs, now),
}
/** Number of two examples that remain after `expiresAtMs`. */
const STORED_WITHOUT_END: { readonly [Kind in StoredKind]?: number } = { tasks: 2, webhookSecrets: 1 }
const KINDS = Object.keys(CREATES) as StoredKind[]

/**
 * Tests each guarantee of {@link GatewayStore.stored}, and of the limits that rely on it.
 * @param subject A driver whose idempotency keys expire by the given `nowMs`.
 */
export function describeStoredUsage(runner: ContractRunner, subject: ContractSubject<GatewayStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)

  describe('stored usage contract', () => {
    check('counts what an account has stored of each kind and what has not expired', async (store) => {
      for (const kind of KINDS) {
        expect(await store.stored(ACCOUNT_ID, kind, now)).toEqual(NOTHING)
        await CREATES[kind](store, 'a', ACCOUNT_ID, now + 60_000)
        await CREATES[kind](store, 'b', ACCOUNT_ID, now + 60_000)
        await CREATES[kind](store, 'c', 'account_2', now + 60_000)
        expect([kind, (await store.stored(ACCOUNT_ID, kind, now)).count]).toEqual([kind, 2])
        const { [kind]: kept = 0 } = STORED_WITHOUT_END
        expect([kind, (await store.stored(ACCOUNT_ID, kind, now + 60_000)).count]).toEqual([kind, kept])
      }
    })

    check('counts the bytes of answers, conversations, files and requests that wait', async (store) => {
      const claim = exampleClaim()
      await store.idempotency.claim(claim, now)
      await store.idempotency.complete(claim, exampleAnswer('x'.repeat(1_000)), now)
      expect(await store.stored(ACCOUNT_ID, 'idempotencyKeys', now)).toEqual({ count: 1, byteLength: 1_002 })

      const text = 'é'.repeat(1_000)
      await store.responses.save(exampleResponse({ input: [{ id: 'msg_1', text }] }))
      expect((await store.stored(ACCOUNT_ID, 'responses', now)).byteLength > 2_000).toEqual(true)
      await store.responses.delete(ACCOUNT_ID, exampleResponse().id)
      expect(await store.stored(ACCOUNT_ID, 'responses', now)).toEqual(NOTHING)

      const item = { id: 'msg_1', text }
      const byteLength = new TextEncoder().encode(JSON.stringify(item)).byteLength
      await store.conversations.create(exampleConversation(), [])
      expect(await store.stored(ACCOUNT_ID, 'conversations', now)).toEqual({ count: 1, byteLength: 0 })
      await store.conversations.add(ACCOUNT_ID, 'conv_1', { items: [item], expiresAtMs: now + 60_000 }, now)
      expect(await store.stored(ACCOUNT_ID, 'conversations', now)).toEqual({ count: 1, byteLength })
      await store.conversations.deleteItem(ACCOUNT_ID, 'conv_1', 'msg_1', now)
      expect(await store.stored(ACCOUNT_ID, 'conversations', now)).toEqual({ count: 1, byteLength: 0 })

      await store.files?.save(exampleFile({ byteLength: 2 ** 40 }))
      expect(await store.stored(ACCOUNT_ID, 'files', now)).toEqual({ count: 1, byteLength: 2 ** 40 })
      await store.files?.delete(ACCOUNT_ID, exampleFile().id)
      expect(await store.stored(ACCOUNT_ID, 'files', now)).toEqual(NOTHING)

      const { details } = exampleTask()
      const deferred = { body: text, begun: {}, principal: { tier: 'paid' } } as const
      await store.tasks.insert(exampleTask({ details: { ...details, deferred } }))
      expect((await store.stored(ACCOUNT_ID, 'tasks', now)).byteLength >= 2_000).toEqual(true)

      await store.webhooks.replaceSecret(ACCOUNT_ID, 'whsec_1', now, now)
      await store.webhooks.replaceSecret(ACCOUNT_ID, 'whsec_02', now, now)
      expect(await store.stored(ACCOUNT_ID, 'webhookSecrets', now)).toEqual({ count: 1, byteLength: 8 })
    })

    check('allows exactly the bound when 100 of each kind are created at the same time', async (store) => {
      const clock: Clock = { ...systemClock, now: () => now }
      const bound = { count: 60, byteLength: 2 ** 30 }
      const bounds = new StoredBounds(
        store,
        clock,
        Object.fromEntries(KINDS.map((kind) => [kind, bound])) as AccountStorage,
      )
      for (const kind of KINDS) {
        const creation: Creation = { kind, byteLength: 10 }
        const create = (index: number): Promise<unknown> =>
          bounds.add(ACCOUNT_ID, [creation], () => CREATES[kind](store, `${index}`, ACCOUNT_ID, now + 60_000))
        const outcomes = await Promise.allSettled(Array.from({ length: 100 }, (_, index) => create(index)))
        const made = outcomes.filter(({ status }) => status === 'fulfilled').length
        expect([kind, made, (await store.stored(ACCOUNT_ID, kind, now)).count]).toEqual([kind, 60, 60])
      }
    })
  })
}
