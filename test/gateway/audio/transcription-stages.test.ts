import { Buffer } from 'node:buffer'
import { afterEach, describe, expect, test } from 'vitest'
import { redact } from '../../../src/hooks/redact.ts'
import { pii } from '../../../src/hooks/redaction-rules.ts'
import type { TransportHandler, TransportRequest } from '../../../src/transport/transport.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import type { StartedGateway } from '../../support/start-gateway.ts'
import { wavFile } from '../../wire/audio/written-files.ts'
import {
  type FormValues,
  json,
  type ListeningVendor,
  listeningVendor,
  postForm,
  startTranscriptions,
  transcriptionForm,
} from './transcription-gateway.ts'

const TALK = wavFile({ seconds: 12.5 })
const SECRET = 'jane.doe@example.com'

let started: StartedGateway
const vendors: ListeningVendor[] = []

afterEach(async () => {
  await started.close()
  for (const vendor of vendors.splice(0)) await vendor.close()
})

const send = (fields: FormValues, file: Uint8Array = TALK, headers: Record<string, string> = {}): Promise<Response> =>
  postForm(started.url, transcriptionForm(file, fields), headers)

describe('a hook', () => {
  test.each([
    ['json', {}],
    ['verbose_json', {}],
    ['text', {}],
    ['srt', {}],
    ['vtt', {}],
    ['json', { stream: 'true', model: 'gpt-transcribe' }],
  ])('redacts the transcript as %s %j', async (response_format, rest) => {
    started = await startTranscriptions({ hooks: [redact([pii.email], { on: ['answer'] })] })
    started.sandbox.reply({ text: `Write to ${SECRET} today.` })
    const answer = await send({ model: 'whisper-1', response_format, ...rest })
    const text = await answer.text()

    expect(answer.status).toBe(200)
    expect(text).toContain('[EMAIL]')
    expect(text).not.toContain(SECRET)
    expect(answer.headers.get('content-type')).not.toBe(null)
  })

  test('redacts what goes to the vendor', async () => {
    started = await startTranscriptions({ hooks: [redact([pii.email], { on: ['request'] })] })
    const fields = { model: 'gpt-transcribe', prompt: `From ${SECRET}`, 'keywords[]': ['Kiel', SECRET] }
    const answer = await send(fields)
    const sent = Buffer.from(started.sandbox.requests.at(-1)!.bytes).toString('latin1')

    expect(answer.status, await answer.text()).toBe(200)
    expect(sent).not.toContain(SECRET)
    expect(sent.match(/\[EMAIL\]/g)).toHaveLength(2)
  })

  test('reads kinds, ids and usage, and takes words out that repeat what it has replaced', async () => {
    const seen: unknown[] = []
    const vendor = await listeningVendor((response) =>
      json(response, {
        ...{ duration: 2, text: 'one two', segments: [{ start: 0, end: 2, text: 'one two', tokens: [1, 2] }] },
        words: [{ word: 'one', start: 0, end: 1 }],
      }),
    )
    vendors.push(vendor)
    started = await startTranscriptions({
      vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })],
      models: [],
      hooks: [
        {
          name: 'watch',
          answer(answer) {
            seen.push(...answer.texts().map(({ id, kind, text }) => [id, kind, text]), answer.usage)
            return { texts: new Map([['text', 'three']]) }
          },
        },
      ],
    })
    const answer = await send({ model: 'whisper-1', response_format: 'verbose_json' })

    expect(seen).toEqual([
      ['text', 'transcript', 'one two'],
      ['segments[0].text', 'transcript', 'one two'],
      { audioSeconds: 2 },
    ])
    expect(await answer.json()).toEqual({
      duration: 2,
      text: 'three',
      segments: [{ start: 0, end: 2, text: 'one two' }],
    })
  })

  test.each([
    ['json', (text: string) => JSON.parse(text).text],
    ['text', (text: string) => text.trim()],
    ['srt', (text: string) => text.trim()],
  ])('answers a rejection by a hook in the format %s', async (response_format, read) => {
    started = await startTranscriptions({
      hooks: [{ name: 'no', answer: () => ({ deny: { message: 'Not allowed.', as: 'refusal' } }) }],
    })
    const answer = await send({ model: 'whisper-1', response_format })

    expect(answer.status).toBe(200)
    expect(read(await answer.text())).toBe('Not allowed.')
  })
})

