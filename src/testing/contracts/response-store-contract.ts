import type { InteractionRecord, InteractionStore } from '../../stores/response-cache.ts'
import type { ResponseStore, StoredResponse } from '../../stores/response-store.ts'
import { ACCOUNT_ID, type ContractRunner, type ContractSubject, contractCases, NOW_MS } from './contract-runner.ts'

/** One case for each guarantee of {@link ResponseStore}. */
export function describeResponseStore(runner: ContractRunner, subject: ContractSubject<ResponseStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)
  const now = NOW_MS
  const idsOf = (turns: readonly StoredResponse[] | undefined): string[] | undefined => turns?.map(({ id }) => id)

  describe('response store contract', () => {
    check('gives a turn to its owner as it was saved', async (store) => {
      const whole = exampleResponse({ previousId: 'resp_0', upstreamId: 'resp_upstream' })
      await store.save(whole)
      await store.save(exampleResponse({ id: 'resp_2' }))
      expect(await store.find(ACCOUNT_ID, 'resp_1', now)).toEqual(whole)
      expect(await store.find(ACCOUNT_ID, 'resp_2', now)).toEqual(exampleResponse({ id: 'resp_2' }))
    })

    check('knows neither unknown nor foreign turns, by none of its methods', async (store) => {
      await store.save(exampleResponse())
      for (const [account, id] of [
        ['account_2', 'resp_1'],
        [ACCOUNT_ID, 'resp_9'],
        [ACCOUNT_ID, 'constructor'],
        [ACCOUNT_ID, '\u0000'],
        [ACCOUNT_ID, "' OR '1' = '1"],
      ] as const) {
        expect(await store.find(account, id, now)).toEqual(undefined)
        expect(await store.conversation(account, id, now)).toEqual(undefined)
        expect(await store.delete(account, id)).toEqual(false)
      }
      expect(await store.findByItems('account_2', ['msg_in', 'msg_out'], now)).toEqual([])
      expect(await store.findByItems(ACCOUNT_ID, ['msg_x', '\u0000'], now)).toEqual([])
      expect((await store.find(ACCOUNT_ID, 'resp_1', now))?.id).toEqual('resp_1')
    })

    check('gives a conversation from its first turn on', async (store) => {
      await store.save(exampleResponse({ id: 'resp_1' }))
      await store.save(exampleResponse({ id: 'resp_2', previousId: 'resp_1' }))
      await store.save(exampleResponse({ id: 'resp_3', previousId: 'resp_2' }))
      await store.save(exampleResponse({ id: 'resp_3b', previousId: 'resp_2' }))
      expect(idsOf(await store.conversation(ACCOUNT_ID, 'resp_3', now))).toEqual(['resp_1', 'resp_2', 'resp_3'])
      expect(idsOf(await store.conversation(ACCOUNT_ID, 'resp_2', now))).toEqual(['resp_1', 'resp_2'])
    })

    check('gives no conversation that lacks a turn', async (store) => {
      const expiresAtMs = now + 1_000
      await store.save(exampleResponse({ id: 'resp_1', expiresAtMs }))
      await store.save(exampleResponse({ id: 'resp_2', previousId: 'resp_1' }))
      await store.save(exampleResponse({ id: 'resp_3', previousId: 'resp_2' }))
      expect((await store.conversation(ACCOUNT_ID, 'resp_3', expiresAtMs - 1))?.length).toEqual(3)
      expect(await store.conversation(ACCOUNT_ID, 'resp_3', expiresAtMs)).toEqual(undefined)
      expect(await store.delete(ACCOUNT_ID, 'resp_2')).toEqual(true)
      expect(await store.conversation(ACCOUNT_ID, 'resp_3', now)).toEqual(undefined)
    })

    check('finds turns by the items in them, the newest first', async (store) => {
      const reply = { id: 'msg_again', type: 'message' }
      await store.save(exampleResponse({ id: 'resp_1' }))
      await store.save(exampleResponse({ id: 'resp_2', createdAtMs: now + 1, input: [{ id: 'msg_in' }, reply] }))
      expect(idsOf(await store.findByItems(ACCOUNT_ID, ['msg_again'], now))).toEqual(['resp_2'])
      expect(idsOf(await store.findByItems(ACCOUNT_ID, ['msg_in', 'msg_again'], now))).toEqual(['resp_2', 'resp_1'])
      expect(await store.findByItems(ACCOUNT_ID, ['msg_out'], now + 60_000)).toEqual([])
    })

    check('tells which items an account has', async (store) => {
      await store.save(exampleResponse({ id: 'resp_1' }))
      await store.save(exampleResponse({ id: 'resp_2' }))
      const asked = ['msg_in', 'msg_out', 'msg_x', '\u0000', "' OR '1' = '1"]
      expect([...(await store.knownItems(ACCOUNT_ID, asked, now))].sort()).toEqual(['msg_in', 'msg_out'])
      expect(await store.knownItems('account_2', asked, now)).toEqual([])
      expect(await store.knownItems(ACCOUNT_ID, asked, now + 60_000)).toEqual([])
      expect(await store.knownItems(ACCOUNT_ID, [], now)).toEqual([])
    })

    check('deletes a turn with its items, and no other', async (store) => {
      await store.save(exampleResponse({ id: 'resp_1' }))
      await store.save(exampleResponse({ id: 'resp_2' }))
      expect(await store.delete(ACCOUNT_ID, 'resp_1')).toEqual(true)
      expect(await store.delete(ACCOUNT_ID, 'resp_1')).toEqual(false)
      expect(await store.find(ACCOUNT_ID, 'resp_1', now)).toEqual(undefined)
      expect(idsOf(await store.findByItems(ACCOUNT_ID, ['msg_in'], now))).toEqual(['resp_2'])
    })

    check('keeps one turn of several that are saved with one id at once, with its items', async (store) => {
      const turns = Array.from({ length: 8 }, (_, index) =>
        exampleResponse({ model: `model_${index}`, input: [{ id: `msg_${index}` }, { id: 'msg_all' }] }),
      )
      await Promise.all(turns.map((turn) => store.save(turn)))
      const kept = await store.find(ACCOUNT_ID, 'resp_1', now)
      expect(turns.filter(({ model }) => model === kept?.model)).toEqual([kept])
      const found = await Promise.all(turns.map((_, index) => store.findByItems(ACCOUNT_ID, [`msg_${index}`], now)))
      expect(found.flat()).toEqual([kept])
    })

    check('replaces a turn that is saved again, with its items', async (store) => {
      const later = exampleResponse({ input: [{ id: 'msg_other', text: 'later' }] })
      await store.save(exampleResponse())
      await store.save(later)
      expect(await store.find(ACCOUNT_ID, 'resp_1', now)).toEqual(later)
      expect(await store.findByItems(ACCOUNT_ID, ['msg_in'], now)).toEqual([])
    })

    check('keeps turns of the same id in different accounts apart', async (store) => {
      await store.save(exampleResponse())
      await store.save(exampleResponse({ accountId: 'account_2', model: 'other' }))
      expect(await store.delete(ACCOUNT_ID, 'resp_1')).toEqual(true)
      expect((await store.find('account_2', 'resp_1', now))?.model).toEqual('other')
    })

    check('keeps text of any characters', async (store) => {
      const input = [{ id: 'msg_in', text: '\u0000 \ud83d\ude00 "quoted" \\ \ud800' }]
      await store.save(exampleResponse({ input }))
      expect((await store.find(ACCOUNT_ID, 'resp_1', now))?.input).toEqual(input)
    })

    check('keeps what has not expired while it forgets what has', async (store) => {
      const keptUntilMs = now + 900_000
      await store.save(exampleResponse({ id: 'resp_kept', expiresAtMs: keptUntilMs }))
      for (let count = 0; count < 20; count++) {
        const createdAtMs = now + count * 1_000
        await store.save(exampleResponse({ id: `resp_${count}`, createdAtMs, expiresAtMs: createdAtMs + 1 }))
      }
      expect((await store.find(ACCOUNT_ID, 'resp_kept', keptUntilMs - 1))?.id).toEqual('resp_kept')
    })
  })
}

