import { expect, test } from 'vitest'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import type { Transport } from '../../src/transport/transport.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { openai } from '../../src/vendors/openai/openai.ts'

const KEY = 'sk-bench-0123456789'
const CONTENT_EVENTS = 200
/** Rounds that are not counted, because their code is not yet optimized. */
const WARM_UP_ROUNDS = 6
const ROUNDS = 11
/** Enough requests that every round has collections; otherwise they would affect one of the loads by chance. */
const CALLS_PER_ROUND = 400

const WORDS = 'the signal stands at clear and the points are set for the branch line'.split(' ')
const word = (index: number): string => ` ${WORDS[index % WORDS.length]}`

const USAGE = {
  input_tokens: 212,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 200,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 412,
}
const TEXT = Array.from({ length: CONTENT_EVENTS }, (_, index) => word(index)).join('')

const event = (type: string, members: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`

function responseOf(output: readonly object[], usage: object | null, status: string): object {
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1_795_166_047,
    status,
    model: 'gpt-bench-2026-03-05',
    output,
    usage,
  }
}

/** A whole response, and a stream of it with the padding that OpenAI adds unless told otherwise. */
function vendorAnswers(): { readonly whole: Buffer; readonly burst: Buffer } {
  const part = { type: 'output_text', text: TEXT, annotations: [], logprobs: [] }
  const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [part] }
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 }
  const begun = { response: responseOf([], null, 'in_progress') }
  const events: [string, object][] = [
    ['response.created', begun],
    ['response.in_progress', begun],
    ['response.output_item.added', { output_index: 0, item: { ...item, status: 'in_progress', content: [] } }],
    ['response.content_part.added', { ...place, part: { ...part, text: '' } }],
    ...Array.from({ length: CONTENT_EVENTS }, (_, index): [string, object] => [
      'response.output_text.delta',
      { ...place, delta: word(index), logprobs: [], obfuscation: 'x9Yz1aB2' },
    ]),
    ['response.output_text.done', { ...place, text: TEXT, logprobs: [] }],
    ['response.content_part.done', { ...place, part }],
    ['response.output_item.done', { output_index: 0, item }],
    ['response.completed', { response: responseOf([item], USAGE, 'completed') }],
  ]
  const burst = events.map(([type, members], sequence_number) => event(type, { sequence_number, ...members })).join('')
  return { whole: Buffer.from(JSON.stringify(responseOf([item], USAGE, 'completed'))), burst: Buffer.from(burst) }
}

function chatAnswer(): Buffer {
  const message = { role: 'assistant', content: TEXT, refusal: null, annotations: [] }
  const { input_tokens: prompt_tokens, output_tokens: completion_tokens, total_tokens } = USAGE
  return Buffer.from(
    JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1_795_166_047,
      model: 'gpt-bench-2026-03-05',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens, completion_tokens, total_tokens },
    }),
  )
}

/** A stream of Messages. */
function messagesBurst(): Buffer {
  const usage = { input_tokens: 212, output_tokens: 200 }
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-bench', content: [], usage }
  const delta = (index: number): string =>
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: word(index) } })
  return Buffer.from(
    [
      event('message_start', { message }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      ...Array.from({ length: CONTENT_EVENTS }, (_, index) => delta(index)),
      event('content_block_stop', { index: 0 }),
      event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage }),
      event('message_stop', {}),
    ].join(''),
  )
}

/** A vendor in the same process. */
function vendorTransport(): Transport {
  const { whole, burst } = vendorAnswers()
  const chat = chatAnswer()
  const messages = messagesBurst()
  return {
    send({ path, body }, handler) {
      const isStream = String(body).includes('"stream":true')
      const streamed = path.endsWith('/messages') ? messages : burst
      const plain = path.endsWith('/responses') ? whole : chat
      queueMicrotask(() => {
        handler.onHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
        handler.onData(isStream ? streamed : plain)
        handler.onEnd()
      })
      return { abort() {}, pause() {}, resume() {} }
    },
    close: () => Promise.resolve(),
  }
}

async function openGateway(): Promise<Gateway> {
  const row = { kind: 'chat', limits: { maxOutputTokens: 8_192 } } as const
  const models = [
    { ...row, id: 'bench', vendor: 'openai', upstream: 'gpt-bench' },
    { ...row, id: 'bench-pro', vendor: 'openai', upstream: 'gpt-bench-pro', protocol: 'responses' },
    { ...row, id: 'bench-claude', vendor: 'anthropic', upstream: 'claude-bench' },
  ]
  const price = (model: string, meter: 'input_token' | 'output_token') => ({
    model,
    meter,
    amount: '1.00',
    per: 1_000_000,
  })
  const gateway = createGateway({
    vendors: [openai({ apiKey: 'vendor-key' }), anthropic({ apiKey: 'vendor-key' })],
    models,
    prices: {
      currency: 'USD',
      prices: models.flatMap(({ id }) => [price(id, 'input_token'), price(id, 'output_token')]),
    },
    keys: [{ key: KEY, account: 'bench' }],
    limits: { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 100_000 },
    transport: vendorTransport(),
  })
  await gateway.start()
  await gateway.accounts.credit('bench', '1000000')
  return gateway
}

/** One request; resolves when its answer has ended. */
function send(gateway: Gateway, path: string, body: Buffer): Promise<void> {
  const headers: Record<string, string> = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  return new Promise((resolve, reject) => {
    let status = 0
    gateway.handle(
      {
        method: 'POST',
        path,
        query: '',
        header: (name) => headers[name],
        readBody: (_limit, listener) => listener(undefined, [body]),
      },
      {
        closed: false,
        head(given) {
          status = given
        },
        write: () => true,
        end() {
          if (status === 200) resolve()
          else reject(new Error(`status ${status}`))
        },
        destroy: () => reject(new Error('destroyed')),
        onDrain() {},
        onClose() {},
      },
    )
  })
}

type Load = readonly [path: string, body: Buffer]

const QUESTION =
  'In which order do you let the trains in, which signals do you pull, and what do you tell the passengers? '.repeat(8)
const load = (path: string, body: object): Load => [path, Buffer.from(JSON.stringify(body))]
const responses = (model: string, rest: object = {}): Load =>
  load('/v1/responses', { model, input: QUESTION, max_output_tokens: 512, store: false, ...rest })
const chat = (model: string, rest: object = {}): Load =>
  load('/v1/chat/completions', {
    model,
    messages: [{ role: 'user', content: QUESTION }],
    max_completion_tokens: 512,
    ...rest,
  })

async function cpuMs(gateway: Gateway, [path, body]: Load): Promise<number> {
  const began = process.cpuUsage()
  for (let done = 0; done < CALLS_PER_ROUND; done += 10)
    await Promise.all(Array.from({ length: 10 }, () => send(gateway, path, body)))
  const { user, system } = process.cpuUsage(began)
  return (user + system) / 1000
}

/** Returns the ratio of the processor times of two loads, without sockets. The loads take turns, and the median round counts. */
async function ratioOf(one: Load, other: Load): Promise<number> {
  const gateway = await openGateway()
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
    for (const [index, load] of [one, other].entries()) {
      const ms = await cpuMs(gateway, load)
      if (round >= WARM_UP_ROUNDS) times[index]!.push(ms)
    }
  }
  await gateway.close({ drainMs: 0 })
  return median(times[0]) / median(times[1])
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

const STREAMED = { stream: true }

// 1.2 to 1.27 when it was set. It does not include sockets and the kernel, which are three quarters of a request.
test("a response that passes through takes at most 1.6 times the gateway's own time for the same chat", async () => {
  expect(await ratioOf(responses('bench'), chat('bench'))).toBeLessThan(1.6)
})

test('a burst of a chat on a model with Responses only costs at most twice what the same events cost that pass through', async () => {
  expect(await ratioOf(chat('bench-pro', STREAMED), responses('bench', STREAMED))).toBeLessThan(2)
})

// The benchmark measures it with the sockets of both sides, where the figure is 2.
test('a burst of Responses that is translated from Messages costs at most three times what passes through', async () => {
  expect(await ratioOf(responses('bench-claude', STREAMED), responses('bench', STREAMED))).toBeLessThan(3)
})
