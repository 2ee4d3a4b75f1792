import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { type StartedGateway, startGateway, TEST_MODELS } from '../../support/start-gateway.ts'
import { CREDIT, FLASH, INSTRUCT, SPEECH, SPEECH_PRICES, speech, startSpeech } from './speech-gateway.ts'
import { answersJson, speechVendor } from './speech-vendor.ts'

let started: StartedGateway

beforeEach(async () => {
  started = await startSpeech()
})
afterEach(() => started.close())

async function expectNothingDone(): Promise<void> {
  expect(started.sandbox.requests).toEqual([])
  expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
}

describe('400 is in the style of OpenAI and names the field', () => {
  test.each<[string, Record<string, unknown>, string, string, RegExp]>([
    ['an unknown model', { model: 'nobody-9' }, 'model', 'endpoint_model_mismatch', /no model "nobody-9"/],
    ['a model of another kind', { model: 'cl-sonnet-4-6' }, 'model', 'endpoint_model_mismatch', /cannot be used/],
    ['an empty input', { input: '' }, 'input', 'invalid_request', /must not be empty/],
    ['an input of white space', { input: ' \n ' }, 'input', 'invalid_request', /must not be empty/],
    ['no input', { input: undefined }, 'input', 'invalid_request', /string/],
    ['a list of inputs', { input: ['a', 'b'] }, 'input', 'invalid_request', /string/],
    ['an input beyond the bound', { input: 'a'.repeat(10_001) }, 'input', 'invalid_request', /at most 10000/],
    ['one far beyond it', { input: '👋'.repeat(30_000) }, 'input', 'invalid_request', /at most 10000/],
    ['an unknown voice', { voice: 'Xenia' }, 'voice', 'invalid_voice', /^voice: this model has Cherry, Ethan/],
    ['a voice in other letters', { voice: 'cherry' }, 'voice', 'invalid_voice', /this model has/],
    ['a voice by id', { voice: { id: 'voice_1' } }, 'voice', 'invalid_voice', /name of a voice/],
    ['a voice that is a property of objects', { voice: 'constructor' }, 'voice', 'invalid_voice', /this model has/],
    [
      'a voice that only the other model has',
      { model: INSTRUCT, voice: 'Jennifer' },
      'voice',
      'invalid_voice',
      /this model has/,
    ],
    ['opus', { response_format: 'opus' }, 'response_format', 'invalid_request', /offers mp3, wav, pcm$/],
    ['aac', { response_format: 'aac' }, 'response_format', 'invalid_request', /offers mp3, wav, pcm$/],
    ['flac', { response_format: 'flac' }, 'response_format', 'invalid_request', /offers mp3, wav, pcm$/],
    [
      'MP3 of the model that offers WAV and PCM only',
      { model: INSTRUCT, response_format: 'mp3' },
      'response_format',
      'invalid_request',
      /offers wav, pcm$/,
    ],
    [
      'instructions for the basic model',
      { instructions: 'slowly' },
      'instructions',
      'unsupported_parameter',
      /does not support them/,
    ],
    [
      'instructions beyond the bound',
      { model: INSTRUCT, instructions: 'a'.repeat(8001) },
      'instructions',
      'invalid_request',
      /at most 8000/,
    ],
    ['a speed of 9', { speed: 9 }, 'speed', 'invalid_request', /4/],
    ['a speed below 0.25', { speed: -1 }, 'speed', 'invalid_request', /0.25/],
    ['another stream_format', { stream_format: 'ogg' }, 'stream_format', 'invalid_request', /sse/],
  ])('%s', async (_name, rest, param, code, message) => {
    const answer = await started.post(SPEECH, speech('Hello.', rest))
    const body = (await answer.json()) as { error: { message: string } }

    expect(answer.status).toBe(400)
    expect(body).toEqual({
      error: { message: expect.stringMatching(message), type: 'invalid_request_error', param, code },
    })
    await expectNothingDone()
  })

  test.each([
    ['WAV, named', { model: INSTRUCT, response_format: 'wav' }],
    ['empty instructions', { instructions: '' }],
    ['nothing but null', { instructions: null, response_format: null, speed: null, stream_format: null }],
    ['the slowest speed', { speed: 0.25 }],
    ['a text at the bound of one call', { input: 'a'.repeat(600) }],
  ])('accepts %s', async (_name, rest) => {
    const answer = await started.post(SPEECH, speech('Hello.', rest))
    await answer.arrayBuffer()

    expect(answer.status).toBe(200)
  })
})

