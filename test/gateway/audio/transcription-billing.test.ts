import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import type { StartedGateway } from '../../support/start-gateway.ts'
import { flacFile, mp3File, mp4File, wavFile } from '../../wire/audio/written-files.ts'
import {
  json,
  type ListeningVendor,
  listeningVendor,
  postForm,
  SECOND_COST,
  startTranscriptions,
  transcriptionForm,
} from './transcription-gateway.ts'

const TALK = wavFile({ seconds: 12.5 })

let started: StartedGateway
let vendor: ListeningVendor | undefined

afterEach(async () => {
  await started.close()
  await vendor?.close()
  vendor = undefined
})

/** Returns the cost of a recording in a format, in nano-dollars, and the charged usage. */
async function charged(fields: Record<string, string>, file: Uint8Array = TALK) {
  const before = await started.account()
  const answer = await postForm(started.url, transcriptionForm(file, fields))
  const body = await answer.text()
  const { usage } = await started.ended(answer)
  const after = await started.account()
  expect(after.held).toBe(0n)
  return { status: answer.status, body, usage, cost: before.balance - after.balance }
}

describe('one recording costs the same in every format', () => {
  test.each([
    ['whisper-1', ['json', 'text', 'srt', 'vtt', 'verbose_json'], 12_500_000n / 10n],
    ['gpt-transcribe', ['json', 'text'], 1_250_000n],
    // 125 tokens of sound at 3 dollars a million, and 6 of text at 5.
    ['gpt-4o-transcribe', ['json', 'text'], 405_000n],
    ['gpt-4o-transcribe-diarize', ['json', 'text', 'diarized_json'], 405_000n],
    ['qwen3-asr-flash', ['json', 'text'], 1_250_000n],
  ])('charges %s', async (model, formats, expected) => {
    started = await startTranscriptions()
    const costs: bigint[] = []
    for (const response_format of formats) costs.push((await charged({ model, response_format })).cost)

    expect(costs).toEqual(formats.map(() => expected))
  })

  test('charges gmn-2.5-flash', async () => {
    started = await startTranscriptions()
    const plain = await charged({ model: 'gmn-2.5-flash' })
    const text = await charged({ model: 'gmn-2.5-flash', response_format: 'text' })

    expect(plain.usage?.inputAudioTokens).toBe(400)
    expect(text.cost).toBe(plain.cost)
  })

  test('streamed or whole', async () => {
    started = await startTranscriptions()
    for (const model of ['gpt-transcribe', 'gpt-4o-transcribe'])
      expect((await charged({ model, stream: 'true' })).cost).toBe((await charged({ model })).cost)
  })

  test('charges at least ten seconds at a server of a preset', async () => {
    vendor = await listeningVendor((response, { bytes }) => {
      const isWhole = bytes.includes('verbose_json')
      json(response, {
        text: 'Hi.',
        ...(isWhole ? { duration: 4.2, segments: [{ start: 0, end: 4.2, text: 'Hi.' }] } : {}),
      })
    })
    const models = [{ id: 'whisper-large-v3', kind: 'transcription' }] as const
    started = await startTranscriptions({
      vendors: [openaiCompatible(presets.groq, { apiKey: 'k', baseURL: `${vendor.origin}/openai/v1`, models })],
      models: [],
    })
    const costs: bigint[] = []
    for (const response_format of ['json', 'text', 'srt', 'vtt', 'verbose_json'])
      costs.push((await charged({ model: 'whisper-large-v3', response_format }, wavFile({ seconds: 4.2 }))).cost)

    expect(costs).toEqual(Array.from({ length: 5 }, () => 10n * SECOND_COST))
    expect(vendor.received[0]?.request.url).toBe('/openai/v1/audio/transcriptions')
  })
})

/** A gateway in front of a vendor that answers like this. */
async function withAnswer(answer: (response: ServerResponse) => void): Promise<void> {
  vendor = await listeningVendor((response) => answer(response))
  started = await startTranscriptions({ vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })], models: [] })
}

const verbose = (rest: object): object => ({ text: 'Hi.', segments: [{ start: 0, end: 1, text: 'Hi.' }], ...rest })

