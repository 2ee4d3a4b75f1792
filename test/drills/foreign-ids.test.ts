import { createServer } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nodeHandler } from '../../src/adapters/node.ts'
import { VENDOR_OBJECT_MEMBERS } from '../../src/endpoints/vendor-objects.ts'
import type { GatewayOptions } from '../../src/gateway/options.ts'
import { mcpHandler } from '../../src/mcp/index.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { askGateway, OTHER_KEY, startTwoAccounts } from '../gateway/money/two-accounts.ts'
import { vendorResponse } from '../gateway/responses/responses-vendor.ts'
import { mcpClient } from '../mcp/support/mcp-client.ts'
import { listen } from '../support/listen.ts'
import { type StartedGateway, TEST_KEY } from '../support/start-gateway.ts'
import { wavFile } from '../wire/audio/written-files.ts'

type Json = Record<string, unknown>

/** An object with an id member of the table. */
interface Probe {
  readonly key: string
  readonly id: string
  readonly member: string
  readonly scope: string
  readonly value: Json
}

/** Members of the table in each of the forms in which a request can have them. */
const PROBES: readonly Probe[] = Object.keys(VENDOR_OBJECT_MEMBERS).flatMap((key, row) => {
  const dot = key.lastIndexOf('.')
  const [scope, member] = [key.slice(0, Math.max(0, dot)), key.slice(dot + 1)]
  const probe = (form: string, wrap: (holder: Json) => Json): Probe => {
    const id = `file-secret${row}${form}`
    return { key, id, member, scope, value: wrap({ [member]: member.endsWith('_ids') ? [id] : id }) }
  }
  if (scope === '')
    return [probe('a', (holder) => holder), probe('b', (holder) => ({ type: 'of_the_future', ...holder }))]
  return [probe('a', (holder) => ({ [scope]: holder })), probe('b', (holder) => ({ type: scope, ...holder }))]
})

const IDS = PROBES.map(({ id }) => id)

/** Each member of the table once. */
const PLAIN_PROBES = PROBES.filter(({ id }) => id.endsWith('a'))

/** Where a request has a probe, by its path. */
const PLACES: Readonly<Record<string, (value: Json) => readonly Json[]>> = {
  '/v1/chat/completions': (value) => {
    const base = { model: 'chat-relayed', messages: [{ role: 'user', content: 'hi' }] }
    return [
      { ...base, extra: value },
      { ...base, messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', extra: value }] }] },
      { ...base, tools: [{ type: 'function', function: { name: 'f' }, extra: [value] }] },
    ]
  },
  '/v1/responses': (value) => {
    const base = { model: 'chat-relayed', input: 'hi' }
    return [
      { ...base, extra: value },
      { ...base, input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi', extra: value }] }] },
      { ...base, input: [{ type: 'reasoning', summary: [], encrypted_content: 'gAAAA', extra: value }] },
      { ...base, tools: [{ type: 'function', name: 'f', parameters: {}, extra: [value] }] },
    ]
  },
  '/v1/messages': (value) => {
    const base = { model: 'cl-sonnet-4-6', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
    return [
      { ...base, extra: value },
      { ...base, messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', extra: value }] }] },
      { ...base, tools: [{ name: 'f', input_schema: { type: 'object' }, extra: [value] }] },
    ]
  },
}

/** A vendor behind a real socket that answers everything, and keeps what arrived. */
async function recordingVendor() {
  const arrived: string[] = []
  const usage = { input_tokens: 1, output_tokens: 1, prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  let answers = 0
  const choices = [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }]
  const message = {
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'hi' }],
    stop_reason: 'end_turn',
  }
  const bodies: Record<string, (count: number) => Json> = {
    completions: () => ({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }),
    responses: (count) => vendorResponse({ id: `resp_${count}`, output: named.output }),
    messages: (count) => ({ id: `msg_${count}`, ...message, usage }),
    transcriptions: () => ({ text: 'hi', usage: { type: 'duration', seconds: 1 } }),
    generations: () => ({ created: 1, data: [{ b64_json: 'aGk=' }], usage }),
    edits: () => ({ created: 1, data: [{ b64_json: 'aGk=' }], usage }),
    'video-synthesis': (count) => ({ output: { task_id: `t${count}`, task_status: 'RUNNING' }, request_id: 'r' }),
    files: (count) => ({ id: `file-${count}`, object: 'file' }),
    batches: (count) => ({
      id: `batch_${count}`,
      object: 'batch',
      status: 'in_progress',
      request_counts: {},
      data: [],
    }),
  }
  /** Output items of the next answers to `/v1/responses`. */
  const named: { output: readonly Json[] } = { output: [] }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('latin1')) body += chunk
    arrived.push(`${request.url}\n${JSON.stringify(request.headers)}\n${body}`)
    const [kind = ''] = (request.url ?? '').split('?')[0]!.split('/').slice(-1)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify((bodies[kind] ?? bodies['batches']!)(answers++)))
  })
  const { origin, close } = await listen(server)
  const leaked = (ids: readonly string[] = IDS): string[] =>
    ids.filter((id) => arrived.some((body) => body.includes(id)))
  return { origin, close, arrived, leaked, named }
}

