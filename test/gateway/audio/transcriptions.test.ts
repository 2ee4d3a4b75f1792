import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { formParts } from '../../../src/testing/sandbox/openai-dialect/form-parts.ts'
import { type StartedGateway, TEST_KEY, TEST_MODELS } from '../../support/start-gateway.ts'
import { wavFile } from '../../wire/audio/written-files.ts'
import { postForm, startTranscriptions, TRANSCRIPTIONS, transcriptionForm } from './transcription-gateway.ts'

const TALK = wavFile({ seconds: 12.5 })
const SAID = 'This recording is 12.5 seconds long.'

let started: StartedGateway

beforeAll(async () => {
  // A row that does not say what its model can do.
  const heard = { id: 'heard', kind: 'transcription', vendor: 'openai', upstream: 'whisper-1' } as const
  started = await startTranscriptions({ models: [...TEST_MODELS, heard] })
})
beforeEach(() => started.sandbox.reset())
afterAll(() => started.close())

const send = (fields: Record<string, string | string[]>, file: Uint8Array = TALK, name?: string): Promise<Response> =>
  postForm(started.url, transcriptionForm(file, fields, name))

/** Names and values of the text fields that the vendor got, in their order. */
function sentFields(): [string, string][] {
  const call = started.sandbox.requests.at(-1)!
  return formParts(call)!.map(({ name, filename, bytes }) => [name, filename ?? bytes.toString('utf8')])
}

describe('every format of a model with times', () => {
  test.each([
    ['json', 'application/json'],
    ['verbose_json', 'application/json'],
    ['text', 'text/plain; charset=utf-8'],
    ['srt', 'text/plain; charset=utf-8'],
    ['vtt', 'text/vtt; charset=utf-8'],
  ])('returns %s with its own type, and requests a format that contains the length', async (format, type) => {
    const answer = await send({ model: 'whisper-1', response_format: format })

    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe(type)
    expect(Number(answer.headers.get('content-length'))).toBe((await answer.bytes()).length)
    expect(sentFields()).toContainEqual(['response_format', 'verbose_json'])
  })

  test('subtitles are cues with their times', async () => {
    const srt = await (await send({ model: 'whisper-1', response_format: 'srt' })).text()
    const vtt = await (await send({ model: 'whisper-1', response_format: 'vtt' })).text()

    expect(srt).toBe(
      '1\n00:00:00,000 --> 00:00:05,000\nThis recording\n\n2\n00:00:05,000 --> 00:00:10,000\nis 12.5\n\n' +
        '3\n00:00:10,000 --> 00:00:12,500\nseconds long.\n\n',
    )
    expect(vtt).toBe(
      'WEBVTT\n\n00:00:00.000 --> 00:00:05.000\nThis recording\n\n00:00:05.000 --> 00:00:10.000\nis 12.5\n\n' +
        '00:00:10.000 --> 00:00:12.500\nseconds long.\n\n',
    )
  })

  test('json is the text and what was charged for', async () => {
    const answer = await send({ model: 'whisper-1' })

    expect(await answer.json()).toEqual({ text: SAID, usage: { type: 'duration', seconds: 12.5 } })
  })

  test('verbose_json is what the vendor wrote', async () => {
    const answer = await (await send({ model: 'whisper-1', response_format: 'verbose_json' })).json()

    expect(answer).toMatchObject({ task: 'transcribe', duration: 12.5, text: SAID })
    expect(answer.segments).toHaveLength(3)
  })
})

