import type { KeyRecord, KeyStore } from '../../stores/api-keys.ts'
import { type ContractRunner, type ContractSubject, contractCases } from './contract-runner.ts'

/** One case for each guarantee of {@link KeyStore}. */
export function describeKeyStore(runner: ContractRunner, subject: ContractSubject<KeyStore>): void {
  const { describe, check, expect } = contractCases(runner, subject)

  describe('key store contract', () => {
    check('finds a key by its hash with every field it was stored with', async (keys) => {
      const record = keyRecord('1', {
        scopes: { endpoints: ['chat'], models: ['gmn-2.5-pro'] },
        limits: { requestsPerMinute: 60, tokensPerMinute: 1000, concurrency: 5 },
        spendingCap: { amount: 9_007_199_254_740_993n, period: 'month' },
        namesEndUsers: true,
        expiresAtMs: 1_900_000_000_000,
      })
      await keys.insert(record)
      expect(await keys.findByHash(record.hash)).toEqual(record)
    })

    check('finds nothing for an unknown hash', async (keys) => {
      await keys.insert(keyRecord('1'))
      expect(await keys.findByHash(keyRecord('2').hash)).toEqual(undefined)
      expect(await keys.findByHash('constructor')).toEqual(undefined)
    })

    check('finds a key by its id, where it can', async (keys) => {
      const record = keyRecord('1', { limits: { requestsPerMinute: 60 } })
      await keys.insert(record)
      await keys.insert(keyRecord('2'))
      if (keys.find === undefined) return
      expect(await keys.find('key_1')).toEqual(record)
      expect(await keys.find('key_3')).toEqual(undefined)
      expect(await keys.find('constructor')).toEqual(undefined)
    })

    check('keeps the first record when a hash is inserted again', async (keys) => {
      await keys.insert(keyRecord('1', { label: 'first' }))
      await keys.insert(keyRecord('1', { label: 'second', accountId: 'account_2' }))
      expect((await keys.findByHash(keyRecord('1').hash))?.label).toEqual('first')
      expect(await keys.list('account_2')).toEqual([])
    })

    check('changes account and limits of a key, and leaves what is not given', async (keys) => {
      const record = keyRecord('1', { limits: { requestsPerMinute: 60 } })
      await keys.insert(record)
      expect(await keys.update('key_1', { accountId: 'account_2' })).toEqual(true)
      expect(await keys.findByHash(record.hash)).toEqual({ ...record, accountId: 'account_2' })
      expect((await keys.list('account_2')).map(({ id }) => id)).toEqual(['key_1'])
      expect(await keys.update('key_1', { limits: { concurrency: 2 } })).toEqual(true)
      expect((await keys.findByHash(record.hash))?.limits).toEqual({ concurrency: 2 })
      expect(await keys.update('key_1', { limits: null })).toEqual(true)
      expect(await keys.findByHash(record.hash)).toEqual({ ...record, accountId: 'account_2', limits: undefined })
      expect(await keys.update('key_2', { accountId: 'account_2' })).toEqual(false)
    })

    check('changes the cap of a key, and whether it names end users', async (keys) => {
      const record = keyRecord('1', { limits: { requestsPerMinute: 60 } })
      const spendingCap = { amount: 500n, period: 'day' as const }
      await keys.insert(record)
      expect(await keys.update('key_1', { spendingCap, namesEndUsers: true })).toEqual(true)
      expect(await keys.findByHash(record.hash)).toEqual({ ...record, spendingCap, namesEndUsers: true })
      await keys.update('key_1', { accountId: 'account_2' })
      expect((await keys.findByHash(record.hash))?.spendingCap).toEqual(spendingCap)
      expect(await keys.update('key_1', { spendingCap: null })).toEqual(true)
      expect((await keys.findByHash(record.hash))?.spendingCap).toEqual(undefined)
    })

    check('lists the keys of one account only', async (keys) => {
      await keys.insert(keyRecord('1'))
      await keys.insert(keyRecord('2'))
      await keys.insert(keyRecord('3', { accountId: 'account_2' }))
      const ids = (await keys.list('account_1')).map((record) => record.id).sort()
      expect(ids).toEqual(['key_1', 'key_2'])
      expect(await keys.list('account_3')).toEqual([])
    })

    check('lists the keys of all accounts, oldest first', async (keys) => {
      await keys.insert(keyRecord('2', { accountId: 'account_2', createdAtMs: 1_750_000_000_200 }))
      await keys.insert(keyRecord('1', { createdAtMs: 1_750_000_000_100 }))
      await keys.insert(keyRecord('3', { createdAtMs: 1_750_000_000_300 }))
      expect((await keys.list()).map((record) => record.id)).toEqual(['key_1', 'key_2', 'key_3'])
      expect((await keys.list('account_1')).map((record) => record.id)).toEqual(['key_1', 'key_3'])
    })

    check('lists keys in pages, oldest first and then by id, where it has pages', async (keys) => {
      if (keys.page === undefined) return
      for (const [name, accountId, createdAtMs] of [
        ['4', 'account_1', 1_750_000_000_300],
        ['2', 'account_1', 1_750_000_000_200],
        ['3', 'account_2', 1_750_000_000_200],
        ['1', 'account_1', 1_750_000_000_100],
      ] as const)
        await keys.insert(keyRecord(name, { accountId, createdAtMs }))
      const pages = async (accountId?: string): Promise<string[][]> => {
        const found: string[][] = []
        for (let after: KeyRecord | undefined; ; ) {
          const page = (await keys.page?.({ accountId, after, limit: 2 })) ?? []
          if (page.length === 0) return found
          found.push(page.map(({ id }) => id))
          after = page.at(-1)
        }
      }
      expect(await pages()).toEqual([
        ['key_1', 'key_2'],
        ['key_3', 'key_4'],
      ])
      expect(await pages('account_1')).toEqual([['key_1', 'key_2'], ['key_4']])
      expect(await pages('account_3')).toEqual([])
    })

    check('sets the moment at which a key ends by itself', async (keys) => {
      await keys.insert(keyRecord('1'))
      expect(await keys.expire('key_1', 1_750_000_009_000)).toEqual(true)
      expect((await keys.findByHash(keyRecord('1').hash))?.expiresAtMs).toEqual(1_750_000_009_000)
    })

    check('moves the end of a key to an earlier moment, never to a later one', async (keys) => {
      await keys.insert(keyRecord('1', { expiresAtMs: 1_750_000_005_000 }))
      expect(await keys.expire('key_1', 1_750_000_009_000)).toEqual(true)
      expect((await keys.findByHash(keyRecord('1').hash))?.expiresAtMs).toEqual(1_750_000_005_000)
      await keys.expire('key_1', 1_750_000_001_000)
      expect((await keys.findByHash(keyRecord('1').hash))?.expiresAtMs).toEqual(1_750_000_001_000)
    })

    check('still finds a revoked key, with the time of its revocation', async (keys) => {
      await keys.insert(keyRecord('1'))
      expect(await keys.revoke('key_1', 1_750_000_001_000)).toEqual(true)
      expect((await keys.findByHash(keyRecord('1').hash))?.revokedAtMs).toEqual(1_750_000_001_000)
      expect((await keys.list('account_1')).map((record) => record.revokedAtMs)).toEqual([1_750_000_001_000])
    })

    check('keeps the tags of a key, and no others than it was given', async (keys) => {
      await keys.insert(keyRecord('1', { tags: ['team:a', 'beta'] }))
      await keys.insert(keyRecord('2'))
      expect((await keys.findByHash(keyRecord('1').hash))?.tags).toEqual(['team:a', 'beta'])
      expect((await keys.findByHash(keyRecord('2').hash))?.tags).toEqual(undefined)
    })

    check('keeps the first time when a key is revoked twice', async (keys) => {
      await keys.insert(keyRecord('1'))
      await keys.revoke('key_1', 1_750_000_001_000)
      expect(await keys.revoke('key_1', 1_750_000_002_000)).toEqual(true)
      expect((await keys.findByHash(keyRecord('1').hash))?.revokedAtMs).toEqual(1_750_000_001_000)
    })

    check('does not bring a revoked key back when its hash is inserted again', async (keys) => {
      await keys.insert(keyRecord('1'))
      await keys.revoke('key_1', 1_750_000_001_000)
      await keys.insert(keyRecord('1'))
      expect((await keys.findByHash(keyRecord('1').hash))?.revokedAtMs).toEqual(1_750_000_001_000)
    })

    check('says that there was nothing to revoke for an unknown key', async (keys) => {
      expect(await keys.revoke('key_1', 1_750_000_001_000)).toEqual(false)
    })

    check('says that there was nothing to end for an unknown key', async (keys) => {
      expect(await keys.expire('key_1', 1_750_000_001_000)).toEqual(false)
    })
  })
}

function keyRecord(number: string, overrides: Partial<KeyRecord> = {}): KeyRecord {
  return {
    id: `key_${number}`,
    accountId: 'account_1',
    hash: number.repeat(64),
    label: `key ${number}`,
    scopes: {},
    limits: undefined,
    spendingCap: undefined,
    createdAtMs: 1_750_000_000_000,
    expiresAtMs: undefined,
    revokedAtMs: undefined,
    ...overrides,
  }
}
