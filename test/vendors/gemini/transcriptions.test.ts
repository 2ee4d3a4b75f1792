import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { CatalogModel } from '../../../src/catalog/model.ts'
import type { TranscriptionRequest } from '../../../src/endpoints/transcriptions/transcription-request.ts'
import { gemini, vertex } from '../../../src/vendors/gemini/gemini.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import type { FormFile } from '../../../src/wire/write-form.ts'

const { transcription } = gemini({ apiKey: 'vendor-key' })
const FILE: FormFile = {
  ...{ kind: 'file', name: 'file', filename: 'a.mp3', contentType: 'audio/mpeg' },
  ...{ chunks: [Buffer.from('so'), Buffer.from('und')], byteLength: 5 },
}

function callOf(request: Partial<TranscriptionRequest>, upstream: string): VendorCall<TranscriptionRequest> {
  const model: CatalogModel = {
    ...{ id: 'm', kinds: ['transcription'], vendor: 'gemini', upstream, limits: {} },
    ...{ aliases: [], fallbacks: [], created: 0, displayName: 'x' },
  }
  const audio = { format: 'mp3', seconds: 1 } as const
  return {
    request: { model: 'm', file: FILE, response_format: 'json', stream: false, audio, form: [FILE], ...request },
    ...{ bytes: undefined, model, publicModel: 'm', apiKey: 'vendor-key', stream: false, nowMs: 0 },
  }
}

const sent = (request: Partial<TranscriptionRequest>, upstream = 'gemini-2.5-flash') => {
  const { body, ...rest } = transcription!.toWire(callOf(request, upstream), 'json')
  return { ...rest, body: JSON.parse(Buffer.concat(body as Buffer[]).toString()) }
}

test('a call is one turn: the recording, then what to do with it', () => {
  const { path, body, dropped } = sent({
    ...{ language: 'de', languages: ['en'], keywords: ['Kiel', 'Förde'], prompt: 'A "talk"', temperature: 0.5 },
    ...{ timestamp_granularities: ['word'], chunking_strategy: 'auto' },
  })

  expect(path).toBe('/v1beta/models/gemini-2.5-flash:generateContent')
  expect(dropped).toEqual(['timestamp_granularities', 'chunking_strategy'])
  expect(body).toEqual({
    contents: [
      {
        role: 'user',
        parts: [
          { inlineData: { mimeType: 'audio/mpeg', data: 'c291bmQ=' } },
          {
            text:
              'Transcribe this recording word for word, in the language that is spoken. Answer with the transcript alone.\n' +
              'Languages that are spoken, as ISO codes: de, en.\nWords that may be said: Kiel, Förde.\n' +
              'Context, which is not to be repeated: A "talk"',
          },
        ],
      },
    ],
    generationConfig: { temperature: 0.5, thinkingConfig: { thinkingBudget: 0 } },
  })
})

test('newer models think as little as they can, and take no temperature', () => {
  const { body, dropped } = sent({ temperature: 0.2 }, 'gemini-4-hydrogen')

  expect(body.generationConfig).toEqual({ thinkingConfig: { thinkingLevel: 'LOW' } })
  expect(dropped).toEqual(['temperature'])
  expect(sent({ temperature: 0 }, 'gemini-4-hydrogen').dropped).toEqual([])
})

const read = (response: unknown) =>
  transcription!.fromWire([Buffer.from(JSON.stringify(response))], callOf({}, 'gemini-2.5-flash'))
const candidate = (parts: object[], rest: object = { finishReason: 'STOP' }): object => ({
  candidates: [{ content: { role: 'model', parts }, ...rest }],
})

test('an answer is its text without thoughts, and its usage', () => {
  const usageMetadata = {
    ...{ promptTokenCount: 40, candidatesTokenCount: 5, thoughtsTokenCount: 3, totalTokenCount: 48 },
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 8 },
      { modality: 'AUDIO', tokenCount: 32 },
    ],
  }
  const parts = [{ text: 'thinking', thought: true }, { text: ' Moin' }, { text: ', Kiel.\n' }]

  expect(read({ ...candidate(parts), usageMetadata })).toEqual({
    text: 'Moin, Kiel.',
    usage: { inputTokens: 40, outputTokens: 8, reasoningTokens: 3, inputAudioTokens: 32 },
  })
  expect(read(candidate([{ text: 'x' }]))).toEqual({ text: 'x', usage: undefined })
  expect(read(candidate([]))?.text).toBe('')
})

