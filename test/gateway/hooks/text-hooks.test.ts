import { describe, expect, test, vi } from 'vitest'
import type { AnyHook, TextHook, TextWindow } from '../../../src/hooks/hook.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import type { Transport } from '../../../src/transport/transport.ts'
import { readEvents } from '../../support/read-events.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { eventStream } from '../streams/answering-vendor.ts'
import { chatText, joined, messageEvents, responseEvents, STREAMS } from '../streams/text-streams.ts'
import { chunk, closedAfterEach, events, type Script, spoken, USAGE } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'

const start = closedAfterEach()

/** Texts of the windows that a hook was shown. */
function watching(options: Partial<TextHook> = {}): { hook: AnyHook; windows: string[] } {
  const windows: string[] = []
  const check = ({ held, fresh, isLast }: TextWindow): undefined => void windows.push(`${held}${fresh}|${isLast}`)
  return { hook: { name: 'watch', text: { holdBack: { chars: 4 }, check, ...options } }, windows }
}

describe('a text hook', () => {
  test('receives the held and the new text, and holds characters back', async () => {
    const { hook, windows } = watching()
    const release: (() => void)[] = []
    const { post } = await start([hook], (response) => {
      eventStream(response)
      const pieces = ['abcdef', 'gh', 'i']
      const next = (): void => {
        const text = pieces.shift()
        if (text === undefined) response.end(`data: ${JSON.stringify(chunk({}, 'stop'))}\n\ndata: [DONE]\n\n`)
        else response.write(`data: ${JSON.stringify(chunk({ content: text }))}\n\n`)
      }
      next()
      release.push(next)
    })
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    const reader = reply.body!.getReader()
    const read = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value)

    expect(joined(dataOf(await read()), chatText('content'))).toBe('ab')
    release[0]!()
    expect(joined(dataOf(await read()), chatText('content'))).toBe('cd')
    release[0]!()
    expect(joined(dataOf(await read()), chatText('content'))).toBe('e')
    release[0]!()
    expect(joined(dataOf(await read()), chatText('content'))).toBe('fghi')
    expect(windows).toEqual(['abcdef|false', 'cdefgh|false', 'efghi|false', 'fghi|true'])
  })

  test('gets each text once, whole, if it holds everything back', async () => {
    const { hook, windows } = watching({ holdBack: 'all' })
    const { post } = await start([hook], spoken(['a', 'b', 'c']))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

    expect(windows).toEqual(['abc|true'])
    expect(joined(list, chatText('content'))).toBe('abc')
  })

  test('leaves the bytes unchanged if it changes and holds nothing', async () => {
    const { hook } = watching({ holdBack: { chars: 0 } })
    const list = ['a', 'b'].map((content) => chunk({ content, extra: 1 }))
    const script = events([...list, chunk({}, 'stop')])
    const plain = await start([], script)
    const expected = await (await plain.post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))).text()
    await plain.close()
    const { post } = await start([hook], script)

    expect(await (await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))).text()).toBe(expected)
  })

  test('may take its time: the texts keep their order', async () => {
    const check = async ({ held, fresh }: TextWindow): Promise<{ replace: string }> => {
      await new Promise((resolve) => setImmediate(resolve))
      return { replace: (held + fresh).toUpperCase() }
    }
    const { post } = await start([{ name: 'slow', text: { holdBack: { chars: 0 }, check } }], spoken([...'in order']))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

    expect(joined(list, chatText('content'))).toBe('IN ORDER')
    expect(list.at(-1)).toBe('[DONE]')
  })

  test('runs after the next one in the list', async () => {
    const add = (name: string): AnyHook => ({
      name,
      text: { holdBack: 'all', check: ({ held, fresh }) => ({ replace: `${held}${fresh}${name}` }) },
    })
    const { post } = await start([add('1'), add('2')], spoken(['a']))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

    expect(joined(list, chatText('content'))).toBe('a21')
  })
})