describe('other models', () => {
  test('give json and text of one report', async () => {
    const plain = await (await send({ model: 'gpt-4o-transcribe' })).json()
    const text = await (await send({ model: 'gpt-4o-transcribe', response_format: 'text' })).text()

    expect(plain).toMatchObject({ text: SAID, usage: { type: 'tokens', input_tokens: 125 } })
    expect(text).toBe(`${SAID}\n`)
    expect(sentFields()).toContainEqual(['response_format', 'json'])
  })

  test('tell speakers apart', async () => {
    const answer = await send({ model: 'gpt-4o-transcribe-diarize', response_format: 'diarized_json' })
    const { segments } = (await answer.json()) as { segments: { speaker: string }[] }

    expect(segments.map(({ speaker }) => speaker)).toEqual(['A', 'B', 'A'])
  })

  test('sends the recording with an instruction to chat models', async () => {
    const answer = await (await send({ model: 'gmn-2.5-flash', language: 'de', prompt: 'A talk in Kiel' })).json()
    const sent = JSON.stringify(started.sandbox.requests.at(-1)?.body)

    expect(answer).toMatchObject({ text: SAID, usage: { type: 'tokens', input_token_details: { audio_tokens: 400 } } })
    expect(sent).toContain('"mimeType":"audio/wav"')
    expect(sent).toContain('ISO codes: de.')
    expect(sent).toContain('A talk in Kiel')
    expect(sent).toContain(`"data":"${TALK.toString('base64')}"`)
  })

  test('sends the recording in the message to models that accept one message', async () => {
    const answer = await send({ model: 'qwen3-asr-flash', language: 'en', prompt: 'Kiel', temperature: '0.2' })

    expect(await answer.json()).toEqual({
      text: SAID,
      languages: [{ code: 'en' }],
      usage: {
        type: 'tokens',
        input_tokens: 42,
        output_tokens: 6,
        total_tokens: 48,
        input_token_details: expect.any(Object),
      },
    })
    expect(answer.headers.get('x-signalbox-dropped')).toBe('temperature')
    expect(started.sandbox.requests.at(-1)?.body).toEqual({
      model: 'qwen3-asr-flash',
      stream: false,
      asr_options: { language: 'en' },
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'Kiel' }] },
        {
          role: 'user',
          content: [{ type: 'input_audio', input_audio: { data: `data:audio/wav;base64,${TALK.toString('base64')}` } }],
        },
      ],
    })
  })
})

