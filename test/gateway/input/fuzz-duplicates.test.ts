import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway()
})
afterEach(() => started.close())

function send(path: string, json: string): Promise<Response> {
  const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  return fetch(`${started.url}${path}`, { method: 'POST', headers, body: json })
}

/** Counts how often a member occurs in the vendor's request, in any spelling. */
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
    ['/v1/chat/completions', 'model', `{"model":"chat-relayed",${MESSAGES},"model":"chat-relayed"}`, '"gpt-5.4"'],
    ['/v1/chat/completions', 'model', `{"model":"other",${MESSAGES},"model":"chat-relayed"}`, '"gpt-5.4"'],
    ['/v1/chat/completions', 'model', `{"model":"chat-relayed",${MESSAGES},"mod\\u0065l":"chat-relayed"}`, '"gpt-5.4"'],
    [
      '/v1/chat/completions',
      'max_completion_tokens',
      `{"model":"chat-relayed","max_completion_tokens":9000,${MESSAGES},"max_completion_tokens" : 1}`,
      '1',
    ],
    ['/v1/chat/completions', 'n', `{"model":"chat-relayed","n":9,${MESSAGES},"n":1}`, '1'],
    ['/v1/chat/completions', 'stream', `{"model":"chat-relayed","stream":true,${MESSAGES},"stream":false}`, 'false'],
    [
      '/v1/chat/completions',
      'include_usage',
      `{"model":"chat-relayed",${MESSAGES},"stream":true,"stream_options":{"include_usage":false,"include_usage":true}}`,
      'true',
    ],
    [
      '/v1/chat/completions',
      'max_completion_tokens',
      `{"model":"chat-qwen","max_tokens":9000,${MESSAGES},"max_tokens":1}`,
      '1',
    ],
    ['/v1/embeddings', 'model', '{"model":"vy-4","input":"a","model":"vy-4"}', '"voyage-4"'],
    ['/v1/embeddings', 'input', '{"model":"vy-4","input":["a","b"],"input":"c"}', '"c"'],
    [
      '/v1/messages',
      'stream',
      `{"model":"cl-sonnet-4-6","stream":true,"max_tokens":1,${MESSAGES},"stream":false}`,
      'false',
    ],
    [
      '/v1/messages',
      'budget_tokens',
      `{"model":"cl-sonnet-4-6","max_tokens":2000,${MESSAGES},"thinking":{"type":"enabled","budget_tokens":9000,"budget_tokens":1024}}`,
      '1024',
    ],
    [
      '/v1/messages',
      'tools',
      `{"model":"cl-sonnet-4-6","max_tokens":1,${MESSAGES},"tools":[{"type":"web_search_20250305","name":"web_search"}],"tools":[]}`,
      '[]',
    ],
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
    [
      '/v1/images/edits',
      'image_url',
      '{"model":"gp-image-2","prompt":"x","images":[{"image_url":"http://10.0.0.1/a.png","image_url":"https://example.com/a.png"}]}',
      '"https://example.com/a.png"',
    ],
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
    const body = await answer.text()
    expect(answer.status, body).toBeLessThan(300)
    const { text, count } = await sentMembers()

    expect(count(name)).toBe(1)
    expect(text.replace(/\s/g, '')).toContain(`"${name}":${value}`)
  })
})

test('names that only look alike are left to the vendor, and the bytes stay as they came', async () => {
  const metadata = '"metadata":{"model":"x","user_id":"\\"model\\":1, \\"model\\":2"}'
  const json = `{ "model":"cl-sonnet-4-6" ,"max_tokens":1,${metadata},${MESSAGES}}`
  const answer = await send('/v1/messages', json)
  await answer.arrayBuffer()
  const { bytes } = await started.sandbox.nextRequest()

  expect(Buffer.from(bytes).toString()).toBe(json.replace('"cl-sonnet-4-6"', '"claude-sonnet-4-6"'))
})