/**
 * A vendor whose stream comes in these reads: the next one, or with the last one also the end, as soon as it is read on. All of that
 * happens inside of `resume`, as it does where the bytes wait in the socket.
 */
function waitingVendor(reads: readonly string[]): Transport {
  return {
    send(_request, handler) {
      let next = 0
      let isPaused = false
      const readOn = (): void => {
        while (!isPaused && next < reads.length) handler.onData(Buffer.from(reads[next++]!))
        if (isPaused || next > reads.length) return
        next += 1
        handler.onEnd()
      }
      setImmediate(() => {
        handler.onHead(200, { 'content-type': 'text/event-stream' })
        handler.onData(Buffer.from(reads[next++]!))
        // Later, so that the first read has reached the hook.
        setImmediate(readOn)
      })
      return {
        abort: () => undefined,
        pause: () => {
          isPaused = true
        },
        resume: () => {
          isPaused = false
          readOn()
        },
      }
    },
    close: () => Promise.resolve(),
  }
}

const later = async (): Promise<undefined> => {
  await new Promise((resolve) => setImmediate(resolve))
  return undefined
}

describe.each<[string, TextHook['check']]>([
  ['always', later],
  ['where there is text', ({ fresh }) => (fresh === '' ? undefined : later())],
  ['about the first text', ({ fresh }) => (fresh.startsWith('one') ? later() : undefined)],
])('a text hook that takes its time %s', (_name, check) => {
  // Much text makes the reader slower than the vendor.
  test.each([1, 100_000])(
    'loses and moves nothing of what the vendor says meanwhile (words times %i)',
    async (times) => {
      const usage = {
        id: 'c1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'gpt-5.4',
        choices: [],
        usage: USAGE,
      }
      const words = ['one ', 'two ', 'three ', 'four'].map((word) => word.repeat(times))
      const list = [...words.map((content) => chunk({ content })), chunk({}, 'stop'), usage]
      const reads = list.map((event) => `data: ${JSON.stringify(event)}\n\n`)
      const options = { transport: waitingVendor([...reads, 'data: [DONE]\n\n']) }
      const { post, ended, account } = await start(
        [{ name: 'slow', text: { holdBack: { chars: 0 }, check } }],
        undefined,
        options,
      )
      const response = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
      const told = await readEvents(response)

      expect(joined(told, chatText('content')) === words.join('')).toBe(true)
      expect(told.at(-1)).toBe('[DONE]')
      expect(await ended(response)).toMatchObject({ status: 200, usage: { inputTokens: 7, outputTokens: 5 } })
      expect((await account()).held).toBe(0n)
    },
  )
})

function dataOf(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: ') && !line.endsWith('[DONE]'))
    .map((line) => line.slice('data: '.length))
}

/** Vendor that sends one chunk, another one on command, and then nothing, with the connection open. */
function hangingVendor(): { script: Script; goOn: () => void } {
  let goOn = (): void => undefined
  const script: Script = (response) => {
    eventStream(response)
    response.write(`data: ${JSON.stringify(chunk({ role: 'assistant', content: 'fine ' }))}\n\n`)
    goOn = () => response.write(`data: ${JSON.stringify(chunk({ content: 'forbidden' }))}\n\n`)
  }
  return { script, goOn: () => goOn() }
}

const forbidding = (deny: object): AnyHook => ({
  name: 'forbid',
  text: {
    holdBack: { chars: 0 },
    check: ({ held, fresh }) => ((held + fresh).includes('forbidden') ? { deny } : undefined),
  },
})

