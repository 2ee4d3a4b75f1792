import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { eventFrame, eventOf, exceptionOf } from '../../../src/testing/sandbox/amazon-bedrock/amazon-bedrock.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'
import { recordingWriter, type WriterCall } from '../../support/recording-writer.ts'
import { callFromRequest, wireAnswer } from '../shared/vendor-call.ts'

/** One answer, whole and as a stream, and the result of a reader for both. */
interface Golden {
  readonly request?: object
  readonly whole: object
  readonly events: readonly (readonly [type: string, value: object])[]
  readonly calls: readonly WriterCall[]
  readonly message: object
  readonly finish: string
  readonly usage: object
}

const FOLDER = new URL('./fixtures/', import.meta.url)
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'))
const golden = (file: string): Golden => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Golden

const chat = amazonBedrock({ region: 'us-east-1', apiKey: 'bedrock-key-0123456789' }).chat!
const callOf = (request: object = {}) =>
  callFromRequest({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...request } as never, {
    upstream: 'us.anthropic.claude-sonnet-4-6',
  })

function decoded(chunks: readonly Uint8Array[], request?: object) {
  const writer = recordingWriter()
  const decoder = chat.decoder(callOf(request) as never, writer)
  for (const chunk of chunks) decoder.push(chunk)
  decoder.end()
  // The service sends no id in its stream, so the id is new.
  const [, ...calls] = writer.calls
  return { calls, decoder, started: writer.calls[0] }
}

describe('golden answers of Converse', () => {
  for (const file of files) {
    const { request, whole, events, calls, message, finish, usage } = golden(file)
    const bytes = Buffer.concat(events.map(([type, value]) => eventOf(type, value)))

    it(`${file}: whole`, () => {
      const read = chat.fromWire(wireAnswer(whole, 200, { 'x-amzn-requestid': 'req-1' }), callOf(request) as never)

      expect(read?.completion).toMatchObject({ id: 'req-1', choices: [{ message, finish_reason: finish }] })
      expect(read?.usage).toEqual(usage)
    })

    for (const cut of CUTS) {
      it(`${file}: as a stream, ${cut}`, () => {
        const { calls: made, decoder, started } = decoded(cutBytes(bytes, cut), request)

        expect(started).toEqual(['start', expect.stringMatching(/^[0-9a-f-]{36}$/)])
        expect(made).toEqual(calls)
        expect(decoder).toMatchObject({ isComplete: true, failure: undefined, usage })
      })
    }

    it(`${file}: cut anywhere before its stop reason, it is not whole`, () => {
      const stop = bytes.indexOf('messageStop') - 40
      for (let length = 0; length < stop; length += 7)
        expect(decoded([bytes.subarray(0, length)], request).decoder.isComplete, `${length}`).toBe(false)
    })
  }
})