const recorded = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`./fixtures/answers/${name}.json`, import.meta.url), 'utf8'))

test.each([
  [
    'transcript-cut-off',
    'transcript_too_long',
    { inputTokens: 230_435, outputTokens: 65_535, inputAudioTokens: 230_400 },
  ],
  ['transcript-withheld', 'content_blocked', { inputTokens: 355, outputTokens: 6 }],
])('an answer that is not whole, and is billed, is a failure: %s', (name, code, usage) => {
  expect(read(recorded(name))).toMatchObject({ usage, failure: { kind: 'caller', code, param: 'file' } })
})

test('a blocked recording is a failure that names the reason of the vendor', () => {
  const blocked = read({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 40 } })

  expect(blocked).toMatchObject({ usage: { inputTokens: 40 }, failure: { code: 'content_blocked' } })
  expect(blocked?.failure?.message).toBe('file: the vendor withheld the transcript (SAFETY)')
})

test('a useless answer is a failure of the vendor, with what it reports (an estimate before)', () => {
  const candidates = [{ content: {}, finishReason: 'MALFORMED_RESPONSE' }]
  const usageMetadata = { promptTokenCount: 40, thoughtsTokenCount: 9, totalTokenCount: 49 }

  expect(read({ candidates })).toBeUndefined()
  expect(read({ candidates, usageMetadata })).toMatchObject({
    failure: { kind: 'invalid_response', code: 'MALFORMED_RESPONSE' },
    usage: { inputTokens: 40, outputTokens: 9, reasoningTokens: 9 },
  })
})

test.each([
  ['an error', { error: { code: 400, message: 'no', status: 'INVALID_ARGUMENT' } }],
  ['neither a candidate nor a reason', { usageMetadata: { promptTokenCount: 40 } }],
  ['no object', []],
])('rejects %s as a transcript', (_name, response) => {
  expect(read(response)).toBeUndefined()
})

describe('Vertex AI', () => {
  const vendor = vertex({ project: 'our-project', location: 'europe-west4', apiKey: () => ({ token: 'any' }) })
  const sentTo = (upstream: string, request: Partial<TranscriptionRequest> = {}) =>
    vendor.transcription!.toWire({ ...callOf(request, upstream), apiKey: '' }, 'json')

  test('is sent the same turn at the path of the project', () => {
    const wire = sentTo('gemini-2.5-flash', { language: 'de', chunking_strategy: 'auto' })

    expect(wire.path).toBe(
      '/v1/projects/our-project/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent',
    )
    expect(wire.headers).not.toContain('x-goog-api-key')
    expect(wire.dropped).toEqual(['chunking_strategy'])
    expect(Buffer.concat(wire.body as Buffer[]).toString()).toBe(
      '{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"audio/mpeg","data":"c291bmQ="}},' +
        '{"text":"Transcribe this recording word for word, in the language that is spoken. Answer with the transcript alone.' +
        '\\nLanguages that are spoken, as ISO codes: de."}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}',
    )
  })

  test('has tuned models at their endpoints, and refuses open ones', () => {
    expect(sentTo('endpoints/123').path).toBe(
      '/v1/projects/our-project/locations/europe-west4/endpoints/123:generateContent',
    )
    expect(() => sentTo('meta/llama-4-maverick-17b-128e-instruct-maas')).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', param: 'model' }),
    )
  })

  test('answers as Gemini does, and gives text alone', () => {
    const response = {
      ...candidate([{ text: 'Moin.\n' }]),
      usageMetadata: { promptTokenCount: 40, candidatesTokenCount: 5 },
    }
    const read = vendor.transcription!.fromWire([Buffer.from(JSON.stringify(response))], callOf({}, 'gemini-2.5-flash'))

    expect(read).toEqual({ text: 'Moin.', usage: { inputTokens: 40, outputTokens: 5 } })
    expect(vendor.transcription!.abilities('gemini-2.5-flash')).toMatchObject({
      formats: ['json', 'text'],
      streams: false,
    })
  })
})
