import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { InteractionStream } from '../../../src/vendors/gemini/interactions/interaction-answer.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { events, FRESH_ID, feed, interactionCall, interactionsOf } from './interaction-call.ts'

const UPSTREAM = 'gemini-3.1-flash-image'
const PUBLIC = 'gmn-3.1-flash-image-preview'
const DONE = 'data: [DONE]\n\n'

function open(fields: Record<string, unknown> = {}) {
  const stream = interactionsOf().stream?.(interactionCall({ ...fields, stream: true }))
  if (stream === undefined) throw new Error('the operation does not stream')
  return stream
}

function read(text: string, fields: Record<string, unknown> = {}) {
  const stream = open(fields)
  return { stream, text: feed(stream, [Buffer.from(text)]) }
}

const created = (id = 'v1_Q2FmZQ', model = UPSTREAM) => ({
  interaction: { id, status: 'in_progress', object: 'interaction', model },
  event_type: 'interaction.created',
})
const update = (id = 'v1_Q2FmZQ') => ({
  interaction_id: id,
  status: 'in_progress',
  event_type: 'interaction.status_update',
})
const delta = (value: object, index = 0) => ({ index, delta: value, event_type: 'step.delta', event_id: 'e1' })
const start = (type: string, index = 0) => ({ index, step: { type }, event_type: 'step.start' })
const stop = (index = 0) => ({ index, event_type: 'step.stop' })
const completed = (fields: object = {}, id = 'v1_Q2FmZQ', model = UPSTREAM) => ({
  interaction: { id, status: 'completed', usage: USAGE, object: 'interaction', model, ...fields },
  event_type: 'interaction.completed',
})
const USAGE = {
  total_tokens: 1180,
  total_input_tokens: 30,
  input_tokens_by_modality: [{ modality: 'text', tokens: 30 }],
  total_output_tokens: 1130,
  output_tokens_by_modality: [{ modality: 'image', tokens: 1120 }],
  total_thought_tokens: 20,
}
const picture = { type: 'image', mime_type: 'image/jpeg', data: '/9j/AAA=' }
const steps = [
  start('thought'),
  delta({ type: 'thought_signature', signature: 'c2ln' }),
  stop(),
  start('model_output', 1),
  delta({ type: 'text', text: 'Grüße 👋🏽 日本' }, 1),
  delta(picture, 1),
  stop(1),
]
const whole = events(created(), update(), ...steps, completed()) + DONE
const shown = events(created(undefined, PUBLIC), update(), ...steps, completed({}, undefined, PUBLIC)) + DONE

describe('a streamed interaction', () => {
  test.each(CUTS)('passes with the caller\u2019s model, however it is cut: %s', (cut) => {
    const stream = open()

    expect(feed(stream, cutBytes(Buffer.from(whole), cut))).toBe(shown)
    expect(stream).toMatchObject({
      isComplete: true,
      isRefusal: false,
      hasContent: true,
      atBoundary: true,
      failure: undefined,
      answerIds: { id: 'v1_Q2FmZQ', upstreamId: 'v1_Q2FmZQ' },
      usage: {
        inputTokens: 30,
        inputImageTokens: 0,
        outputTokens: 1150,
        reasoningTokens: 20,
        outputImageTokens: 1120,
        images: 1,
      },
    })
  })

  test('lines may end with CR LF, and comments pass', () => {
    const windows = `: hello\n\n${whole}`.replaceAll('\n', '\r\n')

    expect(read(windows).text.replaceAll('\r\n', '\n')).toBe(`: hello\n\n${shown}`)
  })

  test('an event in several data lines is read, and written in one', () => {
    const json = JSON.stringify(created(), null, 1)
      .split('\n')
      .map((line) => `data: ${line}`)
      .join('\n')

    expect(read(`event: interaction.created\n${json}\n\n`).text).toBe(events(created(undefined, PUBLIC)))
  })

  test('accepts a type that only the event\u2019s name contains', () => {
    const { event_type, ...data } = completed()
    const { stream } = read(`event: ${event_type}\ndata: ${JSON.stringify(data)}\n\n`)

    expect(stream.isComplete).toBe(true)
  })

  test.each(['interaction.status_update', 'interaction.in_progress', 'interaction.requires_action'])(
    'status events are renamed in both spellings: %s',
    (event_type) => {
      const status = { interaction_id: 'odd', status: 'in_progress', event_type }
      const nested = { interaction: { id: 'odd', status: 'in_progress', model: UPSTREAM }, event_type }

      expect(read(events(created('odd'), status, nested)).text).toBe(
        events(
          created(FRESH_ID, PUBLIC),
          { ...status, interaction_id: FRESH_ID },
          { ...nested, interaction: { ...nested.interaction, id: FRESH_ID, model: PUBLIC } },
        ),
      )
    },
  )

  test('content begins with the first delta of a step, not before', () => {
    const stream = open()
    stream.push(Buffer.from(events(created(), update(), start('model_output'))))
    expect(stream.hasContent).toBe(false)

    stream.push(Buffer.from(events(delta(picture))))
    expect(stream.hasContent).toBe(true)
  })

  test('counts received images by size during the stream, in case it is cut', () => {
    const stream = open({ response_format: { type: 'image', image_size: '4K' } })
    expect(stream.usage).toBeUndefined()

    stream.push(Buffer.from(events(created(), delta({ type: 'text', text: 'a' }), delta(picture))))

    expect(stream).toMatchObject({ isComplete: false, outputBytesSeen: 1 })
    expect(stream.usage).toEqual({ images: 1, outputImageTokens: 2520 })
  })

  test('ignores a partial report before the first image, which may be in progress', () => {
    const stream = open()
    const early = {
      interaction: { id: 'v1_a', status: 'in_progress', usage: USAGE },
      event_type: 'interaction.in_progress',
    }
    stream.push(Buffer.from(events(created(), early, delta({ type: 'text', text: 'a' }))))

    expect(stream.usage).toBeUndefined()
  })

  test('allows a comment line only between two events', () => {
    const stream = open()
    stream.push(Buffer.from(`${events(created())}event: step.delta\nda`))

    expect(stream.atBoundary).toBe(false)
  })
})