describe('a stream', () => {
  const begun = [
    eventOf('messageStart', { role: 'assistant' }),
    eventOf('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hi' } }),
  ]

  it.each([
    ['throttlingException', 'Too many tokens, please wait before trying again.', 'rate_limited'],
    ['ThrottlingException', 'Rate exceeded', 'rate_limited'],
    ['validationException', 'The input is too long.', 'caller'],
    ['internalServerException', 'x', 'unavailable'],
    ['modelStreamErrorException', 'x', 'unavailable'],
    ['serviceUnavailableException', 'x', 'unavailable'],
    ['modelTimeoutException', 'x', 'timeout'],
    ['neverHeardOfException', 'x', 'unavailable'],
  ])('fails after the exception %s as %3$s, and ends', (type, message, kind) => {
    for (const before of [[], begun]) {
      const bytes = Buffer.concat([
        ...before,
        exceptionOf(type, message),
        eventOf('messageStop', { stopReason: 'end_turn' }),
      ])
      for (const cut of CUTS) {
        const { decoder, calls } = decoded(cutBytes(bytes, cut))
        expect(decoder.failure).toMatchObject({ kind, status: 0, message, code: type })
        expect(decoder.isComplete).toBe(false)
        expect(calls.some(([name]) => name === 'finish')).toBe(false)
      }
    }
  })

  it('fails with the text of an error frame', () => {
    const frame = eventFrame(
      { ':message-type': 'error', ':error-code': 'InternalFailure', ':error-message': 'Oh no' },
      '',
    )
    expect(decoded([frame]).decoder.failure).toMatchObject({
      kind: 'unavailable',
      message: 'Oh no',
      code: 'InternalFailure',
    })
  })

  it('is an invalid response if a checksum is wrong', () => {
    const bytes = Buffer.concat(begun)
    bytes[bytes.length - 20]! ^= 1
    expect(decoded([bytes]).decoder.failure).toMatchObject({
      kind: 'invalid_response',
      message: expect.stringContaining('checksum'),
    })
  })

  it('skips unknown events, and has no usage without a report', () => {
    const bytes = Buffer.concat([
      ...begun,
      eventOf('contentBlockNovelty', { contentBlockIndex: 0 }),
      eventFrame({ ':message-type': 'event', ':event-type': 'novelText' }, 'no JSON'),
      eventOf('messageStop', { stopReason: 'end_turn' }),
    ])
    const { decoder, calls } = decoded([bytes])
    const odd = eventFrame({ ':message-type': 'event', ':event-type': 'metadata' }, '[]')
    expect(decoded([odd]).decoder.failure).toMatchObject({ kind: 'invalid_response' })
    expect(calls).toEqual([
      ['text', 'Hi'],
      ['finish', 'stop'],
    ])
    expect(decoder).toMatchObject({ isComplete: true, usage: undefined })
  })

  it.each(['malformed_model_output', 'malformed_tool_use'])(
    'fails at the stop reason %s, like a whole answer',
    (stopReason) => {
      expect(decoded([...begun, eventOf('messageStop', { stopReason })]).decoder).toMatchObject({
        isComplete: false,
        failure: { kind: 'invalid_response', message: expect.stringContaining(stopReason) },
      })
      const whole = { output: { message: { role: 'assistant', content: [{ text: 'x' }] } }, stopReason }
      expect(chat.fromWire(wireAnswer(whole), callOf() as never)).toBeUndefined()
      expect(chat.brokenAnswer?.(wireAnswer(whole), callOf() as never)).toBeUndefined()
    },
  )

  it.each(CUTS)('has the usage after a failed stop, like a whole answer: %s', (cut) => {
    const stopReason = 'malformed_tool_use'
    const counts = { inputTokens: 40, outputTokens: 900, totalTokens: 1_000, cacheReadInputTokens: 60 }
    const bytes = Buffer.concat([
      ...begun,
      eventOf('messageStop', { stopReason }),
      eventOf('metadata', { usage: counts }),
    ])
    const whole = { output: { message: { role: 'assistant', content: [] } }, stopReason, usage: counts }
    const usage = { inputTokens: 100, cachedInputTokens: 60, outputTokens: 900 }
    const failure = { kind: 'invalid_response', message: expect.stringContaining(stopReason) }

    // Reported usage includes unseen reasoning, so nothing is estimated.
    const expected = { isComplete: false, failure, usage, hasRunningUsage: true }
    expect(decoded(cutBytes(bytes, cut)).decoder).toMatchObject(expected)
    expect(decoded([...begun]).decoder.hasRunningUsage).toBe(false)
    expect(chat.brokenAnswer?.(wireAnswer(whole), callOf() as never)).toMatchObject({ failure, usage })
  })

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['guardrail_intervened', 'content_filter'],
    ['content_filtered', 'content_filter'],
    ['something_new', 'content_filter'],
  ])('maps the stop reason %s to %s', (stopReason, finish) => {
    expect(decoded([...begun, eventOf('messageStop', { stopReason })]).calls.at(-1)).toEqual(['finish', finish])
  })

  it('is the binary media type, and no other', () => {
    const { decoder } = decoded([])
    expect(decoder.takes?.('application/vnd.amazon.eventstream')).toBe(true)
    expect(decoder.takes?.('text/event-stream')).toBe(false)
  })
})

describe('an unusable answer', () => {
  it.each([{}, { output: {} }, { output: { message: { content: 'x' } } }, 'text'])('%j cannot be used', (body) => {
    expect(chat.fromWire(wireAnswer(body), callOf() as never)).toBeUndefined()
  })
})
