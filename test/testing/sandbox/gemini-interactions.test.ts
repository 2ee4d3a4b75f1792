import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { faultQueue } from '../../../src/testing/sandbox/fault.ts'
import { GEMINI_GENERATE } from '../../../src/testing/sandbox/gemini/gemini.ts'
import {
  GEMINI_INTERACTIONS,
  GEMINI_INTERACTIONS_ERRORS,
} from '../../../src/testing/sandbox/gemini/gemini-interactions.ts'
import { replyQueue } from '../../../src/testing/sandbox/scripted-reply.ts'
import { answeredCall } from '../../../src/testing/sandbox/transports.ts'
import { feed, interactionCall, interactionsOf, relayedText } from '../../vendors/gemini/interaction-call.ts'
import { eventData, eventsOf, type Json } from './support/running-sandbox.ts'

const FLASH = 'gemini-3.1-flash-image-preview'
const PRO = 'gemini-3-pro-image-preview'
const FLASH_2_5 = 'gemini-2.5-flash-image'

interface Reply {
  readonly status: number
  readonly text: string
  readonly json: Json
}

function ask(body: unknown, options: { path?: string; key?: string; headers?: Record<string, string> } = {}): Reply {
  const [path = '', query = ''] = (options.path ?? '/v1beta/interactions').split('?')
  const { steps } = answeredCall(
    {
      method: 'POST',
      path,
      query,
      headers: { 'x-goog-api-key': options.key ?? 'key-a', ...options.headers },
      bytes: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    },
    {
      operations: [GEMINI_INTERACTIONS, GEMINI_GENERATE],
      faults: faultQueue(),
      replies: replyQueue(),
      eventDelayMs: 0,
      now: () => Date.UTC(2026, 10, 1, 10),
    },
  )
  let status = 0
  const pieces: Uint8Array[] = []
  for (let step = steps.next(); step.done !== true; step = steps.next()) {
    if (step.value.kind === 'head') status = step.value.status
    if (step.value.kind === 'bytes') pieces.push(step.value.bytes)
  }
  const text = Buffer.concat(pieces).toString('utf8')
  return { status, text, json: /^[[{]/.test(text) ? (JSON.parse(text) as Json) : undefined }
}

const draw = (fields: object = {}) => ({
  model: FLASH,
  input: 'A paper crane',
  response_format: { type: 'image' },
  ...fields,
})
const format = (fields: object) => ({ response_format: { type: 'image', ...fields } })

function pictureOf(answer: Json): { mime_type: string; data: string } {
  const blocks = answer.steps.flatMap((step: Json) => step.content ?? [])
  return blocks.find((block: Json) => block.type === 'image')
}

/** Returns width and height from the frame header of a JPEG, or the first chunk of a PNG. */
function pixelsOf(base64: string): [number, number] {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.readUInt16BE(0) === 0x8950) return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)]
  let position = 2
  while (position < bytes.length) {
    const marker = bytes.readUInt16BE(position)
    if (marker >= 0xffc0 && marker <= 0xffc2)
      return [bytes.readUInt16BE(position + 7), bytes.readUInt16BE(position + 5)]
    position += 2 + bytes.readUInt16BE(position + 2)
  }
  throw new Error('no frame header')
}

