import { describe, expect, test } from 'vitest'
import type { IncrementalEncoder } from '../../../src/endpoints/stream-transform.ts'
import {
  type FollowingCalls,
  StreamCall,
  type StreamEnd,
  type StreamOpening,
} from '../../../src/pipeline/stream-call.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import type {
  Transport,
  TransportControl,
  TransportHandler,
  TransportRequest,
} from '../../../src/transport/transport.ts'
import type { StreamTransform, VendorFailure } from '../../../src/vendors/vendor.ts'

const REQUEST: TransportRequest = {
  origin: 'https://vendor.example',
  path: '/',
  method: 'POST',
  headers: [],
  body: null,
  firstByteTimeoutMs: 1000,
  idleTimeoutMs: 1000,
}

/** Events of one call. */
interface SentCall {
  readonly handler: TransportHandler
  readonly done: string[]
}

/** Passes bytes on; those of `kept` only when a body ends. A body that holds `!` has failed at its end. */
class PassingStream implements StreamTransform {
  hasContent = false
  isComplete = false
  failure: VendorFailure | undefined
  readonly atBoundary = true
  readonly usage = undefined
  readonly outputBytesSeen = 0
  readonly bodies: number[] = []
  #kept = ''
  #isKeeping: boolean

  constructor(isKeeping: boolean) {
    this.#isKeeping = isKeeping
  }

  push(chunk: Uint8Array): string | undefined {
    this.#kept += Buffer.from(chunk).toString()
    return this.#isKeeping ? undefined : this.#give()
  }

  end(): string | undefined {
    const isCut = this.#kept.includes('!')
    this.bodies.push(this.#kept.length)
    const given = this.#give()
    if (isCut) this.failure = { kind: 'invalid_response', status: 0, message: 'cut' }
    return given
  }

  #give(): string | undefined {
    const given = this.#kept
    this.#kept = ''
    if (given !== '') this.hasContent = true
    return given === '' ? undefined : given
  }
}

/** Passes a stream one letter at a time. A step that contains `#` throws. */
class SteppingStream extends PassingStream {
  #left = ''

  readonly encoder: IncrementalEncoder = (() => {
    const hasWork = (): boolean => this.#left !== ''
    return {
      take: (chunk: Uint8Array) => {
        this.#left += Buffer.from(chunk).toString()
      },
      get hasWork() {
        return hasWork()
      },
      next: () => {
        const letter = this.#left.slice(0, 1)
        this.#left = this.#left.slice(1)
        if (letter === '#') throw new Error('cannot be encoded')
        return this.push(Buffer.from(letter))
      },
    }
  })()
}

function begun(calls: number, isKeeping = false, isCpuBound = false) {
  const sent: SentCall[] = []
  const send = (handler: TransportHandler): TransportControl => {
    const done: string[] = []
    sent.push({ handler, done })
    return {
      abort: () => void done.push('abort'),
      pause: () => void done.push('pause'),
      resume: () => void done.push('resume'),
    }
  }
  const following: FollowingCalls = {
    send: (handler) => (sent.length < calls ? send(handler) : undefined),
    refusal: ({ status }) => ({ phase: 'body', kind: 'refused', error: new Error(`status ${status}`) }),
  }
  const transport: Transport = { send: (_request, handler) => send(handler), close: async () => {} }
  const stream = isCpuBound ? new SteppingStream(isKeeping) : new PassingStream(isKeeping)
  const call = new StreamCall(stream, calls === 1 ? undefined : following)
  const ends: StreamEnd[] = []
  let received = ''
  let onBytes = (): void => {}
  let opening: StreamOpening | undefined
  void call.opening.then((value) => {
    opening = value
  })
  call.begin(transport, REQUEST, fakeClock())
  call.attach({
    onBytes: (bytes) => {
      received += Buffer.from(bytes as string).toString()
      onBytes()
    },
    onStreamEnd: (end) => void ends.push(end),
  })
  return {
    ...{ call, stream, sent, ends },
    received: () => received,
    opening: () => opening,
    atBytes: (listener: () => void) => {
      onBytes = listener
    },
    /** Answers a call with a stream of one chunk. */
    speak(index: number, text: string): void {
      const { handler } = sent[index]!
      handler.onHead(200, { 'content-type': 'text/event-stream' })
      if (text !== '') handler.onData(Buffer.from(text))
      handler.onEnd()
    },
  }
}

