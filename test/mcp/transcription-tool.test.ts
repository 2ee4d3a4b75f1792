import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formParts } from '../../src/testing/sandbox/openai-dialect/form-parts.ts'
import { TRANSCRIPTION_PRICES } from '../gateway/audio/transcription-gateway.ts'
import { wavFile } from '../wire/audio/written-files.ts'
import { type StartedMcp, startMcp } from './support/start-mcp.ts'
import { callTool, errorIn } from './support/tool-result.ts'

const data = wavFile({ seconds: 12.5 }).toString('base64')
const SAID = 'This recording is 12.5 seconds long.'

let started: StartedMcp
let client: Client

beforeAll(async () => {
  started = await startMcp({ gateway: { prices: TRANSCRIPTION_PRICES } })
  client = await started.connect()
})
afterAll(() => started.close())

test('transcribe_audio gives the text and is charged by the second', async () => {
  const before = await started.account()
  const result = await callTool(client, 'transcribe_audio', { model: 'whisper-1', data, language: 'en' })
  const after = await started.account()

  expect(result.isError, result.text).toBe(false)
  expect(result.structured).toMatchObject({ model: 'whisper-1', text: SAID, answer: { text: SAID } })
  expect(before.balance - after.balance).toBe(1_250_000n)
})

test('subtitles come as text, times as an object', async () => {
  const srt = await callTool(client, 'transcribe_audio', { model: 'whisper-1', data, response_format: 'srt' })
  const timed = await callTool(client, 'transcribe_audio', {
    ...{ model: 'whisper-1', data, response_format: 'verbose_json', timestamp_granularities: ['segment'] },
  })

  expect(srt.structured).toMatchObject({ text: expect.stringContaining('00:00:10,000 --> 00:00:12,500') })
  expect(srt.structured).not.toHaveProperty('answer')
  expect(timed.structured).toMatchObject({ text: SAID, answer: { duration: 12.5 } })
})

test.each([
  ['no base64', { model: 'whisper-1', data: 'not base64!' }],
  ['no sound', { model: 'whisper-1', data: Buffer.from('Hello, this is text').toString('base64') }],
  ['a format that the model lacks', { model: 'gpt-4o-transcribe', data, response_format: 'srt' }],
  ['a model of another kind', { model: 'chat-relayed', data }],
])('%s is an error of the tool', async (_name, args) => {
  const result = await callTool(client, 'transcribe_audio', args)

  expect(result.isError).toBe(true)
})

test('a stream is refused before it costs anything', async () => {
  const before = await started.account()
  const result = await callTool(client, 'transcribe_audio', { model: 'gpt-4o-transcribe', data, stream: true })

  expect(errorIn(result)).toMatchObject({ code: 'invalid_request', param: 'stream' })
  expect(await started.account()).toEqual(before)
})

test('fields that the tool does not name reach the vendor, objects as JSON', async () => {
  started.sandbox.reset()
  const result = await callTool(client, 'transcribe_audio', {
    ...{ model: 'gpt-4o-transcribe', data, temperature: 0 },
    ...{ chunking_strategy: { type: 'server_vad' }, include: ['logprobs'] },
  })

  expect(result.isError, result.text).toBe(false)
  const sent = formParts(started.sandbox.requests[0]!)?.map(({ name, bytes }) => [name, bytes.toString('utf8')])
  expect(sent).toEqual(
    expect.arrayContaining([
      ['chunking_strategy', '{"type":"server_vad"}'],
      ['include[]', 'logprobs'],
    ]),
  )
})

test('an error names the field', async () => {
  const result = await callTool(client, 'transcribe_audio', {
    model: 'gpt-4o-transcribe',
    data,
    response_format: 'vtt',
  })

  expect(errorIn(result)).toMatchObject({ code: 'unsupported_parameter', param: 'response_format' })
})

test('a repeated call with the same key is charged once', async () => {
  const args = { model: 'whisper-1', data, idempotency_key: 'once' }
  await callTool(client, 'transcribe_audio', args)
  const before = await started.account()
  const again = await callTool(client, 'transcribe_audio', args)

  expect(again.structured).toMatchObject({ text: SAID })
  expect(await started.account()).toEqual(before)
})
