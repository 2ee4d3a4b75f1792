import { describe, expect, test } from 'vitest'
import type { SpeechDecoder } from '../../../src/endpoints/speech/speech-endpoint.ts'
import type { SpeechRequest } from '../../../src/endpoints/speech/speech-request.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import type { VendorCall } from '../../../src/vendors/vendor.ts'
import { wavHeader } from '../../../src/wire/audio/encoders.ts'

const operation = dashscope({ apiKey: 'vendor-key' }).speech!

function callOf(request: Partial<SpeechRequest>): VendorCall<SpeechRequest> {
  return {
    request: { model: 'qw3-tts-flash', input: 'Hello.', response_format: 'mp3', ...request },
    bytes: undefined,
    model: {
      ...{ id: 'qw3-tts-flash', kinds: ['speech'], vendor: 'dashscope', upstream: 'qwen3-tts-flash', limits: {} },
      ...{ aliases: [], fallbacks: [], created: 0, displayName: 'x' },
    },
    publicModel: 'qw3-tts-flash',
    apiKey: 'vendor-key',
    stream: true,
    nowMs: 0,
  }
}

describe('a call', () => {
  test('asks for events, at the path of the native API', () => {
    const { path, headers, body, dropped } = operation.toWire(callOf({}), { text: 'Hello.', voice: 'Cherry' })

    expect(path).toBe('/api/v1/services/aigc/multimodal-generation/generation')
    expect(headers).toEqual([
      ...['content-type', 'application/json', 'accept', 'text/event-stream', 'accept-encoding', 'identity'],
      ...['authorization', 'Bearer vendor-key', 'x-dashscope-sse', 'enable'],
    ])
    expect(body).toBe('{"model":"qwen3-tts-flash","input":{"text":"Hello.","voice":"Cherry"}}')
    expect(dropped).toEqual([])
  })

  test('carries instructions inside its input, and names what it leaves out', () => {
    const call = callOf({ instructions: 'calm', speed: 1.5, seed: 4 })
    const { body, dropped } = operation.toWire(call, { text: 'Hel', voice: 'Ethan' })

    expect(JSON.parse(body as string).input).toEqual({ text: 'Hel', voice: 'Ethan', instructions: 'calm' })
    expect(dropped).toEqual(['speed', 'seed'])
  })
})

/** Returns a decoder and all samples that it has emitted. */
function decoding(): { decoder: SpeechDecoder; samples: () => string } {
  const pieces: Uint8Array[] = []
  const decoder = operation.decoder(callOf({}), (samples) => void pieces.push(samples))
  return { decoder, samples: () => Buffer.concat(pieces).toString() }
}

function base64(text: string | Uint8Array): string {
  return Buffer.from(text as string).toString('base64')
}

const STREAM = [
  `id:1\nevent:result\n:HTTP_STATUS/200\ndata:{"output":{"finish_reason":"null","audio":{"data":"${base64('one ')}"}},"request_id":"r"}\n\n`,
  ': heartbeat\n\n',
  `id:2\nstatus:200\nevent:result\ndata:{"output":{"finish_reason":null,"audio":{"data":"${base64('two 東')}"}}}\n\n`,
  'id:3\nevent:result\ndata:{"output":{"finish_reason":"stop","audio":{"data":"","url":"http://x/y.wav","expires_at":1}},"usage":{"characters":6,"input_tokens":4,"output_tokens":9}}\n\n',
].join('')

