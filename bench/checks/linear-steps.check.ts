import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { defineModel } from '../../src/catalog/model.ts'
import { DASHSCOPE_IMAGE_MODELS } from '../../src/catalog/models/dashscope-models.ts'
import { GEMINI_IMAGE_MODELS } from '../../src/catalog/models/gemini-models.ts'
import { readCallerJson } from '../../src/core/json.ts'
import type { ChatRequest } from '../../src/endpoints/chat/chat-request.ts'
import type { ImageEditRequest } from '../../src/endpoints/image-edits/image-edit-request.ts'
import { interactionImageEndpoint } from '../../src/endpoints/images/images-endpoint.ts'
import type { MultimodalImageRequest } from '../../src/endpoints/images/multimodal/multimodal-image-request.ts'
import type { OpenAIImageRequest } from '../../src/endpoints/images/openai/openai-image-request.ts'
import { splitSpeechText } from '../../src/endpoints/speech/speech-endpoint.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import type { AnswerBody, StreamTransform, WireRequest } from '../../src/vendors/vendor.ts'
import { sseReader } from '../../src/wire/sse.ts'
import {
  bodyChunks,
  events,
  FRESH_ID,
  feed,
  interactionCall,
  interactionsOf,
  relayedText,
} from '../../test/vendors/gemini/interaction-call.ts'
import { bodyBytes, jsonCall } from '../../test/vendors/openai/openai-image-calls.ts'
import { callFromRequest, NOW_MS } from '../../test/vendors/shared/vendor-call.ts'
import { processorMs } from './processor-ms.ts'

// Texts of many megabytes, for which quadratic work takes seconds to hours. The bounds are several times the usual
// time.

/** 20 MB of base64. */
const PICTURE = 'QUJD'.repeat(5_000_000)

/** Splits bytes like a network. */
function reads(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  )
}

/** Feeds a stream in such reads and returns the number of bytes for the caller. */
function relayedLength(stream: StreamTransform, bytes: Uint8Array, size: number): number {
  return reads(bytes, size).reduce((length, read) => length + Buffer.byteLength(stream.push(read) ?? ''), 0)
}

