import { generateKeyPairSync } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { GatewayClient } from '../../../src/client/gateway-client.ts'
import { awsSignature, googleServiceAccount } from '../../../src/credentials/index.ts'
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts'
import { fakeClock, type Sandbox, type ScriptedReply, sandboxVendors } from '../../../src/testing/index.ts'
import { drawPicture } from '../../../src/testing/sandbox/files/draw-image.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropic, anthropicBedrock } from '../../../src/vendors/anthropic/anthropic.ts'
import { anthropicVertex } from '../../../src/vendors/anthropic/anthropic-vertex.ts'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { vertex } from '../../../src/vendors/gemini/vertex.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { voyage } from '../../../src/vendors/voyage/voyage.ts'

const KEY = 'sk-of-the-operator-1'

let sandbox: Sandbox
let gateway: Gateway
let client: GatewayClient

beforeAll(async () => {
  sandbox = sandboxVendors()
  const { origin } = await sandbox.listen()
  const direct = { apiKey: KEY, baseURL: origin }
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const account = {
    client_email: 'gateway@my-project.iam.gserviceaccount.com',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    token_uri: `${origin}/token`,
  }
  const google = { project: 'my-project', location: 'global', baseURL: origin }
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
  const bedrock = {
    endpoint: `${origin}/bedrock`,
    apiKey: awsSignature({ region: 'us-east-1', credentials: () => credentials }),
  }
  gateway = createGateway({
    vendors: [
      ...[openai(direct), anthropic(direct), gemini(direct), dashscope(direct), voyage(direct)],
      openaiCompatible(presets.groq, { apiKey: KEY, baseURL: `${origin}/presets/groq/v1` }),
      azureOpenai({ apiKey: KEY, endpoint: origin }),
      ...[vertex, anthropicVertex].map((make) => make({ ...google, apiKey: googleServiceAccount({ key: account }) })),
      ...[amazonBedrock(bedrock), anthropicBedrock(bedrock)],
    ],
    models: [
      { id: 'on-azure', kind: 'chat', vendor: 'azure-openai', upstream: 'my-deployment' },
      { id: 'on-vertex', kind: 'chat', vendor: 'vertex', upstream: 'gemini-2.5-flash' },
      { id: 'on-groq', kind: 'chat', vendor: 'groq', upstream: 'llama-3.3-70b-versatile' },
    ],
    billing: 'off',
  })
  await gateway.start()
  client = gateway.client({ accountId: 'acct_1', keyId: 'key_1', tier: 'paid' })
})
afterEach(() => {
  sandbox.reset()
})
afterAll(async () => {
  await gateway.close({ drainMs: 1 })
  await sandbox.close()
})

const ask = (model: string, more: object = {}) =>
  client.chat.completions.create({
    ...{ model: model as 'chat', messages: [{ role: 'user', content: 'hello' }], max_completion_tokens: 2000 },
    ...more,
  })

async function streamed(model: string, more: object = {}) {
  const stream = await client.chat.completions.create({
    ...{ model: model as 'chat', messages: [{ role: 'user', content: 'hello' }], max_completion_tokens: 2000 },
    ...{ stream: true, ...more },
  })
  const pieces: string[] = []
  const calls: string[] = []
  let finish: string | null = null
  for await (const { choices } of stream) {
    const { delta, finish_reason: reason } = choices[0] ?? {}
    if (delta?.content) pieces.push(delta.content)
    for (const call of delta?.tool_calls ?? [])
      calls.push(`${call.function?.name ?? ''}${call.function?.arguments ?? ''}`)
    finish = reason ?? finish
  }
  return { pieces, calls: calls.join(''), finish }
}

const UPSTREAM: Readonly<Record<string, string>> = {
  'on-azure': 'my-deployment',
  'on-groq': 'llama-3.3-70b-versatile',
  'on-vertex': 'gemini-2.5-flash',
}

const TOOLS = {
  tools: [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      },
    },
  ],
}

