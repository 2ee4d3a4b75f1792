import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { type Preset, presets } from '../../../src/vendors/presets/presets.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

const PATH = '/v1/completions'
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const chat = (id: string, limits = {}) => ({ id, kind: 'chat', limits: { maxOutputTokens: 8_192, ...limits } }) as const
const priced = (...models: string[]) => ({
  currency: 'USD' as const,
  prices: models.flatMap((model) => [
    { model, meter: 'input_token' as const, amount: '1.00', per: 1_000_000 },
    { model, meter: 'output_token' as const, amount: '10.00', per: 1_000_000 },
  ]),
})

const MODELS = {
  deepseek: 'deepseek-v4-flash',
  mistral: 'codestral-latest',
  together: 'meta-llama/base',
  fireworks: 'accounts/fireworks/models/base',
  ollama: 'qwen2.5-coder',
  vllm: 'starcoder2',
  lmstudio: 'local-coder',
  llamacpp: 'gguf-coder',
} as const
type Server = keyof typeof MODELS

/** A gateway with one model of each server that completes texts, and a chat model of OpenAI. */
async function start(options: Partial<GatewayOptions> = {}) {
  const servers = sandboxVendors()
  const { origin } = await servers.listen()
  closing.push(() => servers.close())
  const connection = { apiKey: 'vendor-key-canary-7f3a' }
  const vendors = Object.entries(MODELS).map(([id, model]) => {
    const preset: Preset = presets[id as Server]
    const version = /\/v\d+$/.exec(preset.baseURL)?.[0] ?? ''
    const baseURL = `${origin}/presets/${id}${version}`
    return openaiCompatible(preset, { ...connection, baseURL, models: [chat(model)] })
  })
  const started = await startGateway({
    vendors: [...vendors, openai({ ...connection, baseURL: origin, passUnknownModels: true })],
    models: [{ id: 'talker', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', limits: { maxOutputTokens: 100 } }],
    prices: priced('talker', ...Object.values(MODELS)),
    ...options,
  })
  closing.push(() => started.close())
  const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
  return { ...started, servers, client, asked: () => servers.requests.at(-1)! }
}

async function errorOf(response: Response): Promise<{ code: string; param: string; message: string }> {
  return ((await response.json()) as { error: { code: string; param: string; message: string } }).error
}

async function chunksOf<Chunk>(stream: AsyncIterable<Chunk>): Promise<Chunk[]> {
  const chunks: Chunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

const hookedBy = (started: StartedGateway) => started.events.filter(({ type }) => type === 'request-ended').length

describe.each(Object.entries(MODELS) as [Server, string][])('the server of %s', (id, model) => {
  const path = `/presets/${id}${id === 'deepseek' ? '/beta' : id === 'fireworks' || id === 'together' ? '/v1' : '/v1'}${id === 'mistral' ? '/fim' : ''}/completions`

  test('completes a text for the official SDK and charges the tokens', async () => {
    const { client, asked, account, nextEnded } = await start()
    const ended = nextEnded()
    const before = await account()

    const answer = await client.completions.create({ model, prompt: 'def fib(a):', max_tokens: 20 })

    expect(answer).toMatchObject({ object: 'text_completion', model })
    expect(answer.choices).toEqual([{ index: 0, text: 'You said: def fib(a):', logprobs: null, finish_reason: 'stop' }])
    expect(answer.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 })
    expect([asked().path, asked().model]).toEqual([path, model])
    expect((await ended).usage).toMatchObject({ inputTokens: 3, outputTokens: 4 })
    const after = await account()
    expect([before.balance - after.balance, after.held]).toEqual([3n * 1_000n + 4n * 10_000n, 0n])
  })

  test('streams a completion, and reports usage only if it is requested', async () => {
    const { client } = await start()
    const request = { model, prompt: 'def fib(a):', max_tokens: 20, stream: true } as const
    const texts: string[] = []
    const usages: unknown[] = []
    let finish: string | null = null

    for await (const chunk of await client.completions.create(request)) {
      expect(chunk).toMatchObject({ object: 'text_completion', model })
      expect('usage' in chunk).toBe(false)
      texts.push(chunk.choices[0]!.text)
      finish = chunk.choices[0]!.finish_reason
    }
    for await (const chunk of await client.completions.create({ ...request, stream_options: { include_usage: true } }))
      if (chunk.usage) usages.push(chunk.usage)

    expect([texts.join(''), finish]).toEqual(['You said: def fib(a):', 'stop'])
    expect(usages).toEqual([
      expect.objectContaining({ prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, cost: '0.000043' }),
    ])
  })
})

describe('POST /v1/completions', () => {
  test.each(['deepseek', 'mistral', 'ollama'] as const)('sends the suffix to %s', async (id) => {
    const { client, asked } = await start()
    await client.completions.create({ model: MODELS[id], prompt: 'a = [', suffix: ']', max_tokens: 5 })
    expect(asked().body).toEqual({ model: MODELS[id], prompt: 'a = [', suffix: ']', max_tokens: 5 })
  })

  test.each(['together', 'llamacpp'] as const)('rejects a suffix for %s, which would ignore it', async (id) => {
    const { post } = await start()
    const response = await post(PATH, { model: MODELS[id], prompt: 'a = [', suffix: ']', max_tokens: 5 })
    expect([response.status, await errorOf(response)]).toMatchObject([400, { param: 'suffix' }])
  })

  test('completes several prompts several times, and counts each completion that was made', async () => {
    const { client, account } = await start()
    const before = await account()

    const answer = await client.completions.create({
      ...{ model: MODELS.vllm, prompt: ['one', 'two'], max_tokens: 20, n: 2, best_of: 3, echo: true },
    })

    expect(answer.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'oneYou said: one'],
      [1, 'oneYou said: one'],
      [2, 'twoYou said: two'],
      [3, 'twoYou said: two'],
    ])
    expect(before.balance - (await account()).balance).toBe(2n * 1_000n + 18n * 10_000n)
  })

  test.each([
    ['a text', 'word', {}, 1],
    ['several texts', ['one', 'two', 'three'], {}, 3],
    ['n', 'word', { n: 4 }, 4],
    ['best_of', ['one', 'two'], { n: 2, best_of: 5 }, 10],
    ['token ids', [5, 6, 7], {}, 1],
    ['lists of token ids', [[5, 6], [7]], { n: 2 }, 4],
  ])('holds for each completion of %s', async (_name, prompt, fields, made) => {
    const { post } = await start()
    const body = { model: MODELS.vllm, prompt, max_tokens: 1_000, ...fields }

    const response = await post('/v1/estimate', { endpoint: 'completions', body })
    const estimate = (await response.json()) as { usage: Record<string, number> }

    expect(estimate.usage['outputTokens']).toBe(1_000 * made)
    expect(estimate.usage['inputTokens']).toBeGreaterThanOrEqual(Array.isArray(prompt) ? prompt.flat().length : 1)
  })

  test('sends a bound to the vendor if the request has none', async () => {
    const { post, asked } = await start()
    const response = await post(PATH, { model: MODELS.vllm, prompt: 'word' })

    expect(response.headers.get('x-signalbox-max-output-tokens')).toBe('8192')
    expect(asked().body).toMatchObject({ max_tokens: 8_192 })
  })

  test('lowers a bound above the longest completion of DeepSeek, and holds for what it sends', async () => {
    const { post, asked } = await start()
    const body = { model: MODELS.deepseek, prompt: 'word', max_tokens: 8_000 }

    expect((await post(PATH, body)).status).toBe(200)
    expect(asked().body).toMatchObject({ max_tokens: 4_096 })
    const estimate = await (await post('/v1/estimate', { endpoint: 'completions', body })).json()
    expect(estimate).toMatchObject({ usage: { outputTokens: 4_096 } })
  })

  test.each([
    ['deepseek', { prompt: ['a', 'b'] }, 'prompt'],
    ['mistral', { prompt: [1, 2] }, 'prompt'],
    ['mistral', { n: 2 }, 'n'],
    ['mistral', { echo: true }, 'echo'],
    ['deepseek', { best_of: 2 }, 'best_of'],
    ['llamacpp', { n_predict: 100_000 }, 'n_predict'],
    ['vllm', { n_predict: 100_000 }, 'n_predict'],
  ] as const)('rejects for %s what it does not support: %j', async (id, fields, param) => {
    const { post, account } = await start()
    const response = await post(PATH, { model: MODELS[id], prompt: 'word', max_tokens: 5, ...fields })

    expect([response.status, await errorOf(response)]).toMatchObject([400, { code: 'unsupported_parameter', param }])
    expect(await account()).toMatchObject({ held: 0n })
  })

  test('leaves out for Mistral what changes nothing, and renames the seed', async () => {
    const { post, asked } = await start()
    const fields = { n: 1, best_of: 1, echo: false, logprobs: null, presence_penalty: 0, user: 'me', seed: 7 }

    expect((await post(PATH, { model: MODELS.mistral, prompt: 'word', max_tokens: 5, ...fields })).status).toBe(200)
    expect(asked().body).toEqual({ model: MODELS.mistral, prompt: 'word', max_tokens: 5, random_seed: 7 })
  })

  test('names the endpoint of chats for a model that completes no texts, and holds nothing', async () => {
    const { post, account } = await start()
    const response = await post(PATH, { model: 'talker', prompt: 'word', max_tokens: 5 })

    expect([response.status, await errorOf(response)]).toEqual([
      400,
      expect.objectContaining({
        code: 'endpoint_model_mismatch',
        param: 'model',
        message: 'The model "talker" does not complete texts. Use a chat endpoint, such as POST /v1/chat/completions.',
      }),
    ])
    expect(await account()).toMatchObject({ held: 0n, balance: 100n * 10n ** 9n })
  })

  test('rejects a service tier that has no price', async () => {
    const { post, servers } = await start()
    const response = await post(PATH, {
      model: MODELS.fireworks,
      prompt: 'word',
      max_tokens: 5,
      service_tier: 'priority',
    })

    expect([response.status, (await errorOf(response)).param]).toEqual([400, 'service_tier'])
    expect(servers.requests).toEqual([])
  })

  test.each([
    [{ prompt: undefined }, 'prompt'],
    [{ prompt: [] }, 'prompt'],
    [{ prompt: 'a', n: 0 }, 'n'],
    [{ prompt: 'a', best_of: 129 }, 'best_of'],
    [{ prompt: 'a', max_tokens: -1 }, 'max_tokens'],
    [{ prompt: 'a', stream_options: 'yes' }, 'stream_options'],
  ])('rejects the malformed request %j', async (fields, param) => {
    const { post } = await start()
    const response = await post(PATH, { model: MODELS.vllm, ...fields })
    expect([response.status, await errorOf(response)]).toMatchObject([400, { code: 'invalid_request', param }])
  })

  test('shows hooks the prompt, the suffix and the answer, whole and streamed', async () => {
    const asked: string[] = []
    const answered: string[] = []
    const { client } = await start({
      hooks: [
        {
          name: 'upper-case',
          request: (call) => {
            asked.push(...call.texts().map(({ id, role, text }) => `${id} ${role} ${text}`))
            return undefined
          },
          text: { holdBack: { chars: 1 }, check: ({ held, fresh }) => ({ replace: `${held}${fresh}`.toUpperCase() }) },
        },
        {
          name: 'reader',
          answer: (answer) => {
            answered.push(...answer.texts().map(({ id, text }) => `${id} ${text}`))
            return undefined
          },
        },
      ],
    })
    const request = { model: MODELS.ollama, prompt: 'abc', suffix: 'xyz', max_tokens: 20 }

    const whole = await client.completions.create(request)
    const texts: string[] = []
    for await (const chunk of await client.completions.create({ ...request, stream: true }))
      texts.push(chunk.choices[0]?.text ?? '')

    expect([whole.choices[0]!.text, texts.join('')]).toEqual(['YOU SAID: ABC', 'YOU SAID: ABC'])
    expect(asked.slice(0, 2)).toEqual(['suffix user xyz', 'prompt user abc'])
    expect(answered[0]).toBe('choices[0].text You said: abc')
  })

  test('sends a denied answer without its text, whole and streamed', async () => {
    const check = () => ({ deny: { message: 'Withheld.' } })
    const { client } = await start({ hooks: [{ name: 'deny', text: { holdBack: { chars: 1 }, check } }] })
    const request = { model: MODELS.vllm, prompt: 'abc', max_tokens: 20 }
    const choice = { index: 0, text: '', logprobs: null, finish_reason: 'content_filter' }

    const whole = await client.completions.create(request)
    const chunks = await chunksOf(await client.completions.create({ ...request, stream: true }))

    expect([whole.choices, chunks.map(({ choices }) => choices)]).toEqual([[choice], [[choice]]])
  })

  test('answers with the text of a hook, whole and streamed, and calls no vendor', async () => {
    const { client, servers } = await start({
      hooks: [{ name: 'canned', request: () => ({ answer: { text: 'closed' } }) }],
    })
    const request = { model: MODELS.vllm, prompt: 'abc', max_tokens: 20 }

    const whole = await client.completions.create(request)
    const stream = await client.completions.create({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await chunksOf(stream)

    expect(whole.choices).toEqual([{ index: 0, text: 'closed', logprobs: null, finish_reason: 'stop' }])
    expect(chunks.map(({ choices }) => choices[0]?.text)).toEqual(['closed', undefined])
    expect(servers.requests).toEqual([])
  })

  test('answers an equal request from the cache', async () => {
    const started = await start({ cache: {} })
    const request = { model: MODELS.vllm, prompt: 'word', max_tokens: 5, temperature: 0 }
    const first = await started.post(PATH, request)
    await first.text()
    const second = await started.post(PATH, request)

    expect(await second.json()).toMatchObject({ choices: [{ text: 'You said: word' }] })
    expect(started.servers.requests).toHaveLength(1)
    expect(hookedBy(started)).toBe(2)
  })

  test('runs once for one Idempotency-Key', async () => {
    const { post, servers } = await start()
    const request = { model: MODELS.vllm, prompt: 'word', max_tokens: 5 }
    const headers = { 'idempotency-key': 'one' }
    const first = await (await post(PATH, request, headers)).text()
    const second = await post(PATH, request, headers)

    expect([await second.text(), second.headers.get('idempotent-replayed')]).toEqual([first, 'true'])
    expect(servers.requests).toHaveLength(1)
  })

  test('charges an estimate if the vendor reports no usage, and shows it to a stream that requested usage', async () => {
    const { post, servers, account } = await start()
    servers.fault({ kind: 'no-usage' })
    const before = await account()
    const request = { model: MODELS.vllm, prompt: 'word', max_tokens: 20, stream: true }
    const text = await (await post(PATH, { ...request, stream_options: { include_usage: true } })).text()

    expect(text).toMatch(/"choices":\[\],"usage":\{"prompt_tokens":\d+,"completion_tokens":4,.*"cost":"0.0000/)
    expect(before.balance - (await account()).balance).toBeGreaterThan(40_000n)
  })

  test('ends with an error and charges what came if the stream breaks', async () => {
    const { post, servers, account, nextEnded } = await start()
    servers.fault({ kind: 'end-early', events: 2 })
    const ended = nextEnded()
    const text = await (
      await post(PATH, { model: MODELS.vllm, prompt: 'one two', max_tokens: 20, stream: true })
    ).text()

    expect(text).not.toContain('[DONE]')
    expect(text).toContain('"error"')
    await ended
    expect((await account()).held).toBe(0n)
  })

  test('makes a 502 of an answer without texts', async () => {
    const { post, servers } = await start()
    servers.fault({ kind: 'half-json' })
    const response = await post(PATH, { model: MODELS.vllm, prompt: 'one', max_tokens: 20 })
    expect(response.status).toBe(502)
  })

  test('completes texts at any compatible server, under the models that the operator lists', async () => {
    const servers = sandboxVendors()
    const { origin } = await servers.listen()
    closing.push(() => servers.close())
    const own = openaiCompatible({ id: 'own', baseURL: `${origin}/presets/vllm/v1`, models: [chat('base')] })
    const { client } = await start({ vendors: [own], models: [], prices: priced('base') })

    const answer = await client.completions.create({ model: 'base', prompt: 'word', max_tokens: 5 })

    expect(answer.choices[0]!.text).toBe('You said: word')
  })
})