describe('a stream', () => {
  test.each([
    ['whole', STREAM.length],
    ['byte by byte', 1],
    ['in pieces of seven', 7],
    ['with CRLF', -1],
  ])('%s is read to its samples, tokens and end', (_name, step) => {
    const { decoder, samples } = decoding()
    const bytes = Buffer.from(step === -1 ? STREAM.replaceAll('\n', '\r\n') : STREAM)
    const size = step === -1 ? 5 : step
    for (let start = 0; start < bytes.length; start += size) {
      expect(decoder.isComplete).toBe(false)
      decoder.push(bytes.subarray(start, start + size))
    }
    decoder.end()

    expect(samples()).toBe('one two 東')
    expect(decoder).toMatchObject({ isComplete: true, failure: undefined, tokens: { inputTokens: 4, outputTokens: 9 } })
  })

  test.each([
    ['finish_reason null', '{"output":{"finish_reason":null,"audio":{"data":"b25l"}}}'],
    ['finish_reason "null"', '{"output":{"finish_reason":"null","audio":{"data":"b25l"}}}'],
    ['no finish_reason', '{"output":{"audio":{"data":"b25l"}}}'],
  ])('is incomplete with %s', (_name, data) => {
    const { decoder, samples } = decoding()
    decoder.push(Buffer.from(`data:${data}\n\n`))
    decoder.end()

    expect(samples()).toBe('one')
    expect(decoder).toMatchObject({ isComplete: false, failure: undefined })
  })

  test.each(['event:done\ndata:{}\n\n', 'event:done\ndata:\n\n', 'data: [DONE]\n\n'])('is whole at %j', (mark) => {
    const { decoder } = decoding()
    decoder.push(Buffer.from(`data:{"output":{"audio":{"data":"b25l"}}}\n\n${mark}`))
    decoder.end()

    expect(decoder).toMatchObject({ isComplete: true, failure: undefined })
  })

  test('emits samples without the header of a file', () => {
    const { decoder, samples } = decoding()
    const file = Buffer.concat([wavHeader(24_000), Buffer.from('one ')])
    decoder.push(Buffer.from(`data:{"output":{"audio":{"data":"${base64(file)}"}}}\n\n`))
    decoder.push(Buffer.from(`data:{"output":{"audio":{"data":"${base64('RIFF')}"}}}\n\n`))

    expect(samples()).toBe('one RIFF')
  })

  test.each<[string, string, object]>([
    [
      'an error event',
      'event:error\ndata:{"code":"InternalError","message":"broken","request_id":"r"}\n\n',
      { kind: 'unavailable', code: 'InternalError' },
    ],
    [
      'an error in the place of a result',
      'data:{"code":"DataInspectionFailed","message":"not that"}\n\n',
      { kind: 'caller', message: 'not that' },
    ],
    [
      'an error of the rate',
      'event:error\ndata:{"code":"Throttling.RateQuota","message":"m"}\n\n',
      { kind: 'rate_limited' },
    ],
    ['an error about the account', 'event:error\ndata:{"code":"Arrearage","message":"m"}\n\n', { kind: 'operator' }],
    ['an error that holds nothing', 'event:error\ndata:oops\n\n', { kind: expect.any(String) }],
    ['an event that is no JSON', 'data:{"output\n\n', { kind: 'invalid_response' }],
    [
      'an error that repeats the key',
      'event:error\ndata:{"code":"InvalidApiKey","message":"vendor-key is bad"}\n\n',
      { kind: 'operator', message: expect.not.stringContaining('vendor-key') },
    ],
  ])('fails at %s, and emits nothing after it', (_name, event, failure) => {
    const { decoder, samples } = decoding()
    decoder.push(Buffer.from(`data:{"output":{"audio":{"data":"b25l"}}}\n\n${event}`))
    decoder.push(Buffer.from('data:{"output":{"finish_reason":"stop","audio":{"data":"dHdv"}}}\n\n'))
    decoder.end()

    expect(decoder.failure).toMatchObject(failure)
    expect(samples()).toBe('one')
    expect(decoder.isComplete).toBe(false)
  })

  test('keeps a token count of 0, and ignores invalid counts', () => {
    const zero = decoding().decoder
    zero.push(Buffer.from('data:{"output":{},"usage":{"input_tokens":0,"output_tokens":0}}\n\n'))
    const odd = decoding().decoder
    odd.push(Buffer.from('data:{"output":{},"usage":{"input_tokens":-1,"output_tokens":"4"}}\n\n'))

    expect(zero.tokens).toEqual({ inputTokens: 0, outputTokens: 0 })
    expect(odd.tokens).toBeUndefined()
  })
})
