import type { InteractionRecord, InteractionStore } from '../../stores/interaction-store.ts'
import { type ContractRunner, type ContractSubject, withDriver } from './contract-runner.ts'
import { ACCOUNT_ID, EXAMPLE_NOW_MS } from './store-example.ts'

/** One case for each guarantee of {@link InteractionStore}. */
export function describeInteractionStore(
  { describe, it, expect }: ContractRunner,
  subject: ContractSubject<InteractionStore>,
): void {
  const check = (name: string, body: (store: InteractionStore) => Promise<void>) =>
    it(name, () => withDriver(subject, body))

  describe('interaction store contract', () => {
    check('gives a record to its owner with every field it was saved with', async (store) => {
      await store.save(exampleInteraction())
      expect(await store.find(ACCOUNT_ID, 'v1_one', EXAMPLE_NOW_MS)).toEqual(exampleInteraction())
    })

    check('knows neither an unknown nor a foreign record', async (store) => {
      await store.save(exampleInteraction())
      expect(await store.find(ACCOUNT_ID, 'v1_two', EXAMPLE_NOW_MS)).toEqual(undefined)
      expect(await store.find('account_2', 'v1_one', EXAMPLE_NOW_MS)).toEqual(undefined)
      for (const id of ['constructor', '\u0000', "' OR '1' = '1"]) {
        expect(await store.find(ACCOUNT_ID, id, EXAMPLE_NOW_MS)).toEqual(undefined)
      }
    })

    check('keeps records of the same id in different accounts apart', async (store) => {
      await store.save(exampleInteraction({ accountId: 'account_1', id: '2v1_x' }))
      await store.save(exampleInteraction({ accountId: 'account_12', id: 'v1_x', upstreamId: 'other' }))
      expect((await store.find('account_1', '2v1_x', EXAMPLE_NOW_MS))?.upstreamId).toEqual('interaction-1')
      expect((await store.find('account_12', 'v1_x', EXAMPLE_NOW_MS))?.upstreamId).toEqual('other')
    })

    check('replaces a record that is saved again', async (store) => {
      const later = exampleInteraction({ upstreamId: 'interaction-2', expiresAtMs: EXAMPLE_NOW_MS + 120_000 })
      await store.save(exampleInteraction())
      await store.save(later)
      expect(await store.find(ACCOUNT_ID, 'v1_one', EXAMPLE_NOW_MS)).toEqual(later)
    })

    check('knows a record no more from its expiry on', async (store) => {
      const { expiresAtMs } = exampleInteraction()
      await store.save(exampleInteraction())
      expect((await store.find(ACCOUNT_ID, 'v1_one', expiresAtMs - 1))?.id).toEqual('v1_one')
      expect(await store.find(ACCOUNT_ID, 'v1_one', expiresAtMs)).toEqual(undefined)
    })

    check('keeps what has not expired while it forgets what has', async (store) => {
      const keptUntilMs = EXAMPLE_NOW_MS + 900_000
      await store.save(exampleInteraction({ id: 'v1_kept', expiresAtMs: keptUntilMs }))
      for (let count = 0; count < 20; count++) {
        const createdAtMs = EXAMPLE_NOW_MS + count * 1_000
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
    createdAtMs: EXAMPLE_NOW_MS,
    expiresAtMs: EXAMPLE_NOW_MS + 60_000,
    ...overrides,
  }
}
