import type { Cluster } from 'ioredis'
import type { Cluster as ValkeyCluster } from 'iovalkey'
import type { RedisClusterType } from 'redis'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { redisCache, redisLimits } from '../../../src/stores/redis/redis-limits.ts'
import { type RedisClient, scriptRunner } from '../../../src/stores/redis/redis-link.ts'
import { ACQUIRE, ENTER, RELEASE, TAKE } from '../../../src/stores/redis/redis-scripts.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'

const NO_SCRIPT = new Error('NOSCRIPT No matching script. Please use EVAL.')

/** A client that answers each call with the next outcome, and notes what it was asked. */
function rowClient(...outcomes: unknown[]) {
  const asked: unknown[][] = []
  const answer = async (...call: unknown[]): Promise<unknown> => {
    asked.push(call)
    const outcome = outcomes.shift()
    if (outcome instanceof Error) throw outcome
    return outcome
  }
  return {
    asked,
    evalsha: (...call: unknown[]) => answer('evalsha', ...call),
    eval: (...call: unknown[]) => answer('eval', ...call),
  }
}

describe('the shared cache', () => {
  it('reads a generation again a second later, and when the clock was set back', async () => {
    const client = rowClient(['3'], ['4'], ['5'])
    let nowMs = 1_750_000_000_000
    const cache = redisCache({ client, clock: { now: () => nowMs, schedule: () => ({ cancel: () => undefined }) } })
    const seen = async (atMs: number): Promise<unknown> => {
      nowMs = atMs
      return cache.generation('acct_1', atMs)
    }

    expect([await seen(nowMs), await seen(nowMs + 999)]).toEqual([3, 3])
    expect(await seen(nowMs + 1)).toBe(4)
    expect(await seen(nowMs - 3_600_000)).toBe(5)
  })
})

describe('the shared limits', () => {
  it('restore lost buckets for a minute after an outage, also where the clock was set back meanwhile', async () => {
    const clock = fakeClock()
    let backMs = 0
    let isAway = true
    const levels: number[] = []
    const answer = async (_: string, __: number, ...row: string[]): Promise<unknown> => {
      if (isAway) throw new Error('away')
      // A probe has no arguments.
      if (row.length > 1) levels.push(Number(row.at(-1)))
      return [0, 5, 30_000]
    }
    const { rateLimiter, close } = redisLimits({
      client: { evalsha: answer, eval: answer },
      clock: { now: () => clock.now() - backMs, schedule: clock.schedule },
    })
    const levelsAfter = async (waitMs: number): Promise<number[]> => {
      levels.length = 0
      clock.advance(waitMs)
      for (let count = 0; count < 2; count++) {
        await rateLimiter.take([{ bucket: 'requests:key_1', amount: 1, perMinute: 60 }], clock.now() - backMs)
        await new Promise((resolve) => setImmediate(resolve))
      }
      return [...levels]
    }
    const whileAway = await levelsAfter(0)
    isAway = false
    await levelsAfter(200)
    const afterwards = await levelsAfter(0)
    backMs = 3_600_000
    const setBack = await levelsAfter(0)
    const later = await levelsAfter(60_000)
    close()

    expect(whileAway).toEqual([])
    expect(afterwards.at(-1)).toBe(30)
    expect(setBack.at(-1)).toBe(30)
    expect(later).toEqual([0, 0])
  })

  it('tell a server that is back of all leases, as many at once as it can take in, and fall back no second time', async () => {
    const clock = fakeClock()
    const events: string[] = []
    const known = new Set<string>()
    const waiting: (() => void)[] = []
    let isAway = false
    const answer = (script: string, __: number, ___: string, leaseId?: string): Promise<unknown> =>
      new Promise((resolve, reject) => {
        if (isAway) return reject(new Error('away'))
        waiting.push(() => {
          if (script === ENTER.text && leaseId !== undefined) known.add(leaseId)
          resolve(1)
        })
      })
    const { concurrencyLimiter, close } = redisLimits({
      client: { evalsha: answer, eval: answer },
      clock,
      onEvent: ({ type }) => void events.push(type),
    })
    const acquire = (leaseId: string) => {
      const nowMs = clock.now()
      return concurrencyLimiter.acquire(
        { bucket: 'concurrency:key_1', leaseId, limit: 10_000, expiresAtMs: nowMs + 600_000 },
        nowMs,
      )
    }
    // A server that carries out ten calls in a millisecond.
    const pass = async (durationMs: number): Promise<void> => {
      for (let passedMs = 0; passedMs < durationMs; passedMs += 10) {
        for (const carryOut of waiting.splice(0, 100)) carryOut()
        clock.advance(10)
        for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
      }
    }
    for (let number = 0; number < 5_000; number += 100) {
      for (let index = number; index < number + 100; index++) void acquire(`lease_${index}`)
      await pass(10)
    }
    isAway = true
    await acquire('lease_0')
    isAway = false
    await pass(2_000)
    close()

    expect(known.size).toBe(5_000)
    expect(events).toEqual(['limits-degraded', 'limits-recovered'])
  })

  it('give a lease back before the next request is asked, also on a server that knows no script', async () => {
    const known = new Set<string>([ACQUIRE.sha1])
    const leases = new Set<string>()
    // Carries out calls in the order in which they are sent, and answers in the next turn.
    const answer = async (script: string, _count: number, _key: string, leaseId = ''): Promise<unknown> => {
      const sha1 = [ACQUIRE, RELEASE].find(({ text }) => text === script)?.sha1 ?? script
      if (sha1 !== script) known.add(sha1)
      const isGiven = sha1 === ACQUIRE.sha1 && leases.size === 0
      if (isGiven) leases.add(leaseId)
      const isKnown = known.has(sha1)
      if (sha1 === RELEASE.sha1 && isKnown) leases.delete(leaseId)
      await new Promise((resolve) => setImmediate(resolve))
      if (!isKnown) throw NO_SCRIPT
      return Number(isGiven)
    }
    const { concurrencyLimiter, close } = redisLimits({ client: { evalsha: answer, eval: answer } })
    const lease = (leaseId: string) => ({ bucket: 'concurrency:key_1', leaseId, limit: 1, expiresAtMs: 60_000 })

    const isFirstGiven = await concurrencyLimiter.acquire(lease('lease_1'), 0)
    const released = concurrencyLimiter.release(lease('lease_1'))
    // It is on its way before the turn of the event loop ends.
    for (let step = 0; step < 5; step++) await Promise.resolve()
    const isSecondGiven = await concurrencyLimiter.acquire(lease('lease_2'), 0)
    await released
    close()

    expect([isFirstGiven, isSecondGiven]).toEqual([true, true])
  })
})

