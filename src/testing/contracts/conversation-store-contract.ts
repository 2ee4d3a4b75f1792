import {
  type ConversationStore,
  MAX_CONVERSATION_BYTES,
  MAX_CONVERSATION_ITEMS,
  type ResponseStore,
  type StoredConversation,
  type StoredItem,
} from '../../stores/response-store.ts'
import { ACCOUNT_ID, type ContractRunner, type ContractSubject, contractCases, NOW_MS } from './contract-runner.ts'
import { exampleResponse } from './response-store-contract.ts'

/** The two stores of one driver that share conversations. */
export interface ConversationStores {
  readonly conversations: ConversationStore
  readonly responses: ResponseStore
}

/** One case for each guarantee of {@link ConversationStore}. */
export function describeConversationStore(runner: ContractRunner, subject: ContractSubject<ConversationStores>): void {
  const { describe, check: checkStores, expect } = contractCases(runner, subject)
  const check = (name: string, body: (store: ConversationStore, responses: ResponseStore) => Promise<void>) =>
    checkStores(name, ({ conversations, responses }) => body(conversations, responses))
  const now = NOW_MS
  const idsOf = (found: { readonly items: readonly StoredItem[] } | undefined): string[] | undefined =>
    found?.items.map(({ id }) => id)
  const later = { expiresAtMs: now + 60_000 }

  describe('conversation store contract', () => {
    check('gives a conversation to its owner as it was made', async (store) => {
      const odd = { id: 'msg_2', text: '\u0000 \ud83d\ude00 "quoted" \\ \ud800' }
      await store.create(exampleConversation(), [item(1), odd])
      expect(await store.find(ACCOUNT_ID, 'conv_1', now)).toEqual(exampleConversation())
      const history = await store.history(ACCOUNT_ID, 'conv_1', now)
      expect(history?.items).toEqual([item(1), odd])
      expect([history?.position, history?.credentialId]).toEqual([2, undefined])
      expect((history?.byteLength ?? 0) > 0).toEqual(true)
      expect(await store.item(ACCOUNT_ID, 'conv_1', 'msg_2', now)).toEqual(odd)
    })

    check('knows neither unknown nor foreign nor expired conversations, by none of its methods', async (store) => {
      await store.create(exampleConversation(), [item(1)])
      const change = { metadata: { a: 'b' }, expiresAtMs: now + 900_000 }
      const page = { limit: 5, order: 'asc', after: undefined } as const
      for (const [account, id, nowMs] of [
        ['account_2', 'conv_1', now],
        [ACCOUNT_ID, 'conv_9', now],
        [ACCOUNT_ID, 'constructor', now],
        [ACCOUNT_ID, '\u0000', now],
        [ACCOUNT_ID, "' OR '1' = '1", now],
        [ACCOUNT_ID, 'conv_1', now + 60_000],
      ] as const) {
        expect(await store.find(account, id, nowMs)).toEqual(undefined)
        expect(await store.update(account, id, change, nowMs)).toEqual(undefined)
        expect(await store.add(account, id, { items: [item(2)], ...later }, nowMs)).toEqual('unknown')
        expect(await store.history(account, id, nowMs)).toEqual(undefined)
        expect(await store.page(account, id, page, nowMs)).toEqual(undefined)
        expect(await store.item(account, id, 'msg_1', nowMs)).toEqual(undefined)
        expect(await store.deleteItem(account, id, 'msg_1', nowMs)).toEqual(false)
        if (nowMs === now) expect(await store.delete(account, id)).toEqual(false)
      }
      expect(await store.item(ACCOUNT_ID, 'conv_1', '\u0000', now)).toEqual(undefined)
      expect(idsOf(await store.history(ACCOUNT_ID, 'conv_1', now))).toEqual(['msg_1'])
    })

    check('adds items in order, and each id once', async (store) => {
      await store.create(exampleConversation(), [item(1)])
      expect(await store.add(ACCOUNT_ID, 'conv_1', { items: [item(2), item(1), item(3)], ...later }, now)).toEqual(
        'added',
      )
      const history = await store.history(ACCOUNT_ID, 'conv_1', now)
      expect([idsOf(history), history?.position]).toEqual([['msg_1', 'msg_2', 'msg_3'], 3])
      expect(idsOf(await store.history(ACCOUNT_ID, 'conv_1', now, 2))).toEqual(['msg_1', 'msg_2'])
      expect(idsOf(await store.history(ACCOUNT_ID, 'conv_1', now, 0))).toEqual([])
    })

    check('adds all items of many that come at once', async (store) => {
      await store.create(exampleConversation(), [])
      const adding = Array.from({ length: 12 }, async (_, index) =>
        store.add(ACCOUNT_ID, 'conv_1', { items: [item(index * 2), item(index * 2 + 1)], ...later }, now),
      )
      expect(new Set(await Promise.all(adding))).toEqual(new Set(['added']))
      const history = await store.history(ACCOUNT_ID, 'conv_1', now)
      expect([history?.items.length, history?.position]).toEqual([24, 24])
    })

    check('gives pages in both orders', async (store) => {
      await store.create(exampleConversation(), [item(1), item(2), item(3)])
      const page = async (order: 'asc' | 'desc', limit: number, after?: string) => {
        const found = await store.page(ACCOUNT_ID, 'conv_1', { limit, order, after }, now)
        return [idsOf(found), found?.hasMore]
      }
      expect(await page('asc', 2)).toEqual([['msg_1', 'msg_2'], true])
      expect(await page('asc', 2, 'msg_2')).toEqual([['msg_3'], false])
      expect(await page('desc', 2)).toEqual([['msg_3', 'msg_2'], true])
      expect(await page('desc', 2, 'msg_2')).toEqual([['msg_1'], false])
      expect(await page('asc', 2, 'msg_9')).toEqual([[], false])
    })

    check('deletes an item, and never gives its place again', async (store) => {
      await store.create(exampleConversation(), [item(1), item(2)])
      const { byteLength } = (await store.history(ACCOUNT_ID, 'conv_1', now))!
      expect(await store.deleteItem(ACCOUNT_ID, 'conv_1', 'msg_2', now)).toEqual(true)
      expect(await store.deleteItem(ACCOUNT_ID, 'conv_1', 'msg_2', now)).toEqual(false)
      expect((await store.history(ACCOUNT_ID, 'conv_1', now))?.byteLength).toEqual(byteLength / 2)
      await store.add(ACCOUNT_ID, 'conv_1', { items: [item(3)], ...later }, now)
      expect(idsOf(await store.history(ACCOUNT_ID, 'conv_1', now, 2))).toEqual(['msg_1'])
      expect(idsOf(await store.history(ACCOUNT_ID, 'conv_1', now))).toEqual(['msg_1', 'msg_3'])
    })

    check('replaces metadata, and changes put the end off', async (store) => {
      await store.create(exampleConversation(), [])
      const change = { metadata: { topic: 'b' }, expiresAtMs: now + 90_000 }
      const changed = { ...exampleConversation(), ...change }
      expect(await store.update(ACCOUNT_ID, 'conv_1', change, now)).toEqual(changed)
      expect(await store.find(ACCOUNT_ID, 'conv_1', now + 89_999)).toEqual(changed)
      await store.add(ACCOUNT_ID, 'conv_1', { items: [item(1)], expiresAtMs: now + 120_000 }, now)
      await store.add(ACCOUNT_ID, 'conv_1', { items: [item(2)], expiresAtMs: now + 1 }, now)
      expect((await store.find(ACCOUNT_ID, 'conv_1', now + 100_000))?.expiresAtMs).toEqual(now + 120_000)
    })

    check('deletes a conversation with its items, and those of others stay', async (store) => {
      await store.create(exampleConversation(), [item(1)])
      await store.create(exampleConversation({ accountId: 'account_2' }), [item(2)])
      expect(await store.delete(ACCOUNT_ID, 'conv_1')).toEqual(true)
      expect(await store.history(ACCOUNT_ID, 'conv_1', now)).toEqual(undefined)
      expect(idsOf(await store.history('account_2', 'conv_1', now))).toEqual(['msg_2'])
      await store.create(exampleConversation(), [])
      expect(idsOf(await store.history(ACCOUNT_ID, 'conv_1', now))).toEqual([])
    })

    check('is full by the number and by the bytes of its items, and then takes nothing', async (store) => {
      await store.create(exampleConversation(), [])
      const many = Array.from({ length: MAX_CONVERSATION_ITEMS }, (_, index) => item(index))
      expect(await store.add(ACCOUNT_ID, 'conv_1', { items: many, ...later }, now)).toEqual('added')
      expect(await store.add(ACCOUNT_ID, 'conv_1', { items: [item(-1)], ...later }, now)).toEqual('full')
      await store.create(exampleConversation({ id: 'conv_2' }), [])
      const large = { id: 'msg_large', text: 'x'.repeat(MAX_CONVERSATION_BYTES) }
      expect(await store.add(ACCOUNT_ID, 'conv_2', { items: [item(1), large], ...later }, now)).toEqual('full')
      expect(idsOf(await store.history(ACCOUNT_ID, 'conv_2', now))).toEqual([])
    })

    check('gets the items of a turn with its answer, in one step', async (store, responses) => {
      await store.create(exampleConversation(), [item(1)])
      const turn = exampleResponse({ conversation: { id: 'conv_1', position: 1 }, expiresAtMs: now + 90_000 })
      await responses.save(turn)
      expect(await responses.find(ACCOUNT_ID, 'resp_1', now)).toEqual(turn)
      const history = await store.history(ACCOUNT_ID, 'conv_1', now + 80_000)
      expect([idsOf(history), history?.credentialId]).toEqual([['msg_1', 'msg_in', 'msg_out'], turn.credentialId])
      expect(await store.delete(ACCOUNT_ID, 'conv_1')).toEqual(true)
      expect((await responses.find(ACCOUNT_ID, 'resp_1', now))?.id).toEqual('resp_1')
    })

    check('keeps the answer of a turn whose conversation is gone or foreign', async (store, responses) => {
      await store.create(exampleConversation({ accountId: 'account_2' }), [])
      await responses.save(exampleResponse({ conversation: { id: 'conv_1', position: 0 } }))
      expect((await responses.find(ACCOUNT_ID, 'resp_1', now))?.id).toEqual('resp_1')
      expect(idsOf(await store.history('account_2', 'conv_1', now))).toEqual([])
    })

    check('keeps what has not expired while it forgets what has', async (store) => {
      const expiresAtMs = now + 900_000
      await store.create(exampleConversation({ id: 'conv_kept', expiresAtMs }), [item(1)])
      for (let count = 0; count < 20; count++) {
        const createdAtMs = now + count * 1_000
        await store.create(exampleConversation({ id: `conv_${count}`, createdAtMs, expiresAtMs: createdAtMs + 1 }), [])
      }
      expect(idsOf(await store.history(ACCOUNT_ID, 'conv_kept', expiresAtMs - 1))).toEqual(['msg_1'])
    })
  })
}

function item(number: number): StoredItem {
  return { id: `msg_${number}`, type: 'message', role: 'user', content: 'hi' }
}

/** An example for suites of several stores. */
export function exampleConversation(overrides: Partial<StoredConversation> = {}): StoredConversation {
  return {
    id: 'conv_1',
    accountId: ACCOUNT_ID,
    metadata: { topic: 'a' },
    createdAtMs: NOW_MS,
    expiresAtMs: NOW_MS + 60_000,
    ...overrides,
  }
}
