import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import type { CatalogModel } from '../../../src/catalog/model.ts'
import { createTranscriptionOperation } from '../../../src/endpoints/transcriptions/transcription-operation.ts'
import type { TranscriptionRequest } from '../../../src/endpoints/transcriptions/transcription-request.ts'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { transcriptionAbilities } from '../../../src/vendors/shared/openai-transcriptions.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import type { FormFile } from '../../../src/wire/write-form.ts'
import { CUTS, cutBytes } from '../../support/feed-stream.ts'

const { transcription } = openai({ apiKey: 'vendor-key' })

/** A file in two chunks, whose identity shows that they are not copied. */
const CHUNKS = [Buffer.from('RIFF'), Buffer.alloc(32_000, 1)]
const FILE: FormFile = {
  ...{ kind: 'file', name: 'file', filename: 'talk.wav', contentType: 'audio/wav' },
  ...{ chunks: CHUNKS, byteLength: 32_004 },
}

function callOf(
  request: Partial<TranscriptionRequest>,
  upstream = 'gpt-4o-transcribe',
): VendorCall<TranscriptionRequest> {
  const model: CatalogModel = {
    ...{ id: 'm', kinds: ['transcription'], vendor: 'openai', upstream, limits: {} },
    ...{ aliases: [], fallbacks: [], created: 0, displayName: 'x' },
  }
  const form = [{ kind: 'field', name: 'model', value: 'm' } as const, FILE]
  return {
    request: {
      ...{ model: 'm', file: FILE, response_format: 'json', stream: false },
      ...{ audio: { format: 'wav', seconds: 1 }, form },
      ...request,
    },
    ...{ bytes: undefined, model, publicModel: 'm', apiKey: 'vendor-key', stream: request.stream === true, nowMs: 0 },
  }
}

test('the file is sent in the chunks in which it came, the same objects', () => {
  const { body, headers, path } = transcription!.toWire(callOf({}), 'json')
  const chunks = body as readonly Uint8Array[]

  expect(path).toBe('/v1/audio/transcriptions')
  expect(headers[0]).toBe('content-type')
  expect(headers[1]).toMatch(/^multipart\/form-data; boundary=/)
  expect(headers.slice(2)).toEqual([
    ...['accept', 'application/json', 'accept-encoding', 'identity', 'authorization', 'Bearer vendor-key'],
  ])
  for (const chunk of CHUNKS) expect(chunks.some((sent) => sent === chunk)).toBe(true)
})

test('Azure names the deployment in the path of dated versions', () => {
  const azure = azureOpenai({
    resource: 'r',
    apiKey: 'k',
    apiVersion: '2024-10-21',
    deployments: { ears: 'whisper-1' },
  })
  const { path, headers } = azure.transcription!.toWire(callOf({}, 'ears'), 'json')

  expect(path).toBe('/openai/deployments/ears/audio/transcriptions?api-version=2024-10-21')
  expect(headers.slice(-2)).toEqual(['api-key', 'vendor-key'])
  expect(azure.transcription!.abilities('ears').formats).toContain('srt')
})

test.each([
  ['whisper-large-v3-turbo', true],
  ['openai/whisper-small', true],
  ['Systran/faster-Whisper-medium', true],
  ['mistralai/Voxtral-Mini-3B-2507', false],
  ['gpt-9-transcribe', false],
])('%s gives times: %s', (upstream, hasTimes) => {
  expect(transcriptionAbilities(upstream).formats.includes('verbose_json')).toBe(hasTimes)
})

test('a stream at a model that has none is refused', () => {
  expect(() => createTranscriptionOperation(transcription!, callOf({ stream: true }, 'whisper-1'))).toThrow(
    expect.objectContaining({ code: 'unsupported_parameter', param: 'stream' }),
  )
})

describe('a stream', () => {
  const delta = (text: string): string => `data: {"type":"transcript.text.delta","delta":"${text}"}\n\n`
  const done = (rest = ''): string => `data: {"type":"transcript.text.done","text":"Grüße 👋"${rest}}\n\n`
  const read = (text: string, cut: (typeof CUTS)[number] = 'whole') => {
    const stream = transcription!.stream!(callOf({ stream: true }))
    let given = ''
    for (const chunk of cutBytes(Buffer.from(text), cut)) given += Buffer.from(stream.push(chunk) ?? '').toString()
    given += Buffer.from(stream.end() ?? '').toString()
    return { stream, given }
  }
  const whole = `${delta('Grüße ')}: a comment\n\n${delta('👋')}${done(',"usage":{"type":"duration","seconds":1.5}')}`

  test.each(CUTS)('passes unchanged, cut %s', (cut) => {
    const { stream, given } = read(whole, cut)

    expect(given).toBe(whole)
    expect(stream).toMatchObject({ isComplete: true, failure: undefined, usage: { audioSeconds: 1.5 } })
    expect(stream.outputBytesSeen).toBe(Buffer.byteLength('Grüße 👋'))
  })

  test.each([
    [
      'tokens',
      ',"usage":{"type":"tokens","input_tokens":9,"output_tokens":4,"input_token_details":{"audio_tokens":8}}',
      { inputTokens: 9, inputAudioTokens: 8, outputTokens: 4 },
    ],
    ['nothing', '', undefined],
    ['null', ',"usage":null', undefined],
    ['text', ',"usage":"much"', undefined],
  ])('reports %s', (_name, rest, usage) => {
    expect(read(done(rest)).stream.usage).toEqual(usage)
  })

  test('is whole with and without an end mark', () => {
    expect(read(`${done()}data: [DONE]\n\n`).given).toContain('[DONE]')
    expect(read(done()).stream.isComplete).toBe(true)
  })

  test('is incomplete if it is cut', () => {
    expect(read(whole.slice(0, 80)).stream.isComplete).toBe(false)
  })

  test.each([
    ['data: {"error":{"message":"overloaded","code":"server_error"}}\n\n'],
    ['event: error\ndata: {"message":"overloaded"}\n\n'],
    ['data: no JSON\n\n'],
  ])('fails at %j and emits none of it', (event) => {
    const { stream, given } = read(`${delta('a')}${event}${done()}`)

    expect(stream.failure).toBeDefined()
    expect(given).toBe(delta('a'))
  })

  test('keeps events that nobody knows', () => {
    const other = 'data: {"type":"transcript.text.later","x":1}\n\n'

    expect(read(other + done()).given).toBe(other + done())
  })
})