describe('ids', () => {
  test('an empty id without storing becomes a fresh one that cannot be continued', () => {
    const { stream, text } = read(events(created(''), update(''), completed({}, '')) + DONE, { store: false })

    expect(text).toBe(events(created(FRESH_ID, PUBLIC), update(FRESH_ID), completed({}, FRESH_ID, PUBLIC)) + DONE)
    expect(stream.answerIds).toBeUndefined()
  })

  test('an answer keeps the id that was shown first; the vendor\u2019s may come late', () => {
    const { stream, text } = read(events(created(''), completed()) + DONE)

    expect(text).toBe(events(created(FRESH_ID, PUBLIC), completed({}, FRESH_ID, PUBLIC)) + DONE)
    expect(stream.answerIds).toEqual({ id: FRESH_ID, upstreamId: 'v1_Q2FmZQ' })
  })

  test('a missing id is filled in', () => {
    const bare = { interaction: { status: 'in_progress' }, event_type: 'interaction.created' }

    expect(JSON.parse(/data: (.*)/.exec(read(events(bare)).text)?.[1] ?? '')).toEqual({
      interaction: { status: 'in_progress', id: FRESH_ID },
      event_type: 'interaction.created',
    })
  })

  test('the answer that was continued keeps the caller\u2019s name', () => {
    const { text } = read(events(completed({ previous_interaction_id: 'odd' })), { previous_interaction_id: 'v1_ours' })

    expect(text).toContain('"previous_interaction_id":"v1_ours"')
    expect(text).not.toContain('odd')
  })
})