let vendor: Awaited<ReturnType<typeof recordingVendor>>
let started: StartedGateway

const start = async (options: Partial<GatewayOptions> = {}, allowVendorObjects = false): Promise<void> => {
  const connection = { apiKey: 'vendor-key', baseURL: vendor.origin }
  const vendors = [
    openai({ ...connection, allowVendorObjects }),
    anthropic({ ...connection, allowVendorObjects }),
    dashscope(connection),
  ]
  started = await startTwoAccounts({ vendors, billing: 'off', ...options })
}

beforeEach(async () => {
  vendor = await recordingVendor()
})
afterEach(async () => {
  await started.close()
  await vendor.close()
})

const ask = (path: string, body: unknown, key: string): Promise<[number, Json]> =>
  askGateway(started, 'POST', path, body, key)

describe.each(Object.keys(PLACES))('%s', (path) => {
  test('sends no id that the account does not own', async () => {
    await start()
    for (const { key, value } of PROBES)
      for (const body of PLACES[path]!(value)) {
        const [status] = await ask(path, body, OTHER_KEY)
        expect(status, `${key}: ${JSON.stringify(body)}`).toBe(VENDOR_OBJECT_MEMBERS[key] === 'record' ? 200 : 400)
      }
    expect(vendor.leaked()).toEqual([])
  })

  test('sends each of these ids if the operator allows it', async () => {
    await start({}, true)
    for (const { value } of PROBES) for (const body of PLACES[path]!(value)) await ask(path, body, OTHER_KEY)
    expect(vendor.leaked()).toEqual(IDS)
  })
})

test('sends ids that an answer named to the account that got it, and to no other', async () => {
  await start()
  const output = PROBES.map(({ value }) => ({ ...value, id: undefined, ...value }))
  vendor.named.output = [
    { type: 'message', id: 'msg_own', role: 'assistant', content: [] },
    { type: 'x', id: 'x_own', output },
  ]
  const [, answer] = await ask('/v1/responses', { model: 'chat-relayed', input: 'hi' }, TEST_KEY)
  vendor.named.output = []
  const follow = (value: Json) => ({
    model: 'chat-relayed',
    input: 'and',
    previous_response_id: answer['id'],
    extra: value,
  })
  for (const { key, value } of PROBES) {
    const [status] = await ask('/v1/responses', follow(value), OTHER_KEY)
    expect(status, key).toBe(400)
  }
  const items = [
    { type: 'x', id: 'x_own', output },
    { role: 'user', content: 'hi' },
  ]
  expect((await ask('/v1/responses', { model: 'chat-relayed', input: items }, OTHER_KEY))[0]).toBe(400)
  expect(vendor.leaked([...IDS, 'x_own', 'msg_own'])).toEqual([])
  for (const { key, value } of PROBES) {
    const [status, body] = await ask('/v1/responses', follow(value), TEST_KEY)
    expect(status, `${key} ${JSON.stringify(body)}`).toBe(200)
  }
  expect(vendor.leaked()).toEqual(IDS)
})

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe.each([
  ['/v1/images/edits', { model: 'gp-image-2', prompt: 'more light' }, ['image', PNG, 'a.png']],
  ['/v1/audio/transcriptions', { model: 'whisper-1' }, ['file', wavFile({ seconds: 1 }), 'a.wav']],
] as const)('a form at %s', (path, fields, [name, content, filename]) => {
  const send = async (field: string, value: string): Promise<number> => {
    const body = new FormData()
    for (const [known, text] of Object.entries(fields)) body.set(known, text)
    body.set(name, new Blob([new Uint8Array(content)]), filename)
    body.set(field, value)
    const headers = { authorization: `Bearer ${OTHER_KEY}` }
    const answer = await fetch(`${started.url}${path}`, { method: 'POST', headers, body })
    await answer.arrayBuffer()
    return answer.status
  }

  /** Names of form fields from which parsers of forms build the member. */
  const names = ({ member, scope }: Probe): string[] =>
    scope === ''
      ? [member, `images[0][${member}]`, `extra[${member}][]`, `extra.${member}`]
      : [`${scope}[${member}]`, `extra[${scope}][0][${member}]`, `${scope}.${member}`]

  test.each([false, true])('sends ids in its fields only if the operator allows it (%s)', async (isAllowed) => {
    await start({}, isAllowed)
    for (const probe of PLAIN_PROBES)
      for (const field of names(probe)) {
        const status = await send(field, probe.id)
        if (!isAllowed) expect(status, field).toBe(400)
      }
    expect(await send('of_the_future', 'yes')).toBe(200)
    expect(vendor.leaked()).toEqual(isAllowed ? PLAIN_PROBES.map(({ id }) => id) : [])
    expect(vendor.arrived.at(-1)).toContain('of_the_future')
  })
})