describe('the cache', () => {
  const twice = async (
    first: FormValues,
    second: FormValues,
    files: readonly [Uint8Array, Uint8Array] = [TALK, TALK],
  ): Promise<(string | null)[]> => {
    const answers = [await send(first, files[0]), await send(second, files[1])]
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    if (answers[1]?.headers.get('x-signalbox-cache') === 'hit') {
      expect(texts[1]).toBe(texts[0])
      expect(answers[1].headers.get('content-type')).toBe(answers[0]?.headers.get('content-type'))
    }
    return answers.map((answer) => answer.headers.get('x-signalbox-cache'))
  }
  const plain = { model: 'whisper-1' }

  test.each(['json', 'text', 'srt', 'vtt', 'verbose_json'])('gives an equal request its %s again', async (format) => {
    started = await startTranscriptions({ cache: {} })

    expect(await twice({ ...plain, response_format: format }, { ...plain, response_format: format })).toEqual([
      'miss',
      'hit',
    ])
    expect(started.sandbox.requests).toHaveLength(1)
  })

  test.each([
    ['the order of the fields', { ...plain, language: 'en' }, { language: 'en', ...plain }, 'hit'],
    ['brackets', { ...plain, 'keywords[]': 'x' }, { ...plain, keywords: 'x' }, 'hit'],
    ['an alias', plain, { model: 'openai/whisper-1' }, 'hit'],
    ['a format', plain, { ...plain, response_format: 'text' }, 'miss'],
    ['a language', plain, { ...plain, language: 'en' }, 'miss'],
    ['a field that nobody knows', plain, { ...plain, x_new: '1' }, 'miss'],
    ['a model', plain, { model: 'gpt-transcribe' }, 'miss'],
    ['a stream', { model: 'gpt-transcribe' }, { model: 'gpt-transcribe', stream: 'true' }, 'miss'],
    ['a stream that is not', plain, { ...plain, stream: 'true' }, 'hit'],
    ['a temperature', { ...plain, temperature: '0.5' }, { ...plain, temperature: '0.5' }, 'bypass'],
  ] as const)('heeds %s', async (_name, first, second, outcome) => {
    started = await startTranscriptions({ cache: {} })
    // Keywords are of a newer model.
    const asked = [first, second].map((fields) =>
      'keywords' in fields || 'keywords[]' in fields ? { ...fields, model: 'gpt-transcribe' } : fields,
    )

    expect((await twice(asked[0]!, asked[1]!))[1]).toBe(outcome)
  })

  test('goes by the bytes of the file and not by its name', async () => {
    started = await startTranscriptions({ cache: {} })
    const other = Buffer.from(TALK)
    other.writeUInt8(1, other.length - 1)
    const renamed = await postForm(started.url, transcriptionForm(TALK, plain, 'first.wav'))
    const again = await postForm(started.url, transcriptionForm(TALK, plain, 'second.wav'))

    expect([renamed, again].map((answer) => answer.headers.get('x-signalbox-cache'))).toEqual(['miss', 'hit'])
    expect(await twice(plain, plain, [other, other])).toEqual(['miss', 'hit'])
  })

  test('shows hooks an answer that was kept', async () => {
    started = await startTranscriptions({ cache: {}, hooks: [redact([pii.email], { on: ['answer'] })] })
    started.sandbox.reply({ text: `Write to ${SECRET}.` })
    const fields = { ...plain, response_format: 'text' }
    await (await send(fields)).text()
    const second = await send(fields)

    expect(second.headers.get('x-signalbox-cache')).toBe('hit')
    expect(await second.text()).toBe('Write to [EMAIL].\n')
  })
})