describe('what a vendor reports of the length', () => {
  test.each([
    ['nothing', {}, 1_250_000n],
    ['the duration', { duration: 13 }, 1_300_000n],
    ['the duration as text', { duration: '13.0' }, 1_300_000n],
    ['seconds, which come before the duration', { duration: 13, usage: { type: 'duration', seconds: 14 } }, 1_400_000n],
    ['no seconds, but the duration', { duration: 13, usage: { type: 'duration', seconds: 0 } }, 1_300_000n],
    ['zero in both', { duration: 0, usage: { type: 'duration', seconds: 0 } }, 1_250_000n],
    ['a negative length', { duration: -5 }, 1_250_000n],
    ['a billion seconds', { duration: 1e9 }, 1_250_000n],
    ['a million seconds', { usage: { type: 'duration', seconds: 1e6 } }, 1_250_000n],
    ['no number', { duration: null, usage: null }, 1_250_000n],
    ['a fraction', { duration: 12.3456789 }, 1_234_568n],
  ])('is charged for if it can be: %s', async (_name, rest, cost) => {
    await withAnswer((response) => json(response, verbose(rest)))
    const text = await charged({ model: 'whisper-1', response_format: 'text' })
    const whole = await charged({ model: 'whisper-1', response_format: 'verbose_json' })

    expect([text.status, whole.status]).toEqual([200, 200])
    expect([text.cost, whole.cost]).toEqual([cost, cost])
  })

  test.each([
    ['nothing', undefined],
    ['zero tokens', { type: 'tokens', input_tokens: 0, output_tokens: 0 }],
    ['negative tokens', { type: 'tokens', input_tokens: -9, output_tokens: -9 }],
  ])('is estimated by tokens where they are sold: %s', async (_name, usage) => {
    await withAnswer((response) => json(response, { text: 'Hi.', usage }))
    const { cost, usage: used } = await charged({ model: 'gpt-4o-transcribe' })

    expect(used?.inputTokens).toBeGreaterThanOrEqual(400)
    // 32 tokens of sound a second, at 3 dollars a million.
    expect(cost).toBeGreaterThanOrEqual(1_200_000n)
    expect(cost).toBeLessThan(2_500_000n)
  })

  test('is cut to the ceiling if a billion tokens are reported', async () => {
    await withAnswer((response) =>
      json(response, { text: 'Hi.', usage: { type: 'tokens', input_tokens: 1e9, output_tokens: 1e9 } }),
    )
    const { cost } = await charged({ model: 'gpt-4o-transcribe' })

    // Four times the assumed limits: 1,048,576 tokens at 2 dollars a million, and 131,072 at 5.
    expect(cost).toBe(4n * (1_048_576n * 2_000n + 131_072n * 5_000n))
  })

  test('is said to be implausible where it is, and not where the other unit is missing', async () => {
    await withAnswer((response) => json(response, verbose({ duration: 13 })))
    await charged({ model: 'whisper-1' })
    expect(started.events.filter(({ type }) => type === 'usage-implausible')).toHaveLength(0)

    await started.close()
    await withAnswer((response) => json(response, verbose({ duration: 1e9 })))
    await charged({ model: 'whisper-1' })
    expect(started.events.find(({ type }) => type === 'usage-implausible')).toMatchObject({ fields: ['audioSeconds'] })
  })

  test.each([
    [undefined, 1_250_000n],
    [{ type: 'duration', seconds: 13 }, 1_300_000n],
    [{ type: 'duration', seconds: 0 }, 1_250_000n],
    [{ type: 'duration', seconds: -13 }, 1_250_000n],
    [{ type: 'duration', seconds: 1e9 }, 1_250_000n],
  ])('uses the end of a stream: %j', async (usage, expected) => {
    await withAnswer((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"type":"transcript.text.delta","delta":"Hi."}\n\n')
      response.end(`data: ${JSON.stringify({ type: 'transcript.text.done', text: 'Hi.', usage })}\n\n`)
    })

    expect((await charged({ model: 'gpt-transcribe', stream: 'true' })).cost).toBe(expected)
  })

  test.each([
    ['nothing', undefined, 1_250_000n],
    ['the seconds', { seconds: 13, prompt_tokens: 40, completion_tokens: 3 }, 1_300_000n],
    ['zero', { seconds: 0, prompt_tokens: 0, completion_tokens: 0 }, 1_250_000n],
    ['a negative length', { seconds: -13 }, 1_250_000n],
    ['a billion seconds', { seconds: 1e9 }, 1_250_000n],
  ])('is that of DashScope, if it can be: %s', async (_name, usage, expected) => {
    const answer = { choices: [{ message: { role: 'assistant', content: 'Hi.' } }], usage }
    vendor = await listeningVendor((response) => json(response, answer))
    started = await startTranscriptions({ vendors: [dashscope({ apiKey: 'k', baseURL: vendor.origin })], models: [] })

    expect(await charged({ model: 'qwen3-asr-flash' })).toMatchObject({ status: 200, cost: expected })
  })

  test.each([
    ['nothing', undefined],
    ['zero', { promptTokenCount: 0, candidatesTokenCount: 0 }],
    ['negative tokens', { promptTokenCount: -400, candidatesTokenCount: -6 }],
  ])('is estimated at Gemini where it cannot be: %s', async (_name, usageMetadata) => {
    const candidates = [{ content: { role: 'model', parts: [{ text: 'Hi.' }] }, finishReason: 'STOP' }]
    vendor = await listeningVendor((response) => json(response, { candidates, usageMetadata }))
    started = await startTranscriptions({ vendors: [gemini({ apiKey: 'k', baseURL: vendor.origin })], models: [] })
    const { status, cost } = await charged({ model: 'gmn-2.5-flash' })

    expect(status).toBe(200)
    // 32 tokens of sound a second, at 3 dollars a million.
    expect(cost).toBeGreaterThanOrEqual(1_200_000n)
    expect(cost).toBeLessThan(2_500_000n)
  })
})

