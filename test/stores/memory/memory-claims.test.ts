import { describe, expect, it } from 'vitest'
import type { IdempotencyClaim, StoredAnswer } from '../../../src/stores/idempotency-store.ts'
import { MemoryClaims } from '../../../src/stores/memory/memory-cache.ts'

const NOW_MS = 1_000

function claimOf(key: string, overrides: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  return { accountId: 'account_1', key, fingerprint: 'f', expiresAtMs: 100_000, ...overrides }
}

function answerOf(byteLength: number): StoredAnswer {
  return { status: 200, headers: [], body: new Uint8Array(byteLength) }
}

function answered(claims: MemoryClaims, key: string, byteLength: number): void {
  claims.claim(claimOf(key), NOW_MS)
  claims.complete(claimOf(key), answerOf(byteLength))
}

describe('memory claims', () => {
  it('drops the oldest answers beyond the number allowed', () => {
    const claims = new MemoryClaims({ maxAnswers: 2 })
    for (const key of ['a', 'b', 'c']) answered(claims, key, 1)

    expect(claims.peek(claimOf('a'), NOW_MS).status).toBe('claimed')
    expect(claims.peek(claimOf('b'), NOW_MS).status).toBe('replay')
    expect(claims.peek(claimOf('c'), NOW_MS).status).toBe('replay')
  })

  it('drops the oldest answers beyond the bytes allowed', () => {
    const claims = new MemoryClaims({ maxAnswerBytes: 100 })
    for (const key of ['a', 'b', 'c']) answered(claims, key, 40)

    expect(claims.peek(claimOf('a'), NOW_MS).status).toBe('claimed')
    expect(claims.peek(claimOf('c'), NOW_MS).status).toBe('replay')
  })

  it('keeps the answers of an account and of operators while another account adds 34 answers of 4 MB', () => {
    const claims = new MemoryClaims()
    const others = ['account_1', 'operator ops'].map((accountId) => claimOf('mine', { accountId }))
    for (const claim of others) {
      claims.claim(claim, NOW_MS)
      claims.complete(claim, answerOf(1_000_000))
    }
    const large = answerOf(4_000_000)
    for (let count = 0; count < 34; count++) {
      const claim = claimOf(`flood ${count}`, { accountId: 'account_2' })
      claims.claim(claim, NOW_MS)
      claims.complete(claim, large)
    }

    expect(others.map((claim) => claims.peek(claim, NOW_MS).status)).toEqual(['replay', 'replay'])
    expect(claims.peek(claimOf('flood 0', { accountId: 'account_2' }), NOW_MS).status).toBe('claimed')
    expect(claims.peek(claimOf('flood 33', { accountId: 'account_2' }), NOW_MS).status).toBe('replay')
  })

  it('never drops a key that is under way to make room', () => {
    const claims = new MemoryClaims({ maxAnswers: 1 })
    claims.claim(claimOf('under way'), NOW_MS)
    for (const key of ['a', 'b', 'c']) answered(claims, key, 1)

    expect(claims.peek(claimOf('under way'), NOW_MS).status).toBe('in_flight')
  })

  it('counts the bytes of expired answers no longer', () => {
    const claims = new MemoryClaims({ maxAnswerBytes: 100 })
    const short = claimOf('short', { expiresAtMs: 2_000 })
    claims.claim(short, NOW_MS)
    claims.complete(short, answerOf(90))
    for (let count = 0; count < 5; count++) claims.claim(claimOf(`sweep ${count}`), 3_000)
    answered(claims, 'a', 60)
    answered(claims, 'b', 40)

    expect(claims.peek(claimOf('a'), NOW_MS).status).toBe('replay')
    expect(claims.peek(claimOf('b'), NOW_MS).status).toBe('replay')
  })
})