describe('a whole interaction', () => {
  test('contains an image, a usage by modality and an id', () => {
    const { status, json } = ask(
      draw({
        input: [
          { type: 'text', text: 'Put it on a desk' },
          { type: 'image', mime_type: 'image/png', data: 'aGVsbG8=' },
        ],
        generation_config: { thinking_level: 'high' },
      }),
    )

    expect(status).toBe(200)
    expect(json).toMatchObject({
      id: expect.stringMatching(/^v1_[\w-]{32}$/),
      object: 'interaction',
      model: FLASH,
      status: 'completed',
      created: '2026-11-01T10:00:00Z',
    })
    expect(json.steps.map((step: Json) => step.type)).toEqual(['thought', 'model_output'])
    expect(json.usage).toEqual({
      total_tokens: 4 + 1120 + 1120 + 24,
      total_input_tokens: 4 + 1120,
      input_tokens_by_modality: [
        { modality: 'text', tokens: 4 },
        { modality: 'image', tokens: 1120 },
      ],
      total_output_tokens: 1120,
      output_tokens_by_modality: [{ modality: 'image', tokens: 1120 }],
      total_thought_tokens: 24,
      total_cached_tokens: 0,
      total_tool_use_tokens: 0,
    })
  })

  test('has text and image in two steps without a format', () => {
    const { json } = ask({ model: FLASH, input: 'A paper crane' })

    expect(json.steps.map((step: Json) => step.content.map((block: Json) => block.type))).toEqual([['text'], ['image']])
  })

  test.each<[string, object, [number, number]]>([
    ['the default', {}, [1024, 1024]],
    ['512 at 1:1', { image_size: '512' }, [512, 512]],
    ['512 at 3:2', { image_size: '512', aspect_ratio: '3:2' }, [632, 424]],
    ['1K at 9:16', { aspect_ratio: '9:16' }, [768, 1376]],
    ['1K at 16:9', { aspect_ratio: '16:9' }, [1376, 768]],
    ['1K at 21:9', { aspect_ratio: '21:9' }, [1584, 672]],
    ['1K at 8:1', { aspect_ratio: '8:1' }, [3072, 384]],
    ['2K at 4:5', { image_size: '2K', aspect_ratio: '4:5' }, [1856, 2304]],
  ])('contains a JPEG of the requested size: %s', (_case, fields, pixels) => {
    const picture = pictureOf(ask(draw(format(fields))).json)

    expect(picture.mime_type).toBe('image/jpeg')
    expect(pixelsOf(picture.data)).toEqual(pixels)
  })

  test('2.5-flash has pixel sizes of its own, and PNG comes when asked for', () => {
    const picture = pictureOf(
      ask(draw({ model: FLASH_2_5, ...format({ aspect_ratio: '4:3', mime_type: 'image/png' }) })).json,
    )

    expect(picture.mime_type).toBe('image/png')
    expect(pixelsOf(picture.data)).toEqual([1184, 864])
  })

  test('is equal for equal requests, and has another image for others', () => {
    expect(ask(draw()).text).toBe(ask(draw()).text)
    expect(pictureOf(ask(draw({ input: 'Another' })).json).data).not.toBe(pictureOf(ask(draw()).json).data)
  })

  test('is failed with HTTP 200 and without steps for a blocked image', () => {
    const { status, json } = ask(draw({ input: 'x [[fault:blocked]]' }))

    expect(status).toBe(200)
    expect(json).toMatchObject({ status: 'failed', errors: [{ code: 'content_blocked' }] })
    expect(json).not.toHaveProperty('steps')
  })
})

describe('history', () => {
  const first = ask(draw()).json.id as string

  test('an answer can be continued with the key that made it', () => {
    expect(ask(draw({ input: 'Make it green', previous_interaction_id: first })).status).toBe(200)
  })

  test.each<[string, string, string | undefined]>([
    ['an unknown id', 'v1_ChdTQU1QTEU', undefined],
    ['an id of another key', first, 'key-b'],
    ['an id of another form', 'abc', undefined],
    ['an altered id', `${first.slice(0, -4)}AAAA`, undefined],
  ])('404: %s', (_case, previous_interaction_id, key) => {
    const reply = ask(draw({ previous_interaction_id }), key === undefined ? {} : { key })

    expect(reply.status).toBe(404)
    expect(reply.json).toEqual({ error: { message: 'previous_interaction_id not found', code: 'not_found' } })
  })

  test('nothing is kept without storing', () => {
    expect(ask(draw({ store: false })).json).not.toHaveProperty('id')
    expect(ask(draw({ store: false, previous_interaction_id: first })).json.error.code).toBe('invalid_request')
  })
})

describe('what the vendor refuses, with a code in words', () => {
  test.each<[string, object, RegExp]>([
    ['no input', { input: undefined }, /'input' field is required/],
    ['an unknown block', { input: [{ type: 'message' }] }, /input\[0\].type/],
    [
      'a data URL',
      { input: [{ type: 'image', mime_type: 'image/png', data: 'data:image/png;base64,aGk=' }] },
      /Base64/,
    ],
    ['512px', format({ image_size: '512px' }), /image_size/],
    ['a lower-case k', format({ image_size: '2k' }), /image_size/],
    ['2K on 2.5-flash', { model: FLASH_2_5, ...format({ image_size: '2K' }) }, /image_size/],
    ['512 on 3-pro', { model: PRO, ...format({ image_size: '512' }) }, /image_size/],
    ['an extreme ratio on 3-pro', { model: PRO, ...format({ aspect_ratio: '8:1' }) }, /aspect_ratio/],
    ['WebP', format({ mime_type: 'image/webp' }), /mime_type/],
    ['an unknown level', { generation_config: { thinking_level: 'low' } }, /thinking_level/],
    ['thinking on 2.5-flash', { model: FLASH_2_5, generation_config: { thinking_level: 'high' } }, /thinking_level/],
    [
      'too many pictures',
      { model: FLASH_2_5, input: Array(4).fill({ type: 'image', mime_type: 'image/png', data: 'aGk=' }) },
      /At most 3/,
    ],
    ['a public id', { model: 'gmn-2.5-flash-image' }, /not found/],
    ['the old layout', { response_mime_type: 'image/png' }, /legacy Interactions schema/],
  ])('%s', (_case, fields, message) => {
    const { status, json } = ask(draw(fields))

    expect(status).toBe(400)
    expect(json.error).toEqual({ message: expect.stringMatching(message), code: 'invalid_request' })
  })

  test('the revision of the old layout', () => {
    expect(ask(draw(), { headers: { 'api-revision': '2026-05-07' } }).json.error.code).toBe('invalid_request')
  })

  test('a missing key and a bad one, in a list as the front end writes them', () => {
    expect(ask(draw(), { key: '' })).toMatchObject({ status: 403, json: [{ error: { status: 'PERMISSION_DENIED' } }] })
    expect(ask(draw({ input: '[[fault:bad-key]]' }))).toMatchObject({ status: 400, json: [{ error: { code: 400 } }] })
  })
})