describe("the vendor's own refusals", () => {
  test('passes rejections of the input on with their status, text and code', async () => {
    const answer = await started.post(SPEECH, speech('[[fault:blocked]] Hello.'))

    expect(answer.status).toBe(400)
    expect(await answer.json()).toEqual({
      error: {
        message: 'Input text data may contain inappropriate content.',
        type: 'invalid_request_error',
        param: null,
        code: 'DataInspectionFailed',
      },
    })
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('passes rejections of a voice that only some of its pages list on', async () => {
    const answer = await started.post(SPEECH, speech('Hello.', { voice: 'Mochi' }))

    expect(answer.status).toBe(400)
    expect((await answer.json()).error.message).toBe("The requested voice 'Mochi' is not supported.")
  })

  test.each([
    ['status=503', 503, 'upstream_unavailable'],
    ['status=500', 503, 'upstream_unavailable'],
    ['status=429,retry-after=7', 429, 'Throttling.RateQuota'],
    ['quota', 503, 'upstream_unavailable'],
    ['bad-key', 503, 'upstream_unavailable'],
    ['leak-key', 503, 'upstream_unavailable'],
    ['html=502', 503, 'upstream_unavailable'],
    ['redirect', 502, 'upstream_invalid_response'],
    ['garbage', 502, 'upstream_invalid_response'],
    ['reset', 503, 'upstream_unavailable'],
    ['empty', 502, 'upstream_invalid_response'],
    ['error-event=0', 503, 'upstream_unavailable'],
    ['end-early=0', 502, 'upstream_invalid_response'],
  ])('before the first sound (%s) are answered with status %i, and cost nothing', async (fault, status, code) => {
    const answer = await started.post(SPEECH, speech(`[[fault:${fault}]] Hello.`))
    const text = await answer.text()

    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(JSON.parse(text).error.code).toBe(code)
    expect(text).not.toContain('canary')
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test.each(['blocked', 'status=503', 'status=429,retry-after=7', 'quota', 'bad-key'])(
    'are billed by nobody, and so told to nobody: %s',
    async (fault) => {
      await started.close()
      started = await startSpeech()
      const answer = await started.post(SPEECH, speech(`[[fault:${fault}]] Hello.`))
      await answer.text()

      expect((await started.ended(answer)).usage).toBeUndefined()
      expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([])
      expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
    },
  )

  test.each([
    ['a connection that broke before an answer', 'reset', 22],
    ['an error that came in place of sound', 'error-event=0', 30],
  ])('reports %s and never charges it', async (_what, fault, characters) => {
    await started.close()
    started = await startSpeech()
    const answer = await started.post(SPEECH, speech(`[[fault:${fault}]] Hello.`))
    await answer.text()

    expect((await started.ended(answer)).usage).toBeUndefined()
    expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([
      expect.objectContaining({ usage: { characters }, isEstimated: true }),
    ])
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('bills nothing for a vendor error in an answer that is not a stream, whatever its status', async () => {
    const refusing = await speechVendor([answersJson(200, { code: 'DataInspectionFailed', message: 'No.' })])
    const vendors = [dashscope({ apiKey: 'k', baseURL: refusing.origin })]
    await started.close()
    started = await startSpeech({ vendors, models: [] })
    const answer = await started.post(SPEECH, speech('Hello.'))
    await answer.text()

    expect(answer.status).toBe(400)
    expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([])
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
    await refusing.close()
  })

  test('a vendor that is not reached bills nothing', async () => {
    await started.close()
    const vendors = [dashscope({ apiKey: 'k', baseURL: 'http://127.0.0.1:9' })]
    started = await startSpeech({ vendors, models: [] })
    const answer = await started.post(SPEECH, speech('Hello.'))
    await answer.text()

    expect(answer.status).toBe(503)
    expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([])
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('a job that the vendor may have begun is not sent again', async () => {
    await started.post(SPEECH, speech('[[fault:reset]] Hello.')).then((answer) => answer.text())

    expect(started.sandbox.requests).toHaveLength(1)
  })
})

test('402 is minimal when the balance is too low', async () => {
  await started.close()
  const prices = {
    ...SPEECH_PRICES,
    prices: [{ model: FLASH, meter: 'character' as const, amount: '50' }],
  }
  started = await startSpeech({ prices })
  const answer = await started.post(SPEECH, speech('Hello.'))

  expect(answer.status).toBe(402)
  expect(await answer.json()).toEqual({ error: { message: expect.any(String) } })
  expect(started.sandbox.requests).toEqual([])
})

test('a model without a price is refused while billing is on', async () => {
  await started.close()
  started = await startSpeech({ prices: { ...SPEECH_PRICES, prices: [] } })
  const answer = await started.post(SPEECH, speech('Hello.'))

  expect(answer.status).toBe(400)
  expect((await answer.json()).error.code).toBe('model_not_priced')
})

test('a fallback that has not what is asked for is passed over', async () => {
  await started.close()
  const row = { id: 'host-speech', kind: 'speech', vendor: 'dashscope', upstream: 'qwen3-tts-flash' } as const
  const prices = {
    ...SPEECH_PRICES,
    prices: [...SPEECH_PRICES.prices, { model: 'host-speech', meter: 'character' as const, amount: '0.01' }],
  }
  started = await startSpeech({ models: [...TEST_MODELS, { ...row, fallbacks: [INSTRUCT] }], prices })
  const mp3 = await started.post(SPEECH, speech('[[fault:status=503]] Hello.', { model: 'host-speech' }))
  await mp3.text()
  const askedForMp3 = started.sandbox.requests.map(({ body }) => (body as { model: string }).model)
  started.sandbox.reset()
  started.sandbox.fault({ kind: 'status', status: 503, times: 2 })
  const wav = await started.post(SPEECH, speech('Hello.', { model: 'host-speech', response_format: 'wav' }))
  await wav.arrayBuffer()

  expect(mp3.status).toBe(503)
  expect(new Set(askedForMp3)).toEqual(new Set(['qwen3-tts-flash']))
  expect(wav.status).toBe(200)
  expect(wav.headers.get('content-type')).toBe('audio/wav')
})

test('a voice, format and instructions that nothing is known about are left to the vendor of a model', async () => {
  await started.close()
  const row = { id: 'host-speech', kind: 'speech', vendor: 'dashscope', upstream: 'qwen3-tts-instruct-flash' } as const
  started = await startGateway({ models: [...TEST_MODELS, row], billing: 'off' })
  const body = speech('Hello.', { model: 'host-speech', voice: 'Bella', instructions: 'slowly' })
  const answer = await started.post(SPEECH, body)
  await answer.arrayBuffer()

  expect(answer.status).toBe(200)
  expect(started.sandbox.requests[0]?.body).toMatchObject({ input: { voice: 'Bella', instructions: 'slowly' } })
})
