import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { bodyChunks, events, FRESH_ID, feed, interactionCall, interactionsOf, relayedText } from './interaction-call.ts'

const operation = interactionsOf({ images: 'generateContent' })
const PUBLIC = 'gmn-3.1-flash-image-preview'
const DONE = 'data: [DONE]\n\n'

function sent(...call: Parameters<typeof interactionCall>) {
  const wire = operation.toWire(interactionCall(...call))
  return { ...wire, json: JSON.parse(String(wire.body)) as Record<string, unknown> }
}

describe('an interaction as generateContent', () => {
  test('has an equivalent for each field of the shape', () => {
    const { path, json, dropped, headers } = sent({
      input: [
        { type: 'text', text: 'A lighthouse at dusk' },
        { type: 'image', mime_type: 'image/png', data: 'aGk=' },
        { type: 'image', mime_type: 'image/jpeg', uri: 'https://pictures.example/a.jpg' },
      ],
      system_instruction: 'Flat design',
      response_format: { type: 'image', aspect_ratio: '16:9', image_size: '512px' },
      generation_config: {
        thinking_level: 'high',
        temperature: 0.5,
        seed: 7,
        top_p: 0.9,
        max_output_tokens: 9,
      } as object,
      store: false,
    })

    expect(path).toBe('/v1beta/models/gemini-3.1-flash-image-preview:generateContent')
    expect(headers).toContain('test-key-0001')
    expect(json).toEqual({
      systemInstruction: { parts: [{ text: 'Flat design' }] },
      contents: [
        {
          role: 'user',
          parts: [
            { text: 'A lighthouse at dusk' },
            { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
            { fileData: { mimeType: 'image/jpeg', fileUri: 'https://pictures.example/a.jpg' } },
          ],
        },
      ],
      generationConfig: {
        responseModalities: ['IMAGE'],
        imageConfig: { aspectRatio: '16:9', imageSize: '512' },
        thinkingConfig: { thinkingLevel: 'HIGH' },
        temperature: 0.5,
        seed: 7,
        topP: 0.9,
        maxOutputTokens: 9,
      },
    })
    expect(dropped).toEqual([])
  })

  test('requests text and an image without a format, like interactions', () => {
    expect(sent().json).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'A paper crane' }] }],
      generationConfig: { responseModalities: ['TEXT', 'IMAGE'] },
    })
  })

  test('streams by streamGenerateContent', () => {
    expect(sent({ stream: true }).path).toBe(
      '/v1beta/models/gemini-3.1-flash-image-preview:streamGenerateContent?alt=sse',
    )
  })

  test('what has no equivalent is left out and reported', () => {
    const { json, dropped } = sent({
      store: true,
      tools: [{ type: 'google_search' }],
      labels: { a: 'b' },
      response_format: { type: 'image', mime_type: 'image/png' },
      generation_config: { tool_choice: 'auto' } as object,
    })

    expect(Object.keys(json)).toEqual(['contents', 'generationConfig'])
    expect(dropped).toEqual(['store', 'tools', 'labels', 'response_format.mime_type', 'generation_config.tool_choice'])
  })

  test.each<[string, string, string, object | undefined, string[]]>([
    ['a level', PUBLIC, 'minimal', { thinkingLevel: 'MINIMAL' }, []],
    ['a budget where the model has no levels', 'gmn-3-pro-image-preview', 'high', { thinkingBudget: 24_576 }, []],
    [
      'the nearest it has, reported',
      'gmn-3-pro-image-preview',
      'minimal',
      { thinkingBudget: 1024 },
      ['generation_config.thinking_level'],
    ],
    ['a level that is not known', PUBLIC, 'extreme', undefined, ['generation_config.thinking_level']],
  ])('thinking: %s', (_case, modelId, thinking_level, thinkingConfig, dropped) => {
    const wire = sent({ generation_config: { thinking_level } }, { modelId })

    expect((wire.json['generationConfig'] as Record<string, unknown>)['thinkingConfig']).toEqual(thinkingConfig)
    expect(wire.dropped).toEqual(dropped)
  })

  test('nothing can be continued', () => {
    expect(() => sent({ previous_interaction_id: 'v1_a' }, { previousUpstreamId: 'v1_a' })).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', status: 400, param: 'previous_interaction_id' }),
    )
  })
})

