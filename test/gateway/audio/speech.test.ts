import { Buffer } from 'node:buffer'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CHARACTER_MS, drawSound } from '../../../src/testing/sandbox/files/stored-files.ts'
import type { StartedGateway } from '../../support/start-gateway.ts'
import { mp3Frames } from '../../wire/mp3-frames.ts'
import { wavFile } from '../../wire/wav-file.ts'
import { CHARACTER_COST, CREDIT, INSTRUCT, SPEECH, speech, speechEvents, startSpeech } from './speech-gateway.ts'

let started: StartedGateway

beforeEach(async () => {
  started = await startSpeech()
})
afterEach(() => started.close())

async function fileOf(answer: Response): Promise<Buffer> {
  expect(answer.status).toBe(200)
  return Buffer.from(await answer.arrayBuffer())
}

/** Duration of a number of characters, in seconds. */
function secondsOf(characters: number): number {
  return (characters * CHARACTER_MS) / 1000
}

/** The texts that reached the vendor, in their order. */
function spoken(): string[] {
  return started.sandbox.requests.map(({ body }) => (body as { input: { text: string } }).input.text)
}

describe('the sound', () => {
  test('is an MP3 file of the right length when nothing is asked for', async () => {
    const answer = await started.post(SPEECH, speech('Doors close in five minutes.'))
    const file = await fileOf(answer)
    const { seconds, ...rest } = mp3Frames(file)

    expect(answer.headers.get('content-type')).toBe('audio/mpeg')
    expect(rest).toMatchObject({ sampleRate: 24_000, kilobits: 64, channels: 1 })
    expect(seconds).toBeGreaterThanOrEqual(secondsOf(28))
    expect(seconds).toBeLessThan(secondsOf(28) + 0.1)
  })

  test('is a WAV file with the very samples of the vendor', async () => {
    const answer = await started.post(SPEECH, speech('Doors close.', { response_format: 'wav' }))
    const { samples, ...format } = wavFile(await fileOf(answer))

    expect(answer.headers.get('content-type')).toBe('audio/wav')
    expect(format).toMatchObject({ channels: 1, sampleRate: 24_000, bits: 16 })
    expect(samples.equals(drawSound('Doors close.'))).toBe(true)
  })

  test('is WAV from the model with instructions, which reach the vendor', async () => {
    const instructions = 'calm, slow, slightly formal'
    const answer = await started.post(SPEECH, speech('Hello.', { model: INSTRUCT, instructions, voice: 'Ethan' }))

    expect(answer.headers.get('content-type')).toBe('audio/wav')
    expect(wavFile(await fileOf(answer)).samples.equals(drawSound('Hello.'))).toBe(true)
    expect(started.sandbox.requests[0]?.body).toEqual({
      model: 'qwen3-tts-instruct-flash',
      input: { text: 'Hello.', voice: 'Ethan', instructions },
    })
  })

  test('begins before the vendor has finished', async () => {
    const answer = await started.post(SPEECH, speech('[[fault:hang-body=40]] a text that never ends'.repeat(2)))
    const first = await answer.body!.getReader().read()

    expect(first.value?.[0]).toBe(0xff)
    expect(started.sandbox.openCalls).toBe(1)
  })

  test('is the same however the vendor cuts its bytes', async () => {
    const answer = await started.post(SPEECH, speech('[[fault:cut=7]] ding dong', { response_format: 'wav' }))

    expect(wavFile(await fileOf(answer)).samples.equals(drawSound('ding dong'))).toBe(true)
  })

  test('is neither kept nor compressed on the way', async () => {
    const answer = await started.post(SPEECH, speech('Hello.'))
    await fileOf(answer)

    expect(answer.headers.get('cache-control')).toBe('no-cache, no-transform')
    expect(answer.headers.get('content-length')).toBeNull()
  })
})

describe('a voice', () => {
  test.each([[undefined], [null], ['alloy'], ['echo'], ['cedar'], ['Cherry']])('%s is Cherry', async (voice) => {
    await fileOf(await started.post(SPEECH, speech('Hello.', { voice })))

    expect(started.sandbox.requests[0]?.body).toEqual({
      model: 'qwen3-tts-flash',
      input: { text: 'Hello.', voice: 'Cherry' },
    })
  })

  test("reaches the vendor under the model's own name", async () => {
    await fileOf(await started.post(SPEECH, speech('Hello.', { voice: 'Jennifer' })))

    expect(started.sandbox.requests[0]?.body).toMatchObject({ input: { voice: 'Jennifer' } })
  })
})