describe('events', () => {
  test('takes time in proportion to the length of an event of 5 and of 20 MB', () => {
    const timeOf = (megabytes: number): number => {
      const pieces = [Buffer.from('data: '), ...Array.from({ length: megabytes * 16 }, () => Buffer.alloc(65_536, 'A'))]
      let length = 0
      const durationMs = processorMs(() => {
        const reader = sseReader((event) => {
          length = event.data.length
        })
        for (const piece of [...pieces, Buffer.from('\n\n')]) reader.push(piece)
        reader.end()
      })
      expect(length).toBe(megabytes * 1024 * 1024)
      return durationMs
    }
    timeOf(5)
    const small = Math.min(timeOf(5), timeOf(5), timeOf(5))
    const large = Math.min(timeOf(20), timeOf(20), timeOf(20))

    // Four times the bytes: quadratic work would take sixteen times as long.
    expect(large).toBeLessThan(small * 10 + 50)
  })

  test('does not copy the events of a relayed chat again for each read', () => {
    const call = callFromRequest<ChatRequest>({
      model: 'gp-5.4',
      messages: [{ role: 'user', content: 'Hi' }],
      stream: true,
    })
    const stream = openai({ apiKey: 'sk-test-0123456789abcdef' }).chat!.passThrough!.stream!(call)
    const chunk = (content: string) =>
      Buffer.from(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'vendor-model', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`,
      )
    stream.push(chunk(''))
    const wire = chunk('A'.repeat(20_000_000))
    let length = 0

    const durationMs = processorMs(() => {
      length = relayedLength(stream, wire, 65_536)
    })

    expect(length).toBe(wire.length + 'gp-5.4'.length - 'vendor-model'.length)
    // Quadratic copying would move some 3 GB and take many seconds.
    expect(durationMs).toBeLessThan(3_000)
  })

  test('does not copy the events of a streamed interaction again for each read', () => {
    const interaction = { id: 'v1_Q2FmZQ', object: 'interaction', model: 'gemini-3.1-flash-image' }
    const wire = Buffer.from(
      `${events(
        { interaction: { ...interaction, status: 'in_progress' }, event_type: 'interaction.created' },
        { index: 0, delta: { type: 'image', mime_type: 'image/jpeg', data: PICTURE }, event_type: 'step.delta' },
        { interaction: { ...interaction, status: 'completed' }, event_type: 'interaction.completed' },
      )}data: [DONE]\n\n`,
    )
    const stream = interactionsOf().stream!(interactionCall({ stream: true }))
    let length = 0

    const durationMs = processorMs(() => {
      length = feed(stream, reads(wire, 16_384)).length
    })

    expect(length).toBe(wire.length + 2 * ('gmn-3.1-flash-image-preview'.length - interaction.model.length))
    // Code that joins the pieces again for each read moves about 12 GB.
    expect(durationMs).toBeLessThan(1_000)
  })

  test('does not copy the events of a streamed answer of generateContent again for each read', () => {
    const parts = [{ inlineData: { mimeType: 'image/jpeg', data: PICTURE } }]
    const wire = Buffer.from(
      `data: ${JSON.stringify({ candidates: [{ content: { parts }, index: 0, finishReason: 'STOP' }] })}\r\n\r\n`,
    )
    const stream = interactionsOf({ images: 'generateContent' }).stream!(interactionCall({ stream: true }))
    let length = 0

    const durationMs = processorMs(() => {
      length = feed(stream, reads(wire, 16_384)).length
    })

    expect(length).toBeGreaterThan(20_000_000)
    expect(durationMs).toBeLessThan(1_500)
  })

  test('does not copy the events of a stream of images again for each read', () => {
    const usage = '"usage":{"input_tokens":50,"output_tokens":372}'
    const wire = Buffer.from(`data: {"b64_json":"${PICTURE}","type":"image_edit.completed",${usage}}\n\n`)
    const edits = openai({ apiKey: 'sk-test-0123456789abcdef' }).imageEdits!
    const stream = edits.stream!(jsonCall<ImageEditRequest>('{"model":"gp-image-2","prompt":"a","stream":true}'))
    let length = 0

    const durationMs = processorMs(() => {
      length = relayedLength(stream, wire, 16_384)
    })

    expect(length).toBe(wire.length)
    expect(stream.isComplete).toBe(true)
    expect(durationMs).toBeLessThan(2_000)
  })
})

describe('whole answers', () => {
  const answer = {
    id: 'odd',
    object: 'interaction',
    model: 'gemini-3.1-flash-image',
    status: 'completed',
    steps: [{ type: 'model_output', content: [{ type: 'image', mime_type: 'image/jpeg', data: PICTURE }] }],
    usage: { total_tokens: 2, total_input_tokens: 1, total_output_tokens: 1 },
  }

  test.each<[string, object]>([
    ['in front', answer],
    ['behind', Object.fromEntries(Object.entries(answer).reverse())],
  ])('does not decode the images of an interaction with the model %s', (_case, shape) => {
    const chunks = reads(Buffer.from(JSON.stringify(shape)), 65_536)
    let relayed: AnswerBody | undefined

    const durationMs = processorMs(() => {
      relayed = interactionsOf().fromWire(chunks, interactionCall())
    })

    expect(relayed?.usage?.images).toBe(1)
    expect(JSON.parse(relayedText(relayed))).toMatchObject({ id: FRESH_ID, model: 'gmn-3.1-flash-image-preview' })
    // Takes about 13 ms, most of it for joining the chunks.
    expect(durationMs).toBeLessThan(150)
  })

  test('reads strings of an interaction that are full of escapes', () => {
    const steps = [
      {
        type: 'model_output',
        content: [{ type: 'image', mime_type: 'image/jpeg', data: '\\"'.repeat(2_000_000) }],
      },
    ]
    const chunks = bodyChunks({ ...answer, steps })
    const durationMs = processorMs(() => {
      expect(interactionsOf().fromWire(chunks, interactionCall())?.usage?.images).toBe(1)
    })

    // Searching back to the beginning at each quote would take minutes.
    expect(durationMs).toBeLessThan(1_500)
  })

  test('parses and writes an answer of generateContent once', () => {
    const parts = [{ inlineData: { mimeType: 'image/jpeg', data: PICTURE } }]
    const chunks = bodyChunks({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })
    const operation = interactionsOf({ images: 'generateContent' })
    const durationMs = processorMs(() => {
      expect(operation.fromWire(chunks, interactionCall())?.usage?.images).toBe(1)
    })

    expect(durationMs).toBeLessThan(500)
  })

  test('passes answers with images in one piece and in many', () => {
    const body = Buffer.from(
      `{"data":[{"b64_json":"${'A\\/'.repeat(7 * 1024 * 1024)}"}],"usage":{"input_tokens":1,"output_tokens":2}}`,
    )
    const images = openai({ apiKey: 'sk-test-0123456789abcdef' }).images!['generations']!
    const call = jsonCall<OpenAIImageRequest>('{"model":"gp-image-2","prompt":"a"}')
    for (const chunks of [[body], reads(body, 65_536)]) {
      let relayed: AnswerBody | undefined
      const durationMs = processorMs(() => {
        relayed = images.fromWire(chunks, call)
      })

      expect(durationMs).toBeLessThan(2_000)
      expect(relayed?.chunks).toBe(chunks)
      expect(relayed?.usage).toEqual({ inputTokens: 1, outputTokens: 2, outputImageTokens: 2, images: 1 })
    }
  })
})

describe('requests', () => {
  test('reads strings of megabytes of backslashes and quotes', () => {
    const text = JSON.stringify({ a: '\\'.repeat(1_000_000), b: '"'.repeat(1_000_000) })
    const durationMs = processorMs(() => {
      expect(Buffer.from(readCallerJson(Buffer.from(text)).bytes).toString('utf8')).toBe(text)
    })

    expect(durationMs).toBeLessThan(2_000)
  })

  test('checks a request with an image in base64, valid or not', () => {
    const flash = defineModel(GEMINI_IMAGE_MODELS.find(({ id }) => id === 'gmn-3.1-flash-image-preview')!)
    const parse = (data: string) =>
      interactionImageEndpoint.parse(
        { model: flash.id, input: [{ type: 'image', mime_type: 'image/png', data }] },
        flash,
      )
    const durationMs = processorMs(() => {
      parse(PICTURE)
      expect(() => parse(`${PICTURE.slice(0, -1)}!`)).toThrow('input[0].data')
    })

    expect(durationMs).toBeLessThan(1_000)
  })

  test('makes interactions of requests with reference images', () => {
    const call = interactionCall({ input: [{ type: 'image', mime_type: 'image/png', data: PICTURE }] })
    let body = ''
    const durationMs = processorMs(() => {
      body = String(interactionsOf().toWire(call).body)
    })

    expect(durationMs).toBeLessThan(500)
    expect(body.length).toBeGreaterThan(20_000_000)
  })

  test('sends requests with images to edit to OpenAI', () => {
    const text = `{"images":[{"image_url":"data:image/png;base64,${PICTURE}"}],"response_format":"url","model":"gp-image-2","prompt":"a"}`
    const call = jsonCall<ImageEditRequest>(text)
    let sent: WireRequest['body'] = ''
    const durationMs = processorMs(() => {
      sent = openai({ apiKey: 'sk-test-0123456789abcdef' }).imageEdits!.toWire(call).body
    })

    expect(durationMs).toBeLessThan(1_000)
    expect(bodyBytes(sent).byteLength).toBe(text.length - '"response_format":"url",'.length + 1)
  })

  test.each([
    ['a long prompt', `"input":{"messages":[{"role":"user","content":[{"text":"${'\\"x'.repeat(7_000_000)}"}]}]}`],
    [
      'many members',
      `"input":{"messages":[{"role":"user","content":[{"text":"a"}]}]},"list":[${'{"a":"b"},'.repeat(49_000)}0]`,
    ],
  ])('sends requests with %s to DashScope', (_case, members) => {
    const text = `{"model":"qw-image-max",${members}}`
    const request = JSON.parse(text) as MultimodalImageRequest
    const model = DASHSCOPE_IMAGE_MODELS.map(defineModel).find(({ id, aliases }) =>
      [id, ...aliases].includes('qw-image-max'),
    )!
    const { bytes } = readCallerJson(Buffer.from(text))
    const apiKey = 'sk-test-0123456789abcdef'
    const call = { request, bytes, model, publicModel: request.model, apiKey, stream: false, nowMs: NOW_MS }
    let sent: WireRequest['body'] = ''
    const durationMs = processorMs(() => {
      sent = dashscope({ apiKey }).images!.multimodal!.toWire(call).body
    })

    // Code that reads every name or string again from its beginning takes minutes.
    expect(durationMs).toBeLessThan(5_000)
    expect(bodyBytes(sent).byteLength).toBe(text.length + 2 + ',"parameters":{"size":"1024*1024"}'.length)
  })
})

test('cuts a text to speak', () => {
  const durationMs = processorMs(() => {
    splitSpeechText('a'.repeat(100_000), 600)
    splitSpeechText('. '.repeat(50_000), 600)
    splitSpeechText('。」'.repeat(50_000), 600)
    splitSpeechText(' '.repeat(100_000), 600)
    splitSpeechText(`${'!'.repeat(99_999)}a`, 600)
  })

  expect(durationMs).toBeLessThan(3_000)
})