/** A turn of the example account. */
export function exampleResponse(overrides: Partial<StoredResponse> = {}): StoredResponse {
  return {
    id: 'resp_1',
    accountId: ACCOUNT_ID,
    previousId: undefined,
    vendor: 'anthropic',
    credentialId: 'f'.repeat(16),
    upstreamId: undefined,
    model: 'cl-sonnet-4-6',
    input: [{ id: 'msg_in', type: 'message', role: 'user', content: 'hi' }],
    response: { id: 'resp_1', object: 'response', output: [{ id: 'msg_out', type: 'message', role: 'assistant' }] },
    createdAtMs: NOW_MS,
    expiresAtMs: NOW_MS + 60_000,
    ...overrides,
  }
}

/** One case for each guarantee of {@link InteractionStore}. */
export function describeInteractionStore(runner: ContractRunner, subject: ContractSubject<InteractionStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)

  describe('interaction store contract', () => {
    check('gives a record to its owner with every field it was saved with', async (store) => {
      await store.save(exampleInteraction())
      expect(await store.find(ACCOUNT_ID, 'v1_one', NOW_MS)).toEqual(exampleInteraction())
    })

    check('knows neither an unknown nor a foreign record', async (store) => {
      await store.save(exampleInteraction())
      expect(await store.find(ACCOUNT_ID, 'v1_two', NOW_MS)).toEqual(undefined)
      expect(await store.find('account_2', 'v1_one', NOW_MS)).toEqual(undefined)
      for (const id of ['constructor', '\u0000', "' OR '1' = '1"]) {
        expect(await store.find(ACCOUNT_ID, id, NOW_MS)).toEqual(undefined)
      }
    })

    check('keeps records of the same id in different accounts apart', async (store) => {
      await store.save(exampleInteraction({ accountId: 'account_1', id: '2v1_x' }))
      await store.save(exampleInteraction({ accountId: 'account_12', id: 'v1_x', upstreamId: 'other' }))
      expect((await store.find('account_1', '2v1_x', NOW_MS))?.upstreamId).toEqual('interaction-1')
      expect((await store.find('account_12', 'v1_x', NOW_MS))?.upstreamId).toEqual('other')
    })

    check('replaces a record that is saved again', async (store) => {
      const later = exampleInteraction({ upstreamId: 'interaction-2', expiresAtMs: NOW_MS + 120_000 })
      await store.save(exampleInteraction())
      await store.save(later)
      expect(await store.find(ACCOUNT_ID, 'v1_one', NOW_MS)).toEqual(later)
    })

    check('knows a record no more from its expiry on', async (store) => {
      const { expiresAtMs } = exampleInteraction()
      await store.save(exampleInteraction())
      expect((await store.find(ACCOUNT_ID, 'v1_one', expiresAtMs - 1))?.id).toEqual('v1_one')
      expect(await store.find(ACCOUNT_ID, 'v1_one', expiresAtMs)).toEqual(undefined)
    })

    check('keeps what has not expired while it forgets what has', async (store) => {
      const keptUntilMs = NOW_MS + 900_000
      await store.save(exampleInteraction({ id: 'v1_kept', expiresAtMs: keptUntilMs }))
      for (let count = 0; count < 20; count++) {
        const createdAtMs = NOW_MS + count * 1_000
        await store.save(exampleInteraction({ id: `v1_${count}`, createdAtMs, expiresAtMs: createdAtMs + 1 }))
      }
      expect((await store.find(ACCOUNT_ID, 'v1_kept', keptUntilMs - 1))?.id).toEqual('v1_kept')
    })
  })
}

function exampleInteraction(overrides: Partial<InteractionRecord> = {}): InteractionRecord {
  return {
    id: 'v1_one',
    accountId: ACCOUNT_ID,
    vendor: 'gemini',
    credentialId: 'f'.repeat(16),
    upstreamId: 'interaction-1',
    model: 'gmn-3-pro-image',
    createdAtMs: NOW_MS,
    expiresAtMs: NOW_MS + 60_000,
    ...overrides,
  }
}