describe('the form', () => {
  test('keeps its order and unknown fields, and the file its name and type', async () => {
    const fields = { x_first: '1', model: 'gpt-transcribe', 'languages[]': ['en', 'de'], keywords: 'Kiel', x_last: '2' }
    const answer = await send(fields, TALK, 'C:\\private\\Vortrag.wav')

    expect(answer.status, await answer.text()).toBe(200)
    expect(sentFields()).toEqual([
      ['x_first', '1'],
      ['model', 'gpt-transcribe'],
      ['languages[]', 'en'],
      ['languages[]', 'de'],
      ['keywords[]', 'Kiel'],
      ['x_last', '2'],
      ['file', 'Vortrag.wav'],
      ['response_format', 'json'],
    ])
    const file = formParts(started.sandbox.requests.at(-1)!)?.find(({ name }) => name === 'file')
    // An assertion about each byte would take seconds.
    expect([file?.contentType, file?.bytes.equals(TALK)]).toEqual(['audio/wav', true])
  })

  test.each([
    ['blob', 'blob.wav'],
    ['', 'audio.wav'],
    ['talk.bin', 'talk.bin.wav'],
    ['talk.M4A', 'talk.M4A'],
  ])('names a file %j so that the vendor knows its format: %s', async (given, sent) => {
    const answer = await send({ model: 'whisper-1' }, TALK, given)

    expect(answer.status, await answer.text()).toBe(200)
    expect(sentFields()).toContainEqual(['file', sent])
  })

  test.each(['gmn-2.5-flash', 'qwen3-asr-flash'])('has unknown fields named that never reach %s', async (model) => {
    const fields = { model, enable_itn: 'true', 'x_list[]': ['a', 'b'], 'chunking_strategy[type]': 'server_vad' }
    const answer = await send(fields)

    expect(answer.status, await answer.text()).toBe(200)
    expect(answer.headers.get('x-signalbox-dropped')).toBe('chunking_strategy, enable_itn, x_list[]')
  })

  test.each(['', '[]', '[0]'])(
    'writes lists with empty brackets if the caller wrote them with %j',
    async (brackets) => {
      const times = await send({
        ...{ model: 'whisper-1', response_format: 'verbose_json' },
        [`timestamp_granularities${brackets}`]: brackets === '[0]' ? 'segment' : ['segment', 'word'],
      })
      const ofTimes = sentFields().filter(([name]) => name.startsWith('timestamp'))
      const others: unknown[] = []
      for (const [model, lists] of [
        ['gpt-transcribe', ['keywords', 'languages']],
        ['gpt-4o-transcribe', ['include']],
        ['gpt-4o-transcribe-diarize', ['known_speaker_names', 'known_speaker_references']],
      ] as const) {
        const values = lists.map((list) => [
          `${list}${brackets}`,
          list === 'include' ? 'logprobs' : 'data:audio/wav;,a',
        ])
        const answer = await send({ model, chunking_strategy: 'auto', ...Object.fromEntries(values) })
        others.push(
          answer.status === 200 ? sentFields().flatMap(([name]) => name.match(/.+\[\]/) ?? []) : await answer.text(),
        )
      }

      expect(times.status).toBe(200)
      expect(new Set(ofTimes.map(([name]) => name))).toEqual(new Set(['timestamp_granularities[]']))
      expect(others).toEqual([
        ['keywords[]', 'languages[]'],
        ['include[]'],
        ['known_speaker_names[]', 'known_speaker_references[]'],
      ])
    },
  )

  test('keeps granularities for verbose_json alone, and says so', async () => {
    const fields = { model: 'whisper-1', 'timestamp_granularities[]': 'segment' }
    const dropped = await send(fields)
    const kept = await send({ ...fields, response_format: 'verbose_json' })

    expect(dropped.headers.get('x-signalbox-dropped')).toBe('timestamp_granularities')
    expect(kept.headers.get('x-signalbox-dropped')).toBeNull()
    expect(sentFields()).toContainEqual(['timestamp_granularities[]', 'segment'])
  })

  test.each([
    ['no file', { model: 'whisper-1' }, 400, 'file', undefined],
    ['a file that is text', { model: 'whisper-1', file: 'hello' }, 400, 'file', undefined],
    ['an address', { model: 'whisper-1', url: 'https://example.com/a.mp3' }, 400, 'url', TALK],
    ['another spelling', { model: 'whisper-1', 'stream[]': 'true' }, 400, 'stream[]', TALK],
    ['a field twice', { model: 'whisper-1', language: ['en', 'de'] }, 400, 'language', TALK],
    [
      'a member twice',
      { model: 'gpt-4o-transcribe', 'chunking_strategy[type]': ['server_vad', 'x'] },
      400,
      'chunking_strategy[type]',
      TALK,
    ],
    [
      'an object as text and by a member',
      { model: 'gpt-4o-transcribe', chunking_strategy: 'auto', 'chunking_strategy[type]': 'server_vad' },
      400,
      'chunking_strategy[type]',
      TALK,
    ],
    ['a member of a text', { model: 'gpt-4o-transcribe', 'language[code]': 'en' }, 400, 'language[code]', TALK],
    ['an unknown format', { model: 'whisper-1', response_format: 'xml' }, 400, 'response_format', TALK],
    [
      'a format that the model lacks',
      { model: 'gpt-4o-transcribe', response_format: 'srt' },
      400,
      'response_format',
      TALK,
    ],
    ['times that are not reliable', { model: 'gmn-2.5-flash', response_format: 'vtt' }, 400, 'response_format', TALK],
    ['a temperature above 1', { model: 'whisper-1', temperature: '1.5' }, 400, 'temperature', TALK],
    ['a temperature below 0', { model: 'whisper-1', temperature: '-.5' }, 400, 'temperature', TALK],
    ['a temperature in words', { model: 'whisper-1', temperature: 'warm' }, 400, 'temperature', TALK],
    ['a stream in words', { model: 'whisper-1', stream: 'yes' }, 400, 'stream', TALK],
    [
      'five speakers',
      { model: 'gpt-4o-transcribe-diarize', 'known_speaker_names[]': ['a', 'b', 'c', 'd', 'e'] },
      400,
      'known_speaker_names',
      TALK,
    ],
    ['a prompt for speakers', { model: 'gpt-4o-transcribe-diarize', prompt: 'x' }, 400, 'prompt', TALK],
    ['lists for an older model', { model: 'gpt-4o-transcribe', 'keywords[]': 'x' }, 400, 'keywords', TALK],
    ['a model of another endpoint', { model: 'chat-relayed' }, 400, 'model', TALK],
    ['an unknown model', { model: 'nothing' }, 404, 'model', TALK],
    ['what is no sound', { model: 'whisper-1' }, 400, 'file', Buffer.from('Hello, I am a letter.')],
    ['an empty file', { model: 'whisper-1' }, 400, 'file', Buffer.alloc(0)],
  ] as const)('rejects %s, naming the field', async (_name, fields, status, param, file) => {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) for (const item of [value].flat()) form.append(name, item)
    if (file !== undefined) form.set('file', new File([new Uint8Array(file)], 'talk.wav', { type: 'audio/wav' }))
    const before = await started.account()
    const answer = await postForm(started.url, form)

    expect(answer.status).toBe(status)
    expect((await answer.json()).error.param).toBe(param)
    expect(started.sandbox.requests).toHaveLength(0)
    expect(await started.account()).toEqual(before)
  })

  test('is the only way to send one', async () => {
    const answer = await started.post(TRANSCRIPTIONS, { model: 'whisper-1', file: 'data:audio/wav;base64,AAAA' })

    expect(answer.status).toBe(415)
    expect((await answer.json()).error.message).toContain('multipart/form-data')
  })

  test('is taken uncompressed', async () => {
    const form = new Response(transcriptionForm(TALK, { model: 'whisper-1' }))
    const answer = await fetch(`${started.url}${TRANSCRIPTIONS}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TEST_KEY}`,
        'content-type': form.headers.get('content-type')!,
        'content-encoding': 'gzip',
      },
      body: gzipSync(await form.arrayBuffer()),
    })

    expect(answer.status).toBe(415)
    expect((await answer.json()).error.message).toContain('Content-Encoding "gzip"')
  })

  test('may hold a file of 25 MiB and not a byte more', async () => {
    const largest = wavFile({ seconds: 1 })
    const file = Buffer.concat([largest, Buffer.alloc(25 * 1024 * 1024 - largest.length)])
    const taken = await send({ model: 'whisper-1' }, file)
    const refused = await send({ model: 'whisper-1' }, Buffer.concat([file, Buffer.alloc(1)]))

    expect(taken.status).toBe(200)
    expect(refused.status).toBe(413)
    expect((await refused.json()).error).toMatchObject({ param: 'file', code: 'body_too_large' })
  })
})