describe.each([
  ['gpt-5.4', 'openai', 'chat'],
  ['gpt-5.4-pro', 'openai', 'responses'],
  ['claude-sonnet-4-6', 'anthropic', 'chat'],
  ['gemini-2.5-flash', 'gemini', 'chat'],
  ['qwen3-max', 'dashscope', 'chat'],
  ['on-groq', 'presets', 'chat'],
  ['on-azure', 'azure', 'chat'],
  ['on-vertex', 'vertex', 'chat'],
  ['claude-haiku-4-5@20251001', 'vertex', 'chat'],
  ['openai/gpt-oss-120b-maas', 'vertex', 'chat'],
  ['amazon.nova-pro-v1:0', 'amazon-bedrock', 'chat'],
  ['us.anthropic.claude-haiku-4-5-20251001-v1:0', 'amazon-bedrock', 'chat'],
  ['openai.gpt-oss-120b-1:0', 'amazon-bedrock', 'chat'],
])('%s at %s, by %s', (model, vendor, operation) => {
  const when = { vendor, operation }

  test('says what the test says, once', async () => {
    sandbox.reply({ when, text: 'It rains in Oslo.' })

    const scripted = await ask(model)
    const echoed = await ask(model)

    expect(scripted.choices[0]?.message.content).toBe('It rains in Oslo.')
    expect(scripted.choices[0]?.finish_reason).toBe('stop')
    expect(echoed.choices[0]?.message.content).toContain('You said: hello')
  })

  test('streams the given pieces, and can be cut by length', async () => {
    sandbox.reply({ when, chunks: ['It ', 'rains', ' in Oslo.'] })
    sandbox.reply({ when, text: 'cut', finishReason: 'length' })

    const pieces = await streamed(model)
    const cut = await streamed(model)

    expect(pieces).toEqual({ pieces: ['It ', 'rains', ' in Oslo.'], calls: '', finish: 'stop' })
    expect(cut).toEqual({ pieces: ['cut'], calls: '', finish: 'length' })
  })

  test('calls the given functions, with a text before them', async () => {
    const toolCalls = [{ name: 'get_weather', arguments: { city: 'Oslo' } }]
    sandbox.reply({ when, text: 'Let me look.', toolCalls, times: 2 })

    const whole = await ask(model, TOOLS)
    const stream = await streamed(model, TOOLS)

    const [choice] = whole.choices
    expect(choice?.message.content).toBe('Let me look.')
    expect(choice?.message.tool_calls?.[0]?.function.name).toBe('get_weather')
    expect(JSON.parse(choice?.message.tool_calls?.[0]?.function.arguments ?? '')).toEqual({ city: 'Oslo' })
    expect([stream.pieces.join(''), stream.calls, stream.finish]).toEqual([
      'Let me look.',
      'get_weather{"city":"Oslo"}',
      'tool_calls',
    ])
    expect(choice?.finish_reason).toBe('tool_calls')
  })

  test('reports the given usage', async () => {
    sandbox.reply({
      when,
      text: 'x',
      usage: { inputTokens: 1234, cachedInputTokens: 0, outputTokens: 56, reasoningTokens: 0 },
    })

    const { usage } = await ask(model)

    expect(usage).toMatchObject({ prompt_tokens: 1234, completion_tokens: 56 })
  })

  test.each<[ScriptedReply['error'], number, string]>([
    [{ status: 400, message: 'the prompt is odd' }, 400, 'the prompt is odd'],
    [{ status: 429, retryAfterSeconds: 7 }, 429, ''],
    [{ status: 503 }, 503, ''],
    [{ status: 500, message: 'secret matters' }, 503, ''],
  ])('refuses with %j, which reaches the caller', async (error, status, message) => {
    sandbox.reply({ when, error: error!, times: Number.POSITIVE_INFINITY })

    const refused = await ask(model).catch((thrown: unknown) => thrown)
    const unstreamed = await streamed(model).catch((thrown: unknown) => thrown)

    expect(refused).toMatchObject({ status, message: expect.stringContaining(message) })
    expect(unstreamed).toMatchObject({ status })
    expect(String(refused)).not.toContain('secret matters')
  })

  test.each([
    ['reset', 503],
    ['empty', 502],
    ['garbage', 502],
    ['html', 502],
    ['redirect', 502],
    ['quota', 503],
    ['bad-key', 503],
  ] as const)('fails by %s, which reaches the caller as %i', async (kind, status) => {
    const fault = kind === 'html' ? { kind, status: 200 } : { kind }
    sandbox.fault({ ...fault, vendor, operation, times: Number.POSITIVE_INFINITY })

    const whole = await ask(model).catch((thrown: unknown) => thrown)
    const stream = await streamed(model).catch((thrown: unknown) => thrown)

    expect([whole, stream]).toEqual([expect.objectContaining({ status }), expect.objectContaining({ status })])
  })

  test('breaks in the middle of a stream, which the caller sees', async () => {
    sandbox.reply({ when, chunks: ['one ', 'two ', 'three ', 'four'] })
    sandbox.fault({ kind: 'reset-mid-stream', events: 6, vendor, operation })

    const broken = await streamed(model).catch((thrown: unknown) => thrown)

    expect(broken).toBeInstanceOf(Error)
  })

  test('keeps the call, with its model, its key and its parsed body', async () => {
    await ask(model)

    const call = sandbox.requests.findLast((request) => request.operation === operation)
    expect(call).toMatchObject({ vendor, operation, body: expect.objectContaining({}) })
    expect(call?.model).toBe(UPSTREAM[model] ?? model)
    if (vendor === 'vertex' || vendor === 'amazon-bedrock') expect(call?.credentialId).toBeUndefined()
    else expect(JSON.stringify(gateway.routes())).toContain(`"${call?.credentialId}"`)
  })
})

