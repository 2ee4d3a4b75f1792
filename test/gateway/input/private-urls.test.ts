import { afterEach, describe, expect, test } from 'vitest'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

/** Addresses that are private by their text, however they are written. */
const PRIVATE = [
  'http://127.0.0.1:11434/api/tags',
  'http://localhost/x.png',
  'HTTP://LocalHost./x.png',
  'http://2130706433/x.png',
  'http://0x7f.1/x.png',
  'http://[::1]/x.png',
  'http://[::ffff:10.0.0.1]/x.png',
  'http://169.254.169.254/latest/meta-data',
  'https://printer.internal/x.png',
  ' http://10.0.0.5/x.png',
  'ht\ntp://10.0.0.5/x.png',
  'http:\\\\10.0.0.5/x.png',
  'file:///etc/passwd',
  'FILE:/etc/passwd',
  'ftp://10.0.0.5/x.png',
  'gopher://127.0.0.1:6379/_x',
]
const PUBLIC = 'https://example.com/x.png'

const chat = (part: object, model = 'chat-relayed') => ({
  model,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'see http://127.0.0.1/ in my text' }, part] }],
})
const messages = (block: object, model = 'cl-sonnet-4-6') => ({
  model,
  max_tokens: 10,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'http://127.0.0.1/' }, block] }],
})
const source = (url: string) => ({ type: 'url', url })
const toolUse = {
  role: 'assistant',
  content: [{ type: 'tool_use', id: 't1', name: 'look', input: { url: 'http://127.0.0.1/' } }],
}

const item = (member: 'content' | 'output') =>
  member === 'content' ? { role: 'user' } : { type: 'function_call_output', call_id: 'c' }

/** Requests with one address, by endpoint and place, and the name of that place. */
const PLACES: readonly (readonly [path: string, place: string, param: string, body: (url: string) => object])[] = [
  [
    '/v1/chat/completions',
    'a picture',
    'messages[0].content[1].image_url.url',
    (url) => chat({ type: 'image_url', image_url: { url } }),
  ],
  [
    '/v1/chat/completions',
    'a picture at a vendor of another dialect',
    'messages[0].content[1].image_url.url',
    (url) => chat({ type: 'image_url', image_url: { url } }, 'cl-sonnet-4-6'),
  ],
  [
    '/v1/chat/completions',
    'a video',
    'messages[0].content[1].video_url.url',
    (url) => chat({ type: 'video_url', video_url: { url } }),
  ],
  [
    '/v1/chat/completions',
    'a file',
    'messages[0].content[1].file.file_url',
    (url) => chat({ type: 'file', file: { file_url: url } }),
  ],
  [
    '/v1/chat/completions',
    'frames of a video',
    'messages[0].content[1].video[1]',
    (url) => chat({ type: 'video', video: [PUBLIC, url] }, 'chat-qwen'),
  ],
  [
    '/v1/messages',
    'a picture',
    'messages[0].content[1].source.url',
    (url) => messages({ type: 'image', source: source(url) }),
  ],
  [
    '/v1/messages',
    'a document',
    'messages[0].content[1].source.url',
    (url) => messages({ type: 'document', source: source(url) }),
  ],
  [
    '/v1/messages/count_tokens',
    'a picture in a document',
    'messages[0].content[1].source.content[0].source.url',
    (url) =>
      messages({
        type: 'document',
        source: { type: 'content', content: [{ type: 'image', source: source(url) }] },
      }),
  ],
  [
    '/v1/messages',
    'a picture in the result of a tool, for a vendor of chat',
    'messages[2].content[0].content[0].source.url',
    (url) => ({
      model: 'chat-relayed',
      max_tokens: 10,
      messages: [
        { role: 'user', content: 'Look' },
        toolUse,
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'image', source: source(url) }] }],
        },
      ],
    }),
  ],
  [
    '/v1/messages',
    'a server of tools',
    'mcp_servers[0].url',
    (url) => ({ ...messages({ type: 'text', text: 'x' }), mcp_servers: [{ type: 'url', name: 'm', url }] }),
  ],
  ...(
    [
      ['a picture', 'content', { type: 'input_image' }, 'image_url'],
      ['a file', 'content', { type: 'input_file' }, 'file_url'],
      ['a picture in the result of a tool', 'output', { type: 'input_image' }, 'image_url'],
    ] as const
  ).map(
    ([place, member, part, name]) =>
      [
        '/v1/responses',
        place,
        `input[1].${member}[0].${name}`,
        (url: string) => ({
          model: 'cl-sonnet-4-6',
          input: [
            { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
            { ...item(member), [member]: [{ ...part, [name]: url }] },
          ],
        }),
      ] as const,
  ),
  [
    '/v1/responses',
    'a screenshot',
    'input[0].output.image_url',
    (url) => ({
      model: 'chat-relayed',
      input: [{ type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url: url } }],
    }),
  ],
  [
    '/v1/responses',
    'a server of tools',
    'tools[0].server_url',
    (url) => ({
      model: 'chat-relayed',
      input: 'http://127.0.0.1/',
      tools: [{ type: 'mcp', server_label: 'm', server_url: url }],
    }),
  ],
  [
    '/v1/responses/input_tokens',
    'a picture of a prompt',
    'prompt.variables.logo.image_url',
    (url) => ({
      model: 'chat-relayed',
      prompt: { id: 'pmpt_1', variables: { home: 'http://127.0.0.1/', logo: { type: 'input_image', image_url: url } } },
    }),
  ],
  [
    '/v1/images/generations',
    'a picture of an interaction',
    'input[1].uri',
    (url) => ({
      model: 'gmn-3.1-flash-image-preview',
      input: [
        { type: 'text', text: 'Draw' },
        { type: 'image', uri: url, mime_type: 'image/png' },
      ],
    }),
  ],
]

