import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/catalog/catalog.ts'
import type { ModelFacts } from '../../../src/catalog/model-facts.ts'
import { BUILT_IN_MODELS } from '../../../src/catalog/models/built-in-models.ts'
import { GatewayError } from '../../../src/core/errors.ts'
import { countCharacters } from '../../../src/endpoints/character-count.ts'
import { speechVoice } from '../../../src/endpoints/speech/check-speech-abilities.ts'
import { speechEndpoint } from '../../../src/endpoints/speech/speech-endpoint.ts'
import { type SpeechRequest, unusedSpeechFields } from '../../../src/endpoints/speech/speech-request.ts'

const catalog = createCatalog(BUILT_IN_MODELS)
const flash = catalog.find('qw3-tts-flash') as ModelFacts
const instruct = catalog.find('qw3-tts-instruct-flash') as ModelFacts

function parsed(rest: object, model: ModelFacts = flash): SpeechRequest {
  return speechEndpoint.parse({ model: model.id, input: 'Hello.', ...rest }, model)
}

describe('a checked request', () => {
  test('says its format, which the model chooses when the caller does not', () => {
    expect(parsed({}).response_format).toBe('mp3')
    expect(parsed({ response_format: 'wav' }).response_format).toBe('wav')
    expect(parsed({}, instruct).response_format).toBe('wav')
    expect(parsed({}, { id: 'host', limits: {} }).response_format).toBe('mp3')
  })

  test('is a copy: what the caller sent is not written to', () => {
    const body = Object.freeze({ model: 'qw3-tts-flash', input: 'Hello.' })

    expect(speechEndpoint.parse(body, flash)).not.toBe(body)
  })

  test('tells the type of its answer', () => {
    expect(speechEndpoint.streamType?.(parsed({}))).toBe('audio/mpeg')
    expect(speechEndpoint.streamType?.(parsed({}, instruct))).toBe('audio/wav')
    expect(speechEndpoint.streamType?.(parsed({ stream_format: 'sse' }))).toBe('text/event-stream; charset=utf-8')
  })

  test('loads the encoder only for MP3', async () => {
    expect(speechEndpoint.prepare?.(parsed({ response_format: 'wav' }))).toBeUndefined()
    await expect(speechEndpoint.prepare?.(parsed({}))).resolves.toBeUndefined()
  })

  test('is estimated by its characters alone', () => {
    expect(speechEndpoint.estimate(parsed({ input: '你好 👋' }), 99, flash)).toEqual({ characters: 4 })
  })
})

test('an error is an event among events', () => {
  expect(speechEndpoint.errors.streamEvent(new GatewayError('upstream_unavailable'))).toMatch(
    /^data: \{"error":\{.*"upstream_unavailable".*\n\n$/,
  )
})

test.each([
  ['', 0],
  ['abc', 3],
  ['👋', 1],
  ['a👋b', 3],
  ['\ud83d', 1],
  ['\udc4b\ud83d', 2],
  ['\ud83d\ud83d\udc4b', 2],
])('%j has %i characters', (text, count) => {
  expect(countCharacters(text)).toBe(count)
  expect([...text]).toHaveLength(count)
})

describe('the voice', () => {
  const host = { formats: ['wav'], takesInstructions: false, maxCharacters: 10 } as const

  test('is the first one of a model without Cherry', () => {
    expect(speechVoice(undefined, { ...host, voices: ['north', 'south'] })).toBe('north')
    expect(speechVoice('alloy', { ...host, voices: ['north', 'south'] })).toBe('north')
  })

  test('is the OpenAI voice if the model itself has it', () => {
    expect(speechVoice('alloy', { ...host, voices: ['Cherry', 'alloy'] })).toBe('alloy')
  })

  test('is left to the vendor of a model about which nothing is known', () => {
    expect(speechVoice('anybody', undefined)).toBe('anybody')
    expect(speechVoice(null, undefined)).toBe('Cherry')
    expect(speechVoice('alloy', undefined)).toBe('Cherry')
    // A vendor whose usual voice is one of OpenAI's also has the others.
    expect([speechVoice('nova', undefined, 'alloy'), speechVoice(undefined, undefined, 'alloy')]).toEqual([
      'nova',
      'alloy',
    ])
    expect(() => speechVoice('', undefined)).toThrow('voice: must not be empty')
  })

  test.each([flash, instruct])('list of $id holds no name twice, and begins with the default', ({ speech }) => {
    expect(new Set(speech?.voices).size).toBe(speech?.voices.length)
    expect(speech?.voices[0]).toBe('Cherry')
    expect(speech?.voices).toContain('Ethan')
  })
})

test('does not report field names that are invalid in a header, or too many names', () => {
  const odd = { 'line\nbreak': 1, ['x'.repeat(65)]: 1, naïve: 1, '': 1 }
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`field_${index}`, index]))

  expect(unusedSpeechFields({ ...parsed({}), ...odd, speed: 2 })).toEqual(['speed'])
  expect(unusedSpeechFields({ ...parsed({}), ...odd, speed: 1 })).toEqual([])
  expect(unusedSpeechFields({ ...parsed({}), ...many })).toHaveLength(20)
})
