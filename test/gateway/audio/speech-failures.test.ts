import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { drawSound } from '../../../src/testing/sandbox/files/stored-files.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { rawPost } from '../../support/raw-caller.ts'
import type { StartedGateway } from '../../support/start-gateway.ts'
import { wavFile } from '../../wire/wav-file.ts'
import { CHARACTER_COST, CREDIT, SPEECH, speech, startSpeech } from './speech-gateway.ts'
import {
  answersJson,
  breaksAfter,
  type SpeakAnswer,
  type SpeechVendor,
  soundEvent,
  speaks,
  speechVendor,
} from './speech-vendor.ts'

let started: StartedGateway
let vendor: SpeechVendor | undefined
const unhandled: unknown[] = []
const onUnhandled = (reason: unknown): void => void unhandled.push(reason)

beforeEach(() => {
  process.on('unhandledRejection', onUnhandled)
})
afterEach(async () => {
  await started.close()
  await vendor?.close()
  vendor = undefined
  process.off('unhandledRejection', onUnhandled)
  expect(unhandled.splice(0)).toEqual([])
})

/** A gateway before a vendor that answers as told. */
async function startBefore(...answers: readonly SpeakAnswer[]): Promise<void> {
  vendor = await speechVendor(answers)
  started = await startSpeech({ vendors: [dashscope({ apiKey: 'vendor-key', baseURL: vendor.origin })] })
}

async function expectChargedOnce(characters: number): Promise<void> {
  expect(await started.account()).toEqual({ balance: CREDIT - BigInt(characters) * CHARACTER_COST, held: 0n })
  expect(started.events.filter(({ type }) => type === 'request-ended')).toHaveLength(1)
}

const SOUND = drawSound('Hello. ')
const WHOLE = speaks(soundEvent(SOUND), soundEvent(new Uint8Array(), 'stop'))
const TWO_PARTS = `${'a'.repeat(400)}. ${'b'.repeat(400)}.`
const FIRST_PART = 401

describe.each(['mp3', 'wav'])('a vendor that fails in the middle of %s', (format) => {
  test.each(['reset-mid-stream=9', 'end-early=9', 'error-event=9', 'no-done'])(
    '(%s) has the connection cut, is not asked again, and is charged once',
    async (fault) => {
      started = await startSpeech()
      const input = `[[fault:pace=3]] [[fault:${fault}]] Doors close in five minutes.`
      const answer = await started.post(SPEECH, speech(input, { response_format: format }))

      expect(answer.status).toBe(200)
      await expect(answer.arrayBuffer()).rejects.toThrow()
      expect((await started.ended(answer)).ending).toBe('failed')
      expect(started.sandbox.requests).toHaveLength(1)
      await expectChargedOnce(input.length)
    },
  )
})

test('events that end early have no last event', async () => {
  started = await startSpeech()
  const input = '[[fault:reset-mid-stream=9]] Doors close in five minutes.'
  const answer = await started.post(SPEECH, speech(input, { stream_format: 'sse' }))
  const text: string[] = []
  const decoder = new TextDecoder()
  try {
    for await (const chunk of answer.body!) text.push(decoder.decode(chunk, { stream: true }))
  } catch {
    text.push('(cut)')
  }

  expect(text.join('')).toContain('speech.audio.delta')
  expect(text.join('')).not.toContain('speech.audio.done')
  expect((await started.ended(answer)).ending).toBe('failed')
})

test('reports the part that a vendor was sent if it does not begin in time, without a charge', async () => {
  vendor = await speechVendor([() => undefined])
  const vendors = [dashscope({ apiKey: 'vendor-key', baseURL: vendor.origin })]
  started = await startSpeech({ vendors, timeouts: { firstByteMs: 60 } })
  const answer = await started.post(SPEECH, speech(TWO_PARTS))
  await answer.text()

  expect(answer.status).toBe(504)
  expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([
    expect.objectContaining({ usage: { characters: FIRST_PART }, isEstimated: true }),
  ])
  await expect
    .poll(async () => (await started.gateway.usage.records()).records)
    .toMatchObject([{ usage: {}, isEstimated: false }])
  await expectChargedOnce(0)
})

