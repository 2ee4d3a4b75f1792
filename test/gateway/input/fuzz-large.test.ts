import { afterEach, beforeEach, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { SPEECH_PRICES } from '../audio/speech-gateway.ts'

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway({ prices: SPEECH_PRICES })
})
afterEach(() => started.close())

/** Objects of two members each are within the bounds of a body. */
const MANY = 48_000
const list = (item: string): string => `[${`${item},`.repeat(MANY - 1)}${item}]`
const members = (prefix: string): string =>
  Array.from({ length: MANY }, (_, index) => `"${prefix}${index}":1`).join(',')
const hi = '"messages":[{"role":"user","content":"hi"}]'
const user = (content: string): string => `"messages":[{"role":"user","content":${content}}]`
const escapes = (unit: string): string => unit.repeat(1_500_000)

/** Bodies of megabytes on which work that grows with the square of the length would take minutes. */
test.each<readonly [string, string, string]>([
  ['fields of a relayed message', '/v1/messages', `{"model":"cl-sonnet-4-6","max_tokens":9,${hi},${members('x')}}`],
  ['fields of a translated message', '/v1/messages', `{"model":"gmn-2.5-flash","max_tokens":9,${hi},${members('x')}}`],
  ['tools', '/v1/messages', `{"model":"gmn-2.5-flash","max_tokens":9,${hi},"tools":${list('{"type":"web"}')}}`],
  [
    'members of metadata',
    '/v1/messages',
    `{"model":"gmn-2.5-flash","max_tokens":9,${hi},"metadata":{${members('m')}}}`,
  ],
  [
    'blocks of types that are left out',
    '/v1/messages',
    `{"model":"gmn-2.5-flash","max_tokens":9,${user(list('{"type":"a"}'))}}`,
  ],
  ['quotes', '/v1/messages', `{"model":"cl-sonnet-4-6","max_tokens":9,${user(`"${escapes('\\"')}"`)}}`],
  ['backslashes', '/v1/messages', `{"model":"cl-sonnet-4-6","max_tokens":9,${user(`"${escapes('\\\\')}"`)}}`],
  [
    'messages to count',
    '/v1/messages/count_tokens',
    `{"model":"chat-relayed","messages":${list('{"role":"user","content":"a"}')}}`,
  ],
  ['fields of an interaction', '/v1/images/generations', `{"model":"gmn-2.5-flash-image","input":"x",${members('x')}}`],
  [
    'tools of an interaction',
    '/v1/images/generations',
    `{"model":"gmn-3.1-flash-image-preview","input":"x","tools":${list('{"type":"google_search"}')}}`,
  ],
  [
    'texts of an interaction',
    '/v1/images/generations',
    `{"model":"gmn-3.1-flash-image-preview","input":${list('{"type":"text","text":"a"}')}}`,
  ],
  ['fields of a picture', '/v1/images/generations', `{"model":"gp-image-2","prompt":"x",${members('x')}}`],
  [
    'parameters of a picture',
    '/v1/images/generations',
    `{"model":"qw-image-2.0","input":{"messages":[{"role":"user","content":[{"text":"x"}]}]},"parameters":{${members('x')}}}`,
  ],
  [
    'blocks of a picture',
    '/v1/images/generations',
    `{"model":"qw-image-2.0","input":{"messages":[{"role":"user","content":${list('{"text":"x"}')}}]}}`,
  ],
  [
    'pictures of an edit',
    '/v1/images/edits',
    `{"model":"gp-image-2","prompt":"x","images":${list('{"image_url":"https://a.example"}')}}`,
  ],
  ['fields of speech', '/v1/audio/speech', `{"model":"qw3-tts-flash","input":"x",${members('x')}}`],
  ['white space of speech', '/v1/audio/speech', `{"model":"qw3-tts-flash","input":"${' '.repeat(9_000)}x"}`],
  [
    'parameters of a video',
    '/v1/videos/generations',
    `{"model":"wv2.7-t2v","input":{"prompt":"x"},"parameters":{${members('x')}}}`,
  ],
  [
    'a prompt of a video',
    '/v1/videos/generations',
    `{"model":"wv2.7-t2v","input":{"prompt":"${'图1'.repeat(1_000_000)}"}}`,
  ],
])('very many %s take no more than their share of time, and nobody else’s', async (_name, path, body) => {
  const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  const begun = performance.now()
  const answer = await started.gateway.fetch(
    new Request(`http://gateway.test${path}`, { method: 'POST', headers, body }),
  )
  const text = await answer.text()
  const tookMs = performance.now() - begun

  expect(answer.status, text.slice(0, 300)).toBeLessThan(500)
  expect(answer.headers.get('x-signalbox-dropped')?.length ?? 0).toBeLessThan(4_096)
  expect(tookMs).toBeLessThan(15_000)
})
