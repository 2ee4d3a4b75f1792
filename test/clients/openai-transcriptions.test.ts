import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOpenAI } from '@ai-sdk/openai'
import { experimental_transcribe as transcribe } from 'ai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { formParts } from '../../src/testing/sandbox/openai-dialect/form-parts.ts'
import { startTranscriptions } from '../gateway/audio/transcription-gateway.ts'
import { type StartedGateway, TEST_KEY } from '../support/start-gateway.ts'
import { wavFile } from '../wire/audio/written-files.ts'
import { OPENAI_VERSIONS, type OpenAIClient, openaiClient } from './support/openai-clients.ts'

const TALK = wavFile({ seconds: 12.5 })
const SAID = 'This recording is 12.5 seconds long.'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-transcriptions-'))
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

describe.each(OPENAI_VERSIONS)('%s', (_name, OpenAI) => {
  let client: OpenAIClient

  beforeAll(() => {
    client = openaiClient(OpenAI, started.url)
  })

  test.each(['whisper-1', 'gpt-4o-transcribe', 'gpt-transcribe', 'qwen3-asr-flash', 'gmn-2.5-flash'])(
    'audio.transcriptions.create gives the text of %s',
    async (model) => {
      const answer = await client.audio.transcriptions.create({ model, file: createReadStream(path) })

      expect(answer.text).toBe(SAID)
      expect(answer.usage).toBeDefined()
    },
  )

  test('text, srt and vtt are texts', async () => {
    const create = (response_format: 'text' | 'srt' | 'vtt') =>
      client.audio.transcriptions.create({ model: 'whisper-1', file: createReadStream(path), response_format })

    expect(await create('text')).toBe(`${SAID}\n`)
    expect(await create('srt')).toContain('00:00:05,000 --> 00:00:10,000')
    expect(await create('vtt')).toContain('WEBVTT')
  })

  test('verbose_json has segments, diarized_json speakers', async () => {
    const timed = await client.audio.transcriptions.create({
      ...{ model: 'whisper-1', file: createReadStream(path), response_format: 'verbose_json' },
      timestamp_granularities: ['segment'],
    })
    const spoken = await client.audio.transcriptions.create({
      ...{ model: 'gpt-4o-transcribe-diarize', file: createReadStream(path), response_format: 'diarized_json' },
      chunking_strategy: 'auto',
    })

    expect(timed).toMatchObject({ duration: 12.5, segments: [{ start: 0 }, { start: 5 }, { start: 10 }] })
    expect(spoken).toMatchObject({ segments: [{ speaker: 'A' }, { speaker: 'B' }, { speaker: 'A' }] })
  })

  test('a stream is deltas and an end with usage', async () => {
    const stream = await client.audio.transcriptions.create({
      ...{ model: 'gpt-4o-transcribe', file: createReadStream(path), stream: true },
    })
    let text = ''
    let last: unknown
    for await (const event of stream) {
      if (event.type === 'transcript.text.delta') text += event.delta
      last = event
    }

    expect(text).toBe(SAID)
    expect(last).toMatchObject({ type: 'transcript.text.done', text: SAID, usage: { input_tokens: 125 } })
  })

  test('a chunking strategy may be an object, which the client sends as a field for each member', async () => {
    const answer = await client.audio.transcriptions.create({
      ...{ model: 'gpt-4o-transcribe', file: createReadStream(path) },
      chunking_strategy: { type: 'server_vad', prefix_padding_ms: 300, threshold: 0.5 },
    })
    const sent = formParts(started.sandbox.requests.at(-1)!)?.map(({ name, bytes }) => [name, bytes.toString()])

    expect(answer.text).toBe(SAID)
    expect(sent).toContainEqual(['chunking_strategy[type]', 'server_vad'])
    expect(sent).toContainEqual(['chunking_strategy[prefix_padding_ms]', '300'])
    expect(sent).toContainEqual(['chunking_strategy[threshold]', '0.5'])
  })

  test('errors name the field', async () => {
    const file = new File(['no sound'], 'talk.wav')

    await expect(client.audio.transcriptions.create({ model: 'whisper-1', file })).rejects.toMatchObject({
      status: 400,
      param: 'file',
    })
  })
})

describe('@ai-sdk/openai', () => {
  test.each(['whisper-1', 'gpt-4o-transcribe', 'gpt-4o-mini-transcribe'])('transcribes with %s', async (model) => {
    const provider = createOpenAI({ baseURL: `${started.url}/v1`, apiKey: TEST_KEY })
    const result = await transcribe({
      model: provider.transcription(model),
      audio: TALK,
      providerOptions: { openai: { language: 'en', timestampGranularities: ['segment'] } },
    })

    expect(result.text).toBe(SAID)
    if (model === 'whisper-1') expect(result.segments).toHaveLength(3)
  })

  test('transcribes without options', async () => {
    const provider = createOpenAI({ baseURL: `${started.url}/v1`, apiKey: TEST_KEY })
    const result = await transcribe({ model: provider.transcription('whisper-1'), audio: TALK })

    expect(result.text).toBe(SAID)
  })
})
