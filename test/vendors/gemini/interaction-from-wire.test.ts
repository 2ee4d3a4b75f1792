import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { bodyChunks, FRESH_ID, interactionCall, interactionsOf, relayedText } from './interaction-call.ts'

const operation = interactionsOf()
const UPSTREAM = 'gemini-3.1-flash-image'
const PUBLIC = 'gmn-3.1-flash-image-preview'
const picture = { type: 'image', mime_type: 'image/jpeg', data: '/9j/AAA=' }
const usage = {
  total_tokens: 1350,
  total_input_tokens: 30,
  input_tokens_by_modality: [{ modality: 'text', tokens: 30 }],
  total_output_tokens: 1120,
  output_tokens_by_modality: [{ modality: 'image', tokens: 1120 }],
  total_thought_tokens: 200,
  total_cached_tokens: 0,
  total_tool_use_tokens: 0,
}
const answer = {
  id: 'v1_ChdTQU1QTEU',
  object: 'interaction',
  model: UPSTREAM,
  status: 'completed',
  created: '2026-11-01T10:00:00Z',
  service_tier: 'standard',
  steps: [
    { type: 'thought', signature: 'c2ln' },
    { type: 'model_output', content: [{ type: 'text', text: 'Grüße 👋🏽' }] },
    { type: 'model_output', content: [picture] },
  ],
  usage,
}

function read(
  body: unknown,
  fields: Record<string, unknown> = {},
  options: Parameters<typeof interactionCall>[1] = {},
) {
  const relayed = operation.fromWire(bodyChunks(body), interactionCall(fields, options))
  return { relayed, json: JSON.parse(relayedText(relayed)) as Record<string, unknown> }
}

describe('a whole interaction', () => {
  test('comes through byte by byte but for the model', () => {
    const text = JSON.stringify(answer, null, 2).replace('"total_tokens": 1350', '"total_tokens": 1.350e3')
    const relayed = operation.fromWire(bodyChunks(text), interactionCall())

    expect(relayedText(relayed)).toBe(text.replace(UPSTREAM, PUBLIC))
    expect(relayed).toMatchObject({
      usage: {
        inputTokens: 30,
        cachedInputTokens: 0,
        inputImageTokens: 0,
        outputTokens: 1320,
        reasoningTokens: 200,
        outputImageTokens: 1120,
        images: 1,
      },
      isRefusal: false,
      answerIds: { id: 'v1_ChdTQU1QTEU', upstreamId: 'v1_ChdTQU1QTEU' },
    })
  })

  test('reads the same in whatever chunks it came', () => {
    const bytes = Buffer.from(JSON.stringify(answer))
    const chunks = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, index) =>
      bytes.subarray(index * 7, index * 7 + 7),
    )

    expect(relayedText(operation.fromWire(chunks, interactionCall()))).toBe(relayedText(read(answer).relayed))
  })

  test.each<[string, unknown, number]>([
    ['two pictures in one step', [{ type: 'model_output', content: [picture, picture] }], 2],
    ['a picture by address', [{ type: 'model_output', content: [{ type: 'image', uri: 'https://x.example/a' }] }], 1],
    [
      'pictures of the input and of thoughts',
      [
        { type: 'user_input', content: [picture] },
        { type: 'thought', summary: [picture] },
      ],
      0,
    ],
    ['a picture block without a picture', [{ type: 'model_output', content: [{ type: 'image' }] }], 0],
    ['odd steps', [null, 7, { type: 'model_output' }, { type: 'model_output', content: [null, 'x'] }], 0],
    ['no steps', [], 0],
  ])('counts images over all steps: %s', (_case, steps, images) => {
    expect(read({ ...answer, steps }).relayed?.usage?.images).toBe(images)
  })

  test('passes on a completed answer without an image and charges its tokens', () => {
    const { relayed, json } = read({
      ...answer,
      steps: [{ type: 'model_output', content: [{ type: 'text', text: 'No.' }] }],
      usage: { total_input_tokens: 30, total_output_tokens: 3 },
    })

    expect(json['status']).toBe('completed')
    expect(relayed).toMatchObject({
      isRefusal: false,
      usage: { inputTokens: 30, outputTokens: 3, outputImageTokens: 0, images: 0 },
    })
  })

  test.each([
    'queued',
    'in_progress',
    'requires_action',
    'cancelled',
    'incomplete',
    'budget_exceeded',
    'requires_continuation',
    'new_one',
  ])('passes on the status %s, which is not a refusal', (status) => {
    const { relayed, json } = read({ ...answer, status, steps: undefined })

    expect(json).toMatchObject({ status, steps: [] })
    expect(relayed?.isRefusal).toBe(false)
  })
})