describe('a stream that is denied', () => {
  test('ends with a refusal, closes the connection to the vendor, and charges the output received so far', async () => {
    const { script, goOn } = hangingVendor()
    const { post, ended, vendor, account } = await start([forbidding({ message: 'No.' })], script)
    const before = await account()
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    goOn()
    const list = await readEvents(reply)
    const event = await ended(reply)

    expect(joined(list, chatText('content'))).toBe('fine ')
    expect(joined(list, chatText('refusal'))).toBe('No.')
    expect(JSON.parse(list.at(-2)!)).toMatchObject({ choices: [{ finish_reason: 'content_filter' }] })
    expect(list.at(-1)).toBe('[DONE]')
    expect(event).toMatchObject({ ending: 'failed', code: 'answer_denied' })
    expect(event.usage?.outputTokens).toBeGreaterThan(0)
    expect((await account()).balance).toBe(before.balance - event.costNanoDollars)
    expect((await account()).held).toBe(0n)
    await vi.waitFor(() => expect(vendor.aborted).toBe(1))
  })

  test('ends with an error event if it is denied as an error, without an end mark', async () => {
    const { script, goOn } = hangingVendor()
    const { post } = await start([forbidding({ as: 'error', message: 'No.' })], script)
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    goOn()
    const list = await readEvents(reply)

    expect(list).not.toContain('[DONE]')
    expect(JSON.parse(list.at(-1)!)).toMatchObject({ error: { message: 'No.', code: 'answer_denied' } })
  })

  test('ends with the refusals of Messages and of Responses in these dialects', async () => {
    const { post } = await start([forbidding({ message: 'No.' })], (response, asked) =>
      (asked['messages'] === undefined
        ? events(responseEvents(['fine ', 'forbidden']), '')
        : events(messageEvents(['fine ', 'forbidden']), ''))(response, asked),
    )
    const messages = await readEvents(await post('/v1/messages', STREAMS['messages']!.body))
    const responses = await readEvents(await post('/v1/responses', STREAMS['responses']!.body))
    const types = messages.map((event) => JSON.parse(event).type)

    expect(messages.join() + responses.join()).not.toContain('forbidden')
    expect(JSON.parse(messages.at(-2)!)).toMatchObject({ type: 'message_delta', delta: { stop_reason: 'refusal' } })
    expect(types.at(-1)).toBe('message_stop')
    expect(types.filter((type) => type === 'content_block_start')).toHaveLength(
      types.filter((type) => type === 'content_block_stop').length,
    )
    expect(JSON.parse(responses.at(-1)!)).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
    })
  })

  test('is free where the operator chooses to take the loss', async () => {
    const { script, goOn } = hangingVendor()
    const { post, ended, account } = await start([{ ...forbidding({}), chargeDenied: false }], script)
    const before = await account()
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    goOn()
    await readEvents(reply)

    expect((await ended(reply)).costNanoDollars).toBe(0n)
    expect(await account()).toEqual(before)
  })
})

const FAULTS: Record<string, (window: TextWindow) => unknown> = {
  throws: () => {
    throw new Error('secret')
  },
  rejects: () => Promise.reject(new Error('secret')),
  hangs: () => new Promise(() => undefined),
  'returns nonsense': () => ({ replaced: 'x' }),
  'holds what is not there': () => ({ replace: '', hold: 'other' }),
}

describe.each(Object.entries(FAULTS))('a text hook that %s', (_name, check) => {
  const hook = (onFailure: 'deny' | 'allow'): AnyHook => ({
    name: 'bad',
    timeoutMs: 20,
    onFailure,
    text: { holdBack: { chars: 0 }, check: check as never },
  })

  test('gets 503 before anything was sent, and charges nothing', async () => {
    const { post, ended, account, eventsOf } = await start([hook('deny')], spoken(['a', 'b']))
    const before = await account()
    const reply = await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    await ended(reply)

    expect(reply.status).toBe(503)
    expect(await reply.text()).not.toContain('secret')
    expect(await account()).toEqual(before)
    expect(eventsOf('internal-error')).toHaveLength(1)
  })

  test("is passed over where it says `onFailure: 'allow'`, with one event", async () => {
    const { post, eventsOf } = await start([hook('allow')], spoken(['a', 'b']))
    const list = await readEvents(await post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))

    expect(joined(list, chatText('content'))).toBe('ab')
    expect(eventsOf('hook-bypassed')).toMatchObject([{ hook: 'bad', point: 'text' }])
  })
})

