import { afterEach, describe, expect, test } from 'vitest'
import { fakeClock } from '../../../src/testing/index.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

/** The numbers of the events of a Responses stream, as they were sent. */
const numbersIn = (text: string): number[] =>
  [...text.matchAll(/"sequence_number":(\d+)/g)].map((match) => Number(match[1]))

let started: StartedGateway

afterEach(() => started.close())

const CHAT = '/v1/chat/completions'

describe('a vendor that is silent for 15 seconds', () => {
  test('in the middle of a stream is covered by a comment between two events', async () => {
    const clock = fakeClock()
    started = await startGateway({ clock })
    const caller = rawPost(
      started.url,
      CHAT,
      chatBody('chat-relayed', '[[fault:hang-body=3]] one two three four', { stream: true }),
    )
    await caller.received('You')
    clock.advance(15_000)
    const text = await caller.received(': keep-alive\n\n')

    expect(text).toMatch(/\n\n: keep-alive\n\n|\r\n\r\n: keep-alive\n\n|\n: keep-alive\n\n/)
    caller.leave()
  })

  test.each(['chat-relayed', 'chat-qwen'])(
    'in the middle of Responses of %s is covered by an event with the number of the one before it',
    async (model) => {
      const clock = fakeClock()
      started = await startGateway({ clock })
      const input = '[[fault:hang-body=7]] one two three four five six seven eight'
      const caller = rawPost(started.url, '/v1/responses', { model, input, stream: true })
      await caller.received('output_text.delta')
      clock.advance(15_000)
      const text = await caller.received('event: keepalive\ndata: {"type":"keepalive"')
      caller.leave()

      const numbers = numbersIn(text)
      expect(text).toMatch(/"type":"keepalive","sequence_number":\d+\}/)
      expect(numbers.at(-1)).toBe(numbers.at(-2))
    },
  )

  test.each(['chat-relayed', 'chat-qwen'])(
    'in the middle of Responses of %s, while a hook holds events back, has the number of the last one that was sent',
    async (model) => {
      const clock = fakeClock()
      started = await startGateway({
        clock,
        hooks: [{ name: 'reads', text: { holdBack: { chars: 12 }, check: () => undefined } }],
      })
      const input = '[[fault:hang-body=9]] one two three four five six seven eight nine ten'
      const caller = rawPost(started.url, '/v1/responses', { model, input, stream: true })
      await caller.received('output_text.delta')
      clock.advance(15_000)
      const text = await caller.received('event: keepalive\ndata: {"type":"keepalive"')
      caller.leave()

      const numbers = numbersIn(text)
      expect(numbers.at(-1)).toBe(numbers.at(-2))
      expect(numbers.slice(0, -1)).toEqual(numbers.slice(0, -1).map((_, index) => index))
    },
  )

  test.each(['chat-relayed', 'chat-qwen'])(
    'in Responses of %s whose first text a hook holds back is covered by events that go on from their beginning',
    async (model) => {
      const clock = fakeClock()
      started = await startGateway({
        clock,
        hooks: [{ name: 'reads', text: { holdBack: 'all', check: () => undefined } }],
      })
      const input = '[[fault:hang-body=9]] one two three four five six seven eight nine ten'
      const caller = rawPost(started.url, '/v1/responses', { model, input, stream: true })
      await started.sandbox.nextRequest()
      const opened = caller.received('response.created')
      // The vendor's events must have arrived before the time is moved; a second answer over the same way shows that they have.
      await started.post(CHAT, chatBody('chat-relayed', 'hello')).then((response) => response.text())
      clock.advance(15_000)
      await opened
      clock.advance(15_000)
      const text = await caller.received('event: keepalive\ndata: {"type":"keepalive"')
      caller.leave()

      const numbers = numbersIn(text)
      expect(text.match(/event: response.created/g)).toHaveLength(1)
      expect(numbers.at(-1)).toBe(numbers.at(-2))
      expect(numbers.slice(0, -1)).toEqual(numbers.slice(0, -1).map((_, index) => index))
    },
  )

  test('gets the headers before its first content, and no other vendor is called after that', async () => {
    const clock = fakeClock()
    started = await startGateway({ clock })
    const caller = rawPost(
      started.url,
      CHAT,
      chatBody('chat-relayed', '[[fault:hang-body=1]] one two three four', { stream: true }),
    )
    await started.sandbox.nextRequest()
    const opened = caller.received('text/event-stream')
    // The vendor's headers must have arrived before the time is moved; a second answer over the same way shows that they have.
    await started.post(CHAT, chatBody('chat-relayed', 'hello')).then((response) => response.text())
    clock.advance(15_000)
    const text = await opened

    expect(text).toContain('HTTP/1.1 200')
    expect(started.sandbox.requests).toHaveLength(2)
    caller.leave()
  })
})

test('nothing sleeps in the stream path: a first event arrives though the clock stands still', async () => {
  started = await startGateway({ clock: fakeClock() })
  const response = await started.post(CHAT, chatBody('chat-relayed', 'one two three', { stream: true }))
  const text = await response.text()

  expect(text).toContain('data: [DONE]')
})
