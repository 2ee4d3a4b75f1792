import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, test } from 'vitest'
import {
  type ClientError,
  createClient,
  type GatewayClient,
  type TimedTranscriptionAnswer,
  type TranscriptionAnswer,
  type TranscriptionEvent,
  type TranscriptionStream,
  type Upload,
} from '../../src/client/index.ts'
import { formParts } from '../../src/testing/sandbox/openai-dialect/form-parts.ts'
import { startTranscriptions } from '../gateway/audio/transcription-gateway.ts'
import { type StartedGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'
import { wavFile } from '../wire/audio/written-files.ts'

const TALK = wavFile({ seconds: 12.5 })
const SAID = 'This recording is 12.5 seconds long.'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-client-'))
const path = join(folder, 'talk.wav')
let started: StartedGateway

beforeAll(async () => {
  writeFileSync(path, TALK)
  started = await startTranscriptions()
})
beforeEach(() => started.sandbox.reset())
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await started.close()
})

const overHttp = (): GatewayClient => createClient({ baseURL: `${started.url}/v1`, apiKey: TEST_KEY, maxRetries: 0 })
const inProcess = (): GatewayClient =>
  started.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'key_host', tier: 'paid' })

describe.each([
  ['over HTTP', overHttp],
  ['in process', inProcess],
])('%s the client', (_name, open) => {
  test.each<[string, Upload, string]>([
    ['bytes', TALK, 'audio.wav'],
    ['a file', new File([new Uint8Array(TALK)], 'meeting.wav'), 'meeting.wav'],
    ['a path', { path }, 'talk.wav'],
  ])('transcribes %s', async (_kind, file, name) => {
    const answer = await open().audio.transcriptions.create({ model: 'gpt-4o-transcribe', file })
    const sent = formParts(started.sandbox.requests.at(-1)!)?.find((part) => part.name === 'file')

    expect(answer.text).toBe(SAID)
    // An assertion about each byte would take seconds.
    expect([sent?.filename, sent?.bytes.equals(TALK)]).toEqual([name, true])
  })

  test('writes further fields as its own: objects as JSON, lists with brackets', async () => {
    const extraBody = { chunking_strategy: { type: 'server_vad' }, include: ['logprobs'], temperature: null }
    const request = { model: 'gpt-4o-transcribe', file: TALK, include: ['replaced'] }
    await open().audio.transcriptions.create(request, { extraBody })
    const sent = formParts(started.sandbox.requests.at(-1)!)?.map(({ name, bytes }) => [name, String(bytes)])

    expect(sent).toContainEqual(['chunking_strategy', '{"type":"server_vad"}'])
    expect(sent?.filter(([name]) => name === 'include[]')).toEqual([['include[]', 'logprobs']])
    expect(sent?.some(([name]) => name === 'temperature')).toBe(false)
  })

  test('gives what the format is', async () => {
    const { transcriptions } = open().audio
    const plain = await transcriptions.create({ model: 'whisper-1', file: TALK })
    const srt = await transcriptions.create({ model: 'whisper-1', file: TALK, response_format: 'srt' })
    const timed = await transcriptions.create({
      ...{ model: 'whisper-1', file: TALK, response_format: 'verbose_json', timestamp_granularities: ['segment'] },
    } as const)

    expectTypeOf(plain).toEqualTypeOf<TranscriptionAnswer>()
    expectTypeOf(srt).toEqualTypeOf<string>()
    expectTypeOf(timed).toEqualTypeOf<TimedTranscriptionAnswer>()
    expect(plain.usage).toEqual({ type: 'duration', seconds: 12.5 })
    expect(srt).toContain('00:00:00,000 --> 00:00:05,000')
    expect(timed.segments).toHaveLength(3)
  })

  test.each([undefined, 'text', 'verbose_json'] as const)(
    'gives the whole answer of a model that does not stream as the last event: %s',
    async (format) => {
      const request = {
        model: 'whisper-1',
        file: TALK,
        stream: true,
        ...(format && { response_format: format }),
      } as const
      const events: TranscriptionEvent[] = []
      for await (const event of await open().audio.transcriptions.create(request)) events.push(event)

      expect(events).toMatchObject([{ type: 'transcript.text.done', text: expect.stringContaining(SAID) }])
    },
  )

  test('streams', async () => {
    const stream = await open().audio.transcriptions.create({ model: 'gpt-transcribe', file: TALK, stream: true })
    expectTypeOf(stream).toEqualTypeOf<TranscriptionStream>()
    let text = ''
    for await (const event of stream) if (event.type === 'transcript.text.delta') text += event.delta

    expect(text).toBe(SAID)
  })

  test('sends lists and objects in the format of the dialect', async () => {
    await open().audio.transcriptions.create({
      ...{ model: 'gpt-transcribe', file: TALK, languages: ['en', 'de'], keywords: ['Kiel'] },
    })
    const fields = formParts(started.sandbox.requests.at(-1)!)?.map(({ name, bytes }) => [name, bytes.toString()])

    expect(fields).toContainEqual(['languages[]', 'de'])
    expect(fields).toContainEqual(['keywords[]', 'Kiel'])
  })

  test('throws what the gateway refuses', async () => {
    const file = new TextEncoder().encode('no sound')
    const fault = await open()
      .audio.transcriptions.create({ model: 'whisper-1', file, response_format: 'text' })
      .catch((error: unknown) => error as ClientError)

    expect(fault).toMatchObject({ status: 400, param: 'file' })
  })
})

test('rejects a page of an intermediary as a transcript', async () => {
  const client = createClient({
    ...{ baseURL: 'http://gateway.example/v1', apiKey: 'k', maxRetries: 0 },
    fetch: async () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
  })

  await expect(
    client.audio.transcriptions.create({ model: 'whisper-1', file: TALK, response_format: 'text' }),
  ).rejects.toMatchObject({ code: 'upstream_invalid_response' })
})