test('a tool of MCP sends no id that the account does not own', async () => {
  await start()
  const mcp = mcpHandler(started.gateway)
  const mounted = await listen(nodeHandler(mcp))
  const client = await mcpClient(`${mounted.origin}/mcp`, { apiKey: OTHER_KEY })
  const messages = [{ role: 'user', content: 'hi' }]
  const calls = (members: Json): (readonly [string, Json])[] => [
    ['chat_complete', { model: 'chat-relayed', messages, extra: members }],
    [
      'chat_complete',
      { model: 'chat-relayed', messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', extra: members }] }] },
    ],
    ['chat_complete', { model: 'chat-relayed', messages, ...members }],
    ['generate_image', { model: 'gp-image-2', prompt: 'a boat', extra: members }],
  ]
  try {
    for (const { value } of PLAIN_PROBES)
      for (const [name, args] of calls(value)) await client.callTool({ name, arguments: args })
    expect(vendor.leaked()).toEqual([])
    vendor.arrived.length = 0
    for (const [name, args] of calls({ of_the_future: 'yes' })) await client.callTool({ name, arguments: args })
    expect(vendor.arrived.filter((body) => body.includes('of_the_future'))).toHaveLength(4)
  } finally {
    await client.close()
    await mcp.close()
    await mounted.close()
  }
})

/** Copies of a body in which one of its objects has the members. */
function* injected(body: Json, members: Json): Iterable<Json> {
  yield { ...body, ...members }
  yield { ...body, extra: members }
  for (const [name, inner] of Object.entries(body)) {
    const list = Array.isArray(inner) ? inner : [inner]
    for (const [index, item] of list.entries())
      if (typeof item === 'object' && item !== null)
        for (const copy of injected(item as Json, members))
          yield { ...body, [name]: Array.isArray(inner) ? list.with(index, copy) : copy }
  }
}

const url = 'https://images.example/a.png'

test.each<[string, Json]>([
  [
    '/v1/videos/generations',
    { model: 'wv2.7-t2v', duration: 4, resolution: '720p', input: { prompt: 'a' }, parameters: {} },
  ],
  [
    '/v1/images/edits',
    { model: 'gp-image-2', prompt: 'more light', images: [{ image_url: url }], mask: { image_url: url } },
  ],
  ['/v1/images/generations', { model: 'gp-image-2', prompt: 'a boat' }],
  ['/v1/embeddings', { model: 'embedding-relayed', input: ['a'] }],
  [
    '/v1/moderations',
    {
      model: 'omni-moderation-latest',
      input: [
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url } },
      ],
    },
  ],
  ['/v1/audio/speech', { model: 'gpt-4o-mini-tts', input: 'a', voice: 'alloy' }],
])(
  '%s sends no id in any of its objects that the account does not own',
  async (path, body) => {
    await start()
    for (const { value } of PLAIN_PROBES) for (const one of injected(body, value)) await ask(path, one, OTHER_KEY)
    expect(vendor.leaked()).toEqual([])
    vendor.arrived.length = 0
    await ask(path, { ...body, user: 'end-user-1' }, OTHER_KEY)
    expect(vendor.arrived).toHaveLength(1)
  },
  60_000,
)