describe('a caller that disconnects', () => {
  test('in the middle stops the vendor and pays once for the text', async () => {
    started = await startSpeech()
    const input = `[[fault:pace=5]] ${'Doors close. '.repeat(20)}`
    const caller = rawPost(started.url, SPEECH, speech(input, { stream_format: 'sse' }))
    await caller.received('speech.audio.delta')
    const ending = started.nextEnded()
    const leftAtMs = caller.leave()

    expect((await started.sandbox.nextAbort()) - leftAtMs).toBeLessThan(500)
    expect((await ending).ending).toBe('abandoned')
    await expectChargedOnce(input.length)
  })

  test('before the first sound pays once', async () => {
    started = await startSpeech()
    const input = '[[fault:hang]] Doors close.'
    const caller = rawPost(started.url, SPEECH, speech(input))
    await started.sandbox.nextRequest()
    const ending = started.nextEnded()
    caller.leave()
    await started.sandbox.nextAbort()

    expect((await ending).ending).toBe('abandoned')
    await expectChargedOnce(input.length)
  })

  test('before the first of two parts pays for that one', async () => {
    await startBefore(() => undefined)
    const caller = rawPost(started.url, SPEECH, speech(TWO_PARTS))
    await expect.poll(() => vendor?.texts.length).toBe(1)
    const ending = started.nextEnded()
    caller.leave()

    expect((await ending).ending).toBe('abandoned')
    await expectChargedOnce(FIRST_PART)
  })

  test('stops after the first part if it disconnects between two, and pays for that (803 characters before, now 401)', async () => {
    let left = (): void => {}
    const hasLeft = new Promise<void>((resolve) => {
      left = resolve
    })
    await startBefore((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(soundEvent(SOUND))
      void hasLeft.then(() => response.end(soundEvent(new Uint8Array(), 'stop')))
    })
    const caller = rawPost(started.url, SPEECH, speech(TWO_PARTS, { stream_format: 'sse' }))
    await caller.received('speech.audio.delta')
    const ending = started.nextEnded()
    caller.leave()
    left()

    expect((await ending).ending).toBe('abandoned')
    expect(vendor?.texts).toHaveLength(1)
    await expectChargedOnce(FIRST_PART)
  })

  test('completes the speech with the policy drain', async () => {
    started = await startSpeech({ disconnect: 'drain' })
    const input = `[[fault:pace=2]] ${TWO_PARTS.slice(300, 500)}`
    const caller = rawPost(started.url, SPEECH, speech(input, { stream_format: 'sse' }))
    await caller.received('speech.audio.delta')
    const ending = started.nextEnded()
    caller.leave()

    expect((await ending).ending).toBe('completed')
    await expectChargedOnce(input.length)
  })
})

describe('a later part that fails', () => {
  test.each<[string, SpeakAnswer, string, number]>([
    [
      'is refused for its rate',
      answersJson(429, { code: 'Throttling.RateQuota', message: 'slow' }),
      'upstream_unavailable',
      FIRST_PART,
    ],
    [
      'is refused for the account',
      answersJson(400, { code: 'Arrearage', message: 'pay' }),
      'upstream_unavailable',
      FIRST_PART,
    ],
    [
      'is refused for its text',
      answersJson(400, { code: 'DataInspectionFailed', message: 'no' }),
      'upstream_unavailable',
      FIRST_PART,
    ],
    ['is a redirect', answersJson(307, {}), 'upstream_invalid_response', FIRST_PART],
    [
      'is JSON with a link',
      answersJson(200, { output: { audio: { url: 'http://x' } } }),
      'upstream_invalid_response',
      FIRST_PART,
    ],
    ['breaks', breaksAfter(soundEvent(SOUND)), 'upstream_unavailable', 2 * FIRST_PART],
    ['ends early', speaks(soundEvent(SOUND)), 'upstream_invalid_response', 2 * FIRST_PART],
    [
      'holds an error',
      speaks('event:error\ndata:{"code":"InternalError","message":"x"}\n\n'),
      'upstream_unavailable',
      2 * FIRST_PART,
    ],
  ])(
    'because it %s ends the answer with a cut, nothing is asked again, and what was sent is charged',
    async (_name, second, code, characters) => {
      await startBefore(WHOLE, second)
      const answer = await started.post(SPEECH, speech(TWO_PARTS, { response_format: 'wav' }))

      await expect(answer.arrayBuffer()).rejects.toThrow()
      expect(await started.ended(answer)).toMatchObject({ ending: 'failed', code })
      expect(vendor?.texts).toHaveLength(2)
      await expectChargedOnce(characters)
    },
  )

  test('in part 2 of 16 leaves the other 14 uncharged (6,431 characters before, now 802)', async () => {
    const input = Array.from({ length: 16 }, () => `${'a'.repeat(400)}.`).join(' ')
    await startBefore(WHOLE, breaksAfter(soundEvent(SOUND)))
    const answer = await started.post(SPEECH, speech(input, { response_format: 'wav' }))

    await expect(answer.arrayBuffer()).rejects.toThrow()
    await started.ended(answer)
    expect(input).toHaveLength(6_431)
    expect(vendor?.texts).toHaveLength(2)
    await expectChargedOnce(2 * FIRST_PART)
  })

  test('is not asked for when the part before it was cut', async () => {
    await startBefore(speaks(soundEvent(SOUND)))
    const answer = await started.post(SPEECH, speech(TWO_PARTS, { response_format: 'wav' })).catch(() => undefined)
    await answer?.arrayBuffer().catch(() => undefined)

    expect(started.events).toContainEqual(expect.objectContaining({ type: 'request-ended', ending: 'failed' }))
    expect(vendor?.texts).toHaveLength(1)
  })

  test('before anything was sent is an error with its own status', async () => {
    const silent = speaks(soundEvent(new Uint8Array(), 'stop'))
    await startBefore(silent, answersJson(429, { code: 'Throttling.RateQuota', message: 'slow' }))
    const answer = await started.post(SPEECH, speech(TWO_PARTS, { response_format: 'wav' }))

    expect(answer.status).toBe(429)
    await answer.text()
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })
})

