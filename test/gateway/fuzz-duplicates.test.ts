import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway()
})
afterEach(() => started.close())

function send(path: string, json: string): Promise<Response> {
  const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  return fetch(`${started.url}${path}`, { method: 'POST', headers, body: json })
}

/** How often a member stands in what the vendor got, however it is written. */
async function sentMembers(): Promise<{ text: string; count: (name: string) => number }> {
  const { bytes } = await started.sandbox.nextRequest()
  const text = Buffer.from(bytes).toString('utf8')
  const plain = text.replace(/\\u00([0-9a-f]{2})/gi, (_match, digits: string) =>
    String.fromCharCode(Number(`0x${digits}`)),
  )
  return { text, count: (name) => plain.split(`"${name}"`).length - 1 }
}

const MESSAGES = '"messages":[{"role":"user","content":"hi"}]'
const INTERACTION = '"input":"a boat"'
const MULTIMODAL = '"input":{"messages":[{"role":"user","content":[{"text":"a boat"}]}]}'
const EDIT = '"images":[{"image_url":"https://example.com/a.png"}]'
const VIDEO = '"input":{"prompt":"a boat"}'

/** Which of two equal members counts is the reader's choice: what is checked and held for is what must arrive, once. */
describe('a member that stands twice goes to the vendor once, with the value that was checked', () => {
  test.each([
    ['/v1/messages', 'max_tokens', `{"model":"cl-sonnet-4-6","max_tokens":9000,"max_tokens":1,${MESSAGES}}`, '1'],
    ['/v1/messages', 'max_tokens', `{"model":"cl-sonnet-4-6","max_tok\\u0065ns":9000,"max_tokens":1,${MESSAGES}}`, '1'],
    [
      '/v1/messages',
      'model',
      `{"model":"cl-sonnet-4-6","max_tokens":1,${MESSAGES},"model":"cl-sonnet-4-6"}`,
      '"claude-sonnet-4-6"',
    ],
    [
      '/v1/messages',
      'model',
      `{"mod\\u0065l":"claude-opus-4-7","max_tokens":1,${MESSAGES},"model":"cl-sonnet-4-6"}`,
      '"claude-sonnet-4-6"',
    ],
    ['/v1/images/generations', 'n', '{"model":"gp-image-2","prompt":"x","n":10,"n":1}', '1'],
    [
      '/v1/images/generations',
      'size',
      '{"model":"gp-image-2","prompt":"x","size":"auto","size":"1024x1024"}',
      '"1024x1024"',
    ],
    ['/v1/images/generations', 'n', '{"model":"gp-image-2","prompt":"x","\\u006e":10,"n":1}', '1'],
    ['/v1/images/edits', 'n', `{"model":"gp-image-2","prompt":"x","n":10,"n":1,${EDIT}}`, '1'],
    ['/v1/images/generations', 'n', `{"model":"qw-image-2.0",${MULTIMODAL},"parameters":{"n":6,"n":1}}`, '1'],
    [
      '/v1/images/generations',
      'image_size',
      `{"model":"gmn-3.1-flash-image-preview",${INTERACTION},"response_format":{"type":"image","image_size":"4K","image_size":"1K"}}`,
      '"1K"',
    ],
    [
      '/v1/videos/generations',
      'duration',
      `{"model":"wv2.7-t2v","duration":4,${VIDEO},"parameters":{"duration":15,"duration":4}}`,
      '4',
    ],
  ])('%s: %s in %s', async (path, name, json, value) => {
    const answer = await send(path, json)
    await answer.arrayBuffer()
    const { text, count } = await sentMembers()

    expect(answer.status).toBeLessThan(300)
    expect(count(name)).toBe(1)
    expect(text.replace(/\s/g, '')).toContain(`"${name}":${value}`)
  })
})

test('names that only look alike are left to the vendor, and the bytes stay as they came', async () => {
  const json = `{ "model":"cl-sonnet-4-6" ,"max_tokens":1,"metadata":{"model":"x","model":"y"},${MESSAGES}}`
  const answer = await send('/v1/messages', json)
  await answer.arrayBuffer()
  const { bytes } = await started.sandbox.nextRequest()

  expect(Buffer.from(bytes).toString()).toBe(json.replace('"cl-sonnet-4-6"', '"claude-sonnet-4-6"'))
})
