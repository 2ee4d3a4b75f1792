import { describe, expect, it } from 'vitest'
import { AccountShares } from '../../../src/stores/memory/account-shares.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'

const NOW_MS = 1_750_000_000_000

function deleteSurplus(shares: AccountShares, accountId: string): string[] {
  const deleted: string[] = []
  for (const name of shares.surplus(accountId)) {
    deleted.push(name)
    shares.delete(accountId === 'new' ? 'large' : accountId, name)
  }
  return deleted
}

describe('account shares', () => {
  it('names the oldest entries of the account that was added to if it has more than its share', () => {
    const shares = new AccountShares(4)
    shares.set('small', 'first')
    for (const name of ['a', 'b', 'c', 'd']) shares.set('large', name)

    expect(deleteSurplus(shares, 'large')).toEqual(['a'])
  })

  it('names entries of a larger account if the account that was added to has no more than its share', () => {
    const shares = new AccountShares(10, 100)
    shares.set('large', 'a', 60)
    shares.set('large', 'b', 40)
    shares.set('new', 'c', 10)

    expect(deleteSurplus(shares, 'new')).toEqual(['a'])
  })

  it('names an entry that alone is larger than the bound', () => {
    const shares = new AccountShares(10, 100)
    shares.set('one', 'a', 101)

    expect(deleteSurplus(shares, 'one')).toEqual(['a'])
    expect(shares.usage('one', () => true)).toEqual({ count: 0, byteLength: 0 })
  })
})

describe('memory store', () => {
  it('drops no conversation, response or interaction of an account while another account adds more than fit', async () => {
    const bounds = { maxConversations: 10, maxResponses: 10, maxInteractions: 10 }
    const { conversations, responses, interactions } = memoryStore(bounds)
    const times = { createdAtMs: NOW_MS, expiresAtMs: NOW_MS + 60_000 }
    const add = async (accountId: string, number: number): Promise<void> => {
      const named = { accountId, ...times, vendor: 'v', credentialId: 'c', model: 'm' }
      await conversations.create({ id: `conv_${number}`, metadata: {}, accountId, ...times }, [])
      await interactions.save({ id: `v1_${number}`, upstreamId: 'u', ...named })
      const turn = { id: `resp_${number}`, previousId: undefined, upstreamId: undefined, input: [], response: {} }
      await responses.save({ ...turn, ...named })
    }
    for (let number = 0; number < 5; number++) await add('account_1', number)
    for (let number = 0; number < 50; number++) await add('account_2', number)

    const found = async (accountId: string, number: number): Promise<boolean[]> => [
      (await conversations.find(accountId, `conv_${number}`, NOW_MS)) !== undefined,
      (await responses.find(accountId, `resp_${number}`, NOW_MS)) !== undefined,
      (await interactions.find(accountId, `v1_${number}`, NOW_MS)) !== undefined,
    ]
    for (let number = 0; number < 5; number++) expect(await found('account_1', number)).toEqual([true, true, true])
    expect(await found('account_2', 44)).toEqual([false, false, false])
    expect(await found('account_2', 45)).toEqual([true, true, true])
  })
})