describe('an answer of the vendor', () => {
  test('gets 502 for JSON with a link, which is not fetched', async () => {
    const output = { finish_reason: 'stop', audio: { data: '', url: 'http://127.0.0.1:9/a.wav' } }
    await startBefore(answersJson(200, { output, usage: { characters: 6 } }))
    const answer = await started.post(SPEECH, speech('Hello.'))

    expect(answer.status).toBe(502)
    expect((await answer.json()).error.code).toBe('upstream_invalid_response')
    expect(vendor?.texts).toHaveLength(1)
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('gets 502 without any audio', async () => {
    await startBefore(speaks(soundEvent(new Uint8Array(), 'stop')))
    const answer = await started.post(SPEECH, speech('Hello.'))

    expect(answer.status).toBe(502)
    await answer.text()
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  })

  test('keeps the parts in step if each ends with half a sample', async () => {
    const odd = speaks(soundEvent(Buffer.concat([SOUND, Buffer.of(1)])), soundEvent(new Uint8Array(), 'stop'))
    await startBefore(odd)
    const answer = await started.post(SPEECH, speech(TWO_PARTS, { response_format: 'wav' }))
    const { samples } = wavFile(new Uint8Array(await answer.arrayBuffer()))

    expect(samples.equals(Buffer.concat([SOUND, SOUND]))).toBe(true)
  })

  test('passes much audio in one event on', async () => {
    const large = Buffer.alloc(6 * 1024 * 1024, 1)
    await startBefore(speaks(soundEvent(large, 'stop')))
    const answer = await started.post(SPEECH, speech('Hello.', { response_format: 'wav' }))

    expect(wavFile(new Uint8Array(await answer.arrayBuffer())).samples.length).toBe(large.length)
  })

  test('gets 502 with an event above all limits', async () => {
    await startBefore(speaks(soundEvent(Buffer.alloc(13 * 1024 * 1024), 'stop')))
    const answer = await started.post(SPEECH, speech('Hello.'))

    expect(answer.status).toBe(502)
    await answer.text()
  })
})

test('a slow caller holds the vendor back, between two parts as well', async () => {
  const much = Buffer.alloc(4 * 1024 * 1024, 7)
  let written = 0
  const flood: SpeakAnswer = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const events = Array.from({ length: 8 }, () => soundEvent(much.subarray(0, much.length / 8)))
    const next = (): void => {
      const event = events.shift()
      if (event === undefined) return void response.end(soundEvent(new Uint8Array(), 'stop'))
      response.write(event, () => {
        written += 1
        next()
      })
    }
    next()
  }
  const parts = Array.from({ length: 8 }, (_, index) => `${String(index).repeat(590)}. `).join('')
  await startBefore(flood)
  const answer = await started.post(SPEECH, speech(parts, { response_format: 'wav' }))
  const reader = answer.body!.getReader()
  await reader.read()
  for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve))
  const atRest = written
  let length = 0
  for (;;) {
    const { value, done } = await reader.read()
    if (done) break
    length += value.byteLength
  }

  expect(atRest).toBeLessThan(64)
  expect(written).toBe(64)
  expect(length).toBeGreaterThan(7 * much.length)
})
