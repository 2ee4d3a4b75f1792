import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Credential } from '../../src/core/credential.ts'
import { CredentialCache, CredentialError } from '../../src/routing/credential-cache.ts'
import { fakeClock } from '../../src/testing/index.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A provider whose answers the test gives. */
function askedProvider() {
  const waiting: { resolve(credential: Credential): void; reject(error: Error): void; signal: AbortSignal }[] = []
  let asked = 0
  return {
    waiting,
    get asked() {
      return asked
    },
    provider: ({ signal }: { readonly signal: AbortSignal }): Promise<Credential> => {
      asked += 1
      return new Promise((resolve, reject) => waiting.push({ resolve, reject, signal }))
    },
  }
}

describe('a cache of a credential', () => {
  test('gives a fresh one without a promise, and asks once for 500 first callers', async () => {
    const clock = fakeClock()
    const source = askedProvider()
    const cache = new CredentialCache(source.provider, { clock })
    const first = Array.from({ length: 500 }, () => cache.take())
    source.waiting[0]!.resolve({ token: 'one', expiresAtMs: clock.now() + 60_000 })
    expect((await Promise.all(first)).map(({ token }) => token)).toEqual(Array(500).fill('one'))
    expect(source.asked).toBe(1)
    expect(cache.take()).toEqual({ token: 'one', expiresAtMs: clock.now() + 60_000 })
    expect(clock.pending).toBe(0)
  })

  test('renews it ahead of its end while calls go on with the old one', async () => {
    const clock = fakeClock()
    const source = askedProvider()
    const cache = new CredentialCache(source.provider, { clock, random: () => 0 })
    const first = cache.take()
    source.waiting[0]!.resolve({ token: 'one', expiresAtMs: clock.now() + 60_000 })
    await first
    clock.advance(47_999)
    expect(cache.take()).toMatchObject({ token: 'one' })
    expect(source.asked).toBe(1)
    clock.advance(1)
    expect(cache.take()).toMatchObject({ token: 'one' })
    expect(cache.take()).toMatchObject({ token: 'one' })
    expect(source.asked).toBe(2)
    source.waiting[1]!.resolve({ token: 'two', expiresAtMs: clock.now() + 60_000 })
    await turn()
    expect(cache.take()).toMatchObject({ token: 'two' })
  })

  test('keeps the old one while refreshes fail, backs off, and fails when it has ended', async () => {
    const clock = fakeClock()
    const failures: number[] = []
    let asked = 0
    const endMs = clock.now() + 100_000
    const cache = new CredentialCache(
      () => {
        asked += 1
        if (asked === 1) return { token: 'one', expiresAtMs: endMs }
        throw new Error('set CLOUD_SECRET: it has expired')
      },
      { clock, random: () => 0, onFailure: ({ retryAtMs }) => void failures.push(retryAtMs - clock.now()) },
    )
    await cache.take()
    while (clock.now() < endMs - 100) {
      expect(cache.take()).toMatchObject({ token: 'one' })
      await turn()
      clock.advance(100)
    }
    expect(failures).toEqual([1000, 2000, 4000, 8000, 16_000])
    clock.advance(20_000)
    const refused = await Promise.resolve(cache.take()).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(CredentialError)
    expect((refused as Error).message).toBe('set CLOUD_SECRET: it has expired')
    const askedBefore = asked
    await expect(cache.take()).rejects.toThrow('set CLOUD_SECRET')
    expect(asked).toBe(askedBefore)
  })

  test('drops a refused token once, even if several calls report the refusal', async () => {
    const clock = fakeClock()
    let made = 0
    const cache = new CredentialCache(() => ({ token: `t${++made}`, expiresAtMs: clock.now() + 600_000 }), { clock })
    const first = await cache.take()
    clock.advance(10_000)
    expect(cache.invalidate(first)).toBe(true)
    const second = await cache.take()
    for (let told = 0; told < 100; told++) expect(cache.invalidate(first)).toBe(true)
    expect(cache.take()).toBe(second)
    expect(cache.invalidate(second), 'a new one would be refused too').toBe(false)
    expect(made).toBe(2)
  })

  test('replaces a refused token after the clock was set back, and waits for a provider that failed no longer than ever', async () => {
    const clock = fakeClock()
    let aheadMs = 86_400_000
    let made = 0
    const provider = (): Credential => {
      made += 1
      if (made === 2) throw new Error('not now')
      return { token: `t${made}`, expiresAtMs: clock.now() + 2 * 86_400_000 }
    }
    const cache = new CredentialCache(provider, { clock: { ...clock, now: () => clock.now() + aheadMs } })
    const first = await cache.take()
    aheadMs = 0
    expect(cache.invalidate(first)).toBe(true)

    aheadMs = 86_400_000
    await expect(cache.take()).rejects.toThrow('not now')
    aheadMs = 0
    expect(await cache.take()).toMatchObject({ token: 't3' })
  })

  test('asks at most once a minute where the same token is given until shortly before its end', async () => {
    const clock = fakeClock()
    const endMs = clock.now() + 600_000
    let asked = 0
    const cache = new CredentialCache(
      () => {
        asked += 1
        return { token: 'same', expiresAtMs: endMs }
      },
      { clock, random: () => 0 },
    )
    await cache.take()
    while (clock.now() < endMs - 1000) {
      clock.advance(1000)
      cache.take()
      await turn()
    }
    expect(asked).toBeLessThanOrEqual(4)
  })

  test('gives a provider up after 10 seconds, and tells it so', async () => {
    const clock = fakeClock()
    const source = askedProvider()
    const cache = new CredentialCache(source.provider, { clock })
    const taken = Promise.resolve(cache.take())
    clock.advance(10_000)
    await expect(taken).rejects.toThrow('no credential was returned within 10 s')
    expect(source.waiting[0]!.signal.aborted).toBe(true)
  })

  test.each([
    [{ token: '' }, 'no token'],
    [{ token: 'a b' }, 'no token'],
    [{ token: 'a\r\nx: y' }, 'no token'],
    [{ token: 'secret', header: 'a b' }, 'not a header name'],
    [{ token: 'secret', expiresAtMs: Number.NaN }, 'is not a number'],
    [{ token: 'secret', expiresAtMs: Date.UTC(2026, 0, 1) - 600_000 }, /expired 600 s ago by the clock.*set its clock/],
  ])('refuses %j and does not repeat it', async (credential, words) => {
    const cache = new CredentialCache(() => credential, { clock: fakeClock() })
    const error = (await Promise.resolve(cache.take()).catch((cause: unknown) => cause)) as Error
    expect(error.message).toMatch(words)
    expect(error.message).not.toContain('secret')
  })

  test('never has two refreshes under way, nor gives an expired one, whatever happens', async () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 90_000 }) }),
        fc.record({ kind: fc.constant('take' as const) }),
        fc.record({ kind: fc.constant('give' as const), lifetimeMs: fc.integer({ min: 1, max: 120_000 }) }),
        fc.record({ kind: fc.constant('fail' as const) }),
        fc.record({ kind: fc.constant('refuse' as const) }),
      ),
      { maxLength: 40 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const clock = fakeClock()
        const source = askedProvider()
        const cache = new CredentialCache(source.provider, { clock })
        let made = 0
        let last: Credential | undefined
        for (const step of list) {
          if (step.kind === 'advance') clock.advance(step.ms)
          else if (step.kind === 'take') {
            const taken = cache.take()
            if (taken instanceof Promise) taken.catch(() => undefined)
            else {
              last = taken
              expect(taken.expiresAtMs).toBeGreaterThan(clock.now())
            }
          } else if (step.kind === 'refuse') {
            if (last !== undefined) cache.invalidate(last)
          } else {
            const open = source.waiting.shift()
            if (step.kind === 'fail') open?.reject(new Error('no'))
            else open?.resolve({ token: `t${++made}`, expiresAtMs: clock.now() + step.lifetimeMs })
          }
          await turn()
          expect(source.waiting.filter(({ signal }) => !signal.aborted).length).toBeLessThanOrEqual(1)
        }
      }),
      { numRuns: 60 },
    )
  })
})