test('more than a mebibyte is not held back', async () => {
  const long = 'x'.repeat(300_000)
  const { hook } = watching({ holdBack: 'all' })
  // One piece after the other has left, so that they are read one by one.
  const script: Script = (response) => {
    eventStream(response)
    const say = (left: number): void => {
      if (left === 0) response.end(`data: ${JSON.stringify(chunk({}, 'stop'))}\n\ndata: [DONE]\n\n`)
      else response.write(`data: ${JSON.stringify(chunk({ content: long }))}\n\n`, () => setImmediate(say, left - 1))
    }
    say(8)
  }
  const closed = await start([hook], script)
  const refused = await closed.post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
  expect(refused.status).toBe(503)
  await refused.text()
  await closed.close()

  const open = await start([{ ...hook, onFailure: 'allow' }], script)
  const list = await readEvents(await open.post(CHAT, chatBody('chat-relayed', 'hi', { stream: true })))
  expect(joined(list, chatText('content'))).toHaveLength(2_400_000)
  expect(open.eventsOf('hook-bypassed')).toMatchObject([{ reason: 'too-large' }])
})

test.each(['choices', 'tool calls'])(
  'reads an answer of 20,000 %s, which ends too many texts to hold back, in linear time',
  async (what) => {
    const many = Array.from({ length: 20_000 }, (_, index) => index)
    const call = (index: number) => ({
      index,
      id: `c${index}`,
      type: 'function',
      function: { name: 'f', arguments: '{}' },
    })
    const eventOf = (indexes: readonly number[]) =>
      what === 'choices'
        ? { ...chunk({}), choices: indexes.map((index) => ({ index, delta: { content: 'ab' }, finish_reason: null })) }
        : chunk({ tool_calls: indexes.map(call) })
    const list = Array.from({ length: 20 }, (_, part) => eventOf(many.slice(part * 1_000, (part + 1) * 1_000)))
    const hook: AnyHook = {
      name: 'windows',
      text: { holdBack: { chars: 1 }, check: ({ held, fresh }) => ({ replace: (held + fresh).toUpperCase() }) },
    }
    const started = await start([hook], (response) => {
      eventStream(response)
      const text = [...list, chunk({}, 'stop')].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
      response.end(`${text}data: [DONE]\n\n`)
    })
    const began = process.cpuUsage()
    const answer = await started.post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
    const text = await answer.text()
    const { user } = process.cpuUsage(began)

    expect(text).toContain('hook_failed')
    // Comparing each text with each takes 20 seconds.
    expect(user / 1000).toBeLessThan(3_000)
  },
)

test('headers do not wait longer than 15 seconds for a text that is held back', async () => {
  const clock = fakeClock({ startMs: Date.now() })
  const { hook } = watching({ holdBack: 'all' })
  let finish = (): void => undefined
  const script: Script = (response) => {
    eventStream(response)
    response.write(`data: ${JSON.stringify(chunk({ role: 'assistant', content: 'a' }))}\n\n`)
    finish = () => response.end(`data: ${JSON.stringify(chunk({}, 'stop'))}\n\ndata: [DONE]\n\n`)
  }
  const { post, vendor } = await start([hook], script, { clock })
  const asked = post(CHAT, chatBody('chat-relayed', 'hi', { stream: true }))
  await vi.waitFor(() => expect(vendor.calls).toBe(1))
  await vi.waitFor(async () => {
    clock.advance(15_000)
    await expect(Promise.race([asked, new Promise((_, reject) => setTimeout(reject, 50))])).resolves.toBeDefined()
  })
  const reply = await asked
  finish()
  const text = await reply.text()

  expect(reply.status).toBe(200)
  expect(text).toContain('"content":"a"')
})
