import { mkdtempSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { CHARACTER_MS, drawSound } from '../../src/testing/sandbox/files/stored-files.ts'
import { CHARACTER_COST, SPEECH_PRICES, startSpeech } from '../gateway/audio/speech-gateway.ts'
import type { StartedGateway } from '../support/start-gateway.ts'
import { mp3Frames } from '../wire/mp3-frames.ts'
import { wavFile } from '../wire/wav-file.ts'
import { OPENAI_VERSIONS, type OpenAIClient, openaiClient } from './support/openai-clients.ts'

const INPUT = 'The ferry leaves from the second pier at nine.'
const SECONDS = (INPUT.length * CHARACTER_MS) / 1000

const OPENAI_SPEECH = ['tts-1', 'gpt-4o-mini-tts']

const folder = mkdtempSync(join(tmpdir(), 'signalbox-speech-'))
let started: StartedGateway

beforeAll(async () => {
  const prices = OPENAI_SPEECH.map((model) => ({ model, meter: 'character' as const, amount: '0.01', per: 1000 }))
  started = await startSpeech({ prices: { ...SPEECH_PRICES, prices: [...SPEECH_PRICES.prices, ...prices] } })
})
beforeEach(() => started.sandbox.reset())
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await started.close()
})

describe.each(OPENAI_VERSIONS)('%s', (name, OpenAI) => {
  let client: OpenAIClient

  beforeAll(() => {
    client = openaiClient(OpenAI, started.url)
  })

  test.each(['mp3', 'wav'] as const)('audio.speech.create saves %s of the right length', async (format) => {
    const path = join(folder, `${name}.${format}`)
    const answer = await client.audio.speech.create({
      ...{ model: 'qw3-tts-flash', input: INPUT, voice: 'alloy', response_format: format },
    })
    await writeFile(path, answer.body!)
    const file = await readFile(path)
    const seconds = format === 'mp3' ? mp3Frames(file).seconds : wavFile(file).samples.length / 48_000

    expect(seconds).toBeGreaterThanOrEqual(SECONDS)
    expect(seconds).toBeLessThan(SECONDS + 0.1)
  })

  test.each([
    ['opus', 'audio/ogg', Buffer.from('OggS')],
    ['aac', 'audio/aac', Buffer.from([0xff, 0xf1, 0x50, 0x80])],
    ['flac', 'audio/flac', Buffer.from('fLaC')],
  ] as const)('passes %s of the vendor on unchanged as %s and charges its characters', async (format, type, mark) => {
    const before = (await started.account()).balance
    const answer = await client.audio.speech.create({
      ...{ model: 'tts-1', input: INPUT, voice: 'alloy', response_format: format },
    })
    const file = Buffer.from(await answer.arrayBuffer())

    expect(answer.headers.get('content-type')).toBe(type)
    expect(file.equals(Buffer.concat([mark, drawSound(INPUT)]))).toBe(true)
    expect(started.sandbox.requests[0]?.body).toMatchObject({ response_format: format })
    expect(before - (await started.account()).balance).toBe(BigInt(INPUT.length) * CHARACTER_COST)
  })

  test.each(['tts-1', 'qw3-tts-flash', 'qw3-tts-instruct-flash'])('%s answers pcm with bare samples', async (model) => {
    const answer = await client.audio.speech.create({ model, input: INPUT, voice: 'alloy', response_format: 'pcm' })
    const samples = Buffer.from(await answer.arrayBuffer())

    expect(answer.headers.get('content-type')).toBe('audio/pcm')
    expect(samples.equals(drawSound(INPUT))).toBe(true)
  })

  test('refuses opus for a text of several calls without a call or a charge', async () => {
    const before = await started.account()
    const create = client.audio.speech.create({
      ...{ model: 'tts-1', input: 'Nine. '.repeat(1_000), voice: 'alloy', response_format: 'opus' },
    })

    await expect(create).rejects.toMatchObject({ status: 400, code: 'invalid_request', param: 'response_format' })
    expect(started.sandbox.requests).toHaveLength(0)
    expect(await started.account()).toEqual(before)
  })

  test('the answer is bytes for arrayBuffer and blob, with the type of the sound', async () => {
    const create = () => client.audio.speech.create({ model: 'qw3-tts-flash', input: 'Hello.', voice: 'echo' })
    const bytes = Buffer.from(await (await create()).arrayBuffer())
    const blob = await (await create()).blob()

    expect(mp3Frames(bytes).frames).toBeGreaterThan(10)
    expect(blob.type).toBe('audio/mpeg')
    expect(blob.size).toBe(bytes.length)
  })

  test('instructions reach the vendor, and the answer is WAV', async () => {
    const answer = await client.audio.speech.create({
      ...{ model: 'qw3-tts-instruct-flash', input: 'Hello.', voice: 'Ethan', instructions: 'calm' },
      response_format: 'wav',
    })

    expect(wavFile(new Uint8Array(await answer.arrayBuffer())).sampleRate).toBe(24_000)
    expect(started.sandbox.requests[0]?.body).toMatchObject({ input: { voice: 'Ethan', instructions: 'calm' } })
  })

  test('stream_format sse gives the events of the API', async () => {
    const answer = await client.audio.speech.create({
      ...{ model: 'qw3-tts-flash', input: 'Hello.', voice: 'nova', stream_format: 'sse' },
    })
    const text = await answer.text()

    expect(text).toMatch(/^data: \{"type":"speech\.audio\.delta","audio":"[\w+/=]+"\}\n\n/)
    expect(text).toMatch(/data: \{"type":"speech\.audio\.done","usage":\{.*\}\}\n\n$/)
  })

  test.each([
    [{ model: 'gpt-9-tts' }, 'endpoint_model_mismatch', 'model'],
    [{ voice: 'Xenia' }, 'invalid_voice', 'voice'],
    [{ input: '' }, 'invalid_request', 'input'],
    [{ response_format: 'opus' as const }, 'invalid_request', 'response_format'],
  ])('%j is refused with %s', async (rest, code, param) => {
    const create = client.audio.speech.create({ model: 'qw3-tts-flash', input: 'Hello.', voice: 'alloy', ...rest })

    await expect(create).rejects.toMatchObject({ status: 400, type: 'invalid_request_error', code, param })
  })

  test('a sound that breaks off is an error, not a short file', async () => {
    const answer = await client.audio.speech.create({
      ...{ model: 'qw3-tts-flash', voice: 'alloy', input: `[[fault:pace=3]] [[fault:reset-mid-stream=9]] ${INPUT}` },
    })

    await expect(answer.arrayBuffer()).rejects.toThrow()
  })
})
