import type { ResponseCache } from '../../stores/response-cache.ts'
import {
  type ContractClock,
  type ContractRunner,
  type ContractSubject,
  standingClock,
  withDriver,
} from './contract-runner.ts'

/** A response cache under test. Set `clock` if it does not use the given `nowMs`. */
export interface ResponseCacheSubject extends ContractSubject<ResponseCache> {
  readonly clock?: ContractClock
}

const KEEP_MS = 60_000
const LARGE_BYTES = 1024 * 1024

/** One case for each guarantee of {@link ResponseCache}. */
export function describeResponseCache({ describe, it, expect }: ContractRunner, subject: ResponseCacheSubject): void {
  const clock = subject.clock ?? standingClock()
  const check = (name: string, body: (cache: ResponseCache) => Promise<void>) =>
    it(name, () => withDriver(subject, body))
  const read = async (cache: ResponseCache, key: string): Promise<number[] | undefined> => {
    const entry = await cache.get(key, clock.now())
    return entry && [...entry]
  }

  describe('response cache contract', () => {
    check('gives nothing for a key that was never set', async (cache) => {
      expect(await read(cache, 'unknown')).toEqual(undefined)
    })

    check('gives the bytes that were set, whatever they are', async (cache) => {
      const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index)
      await cache.set('key_1', everyByte, KEEP_MS, clock.now())
      expect(await read(cache, 'key_1')).toEqual([...everyByte])
      await cache.set('key_2', new Uint8Array(0), KEEP_MS, clock.now())
      expect(await read(cache, 'key_2')).toEqual([])
    })

    check('keeps a mebibyte', async (cache) => {
      const large = new Uint8Array(LARGE_BYTES).fill(7)
      await cache.set('large', large, KEEP_MS, clock.now())
      const kept = await cache.get('large', clock.now())
      expect(kept?.byteLength).toEqual(LARGE_BYTES)
      expect(kept?.every((byte) => byte === 7)).toEqual(true)
    })

    check('keeps what it was given when the giver goes on with a part of a larger buffer', async (cache) => {
      const buffer = new Uint8Array([1, 2, 3, 4, 5])
      await cache.set('key_1', buffer.subarray(1, 3), KEEP_MS, clock.now())
      buffer.fill(9)
      expect(await read(cache, 'key_1')).toEqual([2, 3])
    })

    check('replaces the entry of a key', async (cache) => {
      await cache.set('key_1', Uint8Array.of(1), KEEP_MS, clock.now())
      await cache.set('key_1', Uint8Array.of(2, 2), KEEP_MS, clock.now())
      expect(await read(cache, 'key_1')).toEqual([2, 2])
    })

    check('keeps keys apart', async (cache) => {
      await cache.set('key_1', Uint8Array.of(1), KEEP_MS, clock.now())
      await cache.set('key_2', Uint8Array.of(2), KEEP_MS, clock.now())
      expect(await read(cache, 'key_1')).toEqual([1])
      expect(await read(cache, 'key_2')).toEqual([2])
    })

    check('gives an entry for as long as it is to be kept, and not longer', async (cache) => {
      await cache.set('short', Uint8Array.of(1), KEEP_MS, clock.now())
      await cache.set('long', Uint8Array.of(2), 3 * KEEP_MS, clock.now())
      await clock.advance(KEEP_MS - 5_000)
      expect(await read(cache, 'short')).toEqual([1])
      await clock.advance(5_001)
      expect(await read(cache, 'short')).toEqual(undefined)
      expect(await read(cache, 'long')).toEqual([2])
    })

    check('counts how often a scope was cleared, each for itself, at once', async (cache) => {
      expect(await cache.generation('acct_1', clock.now())).toEqual(0)
      await cache.clear('acct_1', clock.now())
      expect(await cache.generation('acct_1', clock.now())).toEqual(1)
      await cache.clear('acct_1', clock.now())
      expect(await cache.generation('acct_1', clock.now())).toEqual(2)
      expect(await cache.generation('acct_2', clock.now())).toEqual(0)
      expect(await cache.generation('', clock.now())).toEqual(0)
    })
  })
}
