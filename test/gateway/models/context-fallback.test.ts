import { createServer, type ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ModelDefinition } from '../../../src/catalog/model.ts'
import type { GatewayEvent } from '../../../src/core/events.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

/** Vendor's response to a prompt that is too long, and its answer otherwise. */
interface Windowed {
  readonly origin: string
  /** Maximum size of a request that a model accepts, in bytes. */
  readonly windows: Record<string, number>
  readonly asked: string[]
  /** Status of every call. With 0, the window decides. */
  status: number
  /** Reports the window inside a stream that has begun, and not by status. */
  refusesInStream: boolean
  close(): Promise<void>
}

/** A vendor of both dialects behind a real socket that refuses what is larger than the window of its model. */
async function windowedVendor(): Promise<Windowed> {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const { model, stream } = JSON.parse(text) as { model: string; stream?: boolean }
    vendor.asked.push(model)
    const isClaude = request.url?.endsWith('/messages') === true
    if (vendor.status !== 0) return void json(response, vendor.status, { error: { message: 'no', type: 'error' } })
    if (text.length > (vendor.windows[model] ?? Number.POSITIVE_INFINITY)) {
      const body = refusal(isClaude)
      if (!vendor.refusesInStream) return void json(response, 400, body)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void response.end(`data: ${JSON.stringify(body)}\n\n`)
    }
    const answer = isClaude ? claude : chat
    answer(response, model, stream === true)
  })
  const { origin, close } = await listen(server)
  const vendor: Windowed = {
    origin,
    windows: {},
    asked: [],
    status: 0,
    refusesInStream: false,
    close,
  }
  return vendor
}

const TOO_LONG = 'prompt is too long: 210000 tokens > 200000 maximum'
const MAXIMUM = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."