describe('usage', () => {
  test.each<[string, unknown, object]>([
    ['none', undefined, { images: 1 }],
    ['an empty one', {}, { images: 1 }],
    ['tool use counts as input', { total_input_tokens: 5, total_tool_use_tokens: 2 }, { inputTokens: 7, images: 1 }],
    [
      'output told by the total',
      { total_input_tokens: 5, total_tokens: 9 },
      { inputTokens: 5, outputTokens: 4, images: 1 },
    ],
    [
      'a total that is more than its parts (text is not itemised)',
      { total_output_tokens: 1301, output_tokens_by_modality: [{ modality: 'image', tokens: 1290 }] },
      { outputTokens: 1301, outputImageTokens: 1290, images: 1 },
    ],
    [
      'pictures in the input',
      {
        total_input_tokens: 2270,
        input_tokens_by_modality: [
          { modality: 'text', tokens: 30 },
          { modality: 'image', tokens: 1120 },
          { modality: 'image', tokens: 1120 },
        ],
      },
      { inputTokens: 2270, inputImageTokens: 2240, images: 1 },
    ],
    [
      'zeros, which are statements',
      {
        total_input_tokens: 0,
        total_output_tokens: 0,
        total_thought_tokens: 0,
        total_cached_tokens: 0,
        output_tokens_by_modality: [],
      },
      { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0, outputImageTokens: 0, images: 1 },
    ],
    ['numbers as text', { total_input_tokens: '5', total_output_tokens: 4 }, { outputTokens: 4, images: 1 }],
  ])('%s', (_case, reported, expected) => {
    expect(read({ ...answer, usage: reported }).relayed?.usage).toEqual(expected)
  })
})

describe('ids', () => {
  const noInteraction = undefined

  test.each<[string, unknown, Record<string, unknown>, string, object | undefined]>([
    ['the vendor\u2019s own', 'v1_abc', {}, 'v1_abc', { id: 'v1_abc', upstreamId: 'v1_abc' }],
    [
      'one of another form gets a fresh id and can be continued',
      'odd',
      {},
      FRESH_ID,
      { id: FRESH_ID, upstreamId: 'odd' },
    ],
    ['none', undefined, {}, FRESH_ID, noInteraction],
    ['an empty one', '', {}, FRESH_ID, noInteraction],
    ['null', null, {}, FRESH_ID, noInteraction],
    ['none without storing', undefined, { store: false }, FRESH_ID, noInteraction],
    ['one without storing', 'v1_abc', { store: false }, FRESH_ID, noInteraction],
  ])('%s', (_case, id, fields, shown, interaction) => {
    const { relayed, json } = read({ ...answer, id }, fields)

    expect(json).toEqual({ ...answer, id: shown, model: PUBLIC })
    expect(relayed?.answerIds).toEqual(interaction)
  })

  test('the answer that was continued keeps the caller\u2019s name', () => {
    const { json } = read(
      { ...answer, previous_interaction_id: 'odd' },
      { previous_interaction_id: 'v1_ours' },
      { previousUpstreamId: 'odd' },
    )

    expect(json['previous_interaction_id']).toBe('v1_ours')
  })

  test.each([
    ['twice', `{"model":"first","model":"${UPSTREAM}","status":"completed","id":"v1_a","steps":[]}`],
    ['with escapes in its name', `{"mod\\u0065l":"${UPSTREAM}","status":"completed","id":"v1_a","steps":[]}`],
    ['with escapes in its value', `{"model":"gemini\\u002d3","status":"completed","id":"v1_a","steps":[]}`],
    ['nowhere', `{"status":"completed","id":"v1_a","steps":[]}`],
    [
      'with another one inside',
      `{"steps":[],"x":{"model":"inner"},"model":"${UPSTREAM}","id":"v1_a","status":"completed"}`,
    ],
  ])('the model is the public one, though it stands %s', (_case, text) => {
    expect(read(text).json).toMatchObject({ model: PUBLIC, id: 'v1_a', status: 'completed', steps: [] })
  })
})

describe('refusals', () => {
  const blocked = {
    id: 'v1_a',
    object: 'interaction',
    model: UPSTREAM,
    status: 'failed',
    errors: [{ code: 'content_blocked', message: 'Blocked.' }],
  }

  test.each<[string, object]>([
    ['without steps', {}],
    ['with empty steps', { steps: [] }],
    ['with null for steps', { steps: null }],
  ])('failed %s is a refusal with empty steps', (_case, fields) => {
    const { relayed, json } = read({ ...blocked, ...fields })

    expect(json).toEqual({ ...blocked, model: PUBLIC, steps: [] })
    expect(relayed?.isRefusal).toBe(true)
  })

  test('does not treat a failed answer with an image as a refusal', () => {
    expect(read({ ...answer, status: 'failed' }).relayed?.isRefusal).toBe(false)
  })

  test('a singular error, and one on the step, pass too', () => {
    const { relayed, json } = read({
      ...blocked,
      error: { code: 'x', message: 'm' },
      steps: [{ type: 'model_output', content: [], error: { code: 8, message: 'quota' } }],
    })

    expect(relayed?.isRefusal).toBe(true)
    expect(json).toMatchObject({ error: { code: 'x' }, steps: [{ error: { code: 8 } }] })
  })

  test('removes keys from the text', () => {
    const { json } = read({
      ...blocked,
      errors: [{ code: 'quota', message: 'key test-key-0001 or AIzaSyA-1234567890' }],
    })

    expect(json['errors']).toEqual([{ code: 'quota', message: 'key [redacted] or [redacted]' }])
  })
})

test.each<[string, unknown]>([
  ['an error', { error: { code: 'invalid_request', message: 'no' } }],
  ['an error in a list', [{ error: { code: 403, message: 'no', status: 'PERMISSION_DENIED' } }]],
  ['an object without status', { id: 'v1_a', steps: [] }],
  ['half an answer', JSON.stringify(answer).slice(0, -20)],
  ['an open string', '{"status":"compl'],
  ['no JSON', '<html></html>'],
  ['nothing', ''],
])('%s cannot be used', (_case, body) => {
  expect(operation.fromWire(bodyChunks(body), interactionCall())).toBeUndefined()
})