describe('script runner', () => {
  it('gives keys and arguments in one row to a client with evalsha', async () => {
    const client = rowClient([0, 5, 10_000])

    const reply = await scriptRunner(client)(TAKE, ['bucket'], ['1', '6'])

    expect(reply).toEqual([0, 5, 10_000])
    expect(client.asked).toEqual([['evalsha', TAKE.sha1, 1, 'bucket', '1', '6']])
  })

  it('gives keys and arguments by name to a client with evalSha', async () => {
    const { evalsha, eval: evalText, asked } = rowClient(NO_SCRIPT, 1)

    const reply = await scriptRunner({ evalSha: evalsha, eval: evalText })(TAKE, ['bucket'], ['1', '6'])

    const given = { keys: ['bucket'], arguments: ['1', '6'] }
    expect(reply).toEqual([1])
    expect(asked).toEqual([
      ['evalsha', TAKE.sha1, given],
      ['eval', TAKE.text, given],
    ])
  })

  it('sends the text once to a server that does not know the hash, and no other error twice', async () => {
    const forgetful = rowClient(NO_SCRIPT, NO_SCRIPT, 'never asked for')
    const refusing = rowClient(new Error('READONLY You cannot write against a read only replica.'))

    await expect(scriptRunner(forgetful)(TAKE, ['bucket'], [])).rejects.toThrow('NOSCRIPT')
    await expect(scriptRunner(refusing)(TAKE, ['bucket'], [])).rejects.toThrow('READONLY')

    expect(forgetful.asked.map(([method]) => method)).toEqual(['evalsha', 'eval'])
    expect(refusing.asked.map(([method]) => method)).toEqual(['evalsha'])
  })

  it('sends whole what later calls must not overtake', async () => {
    const client = rowClient(1)

    await scriptRunner(client)(ENTER, ['bucket'], ['lease_1', '60000'])

    expect(client.asked).toEqual([['eval', ENTER.text, 1, 'bucket', 'lease_1', '60000']])
  })

  it('reads numbers of a client that gives them as text, and takes nothing else for an answer', async () => {
    expect(await scriptRunner(rowClient(['0', '5']))(TAKE, ['bucket'], [])).toEqual([0, 5])
    await expect(scriptRunner(rowClient('QUEUED'))(TAKE, ['bucket'], [])).rejects.toThrow('did not return numbers')
  })

  it('takes the clusters of all libraries', () => {
    expectTypeOf<Cluster>().toExtend<RedisClient>()
    expectTypeOf<ValkeyCluster>().toExtend<RedisClient>()
    expectTypeOf<RedisClusterType>().toExtend<RedisClient>()
  })
})
