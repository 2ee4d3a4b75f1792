import { createServer } from 'node:http'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { submitBatch } from '../batches/batch-gateway.ts'

/** Numbers that a double cannot hold, and numbers that `JSON.stringify` writes differently. */
const EXACT = '{"id":1234567890123456789,"low":-0,"rate":1.0,"far":1e400,"small":0.10,"list":[12345678901234567890.5]}'
const LIMIT = '9223372036854775807'
const SCHEMA = `{"type":"object","properties":{"id":{"type":"integer","minimum":0.0,"maximum":${LIMIT}}}}`

const OPENAI_CALL = `{"index":0,"id":"call_1","type":"function","function":{"name":"look","arguments":ARGS}}`
const OPENAI_USAGE = '"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}'

/** Answers of the vendors by the start of their path, with the arguments in place of ARGS. */
const ANSWERS: readonly (readonly [path: string, whole: string, stream: string])[] = [
  [
    '/v1/messages',
    '{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":ARGS}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":4}}',
    '',
  ],
  [
    '/v1beta/models/',
    '{"responseId":"r","candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":{"name":"look","args":ARGS}}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":4,"totalTokenCount":9}}',
    'data: WHOLE\n\n',
  ],
  [
    '/model/',
    '{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"tooluse_1","name":"look","input":ARGS}}]}},"stopReason":"tool_use","usage":{"inputTokens":5,"outputTokens":4,"totalTokens":9}}',
    '',
  ],
  [
    '/chat/completions',
    `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[${OPENAI_CALL}]}}],${OPENAI_USAGE}}`,
    `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"finish_reason":null,"delta":{"tool_calls":[${OPENAI_CALL}]}}]}\n\ndata: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","delta":{}}],${OPENAI_USAGE}}\n\ndata: [DONE]\n\n`,
  ],
]

let vendor: { origin: string; close(): Promise<void> }
let started: StartedGateway
/** Body of the last call of a vendor, as it was sent. */
let sent = ''

beforeAll(async () => {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      sent = Buffer.concat(chunks).toString()
      const [, whole, stream] = ANSWERS.find(([path]) => request.url!.startsWith(path))!
      // The model `object` gives arguments as an object, as some servers do.
      const isText = request.url!.startsWith('/chat') && !sent.includes('"object-model"')
      const args = sent.includes('"json_schema"') ? EXACT : isText ? JSON.stringify(EXACT) : EXACT
      const isStream = /"stream":true|streamGenerate/.test(`${sent}${request.url}`)
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
      const text = isStream ? stream.replace('WHOLE', whole) : whole
      const name = /"name":"(json)"/.exec(sent)?.[1] ?? 'look'
      response.end(text.replace('ARGS', () => args).replace('"look"', `"${name}"`))
    })
  })
  vendor = await listen(server)
  const baseURL = vendor.origin
  const models = [
    { id: 'texts', kind: 'chat', upstream: 'text-model' },
    { id: 'objects', kind: 'chat', upstream: 'object-model' },
  ] as const
  started = await startGateway({
    vendors: [
      anthropic({ apiKey: 'k', baseURL }),
      gemini({ apiKey: 'k', baseURL }),
      openai({ apiKey: 'k', baseURL }),
      amazonBedrock({ apiKey: 'bedrock-key-0123456789', endpoint: baseURL }),
      openaiCompatible({ id: 'server', baseURL, apiKey: 'k', models }),
    ],
    models: [
      { id: 'claude', kind: 'chat', vendor: 'anthropic', upstream: 'claude-sonnet-4-5' },
      { id: 'old-claude', kind: 'chat', vendor: 'anthropic', upstream: 'claude-sonnet-4-20250514' },
      { id: 'flash', kind: 'chat', vendor: 'gemini', upstream: 'gemini-2.5-flash' },
      { id: 'converse', kind: 'chat', vendor: 'amazon-bedrock', upstream: 'amazon.nova-pro-v1:0' },
    ],
    billing: 'off',
    batches: { native: false },
  })
})
afterAll(async () => {
  await started.close()
  await vendor.close()
})