describe('a header that lies', () => {
  const forgedWav = Buffer.from(TALK)
  forgedWav.writeUInt32LE(400_000_000, 28)
  const forgedMp4 = mp4File({ seconds: 12 })
  forgedMp4.writeUInt32BE(0xf000_0000, forgedMp4.lastIndexOf('mdhd') + 4 + 16)

  test.each([
    ['WAV of a millisecond', forgedWav],
    ['MP4 of an hour and a half', forgedMp4],
    ['FLAC of no length', flacFile({ samples: 0, soundBytes: 300_000 })],
    ['MP3 of one frame', mp3File(500, { kind: 'Xing', frames: 1 })],
  ])('decides nothing where the vendor reports: %s', async (_name, file) => {
    await withAnswer((response) => json(response, verbose({ duration: 12.5 })))

    expect(await charged({ model: 'whisper-1' }, file)).toMatchObject({ status: 200, cost: 1_250_000n })
  })

  test('holds a billion seconds at what its bytes can contain', async () => {
    let held = 0n
    vendor = await listeningVendor(async (response) => {
      held = (await started.account()).held
      json(response, verbose({ duration: 12.5 }))
    })
    started = await startTranscriptions({ vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })], models: [] })
    await charged({ model: 'whisper-1' }, forgedMp4)

    // 48 kB at 8 kbit/s are 48 seconds.
    expect(held).toBeGreaterThanOrEqual(48n * SECOND_COST)
    expect(held).toBeLessThan(50n * SECOND_COST)
  })

  test.each([
    ['what its bytes can hold, where it claims more', forgedMp4, 48n * SECOND_COST, 50n * SECOND_COST],
    ['more than nothing, where it claims a millisecond', forgedWav, 1n, SECOND_COST / 100n],
  ])('costs %s, where the vendor reports nothing', async (_name, file, least, most) => {
    await withAnswer((response) => json(response, verbose({})))
    const { status, cost } = await charged({ model: 'whisper-1' }, file)

    expect(status).toBe(200)
    expect(cost).toBeGreaterThanOrEqual(least)
    expect(cost).toBeLessThan(most)
  })
})

test('the hold is what the recording costs at most, and the balance must cover it', async () => {
  let held = 0n
  vendor = await listeningVendor(async (response) => {
    held = (await started.account()).held
    json(response, verbose({ duration: 12.5 }))
  })
  started = await startTranscriptions({ vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })], models: [] })
  await charged({ model: 'whisper-1' })
  expect(held).toBe(1_250_000n)

  await started.gateway.accounts.create({ id: 'acct_poor' })
  await started.gateway.accounts.credit('acct_poor', '0.0012')
  const { key } = await started.gateway.keys.create({ accountId: 'acct_poor' })
  const headers = { authorization: `Bearer ${key}` }
  const refused = await postForm(started.url, transcriptionForm(TALK, { model: 'whisper-1' }), headers)
  expect(refused.status).toBe(402)
})