const refusal = (isClaude: boolean): object =>
  isClaude
    ? { type: 'error', error: { type: 'invalid_request_error', message: TOO_LONG } }
    : { error: { message: MAXIMUM, type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' } }

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

function events(response: ServerResponse, list: readonly (object | string)[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const texts = list.map((event) => (typeof event === 'string' ? event : JSON.stringify(event)))
  response.end(texts.map((text) => `data: ${text}\n\n`).join(''))
}

function chat(response: ServerResponse, model: string, isStream: boolean): void {
  const head = { id: 'chatcmpl-1', created: 1, model }
  const usage = { prompt_tokens: 3000, completion_tokens: 10, total_tokens: 3010 }
  const message = { role: 'assistant', content: 'answered' }
  if (!isStream) {
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    return void json(response, 200, { ...head, object: 'chat.completion', choices, usage })
  }
  const chunk = { ...head, object: 'chat.completion.chunk' }
  events(response, [
    { ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { ...chunk, choices: [], usage },
    '[DONE]',
  ])
}

function claude(response: ServerResponse, model: string, isStream: boolean): void {
  const usage = { input_tokens: 3000, output_tokens: 10 }
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model, stop_reason: null, stop_sequence: null }
  const text = { type: 'text', text: 'answered' }
  if (!isStream) return void json(response, 200, { ...message, content: [text], stop_reason: 'end_turn', usage })
  events(response, [
    { type: 'message_start', message: { ...message, content: [], usage } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'answered' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
    { type: 'message_stop' },
  ])
}

/** Prices of the models: a larger window costs more. */
const DOLLARS: Readonly<Record<string, string>> = { small: '1', middle: '2', large: '5' }
const PRICES = {
  currency: 'USD' as const,
  prices: Object.entries(DOLLARS).flatMap(([model, amount]) => [
    { model, meter: 'input_token' as const, amount, per: 1_000_000 },
    { model, meter: 'output_token' as const, amount, per: 1_000_000 },
  ]),
}

let vendor: Windowed
let started: StartedGateway

beforeEach(async () => {
  vendor = await windowedVendor()
})

afterEach(async () => {
  await started.close()
  await vendor.close()
})

type Rows = Partial<Record<'small' | 'middle' | 'large', Partial<ModelDefinition>>>

/** Models `small`, `middle` and `large`, each with the wider ones as its fallbacks. */
async function start(rows: Rows = {}, options: Partial<GatewayOptions> = {}): Promise<void> {
  const row = (id: 'small' | 'middle' | 'large', fallbacks: readonly string[]): ModelDefinition => ({
    id,
    kind: 'chat',
    vendor: 'own',
    fallbacks,
    ...rows[id],
    limits: { maxOutputTokens: 100, ...rows[id]?.limits },
  })
  started = await startGateway({
    vendors: [
      openaiCompatible({ id: 'own', baseURL: `${vendor.origin}/v1`, apiKey: 'key-own', models: [] }),
      anthropic({ apiKey: 'key-claude', baseURL: vendor.origin }),
    ],
    models: [row('small', ['middle', 'large']), row('middle', ['large']), row('large', [])],
    prices: PRICES,
    ...options,
  })
}

const LONG = 'word '.repeat(2400)

const PATHS: Readonly<Record<string, (text: string) => object>> = {
  '/v1/chat/completions': (content) => ({ messages: [{ role: 'user', content }] }),
  '/v1/messages': (content) => ({ max_tokens: 50, messages: [{ role: 'user', content }] }),
  '/v1/responses': (input) => ({ input }),
}

const ask = (path: string, text = LONG, rest: object = {}): Promise<Response> =>
  started.post(path, { model: 'small', ...PATHS[path]!(text), ...rest })

const eventsOf = <Type extends GatewayEvent['type']>(type: Type): Extract<GatewayEvent, { type: Type }>[] =>
  started.events.filter((event): event is Extract<GatewayEvent, { type: Type }> => event.type === type)

const claudes: Rows = { small: { vendor: 'anthropic' } }

describe('a prompt that a vendor refuses as too long', () => {
  const ways = Object.keys(PATHS).flatMap((path) =>
    [false, true].flatMap((stream) => [{}, claudes].map((rows) => [path, stream, rows] as const)),
  )

  test.each(ways)('%s, stream %s: is answered by the fallback that takes it', async (path, stream, rows) => {
    await start(rows)
    vendor.windows['small'] = 4_000
    const before = await started.account()
    const response = await ask(path, LONG, { stream })
    const text = await response.text()
    const ended = await started.ended(response)

    expect([response.status, vendor.asked]).toEqual([200, ['small', 'middle']])
    expect(text).toContain('answered')
    expect(text).not.toContain('too long')
    expect(eventsOf('attempt-failed')).toMatchObject([
      { model: 'small', reason: 'context_length_exceeded', status: 400, message: undefined },
    ])
    // Two dollars a million: the price of the model that answered.
    expect(ended).toMatchObject({ model: 'middle', status: 200, costNanoDollars: 6_020_000n })
    expect(await started.account()).toEqual({ balance: before.balance - 6_020_000n, held: 0n })
  })

  test('is said in the record of usage', async () => {
    await start()
    vendor.windows['small'] = 4_000
    await (await ask('/v1/chat/completions')).text()
    const { records } = await started.gateway.usage.records({ accountId: 'acct_test' })

    expect(records[0]?.attempts?.map(({ model, outcome, reason }) => [model, outcome, reason])).toEqual([
      ['small', 'failed', 'context_length_exceeded'],
      ['middle', 'answered', undefined],
    ])
  })

  test('may be refused inside a stream that has not given anything yet', async () => {
    await start()
    vendor.windows['small'] = 4_000
    vendor.refusesInStream = true

    const response = await ask('/v1/chat/completions', LONG, { stream: true })

    expect(await response.text()).toContain('answered')
    expect(vendor.asked).toEqual(['small', 'middle'])
  })

  test('goes on to the next one that is larger', async () => {
    await start()
    vendor.windows['small'] = 4_000
    vendor.windows['middle'] = 8_000

    expect((await ask('/v1/chat/completions')).headers.get('x-signalbox-vendor')).toBe('own')
    expect(vendor.asked).toEqual(['small', 'middle', 'large'])
  })

  test('is not sent to a model whose window is no larger', async () => {
    await start({
      small: { limits: { contextTokens: 8_000 } },
      middle: { limits: { contextTokens: 8_000 } },
      large: { limits: { contextTokens: 9_000 } },
    })
    vendor.windows['small'] = 4_000
    await (await ask('/v1/chat/completions')).text()

    expect(vendor.asked).toEqual(['small', 'large'])
  })

  test.each(Object.keys(PATHS))('%s: is the vendor’s error where none takes it, and free', async (path) => {
    await start(claudes)
    for (const id of Object.keys(DOLLARS)) vendor.windows[id] = 4_000
    const before = await started.account()
    const response = await ask(path)

    expect(response.status).toBe(400)
    expect(await response.text()).toContain(MAXIMUM)
    expect(vendor.asked).toEqual(['small', 'middle', 'large'])
    expect(await started.account()).toEqual({ balance: before.balance, held: 0n })
  })

  test('is the error of the requested model where no other may take it', async () => {
    await start({ ...claudes, small: { vendor: 'anthropic', fallbacks: [] } })
    vendor.windows['small'] = 4_000
    const response = await ask('/v1/messages')

    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error', message: TOO_LONG } })
    expect(vendor.asked).toEqual(['small'])
  })

  test('goes nowhere for another 400', async () => {
    await start()
    vendor.status = 400

    expect((await ask('/v1/chat/completions')).status).toBe(400)
    expect(vendor.asked).toEqual(['small'])
  })

  test.each<readonly [GatewayOptions['routing'], string[]]>([
    [{ fallback: 'never' }, ['small']],
    [{ fallback: { statuses: [503] } }, ['small']],
    [{ fallback: { statuses: [400] } }, ['small', 'middle']],
  ])('falls back as routing allows: %j', async (routing, asked) => {
    await start({}, { routing: routing! })
    vendor.windows['small'] = 4_000
    await (await ask('/v1/chat/completions')).text()

    expect(vendor.asked).toEqual(asked)
  })

  test('opens no circuit and takes nothing from the retry budget', async () => {
    await start()
    vendor.windows['small'] = 4_000
    const statuses = new Set<number>()
    for (let count = 0; count < 20; count++) {
      const response = await ask('/v1/chat/completions')
      await response.text()
      statuses.add(response.status)
    }

    expect([...statuses]).toEqual([200])
    expect(eventsOf('circuit-opened')).toEqual([])
  })
})

describe('a prompt that is certainly longer than the window of its model', () => {
  // About 4,020 tokens by the gateway's estimate.
  const windows = (small: number, middle: number, large?: number): Rows => ({
    small: { limits: { contextTokens: small } },
    middle: { limits: { contextTokens: middle } },
    ...(large === undefined ? {} : { large: { limits: { contextTokens: large } } }),
  })

  test.each(Object.keys(PATHS).flatMap((path) => [false, true].map((stream) => [path, stream] as const)))(
    '%s, stream %s: goes to the first fallback that holds it, without a failed call',
    async (path, stream) => {
      await start(windows(2_000, 3_000, 10_000))
      const before = await started.account()
      const response = await ask(path, LONG, { stream })

      expect(await response.text()).toContain('answered')
      expect(vendor.asked).toEqual(['large'])
      expect(eventsOf('attempt-failed')).toEqual([])
      expect(eventsOf('model-skipped')).toMatchObject([
        { model: 'small', reason: 'context_length_exceeded', contextTokens: 2_000, fallback: 'large' },
      ])
      // Five dollars a million.
      expect((await started.ended(response)).costNanoDollars).toBe(15_050_000n)
      expect(await started.account()).toEqual({ balance: before.balance - 15_050_000n, held: 0n })
    },
  )

  test.each<readonly [string, Rows, object, string[]]>([
    ['within 1.3 times the window', windows(3_200, 10_000), {}, ['small']],
    ['beyond it', windows(3_000, 10_000), {}, ['middle']],
    ['beyond it with the output that is asked for', windows(3_200, 10_000), { max_tokens: 500 }, ['middle']],
    ['where no fallback holds it', windows(2_000, 3_000, 3_500), {}, ['small']],
    [
      'where the windows of the fallbacks are not known',
      { small: { limits: { contextTokens: 2_000 } } },
      {},
      ['small'],
    ],
    ['where its own window is not known', { middle: { limits: { contextTokens: 10_000 } } }, {}, ['small']],
  ])('%s', async (_when, rows, rest, asked) => {
    await start(rows)
    await (await ask('/v1/chat/completions', LONG, rest)).text()

    expect(vendor.asked).toEqual(asked)
  })

  test('does not count images, whose size is estimated far too high', async () => {
    await start(windows(3_000, 100_000))
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(40_000)}` } }
    const content = [{ type: 'text', text: 'what is it' }, image]
    await started.post('/v1/chat/completions', { model: 'small', messages: [{ role: 'user', content }] })

    expect(vendor.asked).toEqual(['small'])
  })

  test.each<readonly [GatewayOptions['routing'], string]>([
    [{ fallback: { statuses: [503] } }, 'small'],
    [{ fallback: { statuses: [400, 503] } }, 'middle'],
    [{ fallback: 'never' }, 'small'],
  ])('goes where routing allows: %j', async (routing, asked) => {
    await start(windows(2_000, 10_000), { routing: routing! })
    await (await ask('/v1/chat/completions')).text()

    expect(vendor.asked[0]).toBe(asked)
  })

  test('is asked of its own model where no other can take the request at all', async () => {
    await start({
      small: { limits: { contextTokens: 2_000 } },
      // Refuses the request before it is sent.
      middle: { vendor: 'anthropic', limits: { contextTokens: 10_000 } },
      large: { vendor: 'anthropic', limits: { contextTokens: 10_000 } },
    })
    vendor.windows['small'] = 4_000
    const response = await ask('/v1/chat/completions', LONG, { n: 2 })

    expect(vendor.asked).toEqual(['small'])
    expect(await response.text()).toContain(MAXIMUM)
  })
})