describe('a text above the limit of one call', () => {
  const sentence = 'The ferry leaves from the second pier at nine. '
  const long = sentence.repeat(40).trim()

  test('is spoken sentence by sentence into one file, without gap or header in between', async () => {
    const answer = await started.post(SPEECH, speech(long, { response_format: 'wav' }))
    const { samples } = wavFile(await fileOf(answer))

    expect(spoken().length).toBeGreaterThan(2)
    expect(spoken().every((text) => text.length <= 600 && text.endsWith('nine.'))).toBe(true)
    expect(spoken().join(' ')).toBe(long)
    expect(samples.equals(Buffer.concat(spoken().map(drawSound)))).toBe(true)
  })

  test('is one MP3 file too', async () => {
    const file = await fileOf(await started.post(SPEECH, speech(long)))

    const characters = spoken().join('').length
    expect(mp3Frames(file).seconds).toBeGreaterThanOrEqual(secondsOf(characters))
    expect(mp3Frames(file).seconds).toBeLessThan(secondsOf(characters) + 0.1)
  })

  test('is sent to the vendor one part after another', async () => {
    let most = 0
    const answer = await started.post(SPEECH, speech(long, { response_format: 'wav' }))
    for await (const _chunk of answer.body!) most = Math.max(most, started.sandbox.openCalls)

    expect(most).toBeLessThanOrEqual(1)
  })

  test('is charged for its own characters, once', async () => {
    const answer = await started.post(SPEECH, speech(long))
    await fileOf(answer)
    const ended = await started.ended(answer)

    expect(ended.usage).toEqual({ characters: long.length })
    expect(ended.costNanoDollars).toBe(BigInt(long.length) * CHARACTER_COST)
  })

  test('fits ideographs to the stricter count of the vendor', async () => {
    const text = '今天天气很好，我们去公园散步。'.repeat(50)
    const { samples } = wavFile(await fileOf(await started.post(SPEECH, speech(text, { response_format: 'wav' }))))

    expect(samples.equals(drawSound(text))).toBe(true)
    expect(spoken().every((part) => part.endsWith('。'))).toBe(true)
  })
})

describe('what is charged', () => {
  test.each([
    ['Hello.', 6],
    ['你好 world', 8],
    ['👩‍👩‍👧 ok', 8],
  ])('counts %j as %i characters, before and after the vendor', async (input, characters) => {
    const answer = await started.post(SPEECH, speech(input))
    await fileOf(answer)
    const ended = await started.ended(answer)

    expect(ended).toMatchObject({ ending: 'completed', usage: { characters } })
    expect(await started.account()).toEqual({ balance: CREDIT - BigInt(characters) * CHARACTER_COST, held: 0n })
  })

  test.each(['usage=-1', 'usage=99999999', "usage='x'", 'no-usage'])(
    'does not depend on what the vendor counts (%s)',
    async (fault) => {
      const input = `[[fault:${fault}]] Hello.`
      const answer = await started.post(SPEECH, speech(input))
      await fileOf(answer)

      expect((await started.ended(answer)).costNanoDollars).toBe(BigInt(input.length) * CHARACTER_COST)
    },
  )
})

describe('the format sse', () => {
  test('gives events whose sound joined is the file, and then the usage', async () => {
    const answer = await started.post(SPEECH, speech('Doors close.', { stream_format: 'sse', response_format: 'wav' }))
    const events = await speechEvents(answer)
    const last = events.pop()
    const file = Buffer.concat(events.map(({ audio }) => Buffer.from(audio ?? '', 'base64')))

    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['speech.audio.delta']))
    expect(wavFile(file).samples.equals(drawSound('Doors close.'))).toBe(true)
    expect(last).toEqual({
      type: 'speech.audio.done',
      usage: { input_tokens: 4, output_tokens: 0, total_tokens: 4, characters: 12 },
    })
  })

  test('gives MP3 as well', async () => {
    const events = await speechEvents(await started.post(SPEECH, speech('Doors close.', { stream_format: 'sse' })))
    const file = Buffer.concat(events.map(({ audio }) => Buffer.from(audio ?? '', 'base64')))

    expect(mp3Frames(file).seconds).toBeGreaterThanOrEqual(secondsOf(12))
    expect(events.at(-1)?.type).toBe('speech.audio.done')
  })
})

describe('fields without effect', () => {
  test('are named: speed, and what nobody knows', async () => {
    const body = speech('Hello.', { speed: 2, seed: 7, é中: 1, user: null, stream_format: 'audio' })
    const answer = await started.post(SPEECH, body)
    await fileOf(answer)

    expect(answer.headers.get('x-signalbox-dropped')).toBe('speed, seed')
    expect(Object.keys(started.sandbox.requests[0]?.body as object)).toEqual(['model', 'input'])
  })

  test('are not named when there are none', async () => {
    const answer = await started.post(SPEECH, speech('Hello.', { voice: 'alloy', response_format: 'mp3' }))
    await fileOf(answer)

    expect(answer.headers.get('x-signalbox-dropped')).toBeNull()
  })
})

test('an answer is replayed under its Idempotency-Key with its own type', async () => {
  const headers = { 'idempotency-key': 'speech-1' }
  const first = await started.post(SPEECH, speech('Hello.'), headers)
  const file = await fileOf(first)
  await started.ended(first)
  const second = await started.post(SPEECH, speech('Hello.'), headers)

  expect((await fileOf(second)).equals(file)).toBe(true)
  expect(second.headers.get('content-type')).toBe('audio/mpeg')
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(started.sandbox.requests).toHaveLength(1)
  expect((await started.account()).balance).toBe(CREDIT - 6n * CHARACTER_COST)
})

test('many callers at once each get their own sound', async () => {
  const texts = Array.from({ length: 20 }, (_, index) => `Train ${index} departs.`.padEnd(30, '!'))
  const answers = await Promise.all(texts.map((text) => started.post(SPEECH, speech(text))))
  const files = await Promise.all(answers.map(fileOf))

  expect(files.map((file) => mp3Frames(file).seconds > secondsOf(30))).toEqual(texts.map(() => true))
  expect(new Set(files.map((file) => file.toString('base64'))).size).toBe(20)
  expect(started.sandbox.requests.map(({ operation }) => operation)).toEqual(texts.map(() => 'speech'))
})