describe('a streamed answer of several calls', () => {
  test('reads one body after another into one stream, and ends once', () => {
    const { speak, sent, ends, received, stream } = begun(3)
    speak(0, 'one ')
    speak(1, 'two ')

    expect(ends).toEqual([])
    speak(2, 'three')
    expect(received()).toBe('one two three')
    expect(stream.bodies).toHaveLength(3)
    expect(sent).toHaveLength(3)
    expect(ends).toEqual([{ kind: 'ended' }])
  })

  test('is known by the id that the vendor gave its first answer', () => {
    const { sent, call } = begun(2)
    for (const [index, id] of ['req_1', 'req_2'].entries()) {
      sent[index]!.handler.onHead(200, { 'content-type': 'text/event-stream', 'x-request-id': id })
      sent[index]!.handler.onEnd()
    }

    expect(call.vendorRequestId).toBe('req_1')
  })

  test('opens with what the end of the first body gave, before the second call is answered', async () => {
    const { speak, opening } = begun(2, true)
    speak(0, 'one')
    await Promise.resolve()

    expect(opening()).toEqual({ kind: 'open' })
  })

  test('stays closed while there is no content, so that a refusal of the second call is the answer', async () => {
    const { speak, sent, opening } = begun(2)
    speak(0, '')
    sent[1]?.handler.onHead(429, { 'content-type': 'application/json' })
    sent[1]?.handler.onData(Buffer.from('{}'))
    sent[1]?.handler.onEnd()
    await Promise.resolve()

    expect(opening()).toMatchObject({ kind: 'answer', answer: { status: 429 } })
  })

  test('ends with a refusal of a later call', () => {
    const { speak, sent, ends } = begun(2)
    speak(0, 'one')
    sent[1]?.handler.onHead(429, { 'content-type': 'application/json' })
    sent[1]?.handler.onData(Buffer.from('{}'))
    sent[1]?.handler.onEnd()

    expect(ends).toMatchObject([{ kind: 'transport-failure', failure: { error: { message: 'status 429' } } }])
  })

  test('makes no further call when a body was cut', () => {
    const { speak, sent, ends } = begun(2)
    speak(0, 'one')
    speak(1, 'two!')
    const cut = begun(2, true)
    cut.speak(0, 'one!')

    expect([sent.length, ends.length]).toEqual([2, 1])
    expect(cut.sent).toHaveLength(1)
    expect(cut.ends).toEqual([{ kind: 'ended' }])
  })

  test('makes no further call when it is given up with the last bytes of a body', () => {
    const { speak, sent, ends, call, atBytes } = begun(2)
    atBytes(() => call.abort())
    speak(0, 'one')

    expect(sent).toHaveLength(1)
    expect(ends).toMatchObject([{ kind: 'transport-failure', failure: { kind: 'aborted' } }])
  })

  test('begins a further call paused when the caller is slow, and lets it go on', () => {
    const { speak, sent, call } = begun(3)
    call.pause()
    speak(0, 'one')
    const atFirst = [...(sent[1]?.done ?? [])]
    call.resume()
    speak(1, 'two')

    expect(atFirst).toEqual(['pause'])
    expect(sent[1]?.done).toEqual(['pause', 'resume'])
    expect(sent[2]?.done).toEqual([])
  })

  test('gives up the call that is under way', () => {
    const { speak, sent, call } = begun(2)
    speak(0, 'one')
    call.abort()

    expect(sent.map(({ done }) => done)).toEqual([[], ['abort']])
  })
})