test('a stream has the vendor\u2019s events and ends with [DONE]', () => {
  const { text } = ask(draw({ stream: true, store: false, model: PRO }))
  const data = eventData(eventsOf(text))

  expect(data.map(({ event_type }) => event_type)).toEqual([
    'interaction.created',
    'interaction.status_update',
    'step.start',
    'step.delta',
    'step.stop',
    'step.start',
    'step.delta',
    'step.stop',
    'interaction.completed',
  ])
  expect(data[0].interaction).toEqual({ id: '', status: 'in_progress', object: 'interaction', model: PRO })
  expect(data[6].delta).toMatchObject({ type: 'image', mime_type: 'image/jpeg' })
  expect(data[8].interaction).not.toHaveProperty('steps')
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
})

describe('the gateway\u2019s vendor and the stand-in understand each other', () => {
  const fields = {
    input: [
      { type: 'text', text: 'A crane' },
      { type: 'image', mime_type: 'image/png', data: 'aGVsbG8=' },
    ],
    system_instruction: 'Flat.',
    response_format: { type: 'image', image_size: '512px', aspect_ratio: '3:2' },
    generation_config: { thinking_level: 'minimal', temperature: 1 },
  } as const

  describe.each(['interactions', 'generateContent'] as const)('the API %s', (images) => {
    const operation = interactionsOf({ images })

    test.each([false, true])('streamed: %s', (stream) => {
      const call = interactionCall({ ...fields, stream } as never)
      const wire = operation.toWire(call)
      const reply = ask(String(wire.body), { path: wire.path })

      expect(reply.status).toBe(200)
      if (!stream) {
        const relayed = operation.fromWire([Buffer.from(reply.text)], call)
        expect(pixelsOf(pictureOf(JSON.parse(relayedText(relayed))).data)).toEqual([632, 424])
        expect(relayed).toMatchObject({ isRefusal: false, usage: { images: 1, outputImageTokens: 747 } })
        return
      }
      const answer = operation.stream?.(call)
      if (answer === undefined) throw new Error('the operation does not stream')
      const deltas = eventData(eventsOf(feed(answer, [Buffer.from(reply.text)])))
      const image = deltas.find(({ delta }) => delta?.type === 'image')
      expect(pixelsOf(image.delta.data)).toEqual([632, 424])
      expect(answer).toMatchObject({ isComplete: true, usage: { images: 1, outputImageTokens: 747 } })
    })

    test.each([false, true])('blocked, streamed: %s', (stream) => {
      const call = interactionCall({ input: 'x [[fault:blocked]]', stream })
      const wire = operation.toWire(call)
      const reply = ask(String(wire.body), { path: wire.path })
      if (!stream) {
        const relayed = operation.fromWire([Buffer.from(reply.text)], call)
        expect(relayed?.isRefusal).toBe(true)
        expect(JSON.parse(relayedText(relayed))).toMatchObject({ status: 'failed', steps: [] })
        return
      }
      const answer = operation.stream?.(call)
      if (answer === undefined) throw new Error('the operation does not stream')
      expect(feed(answer, [Buffer.from(reply.text)])).toContain('"status":"failed"')
      expect(answer).toMatchObject({ isComplete: true, isRefusal: true })
    })
  })
})

test('an error says how long to wait when it is asked to', () => {
  const { headers } = GEMINI_INTERACTIONS_ERRORS.status(429, undefined, 7)

  expect(headers[headers.indexOf('retry-after') + 1]).toBe('7')
  expect(GEMINI_INTERACTIONS_ERRORS.status(429).headers).not.toContain('retry-after')
})