test('a file that the vendor has no room for is refused before it is sent', async () => {
  const most = 14 * 1024 * 1024
  const head = wavFile({ seconds: 1 })
  const file = Buffer.concat([head, Buffer.alloc(most - head.length)])
  const taken = await send({ model: 'gmn-2.5-flash' }, file)
  started.sandbox.reset()
  const refused = await send({ model: 'gmn-2.5-flash' }, Buffer.concat([file, Buffer.alloc(1)]))

  expect(taken.status).toBe(200)
  expect(refused.status).toBe(413)
  expect((await refused.json()).error).toMatchObject({ param: 'file', message: expect.stringContaining(`${most}`) })
  expect(started.sandbox.requests).toEqual([])
})

test('accepts as many keywords as the schema allows, and no more', async () => {
  const words = Array.from({ length: 1_001 }, (_, index) => `word ${index}`)
  const taken = await send({ model: 'gpt-transcribe', 'keywords[]': words.slice(1) })
  const refused = await send({ model: 'gpt-transcribe', 'keywords[]': words })

  expect(taken.status, await taken.text()).toBe(200)
  expect(sentFields().filter(([name]) => name === 'keywords[]')).toHaveLength(1_000)
  expect(refused.status).toBe(400)
  expect((await refused.json()).error.param).toBe('keywords')
})