describe('a stream whose bytes take long to work on', () => {
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  const head = { 'content-type': 'text/event-stream' }

  async function read({ sent }: ReturnType<typeof begun>, text = 'x'): Promise<void> {
    sent[0]?.handler.onData(Buffer.from(text))
    await Promise.resolve()
  }

  async function stepping(calls = 1): Promise<ReturnType<typeof begun>> {
    const one = begun(calls, false, true)
    one.sent[0]?.handler.onHead(200, head)
    await read(one, 'abc')
    return one
  }

  test('is worked on step by step, one in a turn of the event loop, and not read from meanwhile', async () => {
    const one = await stepping()
    const seen: string[] = [one.received()]
    for (let turns = 0; turns < 3; turns++) {
      expect(one.sent[0]?.done).toEqual(['pause'])
      await turn()
      seen.push(one.received())
    }

    expect(seen).toEqual(['', 'a', 'ab', 'abc'])
    expect(one.sent[0]?.done).toEqual(['pause', 'resume'])
    expect(one.opening()).toEqual({ kind: 'open' })
  })

  test('shares the turns with the others of its kind, so that two do not make one long turn', async () => {
    const [one, other] = [await stepping(), await stepping()]
    const lengths: number[] = []
    for (let turns = 0; turns < 6; turns++) {
      await turn()
      lengths.push(one.received().length + other.received().length)
    }

    expect(lengths).toEqual([1, 2, 3, 4, 5, 6])
  })

  test('ends, or asks for its next part, when all the work is done', async () => {
    const [one, two] = [await stepping(), await stepping(2)]
    one.sent[0]?.handler.onEnd()
    two.sent[0]?.handler.onEnd()
    const atOnce = [one.ends.length, two.sent.length]
    for (let turns = 0; turns < 6; turns++) await turn()

    expect(atOnce).toEqual([0, 1])
    expect([one.received(), one.ends]).toEqual(['abc', [{ kind: 'ended' }]])
    expect([two.received(), two.sent.length]).toEqual(['abc', 2])
    two.sent[1]?.handler.onHead(200, head)
    two.sent[1]?.handler.onData(Buffer.from('de'))
    await Promise.resolve()
    for (let turns = 0; turns < 2; turns++) await turn()
    expect([two.received(), two.ends.length, two.stream.bodies.length]).toEqual(['abcde', 0, 1])
    two.sent[1]?.handler.onEnd()
    expect([two.ends, two.stream.bodies.length]).toEqual([[{ kind: 'ended' }], 2])
  })

  test('gives what had come before the connection broke, and then breaks', async () => {
    const one = await stepping()
    const failure = { phase: 'body', kind: 'reset', error: new Error('reset') } as const
    one.sent[0]?.handler.onFailure(failure)
    for (let turns = 0; turns < 3; turns++) await turn()

    expect(one.received()).toBe('abc')
    expect(one.ends).toEqual([{ kind: 'transport-failure', failure }])
  })

  test('rests with its work while the caller is slow', async () => {
    const one = await stepping()
    one.call.pause()
    for (let turns = 0; turns < 3; turns++) await turn()
    const whileSlow = one.received()
    one.call.resume()
    for (let turns = 0; turns < 3; turns++) await turn()

    expect([whileSlow, one.received()]).toEqual(['', 'abc'])
  })

  test('ends without its work when it is given up, slow caller or not', async () => {
    const [one, slow] = [await stepping(), await stepping()]
    slow.call.pause()
    for (const { sent, call } of [one, slow]) {
      sent[0]?.handler.onEnd()
      call.abort()
    }
    for (let turns = 0; turns < 2; turns++) await turn()

    for (const { received, ends } of [one, slow]) {
      expect(received()).toBe('')
      expect(ends).toMatchObject([{ kind: 'transport-failure', failure: { kind: 'aborted' } }])
    }
  })

  test('ends when a step throws, and stops the vendor', async () => {
    const one = begun(1, false, true)
    one.sent[0]?.handler.onHead(200, head)
    await read(one, 'a#')
    for (let turns = 0; turns < 2; turns++) await turn()

    expect(one.ends).toMatchObject([{ kind: 'transport-failure', failure: { kind: 'protocol' } }])
    expect(one.sent[0]?.done).toContain('abort')
  })

  test('is read from again in the next turn of the event loop', async () => {
    const one = begun(1, false, true)
    one.sent[0]?.handler.onHead(200, head)
    await read(one)
    const atOnce = [...(one.sent[0]?.done ?? [])]
    await turn()

    expect(atOnce).toEqual(['pause'])
    expect(one.sent[0]?.done).toEqual(['pause', 'resume'])
  })

  test('takes turns with the others of its kind', async () => {
    const all = [begun(1, false, true), begun(1, false, true), begun(1, false, true)]
    for (const { sent } of all) sent[0]?.handler.onHead(200, head)
    for (const one of all) await read(one)
    const counts: number[] = []
    for (let turns = 0; turns < 3; turns++) {
      await turn()
      counts.push(all.filter(({ sent }) => sent[0]?.done.includes('resume')).length)
    }

    expect(counts).toEqual([1, 2, 3])
  })

  test('stays paused for a slow caller, whichever pause ends first', async () => {
    const one = begun(1, false, true)
    one.sent[0]?.handler.onHead(200, head)
    await read(one)
    one.call.pause()
    await turn()
    const asSlow = [...(one.sent[0]?.done ?? [])]
    one.call.resume()
    const untilDone = [...(one.sent[0]?.done ?? [])]
    await turn()

    expect([asSlow, untilDone]).toEqual([
      ['pause', 'pause'],
      ['pause', 'pause'],
    ])
    expect(one.sent[0]?.done).toEqual(['pause', 'pause', 'resume'])
  })

  test('does not rest when its bytes are nothing special', async () => {
    const one = begun(1)
    one.sent[0]?.handler.onHead(200, head)
    await read(one)

    expect(one.sent[0]?.done).toEqual([])
  })
})