test.each([
  ['no object', '[]'],
  ['no text', '{"duration":3}'],
  ['no JSON', 'Hello'],
])('answers %s with 502 and no charge', async (_name, body) => {
  await withAnswer((response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(body))

  expect(await charged({ model: 'whisper-1' })).toMatchObject({ status: 502, cost: 0n })
})

describe('a transcript that the vendor cut off', () => {
  const parts = [{ text: 'Only the beginning' }]
  const CUT = {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'MAX_TOKENS' }],
    usageMetadata: { promptTokenCount: 400, candidatesTokenCount: 6 },
  }
  const BILLED = { inputTokens: 400, outputTokens: 6 }
  const LISTENER = { id: 'heard', kind: 'transcription', vendor: 'gemini', upstream: 'gemini-2.5-flash' } as const
  const unbilled = () => started.events.filter(({ type }) => type === 'unbilled-usage')

  async function startCut(options: Partial<GatewayOptions> = {}, given: object = CUT): Promise<void> {
    vendor = await listeningVendor((response, { request }) => {
      response.setHeader('x-request-id', 'vendor-request')
      json(response, request.url?.includes('generateContent') === true ? given : verbose({ duration: 12.5 }))
    })
    const connection = { apiKey: 'k', baseURL: vendor.origin }
    started = await startTranscriptions({ vendors: [gemini(connection), openai(connection)], models: [], ...options })
  }

  test('is refused as too long, free, told once as it was reported, and no fault of the vendor', async () => {
    await startCut()
    const { status, body, cost } = await charged({ model: 'gmn-2.5-flash' })

    expect([status, cost]).toEqual([400, 0n])
    expect(JSON.parse(body).error).toMatchObject({ code: 'transcript_too_long', param: 'file' })
    expect(unbilled()).toEqual([expect.objectContaining({ usage: BILLED, isEstimated: false })])
    expect(started.events).toContainEqual(
      expect.objectContaining({ type: 'attempt-failed', reason: 'caller', vendorRequestId: 'vendor-request' }),
    )
  })

  test('is asked for at a fallback that writes more', async () => {
    await startCut({ models: [{ ...LISTENER, fallbacks: ['whisper-1'] }] })
    const { body, cost } = await charged({ model: 'heard' })

    expect(JSON.parse(body)).toMatchObject({ text: 'Hi.' })
    expect(cost).toBe(1_250_000n)
    expect(unbilled()).toEqual([expect.objectContaining({ model: 'heard', usage: BILLED })])
  })

  test('is asked for nowhere else where the vendor withheld it', async () => {
    const withheld = { ...CUT, candidates: [{ ...CUT.candidates[0], finishReason: 'SAFETY' }] }
    await startCut({ models: [{ ...LISTENER, fallbacks: ['whisper-1'] }] }, withheld)
    const { status, body, cost } = await charged({ model: 'heard' })

    expect([status, cost]).toEqual([400, 0n])
    expect(JSON.parse(body).error).toMatchObject({ code: 'content_blocked', param: 'file' })
    expect(vendor?.received).toHaveLength(1)
    expect(unbilled()).toEqual([expect.objectContaining({ usage: BILLED, isEstimated: false })])
  })
})

test('answers subtitles without times with 502 and no charge', async () => {
  await withAnswer((response) => json(response, { text: 'Hi.', duration: 3 }))

  expect(await charged({ model: 'whisper-1', response_format: 'srt' })).toMatchObject({ status: 502, cost: 0n })
  expect((await charged({ model: 'whisper-1', response_format: 'text' })).status).toBe(200)
})

test('what the operator pays is not shown to a caller who is charged', async () => {
  await withAnswer((response) => json(response, { text: 'Hi.', usage: { type: 'duration', seconds: 5, cost: 0.001 } }))
  const { body } = await charged({ model: 'gpt-transcribe' })

  expect(JSON.parse(body)).toEqual({ text: 'Hi.', usage: { type: 'duration', seconds: 5 } })
})

test('tokens per minute are 32 a second', async () => {
  started = await startTranscriptions({ limits: { perAccount: { tokensPerMinute: 500 } } })
  const first = await postForm(started.url, transcriptionForm(wavFile({ seconds: 9 }), { model: 'whisper-1' }))
  const second = await postForm(started.url, transcriptionForm(wavFile({ seconds: 9 }), { model: 'whisper-1' }))

  expect([first.status, second.status]).toEqual([200, 429])
})