const answer = {
  candidates: [
    {
      content: {
        role: 'model',
        parts: [
          { text: 'Drawing a draft.', thought: true },
          { inlineData: { mimeType: 'image/png', data: 'ZHJhZnQ=' }, thought: true },
          { text: 'Here it is: Grüße.' },
          { inlineData: { mimeType: 'image/jpeg', data: '/9j/AAA=' }, thoughtSignature: 'c2ln' },
        ],
      },
      finishReason: 'STOP',
      index: 0,
    },
  ],
  usageMetadata: {
    promptTokenCount: 278,
    candidatesTokenCount: 1128,
    thoughtsTokenCount: 90,
    totalTokenCount: 1496,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 20 },
      { modality: 'IMAGE', tokenCount: 258 },
    ],
    candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1120 }],
  },
  modelVersion: 'gemini-3.1-flash-image',
  responseId: 'r-77',
}
const usage = {
  total_tokens: 1496,
  total_input_tokens: 278,
  total_output_tokens: 1128,
  total_thought_tokens: 90,
  input_tokens_by_modality: [
    { modality: 'text', tokens: 20 },
    { modality: 'image', tokens: 258 },
  ],
  output_tokens_by_modality: [{ modality: 'image', tokens: 1120 }],
}
const neutralUsage = {
  inputTokens: 278,
  inputImageTokens: 258,
  outputTokens: 1218,
  reasoningTokens: 90,
  outputImageTokens: 1120,
  images: 1,
}
const blocks = [
  { type: 'text', text: 'Here it is: Grüße.' },
  { type: 'image', mime_type: 'image/jpeg', data: '/9j/AAA=' },
]
const head = { id: FRESH_ID, object: 'interaction', model: PUBLIC, created: '2026-11-20T12:00:00Z' }

function read(body: unknown) {
  const relayed = operation.fromWire(bodyChunks(body), interactionCall())
  return { relayed, json: JSON.parse(relayedText(relayed)) as Record<string, unknown> }
}

const ended = (finishReason: string, candidate: object = { content: {} }) => ({
  candidates: [{ ...candidate, finishReason, finishMessage: 'Unable to show it.' }],
  usageMetadata: { promptTokenCount: 20, totalTokenCount: 20 },
})

describe('a whole answer of generateContent', () => {
  test('is rebuilt as an interaction, without thoughts and drafts, that cannot be continued', () => {
    const { relayed, json } = read(answer)

    expect(json).toEqual({ ...head, status: 'completed', steps: [{ type: 'model_output', content: blocks }], usage })
    expect(relayed).toEqual({ chunks: expect.anything(), usage: neutralUsage, isRefusal: false })
  })

  test.each<[string, object]>([
    ...[
      'IMAGE_SAFETY',
      'IMAGE_PROHIBITED_CONTENT',
      'IMAGE_RECITATION',
      'IMAGE_OTHER',
      'NO_IMAGE',
      'PROHIBITED_CONTENT',
      'SAFETY',
    ].map((reason): [string, object] => [reason, ended(reason)]),
    ['parts: null', ended('IMAGE_SAFETY', { content: { parts: null, role: 'model' } })],
    ['no content', ended('IMAGE_SAFETY', {})],
    ['words only', ended('IMAGE_SAFETY', { content: { parts: [{ text: 'Sorry.' }] } })],
    [
      'a blocked prompt',
      {
        promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: 'Unable to show it.' },
        usageMetadata: { promptTokenCount: 20 },
      },
    ],
  ])('a refusal is failed and has no steps: %s', (_case, body) => {
    const { relayed, json } = read(body)

    expect(json).toMatchObject({
      status: 'failed',
      steps: [],
      errors: [{ code: 'content_blocked', message: 'Unable to show it.' }],
    })
    expect(relayed).toMatchObject({ isRefusal: true, usage: { inputTokens: 20, images: 0 } })
  })

  test('charges what the vendor reports if it stops without an image for an unknown reason', () => {
    const { relayed, json } = read(ended('A_REASON_OF_TOMORROW'))
    const stream = operation.stream!(interactionCall({ stream: true }))
    feed(stream, [Buffer.from(`data: ${JSON.stringify(ended('A_REASON_OF_TOMORROW'))}\n\n`)])
    stream.end()

    expect(json).toMatchObject({ status: 'failed', steps: [], errors: [{ code: 'content_blocked' }] })
    expect(relayed).toMatchObject({ isRefusal: false, usage: { inputTokens: 20, images: 0, outputImageTokens: 0 } })
    expect(stream).toMatchObject({ isRefusal: false, usage: { inputTokens: 20, images: 0 } })
  })

  test('is a refusal, free of charge, if the reason is unknown and no usage is reported', () => {
    const { usageMetadata: _usage, ...silent } = ended('A_REASON_OF_TOMORROW') as Record<string, unknown>

    expect(read(silent).relayed).toMatchObject({ isRefusal: true })
  })

  test('a refusal without words of its own says its reason', () => {
    expect(read({ promptFeedback: { blockReason: 'OTHER' } }).json['errors']).toEqual([
      { code: 'content_blocked', message: 'The image was blocked: OTHER.' },
    ])
  })

  test('accepts an image despite a failing finish reason', () => {
    const [candidate] = answer.candidates
    const { relayed, json } = read({ candidates: [{ ...candidate, finishReason: 'IMAGE_OTHER' }] })

    expect(json).toMatchObject({ status: 'completed' })
    expect(relayed?.isRefusal).toBe(false)
  })

  test.each([
    ['STOP', 'completed'],
    ['MAX_TOKENS', 'incomplete'],
  ])('maps %s without an image to %s, and charges for it', (reason, status) => {
    const { relayed, json } = read(ended(reason, { content: { parts: [{ text: 'Well …' }] } }))

    expect(json).toMatchObject({ status, steps: [{ content: [{ type: 'text', text: 'Well …' }] }] })
    expect(relayed).toMatchObject({ isRefusal: false, usage: { inputTokens: 20, images: 0, outputImageTokens: 0 } })
  })

  test.each<[string, unknown]>([
    ['an error', { error: { code: 500, message: 'no', status: 'INTERNAL' } }],
    ['nothing in it', {}],
    ['a malformed call without a report', { candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }] }],
    ['no JSON', 'oops'],
    ['a list', []],
  ])('cannot be used: %s', (_case, body) => {
    expect(operation.fromWire(bodyChunks(body), interactionCall())).toBeUndefined()
  })

  test('fails with the reported usage if the answer is unusable', () => {
    const broken = operation.fromWire(bodyChunks(ended('MALFORMED_FUNCTION_CALL')), interactionCall())

    expect(broken).toMatchObject({
      failure: { kind: 'invalid_response', code: 'MALFORMED_FUNCTION_CALL' },
      usage: { inputTokens: 20, images: 0, outputImageTokens: 0 },
    })
  })
})