describe('an address that is private by its text', () => {
  test.each(PLACES)('is refused on %s: %s', async (path, _place, param, body) => {
    started = await startGateway({ allowPrivateUrls: false })

    for (const url of PRIVATE) {
      const response = await started.post(path, body(url))
      const text = await response.text()

      expect([response.status, text], url).toEqual([400, expect.stringContaining(param)])
    }
    expect(started.sandbox.requests).toEqual([])
    expect(await started.account()).toEqual({ balance: 100_000_000_000n, held: 0n })
  })

  test('is no reason to refuse public addresses, data, and text that looks like one', async () => {
    started = await startGateway({ allowPrivateUrls: false, billing: 'off' })
    const pictures = [PUBLIC, 'data:image/png;base64,aGk=', '10.0.0.1']

    for (const url of pictures) {
      const response = await started.post('/v1/chat/completions', chat({ type: 'image_url', image_url: { url } }))
      expect(response.status, url).toBe(200)
    }
    const message = await started.post('/v1/messages', messages({ type: 'image', source: source(PUBLIC) }))
    expect(message.status).toBe(200)
  })

  test('passes where the operator allows it', async () => {
    started = await startGateway({ allowPrivateUrls: true, billing: 'off' })
    const response = await started.post(
      '/v1/chat/completions',
      chat({ type: 'image_url', image_url: { url: PRIVATE[0]! } }),
    )

    expect(response.status).toBe(200)
  })

  test('passes to a vendor that is declared to fetch nothing, unless another one may answer for it', async () => {
    const sandbox = sandboxVendors()
    const { origin } = await sandbox.listen()
    const models = [
      { id: 'deaf', kind: 'chat' as const, upstream: 'm' },
      { id: 'deaf-or-not', kind: 'chat' as const, upstream: 'm', fallbacks: ['claude'] },
      {
        id: 'routed',
        kind: 'chat' as const,
        routes: [{ vendor: 'quiet' }, { vendor: 'anthropic', upstream: 'claude-haiku-4-5' }],
      },
    ]
    started = await startGateway({
      allowPrivateUrls: false,
      billing: 'off',
      vendors: [
        openaiCompatible({ id: 'quiet', baseURL: `${origin}/v1`, apiKey: 'k-01234567', models, fetchesUrls: false }),
        anthropic({ baseURL: origin, apiKey: 'k-01234567' }),
      ],
      models: [{ id: 'claude', kind: 'chat', vendor: 'anthropic', upstream: 'claude-haiku-4-5' }],
    })
    const picture = { type: 'image_url', image_url: { url: PRIVATE[0]! } }
    const statuses = []
    for (const model of ['deaf', 'deaf-or-not', 'routed'])
      statuses.push((await started.post('/v1/chat/completions', chat(picture, model))).status)

    expect(statuses).toEqual([200, 400, 400])
    await sandbox.close()
  })
})

test('an address that is private by its text is refused where a conversation has it', async () => {
  started = await startGateway({ allowPrivateUrls: false })
  const picture = { type: 'input_image', image_url: PRIVATE[0] }
  const made = await started.post('/v1/conversations', { items: [{ role: 'user', content: [picture] }] })
  const { id } = (await made.json()) as { id: string }
  const response = await started.post('/v1/responses', { model: 'chat-relayed', input: 'Look', conversation: id })

  expect(response.status).toBe(400)
  expect(await response.text()).toContain('input[0].content[0].image_url: must not point to a private address')
  expect(started.sandbox.requests).toEqual([])
})

test('what programs wrote, and what was cited, is text in a request of Responses', async () => {
  started = await startGateway({ allowPrivateUrls: false, billing: 'off' })
  const text = PRIVATE[0]!
  const annotations = [{ type: 'url_citation', url: text, title: text, start_index: 0, end_index: 1 }]
  const response = await started.post('/v1/responses', {
    model: 'chat-relayed',
    input: [
      { role: 'user', content: text },
      { role: 'assistant', content: [{ type: 'output_text', text, annotations }] },
      { type: 'shell_call', call_id: 's', action: { commands: [text] } },
      { type: 'shell_call_output', call_id: 's', output: [{ stdout: text, stderr: text }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: text },
      { type: 'function_call_output', call_id: 'c', output: text },
    ],
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: { at: { default: text } } } }],
  })

  expect([response.status, await response.text()]).toEqual([200, expect.any(String)])
})

test('an address that the gateway itself calls is refused whatever the vendor does', async () => {
  started = await startGateway({ allowPrivateUrls: false })
  const response = await started.post('/v1/videos/generations', {
    model: 'wv2.7-t2v',
    input: { prompt: 'x' },
    webhook_url: PRIVATE[0],
  })

  expect(response.status).toBe(400)
  expect(await response.text()).toContain('webhook_url')
})