test('a repeated Idempotency-Key gives the same text with the same type, and costs nothing', async () => {
  started = await startTranscriptions()
  const fields = { model: 'whisper-1', response_format: 'vtt' }
  const first = await send(fields, TALK, { 'idempotency-key': 'one' })
  const before = await started.account()
  const second = await send(fields, TALK, { 'idempotency-key': 'one' })

  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(second.headers.get('content-type')).toBe('text/vtt; charset=utf-8')
  expect(await second.text()).toBe(await first.text())
  expect(await started.account()).toEqual(before)

  const other = Buffer.from(TALK)
  other.writeUInt8(1, other.length - 1)
  expect((await send(fields, other, { 'idempotency-key': 'one' })).status).toBe(422)
})

test('a call that the vendor refuses for a moment is sent once more', async () => {
  let calls = 0
  const vendor = await listeningVendor((response) => {
    calls += 1
    if (calls === 1) response.writeHead(503).end('{}')
    else json(response, { text: 'Hi.', duration: 12.5, segments: [] })
  })
  vendors.push(vendor)
  started = await startTranscriptions({ vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })], models: [] })
  const answer = await send({ model: 'whisper-1' })

  expect(answer.status).toBe(200)
  expect(calls).toBe(2)
  expect(vendor.received[1]?.bytes.includes(TALK)).toBe(true)
})

test('a fallback answers only what it is able to', async () => {
  const broken = await listeningVendor((response) => void response.writeHead(500).end('{}'))
  const plain = await listeningVendor((response) =>
    json(response, { text: 'Hi.', usage: { type: 'duration', seconds: 12.5 } }),
  )
  vendors.push(broken, plain)
  const transcription = { formats: ['json', 'text'], streams: false } as const
  started = await startTranscriptions({
    vendors: [
      openai({ apiKey: 'k', baseURL: broken.origin }),
      openaiCompatible({
        id: 'plain',
        baseURL: `${plain.origin}/v1`,
        apiKey: 'k',
        models: [{ id: 'heard', kind: 'transcription', transcription }],
      }),
    ],
    models: [{ id: 'whisper-1', kind: 'transcription', vendor: 'openai', fallbacks: ['heard'] }],
  })
  const text = await send({ model: 'whisper-1', response_format: 'text' })
  const subtitles = await send({ model: 'whisper-1', response_format: 'srt' })

  expect([text.status, await text.text()]).toEqual([200, 'Hi.\n'])
  expect(subtitles.status).toBeGreaterThanOrEqual(500)
  expect(plain.received).toHaveLength(1)
})

test('a model without a row is served by what its name says', async () => {
  started = await startTranscriptions({ billing: 'off', models: [], prices: undefined as never })
  const listed = await send({ model: 'openai/whisper-1', response_format: 'srt' })

  expect(listed.status, await listed.text()).toBe(200)
})

test('a large file reaches the vendor without being copied as a whole', async () => {
  const size = 25 * 1024 * 1024
  const file = Buffer.alloc(size, 7)
  wavFile({ seconds: 1, claimedBytes: size }).subarray(0, 44).copy(file)
  let largest = 0
  const body = { text: 'Hi.', duration: 12.5, segments: [] }
  started = await startTranscriptions({
    models: [],
    transport: {
      send(request: TransportRequest, handler: TransportHandler) {
        const chunks = request.body as readonly Uint8Array[]
        largest = Math.max(...chunks.map(({ byteLength }) => byteLength))
        const sum = chunks.reduce((bytes, { byteLength }) => bytes + byteLength, 0)
        expect(sum).toBeGreaterThan(size)
        queueMicrotask(() => {
          handler.onHead(200, { 'content-type': 'application/json' })
          handler.onData(Buffer.from(JSON.stringify(body)))
          handler.onEnd()
        })
        return { abort() {}, pause() {}, resume() {} } as never
      },
      close: async () => undefined,
    } as never,
  })
  const answer = await send({ model: 'whisper-1' }, file)

  expect(answer.status, await answer.text()).toBe(200)
  // The file went out in the pieces in which the socket brought it.
  expect(largest).toBeLessThan(1024 * 1024)
})