/** Sends JSON text as it is. */
async function post(path: string, body: string): Promise<string> {
  const response = await fetch(`${started.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
    body,
  })
  const text = await response.text()
  expect([response.status, response.status === 200 ? '' : text]).toEqual([200, ''])
  return text
}

const CALLERS = [
  ['/v1/chat/completions', '"messages":[{"role":"user","content":"look"}]'],
  ['/v1/messages', '"max_tokens":50,"messages":[{"role":"user","content":"look"}]'],
  ['/v1/responses', '"store":false,"input":"look"'],
] as const

/** The arguments as the caller's dialect writes them. */
function writtenFor(path: string, isStream: boolean): string {
  return path === '/v1/messages' && !isStream ? `"input":${EXACT}` : JSON.stringify(EXACT)
}

describe.each(CALLERS)('numbers of tool calls at %s', (path, body) => {
  test.each(['claude', 'flash', 'converse', 'texts', 'objects'])('reach the caller as %s wrote them', async (model) => {
    const whole = await post(path, `{"model":"${model}",${body}}`)
    expect(whole).toContain(writtenFor(path, false))
  })

  test.each(['flash', 'texts', 'objects'])('reach the caller as %s streamed them', async (model) => {
    const stream = await post(path, `{"model":"${model}","stream":true,${body}}`)
    expect(stream).toContain(writtenFor(path, true))
  })
})

const ARGUMENTS = JSON.stringify(EXACT)
const HISTORIES = [
  [
    '/v1/chat/completions',
    `"messages":[{"role":"user","content":"look"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":${ARGUMENTS}}}]},{"role":"tool","tool_call_id":"call_1","content":"seen"}],"tools":[{"type":"function","function":{"name":"look","parameters":${SCHEMA}}}]`,
  ],
  [
    '/v1/messages',
    `"max_tokens":50,"messages":[{"role":"user","content":"look"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":${EXACT}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"seen"}]}],"tools":[{"name":"look","input_schema":${SCHEMA}}]`,
  ],
  [
    '/v1/responses',
    `"store":false,"input":[{"type":"message","role":"user","content":"look"},{"type":"function_call","call_id":"call_1","name":"look","arguments":${ARGUMENTS}},{"type":"function_call_output","call_id":"call_1","output":"seen"}],"tools":[{"type":"function","name":"look","parameters":${SCHEMA}}]`,
  ],
] as const

describe.each(HISTORIES)('a history at %s', (path, body) => {
  test.each(['claude', 'flash', 'converse', 'texts'])(
    'keeps the numbers of its calls and schemas at %s',
    async (model) => {
      await post(path, `{"model":"${model}",${body}}`)

      expect(sent).toContain(model === 'texts' ? ARGUMENTS : EXACT)
      expect(sent).toContain(`"maximum":${LIMIT}`)
    },
  )

  test('keeps its numbers if a hook rewrites another text', async () => {
    const hooked = await startGateway({
      vendors: [
        openaiCompatible({
          id: 'server',
          baseURL: vendor.origin,
          apiKey: 'k',
          models: [{ id: 'texts', kind: 'chat', upstream: 'text-model' }],
        }),
      ],
      models: [],
      billing: 'off',
      hooks: [
        {
          name: 'rewrite',
          request: (call) => ({
            texts: new Map(call.texts().flatMap(({ id, text }) => (text === 'seen' ? [[id, 'hidden'] as const] : []))),
          }),
        },
      ],
    })
    try {
      const response = await fetch(`${hooked.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
        body: `{"model":"texts",${body}}`,
      })
      expect(response.status).toBe(200)
      expect(sent).toContain('hidden')
      expect(sent).toContain(ARGUMENTS)
      expect(sent).toContain(LIMIT)
    } finally {
      await hooked.close()
    }
  })
})

const FORMAT = `{"type":"json_schema","json_schema":{"name":"answer","schema":${SCHEMA}}}`

test('keeps the numbers of a JSON answer that came as the input of a tool', async () => {
  const answer = await post(
    '/v1/chat/completions',
    `{"model":"old-claude","messages":[{"role":"user","content":"look"}],"response_format":${FORMAT}}`,
  )

  expect(sent).toContain(`"maximum":${LIMIT}`)
  expect(answer).toContain(`"content":${ARGUMENTS}`)
})

test('keeps the numbers of calls if a hook rewrites the text of a Messages answer', async () => {
  const hooked = await startGateway({
    vendors: [anthropic({ apiKey: 'k', baseURL: vendor.origin })],
    models: [{ id: 'claude', kind: 'chat', vendor: 'anthropic', upstream: 'claude-sonnet-4-5' }],
    billing: 'off',
    hooks: [
      {
        name: 'rewrite',
        answer: (call) => ({
          texts: new Map(call.texts().map(({ id, text }) => [id, text.replace('0.10', '0.20')])),
        }),
      },
    ],
  })
  try {
    const response = await hooked.post('/v1/messages', {
      model: 'claude',
      max_tokens: 50,
      messages: [{ role: 'user', content: 'look' }],
    })
    expect(await response.text()).toContain(`"input":${EXACT.replace('0.10', '0.20')}`)
  } finally {
    await hooked.close()
  }
})

test.each([
  ['anthropic', `{"custom_id":"a","result":{"type":"succeeded","message":{"content":[{"input":${EXACT}}]}}}`],
  ['gemini', `{"key":"a","response":{"candidates":[{"content":{"parts":[{"functionCall":{"args":${EXACT}}}]}}]}}`],
])('keeps the numbers of calls in a result of a batch of %s', (id, line) => {
  const { batches } = id === 'gemini' ? gemini({ apiKey: 'k' }) : anthropic({ apiKey: 'k' })

  expect(batches?.result(line)).toMatchObject({ kind: 'answered', body: expect.stringContaining(EXACT) })
})

test('keeps the numbers of a request of a batch', async () => {
  const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
  const [path, body] = HISTORIES[0]
  const line = `{"custom_id":"a","method":"POST","url":"${path}","body":{"model":"claude",${body}}}`
  const { id } = await submitBatch(client, [line])
  await started.taskEnded(id)

  expect(sent).toContain(EXACT)
  expect(sent).toContain(`"maximum":${LIMIT}`)
})

test('keeps the numbers of an inline batch', async () => {
  const [, body] = HISTORIES[1]
  const { id } = JSON.parse(
    await post('/v1/messages/batches', `{"requests":[{"custom_id":"a","params":{"model":"texts",${body}}}]}`),
  ) as { id: string }
  await started.taskEnded(id)

  expect(sent).toContain(ARGUMENTS)
  expect(sent).toContain(`"maximum":${LIMIT}`)
})

test('keeps the numbers of an answer in the background', async () => {
  const [path, body] = HISTORIES[2]
  const { id } = JSON.parse(
    await post(path, `{"model":"claude","background":true,${body.replace('"store":false,', '')}}`),
  ) as { id: string }
  await started.taskEnded(id)

  expect(sent).toContain(EXACT)
  expect(sent).toContain(`"maximum":${LIMIT}`)
})