describe('how a stream ends', () => {
  test('is complete with the last status; the end mark is added', () => {
    const { stream, text } = read(events(created(), delta(picture), completed()))

    expect(text.endsWith(DONE)).toBe(true)
    expect(stream.isComplete).toBe(true)
  })

  test('the answer is whole before the end mark, so that a cut behind it loses nothing', () => {
    const stream = open()
    stream.push(Buffer.from(events(created(), delta(picture), completed())))

    expect(stream.isComplete).toBe(true)
  })

  test('nothing is passed on behind the end', () => {
    expect(read(whole + events(delta(picture)) + DONE).text).toBe(shown)
    expect(read(`${events(created(), completed())}: ping\n\n`).text).not.toContain('ping')
    expect(read(events(created(), completed(), delta(picture))).text).toBe(
      events(created(undefined, PUBLIC), completed({}, undefined, PUBLIC)) + DONE,
    )
  })

  test('without the last status it was cut, and no end mark is made up', () => {
    const { stream, text } = read(`${events(created(), delta(picture))}event: step.delta\ndata: {"del`)

    expect(stream).toMatchObject({ isComplete: false, failure: undefined })
    expect(text).toBe(events(created(undefined, PUBLIC), delta(picture)))
  })

  test.each(['failed', 'cancelled', 'incomplete', 'requires_action', 'budget_exceeded', 'requires_continuation'])(
    'status %s is an end too',
    (status) => {
      const { stream } = read(events(created(), delta(picture), completed({ status })))

      expect(stream).toMatchObject({ isComplete: true, isRefusal: false })
    },
  )

  test('a status of its own before the last event hides no usage (nothing was read behind it before)', () => {
    const status = { interaction: { id: 'v1_Q2FmZQ', status: 'requires_action', model: PUBLIC } }
    const early = { ...status, event_type: 'interaction.requires_action' }
    const last = completed({ status: 'requires_action' }, undefined, PUBLIC)
    const all = events(created(undefined, PUBLIC), ...steps, early, last) + DONE
    const { stream, text } = read(all + events(last))

    expect(text).toBe(all)
    expect(stream).toMatchObject({ isComplete: true, usage: { inputTokens: 30, outputTokens: 1150 } })
    expect(read(events(created(), ...steps, early)).stream.isComplete).toBe(true)
  })

  test('is a refusal if it failed without an image', () => {
    const errors = [{ code: 'content_blocked', message: 'Blocked.' }]
    const { stream, text } = read(events(created(), completed({ status: 'failed', errors, usage: undefined })) + DONE)

    expect(stream).toMatchObject({ isComplete: true, isRefusal: true, hasContent: true })
    expect(text).toContain('content_blocked')
  })

  test.each([
    ['thought', { type: 'thought_signature', signature: 'c2ln' }],
    ['thought', { type: 'thought_summary', content: { type: 'text', text: 'Hm.' } }],
    ['function_call', { type: 'arguments_delta', arguments: '{}' }],
  ])('failed after a step %s alone is the refusal that it is as a whole answer (charged before): %j', (type, value) => {
    const last = completed({ status: 'failed', errors: [{ code: 'content_blocked', message: 'no' }] })
    const { interaction } = last
    const whole = interactionsOf().fromWire(
      [Buffer.from(JSON.stringify({ ...interaction, steps: [{ ...value, type }] }))],
      interactionCall(),
    )
    const { stream } = read(events(created(), start(type), delta(value), stop(), last) + DONE)

    expect(stream).toMatchObject({ isComplete: true, isRefusal: true })
    expect(whole).toMatchObject({ isRefusal: true, usage: stream.usage })
  })

  test('is not a refusal if it failed after a text, which the caller has', () => {
    const said = [start('thought'), stop(), start('model_output', 1), delta({ type: 'text', text: 'I' }, 1), stop(1)]
    const { stream } = read(events(created(), ...said, completed({ status: 'failed' })) + DONE)

    expect(stream).toMatchObject({ isComplete: true, isRefusal: false })
  })

  test('steps in the last event are counted when no deltas came', () => {
    const { stream } = read(events(completed({ steps: [{ type: 'model_output', content: [picture, picture] }] })))

    expect(stream.usage?.images).toBe(2)
  })

  test('reports usage and zero images for an answer without an image', () => {
    const { stream } = read(events(created(), completed({ usage: { total_input_tokens: 3 } })))

    expect(stream.usage).toEqual({ inputTokens: 3, outputImageTokens: 0, images: 0 })
  })
})

describe('failures inside a stream', () => {
  const error = { error: { code: 'unavailable', message: 'Overloaded.' }, event_type: 'error' }
  const google = { error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' } }

  test.each<[string, string]>([
    ['an error event', events(error)],
    ['an event named error without a type', `event: error\ndata: ${JSON.stringify({ error: error.error })}\n\n`],
    ['Google\u2019s envelope', `data: ${JSON.stringify(google)}\n\n`],
    ['plain JSON behind the events', JSON.stringify(google, null, 2)],
    ['a plain list behind the events', `[${JSON.stringify(google)}\n]\n`],
  ])('%s ends it and is not passed on', (_case, text) => {
    for (const cut of CUTS) {
      const stream = open()
      const given = feed(stream, cutBytes(Buffer.from(events(created(), delta(picture)) + text), cut))

      expect(given).toBe(events(created(undefined, PUBLIC), delta(picture)))
      expect(stream.failure).toMatchObject({ kind: 'unavailable', message: 'Overloaded.' })
      expect(stream.isComplete).toBe(false)
    }
  })

  test('blocked input is the caller\u2019s matter', () => {
    const { stream } = read(
      events({ error: { code: 'content_blocked', message: 'Input blocked.' }, event_type: 'error' }),
    )

    expect(stream.failure).toMatchObject({ kind: 'caller', code: 'content_blocked' })
  })

  test.each([
    ['text that is no JSON', 'data: oops\n\n'],
    ['JSON that is no object', 'data: 12\n\n'],
    ['an error event without an error', 'event: error\ndata: {}\n\n'],
  ])('%s is a failure', (_case, text) => {
    expect(read(events(created()) + text).stream.failure).toMatchObject({ kind: 'invalid_response', status: 0 })
  })

  test('removes keys from the text', () => {
    const { stream } = read(events({ error: { code: 'x', message: 'key test-key-0001' }, event_type: 'error' }))

    expect(stream.failure?.message).toBe('key [redacted]')
  })

  test('an error behind the end is nobody\u2019s business', () => {
    expect(read(events(created(), completed(), error)).stream).toMatchObject({ isComplete: true, failure: undefined })
  })
})

test('an event beyond the cap is a failure with a clear text', () => {
  const stream = new InteractionStream(interactionCall({ stream: true }), 1000)
  feed(stream, cutBlocks(Buffer.from(events(created(), delta({ ...picture, data: 'A'.repeat(2000) }))), 100))

  expect(stream.failure).toMatchObject({
    kind: 'invalid_response',
    message: 'The vendor sent an event that is too large.',
  })
})

function cutBlocks(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  )
}
