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

  test('fails if it is cut off, however well it read so far', async () => {
    const stream = await chat(events([chunk('one')]))

    await expect(textOf(stream)).rejects.toMatchObject({
      code: 'upstream_invalid_response',
      requestId: 'req_stream',
      message: 'The stream ended before the answer was complete.',
    })
  })

  test('fails with the cause if it breaks', async () => {
    const stream = await chat(events([chunk('one')], { breaksOff: true }))

    await expect(textOf(stream)).rejects.toMatchObject({ code: 'upstream_invalid_response', cause: expect.any(Error) })
  })

  test('throws an error that it contains', async () => {
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

  test('cannot be read twice', async () => {
    const stream = await chat(events([whole]))
    await collected(stream)

    await expect(collected(stream)).rejects.toThrow(new TypeError('A stream is read once.'))
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

  test('throws an error that it contains', async () => {
    const stream = await message(
      events([start, event('error', ',"error":{"type":"overloaded_error","message":"busy"}')]),
    )

    await expect(collected(stream)).rejects.toMatchObject({ message: 'busy', type: 'overloaded_error' })
  })

  test('fails if it is cut off', async () => {
    const stream = await message(events([start, delta]))

    await expect(collected(stream)).rejects.toMatchObject({ code: 'upstream_invalid_response' })
  })
})

describe('streamed images', () => {
  const partial = event('image_generation.partial_image', ',"partial_image_index":0,"b64_json":"AA=="')
  const completed = event('image_generation.completed', ',"b64_json":"AAA="')
  const interaction = (type: string, rest = ''): string => `event: ${type}\ndata: {"event_type":"${type}"${rest}}\n\n`

  async function openai(pieces: readonly string[], options?: { readonly breaksOff?: boolean }) {
    standIn.server.use(answering('/images/generations', events(pieces, options)))
    return standIn.client.images.generate({ model: 'gp-image-2', prompt: 'a', stream: true, partial_images: 1 })
  }

  test("in OpenAI's shape give unfinished ones and each whole one, and need no mark of the end", async () => {
    const stream = await openai([partial, completed, completed])
    const seen = await collected(stream)

    expect(seen.map(({ type }) => type)).toEqual([
      'image_generation.partial_image',
      'image_generation.completed',
      'image_generation.completed',
    ])
    expect(seen[0]).toMatchObject({ partial_image_index: 0, b64_json: 'AA==' })
    expect(stream.requestId).toBe('req_stream')
    expect(await standIn.requests.at(-1)!.json()).toMatchObject({ stream: true, partial_images: 1 })
  })

  test('fail if they end before a whole one', async () => {
    await expect(collected(await openai([partial]))).rejects.toMatchObject({
      code: 'upstream_invalid_response',
      requestId: 'req_stream',
    })
  })

  test('still fail if they break after a whole one: more may have been in flight', async () => {
    await expect(collected(await openai([completed], { breaksOff: true }))).rejects.toMatchObject({
      code: 'upstream_invalid_response',
    })
  })

  test('throw an error that they contain', async () => {
    const error = 'data: {"error":{"message":"no","type":"server_error","param":null,"code":"upstream_timeout"}}\n\n'

    await expect(collected(await openai([partial, error]))).rejects.toMatchObject({ code: 'upstream_timeout' })
  })

  test('end without an error when they are aborted', async () => {
    const stream = await openai([partial, partial, completed])
    const seen: unknown[] = []
    for await (const item of stream) {
      seen.push(item)
      stream.abort()
    }

    expect(seen).toHaveLength(1)
  })

  test('end with [DONE] in the interactions shape, which is not an event', async () => {
    const delta = interaction('step.delta', ',"index":0,"delta":{"type":"image","mime_type":"image/png","data":"AA=="}')
    const last = interaction('interaction.completed', ',"interaction":{"id":"v1_a","status":"completed"}')
    standIn.server.use(answering('/images/generations', events([delta, last, 'data: [DONE]\n\n', delta])))
    const stream = await standIn.client.images.generate({
      model: 'gmn-2.5-flash-image',
      input: 'a boat',
      stream: true,
    })
    const pictures: string[] = []
    for await (const item of stream) {
      if (item.event_type === 'step.delta' && item.delta.type === 'image') pictures.push(item.delta.data ?? '')
    }

    expect(pictures).toEqual(['AA=='])
  })

  test('in the interactions shape throw an error event', async () => {
    const error = interaction('error', ',"error":{"message":"away","code":"upstream_unavailable"}')
    standIn.server.use(answering('/images/generations', events([interaction('interaction.created'), error])))
    const stream = await standIn.client.images.generate({ model: 'gmn-2.5-flash-image', input: 'a', stream: true })

    await expect(collected(stream)).rejects.toMatchObject({ code: 'upstream_unavailable', message: 'away' })
  })

  test('are requested in the form of an edit', async () => {
    const whole = event('image_edit.completed', ',"b64_json":"AAA="')
    standIn.server.use(answering('/images/edits', events([whole])))
    const stream = await standIn.client.images.edit({
      model: 'gp-image-1',
      prompt: 'a sail',
      image: new Blob(['x'], { type: 'image/png' }),
      stream: true,
      partial_images: 2,
    })
    const form = await standIn.requests.at(-1)!.formData()

    expect((await collected(stream)).map(({ type }) => type)).toEqual(['image_edit.completed'])
    expect([form.get('stream'), form.get('partial_images')]).toEqual(['true', '2'])
  })
})

test('reports an event that is too large with the same class of error', async () => {
  const piece = `data: ${'x'.repeat(1024 * 1024)}`
  const stream = await chat(events([piece, ...Array.from({ length: 64 }, () => 'x'.repeat(1024 * 1024))]))

  await expect(textOf(stream)).rejects.toMatchObject({
    code: 'upstream_invalid_response',
    requestId: 'req_stream',
    message: 'The stream holds an event that is too large.',
  })
})

describe('speech in events', () => {
  const delta = 'data: {"type":"speech.audio.delta","audio":"AAE="}\n\n'
  const done =
    'data: {"type":"speech.audio.done","usage":{"input_tokens":1,"output_tokens":0,"total_tokens":1,"characters":5}}\n\n'

  async function create(pieces: readonly string[]) {
    standIn.server.use(answering('/audio/speech', events(pieces)))
    return standIn.client.audio.speech.create({ model: 'qw3-tts-flash', input: 'hello', stream_format: 'sse' })
  }

  test('gives the pieces of the file, and the end with its characters', async () => {
    const seen = await collected(await create([delta, delta, done]))

    expect(seen.map(({ type }) => type)).toEqual(['speech.audio.delta', 'speech.audio.delta', 'speech.audio.done'])
    expect(seen[2]).toMatchObject({ usage: { characters: 5 } })
    expect(await standIn.requests.at(-1)!.json()).toMatchObject({ stream_format: 'sse' })
  })

  test('fails if it is cut off', async () => {
    await expect(collected(await create([delta]))).rejects.toMatchObject({ code: 'upstream_invalid_response' })
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

  test('is not treated as silence when it is read again', async () => {
    const answer = await create(spoken)
    await answer.bytes()
    const streamed = await create(spoken)
    await new Response(streamed.stream).arrayBuffer()
    const fault = 'An answer in bytes is read once.'

    await expect(answer.bytes()).rejects.toThrow(fault)
    await expect(collected(answer)).rejects.toThrow(fault)
    await expect(new Response(answer.stream).arrayBuffer()).rejects.toThrow(fault)
    await expect(streamed.bytes()).rejects.toThrow(fault)
  })

  test('is not treated as whole if it breaks off', async () => {
    await expect((await create(broken)).bytes()).rejects.toMatchObject({ code: 'upstream_invalid_response' })
    await expect(new Response((await create(broken)).stream).arrayBuffer()).rejects.toThrow()
  })

  test('is not treated as whole if it was aborted', async () => {
    const whole = await create(spoken)
    whole.abort()
    const streamed = await create(spoken)
    const reader = streamed.stream.getReader()
    await reader.read()
    streamed.abort()

    await expect(whole.bytes()).rejects.toMatchObject({ name: 'AbortError' })
    await expect(reader.read()).rejects.toMatchObject({ name: 'AbortError' })
  })

  test('ends a loop when it is aborted', async () => {
    const answer = await create(spoken)
    let count = 0
    for await (const chunk of answer) {
      count += chunk.length > 0 ? 1 : 0
      answer.abort()
    }

    expect(count).toBe(1)
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