describe('a streamed answer of generateContent', () => {
  const event = (value: unknown): string => `data: ${JSON.stringify(value)}\r\n\r\n`
  const piece = (parts: object[], rest: object = {}) =>
    event({ candidates: [{ content: { parts }, index: 0, ...rest }], responseId: 'r' })
  const [candidate] = answer.candidates
  const [thought, draft, text, picture] = candidate?.content.parts ?? []
  const whole =
    piece([thought as object]) +
    piece([draft as object, text as object]) +
    piece([picture as object]) +
    event({ candidates: [{ finishReason: 'STOP' }], usageMetadata: answer.usageMetadata })
  const created = { interaction: { ...head, status: 'in_progress' }, event_type: 'interaction.created' }

  function open() {
    const stream = operation.stream?.(interactionCall({ stream: true }))
    if (stream === undefined) throw new Error('the operation does not stream')
    return stream
  }

  test.each(CUTS)('becomes the events of an interaction, however it is cut: %s', (cut) => {
    const stream = open()

    expect(feed(stream, cutBytes(Buffer.from(whole), cut))).toBe(
      events(
        created,
        { index: 0, step: { type: 'model_output' }, event_type: 'step.start' },
        { index: 0, delta: blocks[0], event_type: 'step.delta' },
        { index: 0, delta: blocks[1], event_type: 'step.delta' },
        { index: 0, event_type: 'step.stop' },
        { interaction: { ...head, status: 'completed', usage }, event_type: 'interaction.completed' },
      ) + DONE,
    )
    expect(stream).toMatchObject({ isComplete: true, isRefusal: false, hasContent: true, usage: neutralUsage })
    expect(stream.answerIds).toBeUndefined()
  })

  test('a refusal is the last status, and no step', () => {
    const stream = open()
    const given = feed(stream, [Buffer.from(event(ended('IMAGE_SAFETY')))])

    expect(given).toContain('"status":"failed","errors":[{"code":"content_blocked"')
    expect(given).not.toContain('step.')
    expect(stream).toMatchObject({ isComplete: true, isRefusal: true })
  })

  test('without a finish reason it was cut, and no end is made up', () => {
    const stream = open()
    const given = feed(stream, [Buffer.from(piece([text as object, picture as object]))])

    expect(given).not.toContain('interaction.completed')
    expect(given).not.toContain('[DONE]')
    expect(stream).toMatchObject({ isComplete: false, outputBytesSeen: 20, usage: { images: 1 } })
  })

  test.each<[string, string]>([
    ['an error event', event({ error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' } })],
    [
      'plain JSON behind the events',
      JSON.stringify({ error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' } }),
    ],
  ])('%s ends it', (_case, error) => {
    const stream = open()
    const given = feed(stream, [Buffer.from(piece([text as object]) + error)])

    expect(stream.failure).toMatchObject({ kind: 'unavailable', message: 'Overloaded.' })
    expect(stream.isComplete).toBe(false)
    expect(given).not.toContain('[DONE]')
  })

  test('fails at text that is not JSON', () => {
    const stream = open()
    feed(stream, [Buffer.from('data: oops\n\n')])

    expect(stream.failure).toMatchObject({ kind: 'invalid_response' })
  })
})
