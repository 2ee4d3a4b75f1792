import type { SettingStore } from '../../stores/retention.ts'
import { type ContractRunner, type ContractSubject, contractCases } from './contract-runner.ts'

/** One case for each guarantee of {@link SettingStore}. */
export function describeSettingStore(runner: ContractRunner, subject: ContractSubject<SettingStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)

  describe('setting store contract', () => {
    check('returns no settings before any is written', async (store) => {
      expect(await store.read()).toEqual({})
    })

    check('returns fractions and Infinity as they were written', async (store) => {
      await store.write({ 'a.days': 1.5, 'b.days': Number.POSITIVE_INFINITY })
      expect(await store.read()).toEqual({ 'a.days': 1.5, 'b.days': Number.POSITIVE_INFINITY })
    })

    check('replaces the settings that are written again, and keeps the others', async (store) => {
      await store.write({ first: 1, second: 2 })
      await store.write({ second: 3, third: 4 })
      await store.write({})
      expect(await store.read()).toEqual({ first: 1, second: 3, third: 4 })
    })
  })
}
