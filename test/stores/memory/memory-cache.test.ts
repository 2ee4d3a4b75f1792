import { describe, expect, it, test } from 'vitest'
import { memoryCache } from '../../../src/stores/memory/memory-cache.ts'
import { describeResponseCache } from '../../../src/testing/contracts/limiter-contracts.ts'

const NOW_MS = 1_750_000_000_000
const MEBIBYTE = 1024 * 1024

describe('the response cache in memory', () => {
  describeResponseCache({ describe, it, expect }, { create: () => memoryCache() })

  test('forgets what was not read for the longest time when it is full', () => {
    const cache = memoryCache({ maxBytes: 3 * 1500 })
    for (const key of ['a', 'b', 'c']) cache.set(key, new Uint8Array(1000), 1000, NOW_MS)
    cache.get('a', NOW_MS)
    cache.set('d', new Uint8Array(1000), 1000, NOW_MS)

    const kept = ['a', 'b', 'c', 'd'].filter((key) => cache.get(key, NOW_MS) !== undefined)

    expect(kept).toEqual(['a', 'c', 'd'])
  })

  test('does not empty itself for an entry that does not fit', () => {
    const cache = memoryCache({ maxBytes: 4000 })
    cache.set('small', new Uint8Array(1000), 1000, NOW_MS)
    cache.set('large', new Uint8Array(5000), 1000, NOW_MS)

    expect(cache.get('small', NOW_MS)).toBeDefined()
    expect(cache.get('large', NOW_MS)).toBeUndefined()
  })

  test('counts an entry that replaces another once, and none that has expired', () => {
    const cache = memoryCache()
    cache.set('a', new Uint8Array(1000), 1000, NOW_MS)
    const one = cache.byteLength
    cache.set('a', new Uint8Array(1000), 1000, NOW_MS)
    expect([cache.byteLength, cache.size]).toEqual([one, 1])
    cache.get('a', NOW_MS + 1000)

    expect([cache.byteLength, cache.size]).toEqual([0, 0])
  })

  test('stays within its bound for 50,000 different entries', () => {
    const cache = memoryCache({ maxBytes: 8 * MEBIBYTE })
    for (let index = 0; index < 50_000; index++)
      cache.set(`${index}`.padStart(64, '0'), new Uint8Array(700), 60_000, NOW_MS)

    expect(cache.byteLength).toBeLessThanOrEqual(8 * MEBIBYTE)
    expect(cache.size).toBe(Math.floor((8 * MEBIBYTE) / (700 + 64 + 400)))
  })

  test('takes a positive bound only', () => {
    expect(() => memoryCache({ maxBytes: 0 })).toThrow('memoryCache: maxBytes must be a positive number')
    expect(() => memoryCache({ maxBytes: Number.NaN })).toThrow(TypeError)
  })
})
