import { lookup, type ResolverOptions } from 'node:dns'
import { promisify } from 'node:util'
import OpenAI from 'openai'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { videoBody } from '../../drills/support/video-bodies.ts'
import { startMcp } from '../../mcp/support/start-mcp.ts'
import { callTool } from '../../mcp/support/tool-result.ts'
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { webhookBench } from '../../tasks/support/webhook-bench.ts'
import { batchLine, submitBatch } from '../batches/batch-gateway.ts'
import { EDITS, editBody, IMAGES, interaction, multimodal } from '../images/image-requests.ts'

let dns: DnsServer
/** Names that were looked up on Node's shared threads. */
const lookedUp = vi.hoisted(() => [] as string[])

/** Resolvers query the test's own server. */
vi.mock('node:dns', async (original) => {
  const real = await original<typeof import('node:dns')>()
  class Resolver extends real.promises.Resolver {
    constructor(options?: ResolverOptions) {
      super(options)
      this.setServers([dns.address])
    }
  }
  const noting = (name: string, ...rest: unknown[]): void => {
    lookedUp.push(name)
    Reflect.apply(real.lookup, undefined, [name, ...rest])
  }
  return { ...real, lookup: noting, promises: { ...real.promises, Resolver } }
})

const MODEL = { id: 'old-eyes', kind: 'chat', vendor: 'gemini', upstream: 'gemini-2.0-flash' } as const
const CHAT = '/v1/chat/completions'
const NAMES = Array.from({ length: 20 }, (_, index) => `n${index}.example.com`)
const URLS = NAMES.map((name) => `https://${name}/a.png`)
const MESSAGES = [{ role: 'user', content: URLS.map((url) => ({ type: 'image_url', image_url: { url } })) }]

let started: StartedGateway | undefined

beforeEach(async () => {
  dns = await startDnsServer({ '*': 'silence' })
  lookedUp.length = 0
})
afterEach(async () => {
  await started?.close()
  started = undefined
  await dns.close()
})

const OPTIONS = {
  models: [MODEL, { id: 'chat-relayed', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' }],
  billing: 'off',
  allowPrivateUrls: false,
} as const

/** Asserts that the four threads of the process are free, and that none of the caller's names was looked up on them. */
async function expectFreeThreads(): Promise<void> {
  const startMs = performance.now()
  await Promise.all(Array.from({ length: 4 }, () => promisify(lookup)('localhost')))
  expect(performance.now() - startMs).toBeLessThan(1_000)
  expect(lookedUp.filter((name) => name.endsWith('.example.com'))).toEqual([])
}

describe('image URLs whose names are never resolved', () => {
  test.each([
    [CHAT, { model: MODEL.id, messages: MESSAGES }],
    [
      '/v1/messages',
      {
        model: MODEL.id,
        max_tokens: 10,
        messages: [{ role: 'user', content: URLS.map((url) => ({ type: 'image', source: { type: 'url', url } })) }],
      },
    ],
    [
      '/v1/responses',
      {
        model: MODEL.id,
        store: false,
        input: [{ role: 'user', content: URLS.map((url) => ({ type: 'input_image', image_url: url })) }],
      },
    ],
  ])('delay no connection to a vendor at %s, and no more than four are queried at a time', async (path, body) => {
    started = await startGateway(OPTIONS)
    const leaving = new AbortController()
    const waiting = started.post(path, body, {}, leaving.signal).catch(() => undefined)
    await expect.poll(() => new Set(dns.queried).size).toBe(4)

    await expectFreeThreads()
    const startMs = performance.now()
    const other = await started.post(CHAT, { model: 'chat-relayed', messages: [{ role: 'user', content: 'Hello' }] })
    expect(other.status).toBe(200)
    expect(performance.now() - startMs).toBeLessThan(1_000)
    expect(new Set(dns.queried).size).toBe(4)
    leaving.abort()
    await waiting
  })

  test('delay no connection when a tool of the MCP server is called with them', async () => {
    const mcp = await startMcp({ gateway: OPTIONS })
    started = mcp
    const client = await mcp.connect()
    const calling = callTool(client, 'chat_complete', { model: MODEL.id, messages: MESSAGES }).catch(() => undefined)
    await expect.poll(() => new Set(dns.queried).size).toBe(4)

    await expectFreeThreads()
    await started.close()
    started = undefined
    await calling
  })

  test('delay no connection when lines of a batch have them', async () => {
    started = await startGateway({ ...OPTIONS, batches: { native: false } })
    const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
    await submitBatch(
      client,
      [1, 2].map((number) => batchLine(number, { model: MODEL.id, messages: MESSAGES })),
    )
    await expect.poll(() => new Set(dns.queried).size).toBeGreaterThanOrEqual(4)

    await expectFreeThreads()
  })
})

test.each([
  ['images of a chat at a vendor that fetches them', CHAT, { model: 'chat-relayed', messages: MESSAGES }],
  ['images of an edit', EDITS, editBody('More light', { images: [{ image_url: URLS[0] }] })],
  [
    'images of a multimodal generation',
    IMAGES,
    {
      ...multimodal('x'),
      model: 'qw-image-edit',
      input: { messages: [{ role: 'user', content: [{ text: 'x' }, { image: URLS[0] }] }] },
    },
  ],
  [
    'images of an interaction',
    IMAGES,
    interaction([
      { type: 'image', mime_type: 'image/png', uri: URLS[0] },
      { type: 'text', text: 'x' },
    ]),
  ],
  [
    'reference media and webhook of a video',
    '/v1/videos/generations',
    videoBody('wv2.7-r2v', {
      input: { prompt: 'Image 1 waves', media: [{ type: 'reference_image', url: URLS[0] }] },
      webhook_url: URLS[1],
    }),
  ],
])('the gateway does not resolve the names of %s', async (_what, path, body) => {
  started = await startGateway({ allowPrivateUrls: false })
  const answer = await started.post(path, body)

  expect(answer.status).toBeLessThan(300)
  expect(dns.queried).toEqual([])
  await expectFreeThreads()
})

test('a transcription does not take an address', async () => {
  started = await startGateway({ allowPrivateUrls: false })
  const form = new FormData()
  form.append('model', 'whisper-1')
  form.append('url', URLS[0]!)
  const answer = await fetch(`${started.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TEST_KEY}` },
    body: form,
  })

  expect(answer.status).toBe(400)
  expect(dns.queried).toEqual([])
})

test('forty webhooks to names that are never resolved delay no connection to a vendor', async () => {
  const bench = webhookBench()
  for (let index = 0; index < 40; index++) bench.queue(`msg_${index}`, `https://hook${index}.example.com/`)
  bench.deliverer({ allowPrivateUrls: false }).start()
  await expect.poll(() => new Set(dns.queried).size).toBe(32)

  await expectFreeThreads()
  bench.clock.advance(5_000)
  expect((await bench.recorded(32))[0]?.error).toMatch(
    /^no connection: hook\d+\.example\.com cannot be resolved \(ETIMEOUT\)$/,
  )
  await bench.close()
})
