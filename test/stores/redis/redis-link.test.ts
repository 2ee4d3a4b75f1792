import { describe, expect, it } from 'vitest'
import { type LinkFailure, redisLink } from '../../../src/stores/redis/redis-link.ts'
import { PROBE, TAKE } from '../../../src/stores/redis/redis-scripts.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'

const DEADLINE_MS = 50

/** A server whose replies the test gives by hand, in the order of the calls. */
interface HeldCall {
  readonly isProbe: boolean
  readonly key: string
  reply(): void
  fail(error: Error): void
}

function linkUnderTest(deadlineMs = DEADLINE_MS) {
  const clock = fakeClock()
  const calls: HeldCall[] = []
  const downs: LinkFailure[] = []
  const ups: number[] = []
  const link = redisLink<readonly number[]>({
    run: (script, keys) =>
      new Promise((resolve, reject) => {
        calls.push({ isProbe: script === PROBE, key: keys[0] ?? '', reply: () => resolve([1]), fail: reject })
      }),
    deadlineMs,
    clock,
    probe: PROBE,
    probeKey: (failedKey) => `probe of ${failedKey}`,
    onDown: (failure) => downs.push(failure),
    onUp: (downMs) => ups.push(downMs),
  })
  const take = (): Promise<readonly number[] | undefined> => link.call(TAKE, ['bucket'], [])
  /** Moves the clock, and lets replies that have arrived be read. */
  const pass = async (milliseconds: number): Promise<void> => {
    clock.advance(milliseconds)
    await turn()
  }
  return { clock, calls, downs, ups, link, take, pass }
}

// Two turns: a deadline is judged in the turn after its timer, and what it settles is seen in the next.
async function turn(): Promise<void> {
  for (let count = 0; count < 2; count++) await new Promise((resolve) => setImmediate(resolve))
}

describe('redis link', () => {
  it('gives what the server returned', async () => {
    const { calls, take, downs, clock } = linkUnderTest()
    const taken = take()
    calls[0]!.reply()

    expect(await taken).toEqual([1])
    expect(downs).toEqual([])
    expect(clock.pending).toBe(0)
  })

  it('gives undefined at the deadline, and from then on at once, without asking the server', async () => {
    const { calls, take, pass, downs } = linkUnderTest()
    const first = take()
    await pass(DEADLINE_MS)

    expect(await first).toBeUndefined()
    expect(await take()).toBeUndefined()
    expect(calls).toHaveLength(1)
    expect(downs).toEqual([{ reason: 'deadline', error: undefined }])
  })

  it('tells once that it went down, however many calls fail', async () => {
    const { calls, take, downs } = linkUnderTest()
    const pending = [take(), take(), take()]
    const error = new Error('connection closed')
    for (const call of calls) call.fail(error)

    expect(await Promise.all(pending)).toEqual([undefined, undefined, undefined])
    expect(downs).toEqual([{ reason: 'error', error }])
  })

  it('counts a reply that arrived during a pause of this process, although the timer ran first', async () => {
    const { calls, take, clock, downs } = linkUnderTest()
    const taken = take()
    clock.advance(DEADLINE_MS)
    calls[0]!.reply()
    await turn()

    expect(await taken).toEqual([1])
    expect(downs).toEqual([])
  })

  it('goes up by a probe that is answered in time, on the node of the call that failed', async () => {
    const { calls, take, pass, ups, link } = linkUnderTest()
    void take()
    await pass(DEADLINE_MS)
    await pass(200)
    expect(calls[1]).toMatchObject({ isProbe: true, key: 'probe of bucket' })
    expect(link.isUp).toBe(false)
    calls[1]!.reply()
    await turn()

    expect(link.isUp).toBe(true)
    expect(ups).toEqual([200])
    await pass(1_000)
    expect(calls).toHaveLength(2)
  })

  it('stays down while probes are answered too late', async () => {
    const { calls, take, pass, link } = linkUnderTest()
    void take()
    await pass(DEADLINE_MS)
    await pass(200)
    await pass(DEADLINE_MS + 1)
    calls[1]!.reply()
    await turn()

    expect(link.isUp).toBe(false)
    expect(calls[2]!.isProbe).toBe(true)
    calls[2]!.reply()
    await turn()
    expect(link.isUp).toBe(true)
  })

  it('leaves few probes in the queue of a client that is cut off for an hour', async () => {
    const { calls, take, pass } = linkUnderTest()
    void take()
    await pass(DEADLINE_MS)
    await pass(3_600_000)

    expect(calls.filter(({ isProbe }) => isProbe).length).toBeLessThanOrEqual(8)
  })

  it('tries on when probes fail', async () => {
    const { calls, take, pass, link } = linkUnderTest()
    void take()
    await pass(DEADLINE_MS)
    for (let count = 1; count <= 20; count++) {
      await pass(200)
      calls[count]!.fail(new Error('LOADING the dataset'))
      await turn()
    }
    expect(link.isUp).toBe(false)
    await pass(200)
    calls[21]!.reply()
    await turn()

    expect(link.isUp).toBe(true)
  })

  it('does not go down again for a call that began before it went up', async () => {
    const { calls, take, pass, downs, link } = linkUnderTest(1_000)
    const early = take()
    void take()
    calls[1]!.fail(new Error('connection closed'))
    await turn()
    expect(link.isUp).toBe(false)
    await pass(200)
    calls[2]!.reply()
    await turn()
    calls[0]!.fail(new Error('connection closed'))

    expect(await early).toBeUndefined()
    expect(link.isUp).toBe(true)
    expect(downs).toHaveLength(1)
  })

  it('stops trying when it is closed', async () => {
    const { calls, take, pass, link, clock } = linkUnderTest()
    void take()
    await pass(DEADLINE_MS)
    link.close()
    await pass(10_000)

    expect(calls).toHaveLength(1)
    expect(clock.pending).toBe(0)
  })
})
