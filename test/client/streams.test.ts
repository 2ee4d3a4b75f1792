import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ChatStream, MessageStream } from '../../src/client/index.ts'
import { answering, collected, events, json, type StandIn, startStandIn } from './stand-in.ts'

const messages = [{ role: 'user' as const, content: 'hello' }]
const chunk = (content: string): string => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`
const event = (type: string, rest = ''): string => `event: ${type}\ndata: {"type":"${type}"${rest}}\n\n`

let standIn: StandIn

beforeAll(() => {
  standIn = startStandIn()
})
afterEach(() => standIn.server.resetHandlers())
afterAll(() => standIn.server.close())

function chat(answer: () => Response, signal?: AbortSignal): Promise<ChatStream> {
  standIn.server.use(answering('/chat/completions', answer))
  return standIn.client.chat.completions.create(
    { model: 'cl-opus-4-7', messages, stream: true },
    signal === undefined ? {} : { signal },
  )
}

function message(answer: () => Response): Promise<MessageStream> {
  standIn.server.use(answering('/messages', answer))
  return standIn.client.messages.stream({ model: 'cl-opus-4-7', max_tokens: 10, messages })
}

async function textOf(stream: ChatStream): Promise<string> {
  return (await collected(stream)).map(({ choices }) => choices[0]?.delta.content ?? '').join('')
}

describe('a streamed chat', () => {
  const whole = [chunk('one '), ': a comment\n\n', chunk('twö'), 'data: [DONE]\n\n'].join('')

  test.each([
    ['whole', [whole]],
    ['event by event', whole.split(/(?<=\n\n)/)],
    ['character by character', [...whole]],
  ])('is read %s', async (_name, pieces) => {
    const stream = await chat(events(pieces))

    expect(await textOf(stream)).toBe('one twö')
    expect(stream.requestId).toBe('req_stream')
  })

  test('that is cut off fails, however well it read so far', async () => {
    const stream = await chat(events([chunk('one')]))

    await expect(textOf(stream)).rejects.toMatchObject({
      code: 'upstream_invalid_response',
      requestId: 'req_stream',
      message: 'The stream ended before the answer was complete.',
    })
  })

  test('that breaks fails with the cause', async () => {
    const stream = await chat(events([chunk('one')], { breaksOff: true }))

    await expect(textOf(stream)).rejects.toMatchObject({ code: 'upstream_invalid_response', cause: expect.any(Error) })
  })

  test('that tells of an error throws it', async () => {
    const error =
      'data: {"error":{"message":"away","type":"server_error","param":null,"code":"upstream_unavailable"}}\n\n'
    const stream = await chat(events([chunk('one'), error]))

    await expect(textOf(stream)).rejects.toMatchObject({ code: 'upstream_unavailable', requestId: 'req_stream' })
  })

  test('ends without an error when it is aborted from within the loop', async () => {
    const stream = await chat(events([chunk('one'), chunk('two'), chunk('three')]))
    const seen: unknown[] = []
    for await (const item of stream) {
      seen.push(item)
      stream.abort()
    }

    expect(seen).toHaveLength(1)
  })

  test("ends with the reason of the caller's signal", async () => {
    const leaving = new AbortController()
    const endless = () =>
      new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode(chunk('one'))),
        }),
      )
    const stream = await chat(endless, leaving.signal)
    const reason = new Error('changed my mind')
    const reading = textOf(stream).catch((error: unknown) => error)
    leaving.abort(reason)

    expect(await reading).toBe(reason)
  })
})

describe('a streamed message', () => {
  const start = event('message_start', ',"message":{"id":"msg_1","content":[]}')
  const delta = event('content_block_delta', ',"index":0,"delta":{"type":"text_delta","text":"hi"}')

  test('gives every event, the last one included', async () => {
    const stream = await message(events([start, event('ping'), delta, event('message_stop')]))
    const types = (await collected(stream)).map(({ type }) => type)

    expect(types).toEqual(['message_start', 'ping', 'content_block_delta', 'message_stop'])
    expect(await standIn.requests.at(-1)!.json()).toMatchObject({ stream: true, max_tokens: 10 })
  })

  test('that tells of an error throws it', async () => {
    const stream = await message(
      events([start, event('error', ',"error":{"type":"overloaded_error","message":"busy"}')]),
    )

    await expect(collected(stream)).rejects.toMatchObject({ message: 'busy', type: 'overloaded_error' })
  })

  test('that is cut off fails', async () => {
    const stream = await message(events([start, delta]))

    await expect(collected(stream)).rejects.toMatchObject({ code: 'upstream_invalid_response' })
  })
})

describe('speech', () => {
  const sound = Uint8Array.from({ length: 10_000 }, (_, index) => index % 251)
  const spoken = (): Response => {
    let position = 0
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (position >= sound.byteLength) return controller.close()
        controller.enqueue(sound.slice(position, position + 3_000))
        position += 3_000
      },
    })
    return new Response(body, { headers: { 'content-type': 'audio/mpeg' } })
  }
  const broken = (): Response =>
    new Response(
      new ReadableStream({
        start(controller) {
          controller.enqueue(sound)
        },
        pull: (controller) => controller.error(new Error('broken')),
      }),
    )

  async function create(answer: () => Response) {
    standIn.server.use(answering('/audio/speech', answer))
    return standIn.client.audio.speech.create({ model: 'qw3-tts-flash', input: 'hello', voice: 'Ethan' })
  }

  test('comes as bytes', async () => {
    const answer = await create(spoken)

    expect(answer.contentType).toBe('audio/mpeg')
    expect(await answer.bytes()).toEqual(sound)
    expect(await standIn.requests.at(-1)!.json()).toEqual({ model: 'qw3-tts-flash', input: 'hello', voice: 'Ethan' })
  })

  test('comes chunk by chunk', async () => {
    const chunks = await collected(await create(spoken))

    expect(chunks.length).toBeGreaterThan(1)
    expect(Buffer.concat(chunks).equals(sound)).toBe(true)
  })

  test('comes as a stream', async () => {
    const answer = await create(spoken)

    expect(new Uint8Array(await new Response(answer.stream).arrayBuffer())).toEqual(sound)
  })

  test('that breaks off is not taken for whole', async () => {
    await expect((await create(broken)).bytes()).rejects.toMatchObject({ code: 'upstream_invalid_response' })
    await expect(new Response((await create(broken)).stream).arrayBuffer()).rejects.toThrow()
  })
})

test('messages are created and counted', async () => {
  standIn.server.use(
    answering('/messages', json({ id: 'msg_1', type: 'message', content: [{ type: 'text', text: 'hi' }] })),
    answering('/messages/count_tokens', json({ input_tokens: 12 })),
  )
  const { client } = standIn
  const answer = await client.messages.create({ model: 'cl-opus-4-7', max_tokens: 10, messages })

  expect(answer.content).toEqual([{ type: 'text', text: 'hi' }])
  expect(await client.messages.countTokens({ model: 'cl-opus-4-7', messages })).toEqual({ input_tokens: 12 })
})
