import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { discardRequest, isPlaceholder, parsedBodyBytes } from '../../src/adapters/node-exchange.ts'

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

  it('ends when the caller disconnects', async () => {
    const done = vi.fn()
    const request = new Readable({ read: () => undefined })
    discardRequest(request, done)

    request.destroy()
    await settleTurns()

    expect(done).toHaveBeenCalledTimes(1)
  })
})

const text = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined ? undefined : new TextDecoder().decode(bytes)

describe('parsedBodyBytes', () => {
  it('keeps the bytes of a raw parser as they are', () => {
    const bytes = Buffer.from([0, 255, 10])

    expect(parsedBodyBytes(bytes, 'application/octet-stream')).toBe(bytes)
  })

  it.each([
    ['a text', 'héllo', 'text/plain', 'héllo'],
    ['an object', { a: [1, 'ü'] }, 'application/json; charset=utf-8', '{"a":[1,"ü"]}'],
    ['an object of an unusual type', { a: 1 }, 'application/vnd.example+json', '{"a":1}'],
    ['an array', [1, 2], 'application/json', '[1,2]'],
    ['a null', null, 'application/json', 'null'],
    ['an empty object', {}, 'application/json', '{}'],
    ['a flat form', { a: 'x y', b: ['1', '2'] }, 'application/x-www-form-urlencoded', 'a=x+y&b=1&b=2'],
  ])('serializes %s again', (_what, body, contentType, expected) => {
    expect(text(parsedBodyBytes(body, contentType))).toBe(expected)
  })

  it.each([
    ['nothing was kept', undefined, 'application/json'],
    ['a form was nested', { a: { b: 'c' } }, 'application/x-www-form-urlencoded'],
    ['a form had files', { model: 'gp-image-1' }, 'multipart/form-data; boundary=x'],
    ['the value has no JSON', () => 1, 'application/json'],
  ])('gives nothing when %s', (_what, body, contentType) => {
    expect(parsedBodyBytes(body, contentType)).toBeUndefined()
  })
})

describe('isPlaceholder', () => {
  it('tells the empty object of a parser that did nothing from one that the caller sent', () => {
    expect(isPlaceholder({}, '300')).toBe(true)
    expect(isPlaceholder({}, undefined)).toBe(true)
    expect(isPlaceholder({}, '2')).toBe(false)
    expect([{ a: 1 }, [], null, '', new Uint8Array()].some((body) => isPlaceholder(body, '300'))).toBe(false)
  })
})
