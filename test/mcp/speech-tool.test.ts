import { Buffer } from 'node:buffer'
import type { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PriceFile } from '../../src/catalog/prices/prices.ts'
import { type StartedMcp, startMcp } from './support/start-mcp.ts'
import { callTool, errorIn } from './support/tool-result.ts'

const PRICES: PriceFile = {
  currency: 'USD',
  prices: [
    { model: 'qw3-tts-flash', meter: 'character', amount: '0.001' },
    { model: 'qw3-tts-instruct-flash', meter: 'character', amount: '0.001' },
  ],
}

let started: StartedMcp
let client: Client

beforeAll(async () => {
  started = await startMcp({ gateway: { prices: PRICES } })
  client = await started.connect()
})
afterAll(() => started.close())

test('synthesize_speech gives the sound as an audio block and is charged by the character', async () => {
  const before = await started.account()

  const result = await callTool(client, 'synthesize_speech', {
    model: 'qw3-tts-flash',
    input: 'Grüße 👋',
    response_format: 'wav',
  })

  expect(result.isError, result.text).toBe(false)
  const [sound] = result.content
  const bytes = Buffer.from(String(sound?.['data']), 'base64')
  expect(sound).toMatchObject({ type: 'audio', mimeType: result.structured.mime_type })
  expect(bytes.toString('latin1', 0, 4)).toBe('RIFF')
  expect(result.structured).toMatchObject({ model: 'qw3-tts-flash', bytes: bytes.byteLength, characters: 7 })
  const after = await started.account()
  expect(before.balance - after.balance).toBe(7_000_000n)
  expect(after.held).toBe(0n)
})

test('mp3 is what comes unless another format is asked for', async () => {
  const { structured, content } = await callTool(client, 'synthesize_speech', {
    model: 'qw3-tts-flash',
    input: 'hello',
  })

  expect(structured).toMatchObject({ mime_type: 'audio/mpeg' })
  expect(content[0]).toMatchObject({ type: 'audio', mimeType: 'audio/mpeg' })
})

test.each([
  [{ model: 'qw3-tts-flash', input: 'hello', voice: 'Nobody' }, 400],
  [{ model: 'qw3-tts-instruct-flash', input: 'hello', response_format: 'mp3' }, 400],
  [{ model: 'cl-sonnet-4-6', input: 'hello' }, 400],
  [{ model: 'qw3-tts-flash', input: 'hello', stream_format: 'sse' }, 400],
])('what cannot be spoken is an error of the tool: %j', async (args, status) => {
  expect(errorIn(await callTool(client, 'synthesize_speech', args))).toMatchObject({ status })
})