describe('a batch', () => {
  const upload = async (path: string, key: string, bodies: readonly Json[]): Promise<string> => {
    const lines = bodies.map((body, index) =>
      JSON.stringify({ custom_id: `r${index}`, method: 'POST', url: path, body }),
    )
    const fields = new FormData()
    fields.set('purpose', 'batch')
    fields.set('file', new Blob([lines.join('\n')]), 'lines.jsonl')
    const headers = { authorization: `Bearer ${key}` }
    const answer = await fetch(`${started.url}/v1/files`, { method: 'POST', headers, body: fields })
    return ((await answer.json()) as { id: string }).id
  }

  test.each([
    ['/v1/chat/completions', true],
    ['/v1/chat/completions', false],
    ['/v1/responses', true],
    ['/v1/responses', false],
    ['/v1/messages', true],
    ['/v1/messages', false],
  ])(
    'sends no id of a line for %s that the account does not own (at the vendor: %s)',
    async (path, native) => {
      await start({ batches: { native }, taskPollIntervalMs: 20 })
      const bodies = PROBES.flatMap(({ value }) => PLACES[path]!(value).slice(0, 1))
      const plain = { ...PLACES[path]!({})[0]!, of_the_future: 'yes' }
      const input_file_id = await upload(path, OTHER_KEY, [plain, ...bodies])
      const [status, batch] = await ask(
        '/v1/batches',
        { input_file_id, endpoint: path, completion_window: '24h' },
        OTHER_KEY,
      )
      expect(status, JSON.stringify(batch)).toBe(200)
      await expect.poll(() => vendor.arrived.join('\n'), { timeout: 20_000, interval: 20 }).toContain('of_the_future')
      if (!native) await started.taskEnded(String(batch['id']))
      expect(vendor.leaked()).toEqual([])
    },
    60_000,
  )

  test('rejects the file of another account', async () => {
    await start({ batches: {} })
    const file = await upload('/v1/chat/completions', TEST_KEY, [PLACES['/v1/chat/completions']!({})[0]!])
    const input = { input_file_id: file, endpoint: '/v1/chat/completions', completion_window: '24h' }
    expect((await ask('/v1/batches', input, OTHER_KEY))[0]).toBe(404)
    expect(vendor.arrived).toEqual([])
  })
})

test('sends no id of a conversation item that the account does not own', async () => {
  await start()
  const [, own] = await ask('/v1/responses', { model: 'chat-relayed', input: 'hi' }, TEST_KEY)
  const items = [
    { type: 'reasoning', id: 'rs_vendor1', summary: [], encrypted_content: 'gAAAA' },
    { type: 'message', id: 'msg_vendor1', role: 'assistant', content: [{ type: 'output_text', text: 'a' }] },
  ]
  vendor.arrived.length = 0
  const [, kept] = await ask('/v1/conversations', { items }, OTHER_KEY)
  const turn = { model: 'chat-relayed', conversation: kept['id'], input: 'and now' }
  expect((await ask('/v1/responses', turn, OTHER_KEY))[0]).toBe(200)
  expect((await ask('/v1/responses', turn, OTHER_KEY))[0]).toBe(200)
  expect((await ask('/v1/responses', turn, TEST_KEY))[0]).toBe(400)
  const references = [
    { type: 'item_reference', id: 'rs_vendor1' },
    { role: 'user', content: 'hi' },
  ]
  await ask('/v1/responses', { model: 'chat-relayed', input: references }, OTHER_KEY)
  expect(
    (await ask('/v1/responses', { ...turn, conversation: undefined, previous_response_id: own['id'] }, OTHER_KEY))[0],
  ).toBe(400)
  expect(vendor.leaked(['rs_vendor1', 'msg_vendor1', String(own['id'])])).toEqual([])
  expect(vendor.arrived.join()).toContain('gAAAA')

  for (const { key, value } of PROBES) {
    const item = { role: 'user', content: [{ type: 'input_text', text: 'hi', extra: value }] }
    const [, holder] = await ask('/v1/conversations', { items: [item] }, OTHER_KEY)
    const [status] = await ask('/v1/responses', { model: 'chat-relayed', conversation: holder['id'] }, OTHER_KEY)
    expect(status, key).toBe(VENDOR_OBJECT_MEMBERS[key] === 'record' ? 200 : 400)
  }
  expect(vendor.leaked()).toEqual([])
})

describe('a thread', () => {
  const turn = (thread: Json) => ({
    model: 'cl-sonnet-4-6',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'hi' }],
    thread,
  })
  const lost = { error: { type: 'not_found_error', details: { error_code: 'thread_not_found' } } }

  test.each(['/v1/messages', '/v1/messages/count_tokens'])('is continued by its account only at %s', async (path) => {
    await start()
    const [, first] = await ask('/v1/messages', turn({ type: 'create' }), TEST_KEY)
    vendor.arrived.length = 0
    const thread = { type: 'continue', previous_message_id: first['id'] }
    const [status, body] = await ask(path, turn(thread), OTHER_KEY)
    expect([status, body]).toMatchObject([404, lost])
    expect(await ask(path, turn({ ...thread, previous_message_id: 'msg_of_nobody' }), TEST_KEY)).toMatchObject([
      404,
      lost,
    ])
    expect(vendor.arrived).toEqual([])
    await ask(path, turn(thread), TEST_KEY)
    expect(vendor.arrived[0]).toContain(`"previous_message_id":"${first['id']}"`)
  })

  test('is refused in a batch', async () => {
    await start({ batches: {} })
    const params = turn({ type: 'create' })
    const [, batch] = await ask('/v1/messages/batches', { requests: [{ custom_id: 'a', params }] }, TEST_KEY)
    expect(JSON.stringify(batch)).toContain('cannot begin or continue a conversation')
    expect(vendor.arrived).toEqual([])
  })
})