test('an answer of one call ends with it', () => {
  const { speak, sent, ends, received } = begun(1)
  speak(0, 'one')

  expect(received()).toBe('one')
  expect(sent).toHaveLength(1)
  expect(ends).toEqual([{ kind: 'ended' }])
})

describe('a streamed answer that arrives faster than it is read', () => {
  const READ = Buffer.alloc(64 * 1024, 'a')
  const endOfTurn = () => new Promise((resolve) => setImmediate(resolve))

  test('pauses the vendor after 128 KiB until the next turn of the event loop', async () => {
    const { sent, received } = begun(1)
    const { handler, done } = sent[0]!
    handler.onHead(200, { 'content-type': 'text/event-stream' })
    handler.onData(READ)
    await Promise.resolve()
    expect(done).toEqual([])

    handler.onData(READ)
    await Promise.resolve()
    expect(done).toEqual(['pause'])
    await endOfTurn()
    expect(done).toEqual(['pause', 'resume'])
    expect(received()).toHaveLength(2 * READ.length)
  })

  test('stays paused after that turn while its receiver is', async () => {
    const { sent, call } = begun(1)
    const { handler, done } = sent[0]!
    handler.onHead(200, { 'content-type': 'text/event-stream' })
    handler.onData(Buffer.concat([READ, READ]))
    await Promise.resolve()
    call.pause()
    await endOfTurn()
    expect(done).not.toContain('resume')

    call.resume()
    expect(done.at(-1)).toBe('resume')
  })

  test('ends although it waits for its turn', async () => {
    const { sent, ends } = begun(1)
    const { handler } = sent[0]!
    handler.onHead(200, { 'content-type': 'text/event-stream' })
    handler.onData(Buffer.concat([READ, READ]))
    await Promise.resolve()
    handler.onEnd()

    expect(ends).toEqual([{ kind: 'ended' }])
  })
})
