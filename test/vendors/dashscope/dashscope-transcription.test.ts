import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { CatalogModel } from '../../../src/catalog/model.ts'
import type { TranscriptionRequest } from '../../../src/endpoints/transcriptions/transcription-request.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import type { FormFile } from '../../../src/wire/write-form.ts'

const { transcription } = dashscope({ apiKey: 'vendor-key' })
const FILE: FormFile = {
  ...{ kind: 'file', name: 'file', filename: 'a.ogg', contentType: 'audio/ogg' },
  ...{ chunks: [Buffer.from('s'), Buffer.from('ound')], byteLength: 5 },
}
const MODEL: CatalogModel = {
  ...{ id: 'm', kinds: ['transcription'], vendor: 'dashscope', upstream: 'qwen3-asr-flash', limits: {} },
  ...{ aliases: [], fallbacks: [], created: 0, displayName: 'x' },
}

function callOf(request: Partial<TranscriptionRequest>): VendorCall<TranscriptionRequest> {
  const audio = { format: 'ogg', seconds: 1 } as const
  return {
    request: { model: 'm', file: FILE, response_format: 'json', stream: false, audio, form: [FILE], ...request },
    ...{ bytes: undefined, model: MODEL, publicModel: 'm', apiKey: 'vendor-key', stream: false, nowMs: 0 },
  }
}

test('a call without options is the recording alone', () => {
  const { path, headers, body } = transcription!.toWire(callOf({}), 'json')

  expect(path).toBe('/compatible-mode/v1/chat/completions')
  expect(headers).toContain('Bearer vendor-key')
  expect(Buffer.concat(body as Buffer[]).toString()).toBe(
    '{"model":"qwen3-asr-flash","stream":false,"messages":[{"role":"user","content":[{"type":"input_audio",' +
      '"input_audio":{"data":"data:audio/ogg;base64,c291bmQ="}}]}]}',
  )
})

test('what has no effect is named', () => {
  const request = { temperature: 0.2, timestamp_granularities: ['word'], chunking_strategy: 'auto' } as const

  expect(transcription!.toWire(callOf(request), 'json').dropped).toEqual(Object.keys(request))
  // The default has no effect, so it is not reported.
  expect(transcription!.toWire(callOf({ temperature: 0 }), 'json').dropped).toEqual([])
})

const read = (answer: unknown) => transcription!.fromWire([Buffer.from(JSON.stringify(answer))], callOf({}))
const saying = (content: unknown, rest: object = {}): object => ({ choices: [{ message: { content } }], ...rest })

test.each([
  ['text', saying('Moin'), 'Moin'],
  ['parts', saying([{ text: 'Mo' }, { text: 'in' }]), 'Moin'],
  ['nothing, where nobody speaks', saying(null), ''],
])('an answer may be %s', (_name, answer, text) => {
  expect(read(answer)?.text).toBe(text)
})

test.each([
  [
    { seconds: 2, prompt_tokens: 40, completion_tokens: 3 },
    { audioSeconds: 2, inputTokens: 40, outputTokens: 3 },
  ],
  [{ seconds: 2 }, { audioSeconds: 2 }],
  [{ seconds: 0, prompt_tokens: 0, completion_tokens: 0 }, undefined],
  [{ seconds: 1e9 }, { audioSeconds: Number.POSITIVE_INFINITY }],
  [null, undefined],
])('usage %j is read as %j', (usage, expected) => {
  expect(read(saying('x', { usage }))?.usage).toEqual(expected)
})

test('an answer that was cut off is a failure, and its usage is what the vendor bills', () => {
  const answer: unknown = JSON.parse(
    readFileSync(new URL('./fixtures/transcript-cut-off.json', import.meta.url), 'utf8'),
  )

  expect(read(answer)).toMatchObject({
    usage: { inputTokens: 4_510, outputTokens: 2_048 },
    failure: { kind: 'caller', code: 'transcript_too_long', param: 'file' },
  })
  expect(read({ choices: [{ message: { content: 'whole' }, finish_reason: 'stop' }] })?.failure).toBeUndefined()
})

test.each([[{ error: { message: 'no' } }], [{ choices: [] }], [{ choices: [{ message: { content: 5 } }] }], [7]])(
  'rejects %j as a transcript',
  (answer) => {
    expect(read(answer)).toBeUndefined()
  },
)
