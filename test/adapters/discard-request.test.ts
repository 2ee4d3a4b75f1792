import { Readable } from 'node:stream'

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { discardRequest } from '../../src/adapters/discard-request.ts'

const MEBIBYTE = Buffer.alloc(1024 * 1024)

/** Lets a stream deliver what it holds. */
const settleTurns = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('discardRequest', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  it('is done once when the rest has come', async () => {
    const done = vi.fn()
    const request = new Readable({ read: () => undefined })
    discardRequest(request, done)

    request.push(MEBIBYTE)
    await settleTurns()
    const callsBeforeEnd = done.mock.calls.length
    request.push(null)
    await settleTurns()
    vi.advanceTimersByTime(60_000)

    expect([callsBeforeEnd, done.mock.calls.length]).toEqual([0, 1])
  })

  it('gives up after 64 MiB', async () => {
    const done = vi.fn()
    let sentMebibytes = 0
    const request = new Readable({
      read() {
        // In turns of their own: a stream that always has more at hand would not let go of the loop.
        setImmediate(() => {
          if (done.mock.calls.length > 0) return
          sentMebibytes++
          this.push(MEBIBYTE)
        })
      },
    })

    discardRequest(request, done)
    await vi.waitUntil(() => done.mock.calls.length > 0)

    expect(sentMebibytes).toBe(65)
    expect(done).toHaveBeenCalledTimes(1)
  })

  it('gives up after five seconds', () => {
    const done = vi.fn()
    discardRequest(new Readable({ read: () => undefined }), done)

    vi.advanceTimersByTime(4_999)
    const callsBefore = done.mock.calls.length
    vi.advanceTimersByTime(1)

    expect([callsBefore, done.mock.calls.length]).toEqual([0, 1])
  })

  it('is done when the caller leaves', async () => {
    const done = vi.fn()
    const request = new Readable({ read: () => undefined })
    discardRequest(request, done)

    request.destroy()
    await settleTurns()

    expect(done).toHaveBeenCalledTimes(1)
  })
})