describe('a reply', () => {
  const said = async (model: string, text = 'hello') => {
    const { choices } = await ask(model, { messages: [{ role: 'user', content: text }] })
    return choices[0]?.message.content
  }

  test('waits for a call that fits all of its conditions, the oldest first', async () => {
    sandbox.reply({ when: { model: 'qwen3-max', text: /sn?ow/ }, text: 'cold' })
    sandbox.reply({ when: { text: 'rain' }, text: 'wet', times: 2 })
    sandbox.reply({
      when: ({ vendor, headers }) => vendor === 'anthropic' && headers['x-api-key'] === KEY,
      text: 'Claude',
    })
    sandbox.reply({ text: 'any' })

    expect(await said('gpt-5.4', 'snow')).toBe('any')
    expect(await said('qwen3-max', 'snow')).toBe('cold')
    expect(await said('qwen3-max', 'snow')).toBe('You said: snow')
    expect(await said('gpt-5.4', 'rain')).toBe('wet')
    expect(await said('claude-sonnet-4-6', 'rain')).toBe('wet')
    expect(await said('claude-sonnet-4-6', 'rain')).toBe('Claude')
  })

  test('is gone after a reset, even one for all calls', async () => {
    sandbox.reply({ text: 'always', times: Number.POSITIVE_INFINITY })
    const before = [await said('gpt-5.4'), await said('gemini-2.5-flash')]

    sandbox.reset()

    expect([...before, await said('gpt-5.4')]).toEqual(['always', 'always', 'You said: hello'])
  })

  test('comes after the checks of the request, as at a vendor', async () => {
    sandbox.reply({ when: { vendor: 'openai' }, text: 'fine' })

    const refused = await ask('gpt-5.4', { messages: [{ role: 'tool', content: 'x', tool_call_id: 'call_1' }] }).catch(
      (thrown: unknown) => thrown,
    )

    expect(refused).toMatchObject({ status: 400 })
  })

  test('may be blocked by the filter of the vendor', async () => {
    sandbox.reply({ when: { vendor: 'openai' }, finishReason: 'content_filter' })

    const { choices } = await ask('gpt-5.4')

    expect(choices[0]?.finish_reason).toBe('content_filter')
  })

  test('rejects calls of every kind of model with its error, but no poll', async () => {
    const error = { status: 400, message: 'not today' }
    const calls: [string, () => Promise<unknown>][] = [
      ['voyage', () => client.embeddings.create({ model: 'vy-4', input: 'hello' })],
      ['gemini', () => client.embeddings.create({ model: 'gmn-embedding-001', input: 'hello' })],
      ['openai', () => client.images.generate({ model: 'gp-image-2', prompt: 'a sail' })],
      ['gemini', () => client.images.generate({ model: 'gmn-3.1-flash-image-preview', input: 'a sail' })],
      [
        'dashscope',
        () => client.videos.generate({ model: 'wv2.6-t2v', duration: 5, resolution: '720p', input: { prompt: 'x' } }),
      ],
    ]
    for (const [vendor, call] of calls) {
      sandbox.reply({ when: { vendor }, error })
      await expect(call(), vendor).rejects.toMatchObject({ status: 400, message: expect.stringContaining('not today') })
    }
    expect(sandbox.requests.map(({ model }) => model)).not.toContain(undefined)
  })

  test.each<[object, string]>([
    [{}, 'reply: say text, chunks, toolCalls, reasoning, finishReason, usage, scores, error or afterMs'],
    [{ tex: 'x' }, 'reply: there is no member "tex"; it has when, text'],
    [{ text: 'x', chunks: ['x'] }, 'reply: text and chunks are the same; give one'],
    [{ text: 'x', error: { status: 500 } }, 'reply: error takes the place of an answer'],
    [{ error: { status: 200 } }, 'reply: error.status must be a whole number from 400 to 599'],
    [{ text: 'x', afterMs: -1 }, 'reply: afterMs must be a number of at least 0'],
    [{ text: 'x', times: 0 }, 'reply: times must be a whole number above 0, or Infinity'],
  ])('%j is refused', (reply, message) => {
    expect(() => sandbox.reply(reply as ScriptedReply)).toThrow(TypeError)
    expect(() => sandbox.reply(reply as ScriptedReply)).toThrow(message)
  })

  test('may begin later, by the clock', async () => {
    const clock = fakeClock()
    const late = sandboxVendors({ clock })
    late.reply({ afterMs: 5_000 })
    const transport = late.transport()
    const statuses: number[] = []
    const body = JSON.stringify({ model: 'gpt-5.4', messages: [{ role: 'user', content: 'hello' }] })
    transport.send(
      {
        ...{ method: 'POST', origin: 'https://api.example', path: '/v1/chat/completions', body },
        headers: ['authorization', 'Bearer any', 'content-type', 'application/json'],
        ...{ firstByteTimeoutMs: 60_000, idleTimeoutMs: 60_000 },
      },
      { onHead: (status) => void statuses.push(status), onData: () => {}, onEnd: () => {}, onFailure: () => {} },
    )
    await late.nextRequest()

    clock.advance(4_999)
    const before = [...statuses]
    clock.advance(1)

    expect([before, statuses]).toEqual([[], [200]])
    await transport.close()
  })

  test('matches the model of a form too', async () => {
    const image = new Uint8Array(drawPicture({ width: 64, height: 64, format: 'png', seed: 'one' }))
    sandbox.reply({
      when: { operation: 'image-edits', model: 'gpt-image-1' },
      error: { status: 400, message: 'no edits' },
    })

    await expect(client.images.edit({ model: 'gp-image-1', prompt: 'a sail', image })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('no edits'),
    })
  })
})