test('the voice of a speaker may be ten seconds of studio sound', async () => {
  const voice = `data:audio/wav;base64,${Buffer.alloc(10 * 48_000 * 2 * 3).toString('base64')}`
  const answer = await send({
    ...{ model: 'gpt-4o-transcribe-diarize', response_format: 'diarized_json' },
    ...{ 'known_speaker_names[]': 'ada', 'known_speaker_references[]': voice },
  })

  expect(answer.status, await answer.text()).toBe(200)
  expect(sentFields()).toContainEqual(['known_speaker_references[]', voice])
})

test.each(['.5', '5e-05', '1e-1', '1.'])('a temperature may be written as %s', async (temperature) => {
  const answer = await send({ model: 'whisper-1', temperature })

  expect(answer.status, await answer.text()).toBe(200)
  expect(sentFields()).toContainEqual(['temperature', temperature])
})

test('reports a number or a boolean in words with its type', async () => {
  const messageOf = async (fields: Record<string, string>) =>
    ((await (await send({ model: 'whisper-1', ...fields })).json()) as { error: { message: string } }).error.message

  expect(await messageOf({ temperature: 'warm' })).toBe('temperature: must be a number')
  expect(await messageOf({ stream: 'yes' })).toBe('stream: must be true or false')
})

test('does not treat an empty input of a file, as browsers send it, as a file', async () => {
  const form = transcriptionForm(TALK, { model: 'whisper-1' })
  form.append('file', new Blob([]), '')
  const answer = await postForm(started.url, form)

  expect(answer.status, await answer.text()).toBe(200)
  expect(sentFields().filter(([name]) => name === 'file')).toEqual([['file', 'talk.wav']])
})

describe('a stream', () => {
  const stream = (fields: Record<string, string>): Promise<Response> => send({ stream: 'true', ...fields })

  test('passes the events of the vendor on', async () => {
    const answer = await stream({ model: 'gpt-4o-transcribe' })
    const events = (await answer.text())
      .trim()
      .split('\n\n')
      .map((event) => JSON.parse(event.slice('data: '.length)))

    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(
      events
        .slice(0, -1)
        .map(({ delta }) => delta)
        .join(''),
    ).toBe(SAID)
    expect(events.at(-1)).toMatchObject({ type: 'transcript.text.done', text: SAID, usage: { input_tokens: 125 } })
    expect(sentFields()).toContainEqual(['stream', 'true'])
  })

  test('has a segment for each speaker', async () => {
    const text = await (await stream({ model: 'gpt-4o-transcribe-diarize', response_format: 'diarized_json' })).text()

    expect(text.match(/"type":"transcript.text.segment"/g)).toHaveLength(3)
  })

  test.each(['whisper-1', 'qwen3-asr-flash', 'gmn-2.5-flash', 'heard'])('is answered whole by %s', async (model) => {
    const answer = await stream({ model })

    expect(answer.headers.get('content-type')).toBe('application/json')
    expect((await answer.json()).text).toBe(SAID)
  })

  test('ends with an error if it breaks off, and costs as much as the recording', async () => {
    const before = await started.account()
    const answer = await stream({ model: 'gpt-transcribe', prompt: '[[fault:no-done]]' })
    const text = await answer.text().catch(() => 'cut')
    await started.ended(answer)
    const after = await started.account()

    expect(text).not.toContain('transcript.text.done')
    expect(before.balance - after.balance).toBe(1_250_000n)
    expect(after.held).toBe(0n)
  })
})

test('a recording of a browser, without a length of its own, is measured', async () => {
  const file = readFileSync('test/wire/audio/files/webm-browser-37.webm')
  const answer = await send({ model: 'gpt-transcribe', prompt: '[[fault:no-usage]]' }, file, 'recording.webm')
  const { usage } = await started.ended(answer)

  expect(answer.status, await answer.text()).toBe(200)
  expect(usage?.audioSeconds).toBeCloseTo(3.66, 0)
})
