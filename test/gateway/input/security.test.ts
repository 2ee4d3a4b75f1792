import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Logger } from '../../../src/core/logger.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const EMBEDDINGS = '/v1/embeddings'
const VENDOR_KEY = 'vendor-key-canary-7f3a'
const MODELS = ['chat-relayed', 'chat-qwen', 'cl-sonnet-4-6', 'gmn-2.5-flash'] as const
const EMBEDDING_MODELS = ['embedding-relayed', 'text-embedding-v4', 'gmn-embedding-001', 'vy-4'] as const

let started: StartedGateway
let elsewhere: Server
let elsewhereRequests: string[]

beforeEach(async () => {
  elsewhereRequests = []
  elsewhere = createServer((request, response) => {
    elsewhereRequests.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`)
    response.end('{}')
  })
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  await started.close()
  elsewhere.closeAllConnections()
  await new Promise<void>((resolve) => elsewhere.close(() => resolve()))
})

const elsewhereUrl = (): string => `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`

function bodyFor(path: string, model: string, text: string, rest: Record<string, unknown> = {}) {
  return path === CHAT ? chatBody(model, text, rest) : { model, input: text, ...rest }
}

const CALLS = [
  ...MODELS.map((model) => [CHAT, model] as const),
  ...EMBEDDING_MODELS.map((model) => [EMBEDDINGS, model] as const),
]

/** The request headers that a vendor may see. */
const VENDOR_REQUEST_HEADERS = new Set([
  ...['accept', 'accept-encoding', 'connection', 'content-length', 'content-type', 'host'],
  ...['authorization', 'x-api-key', 'x-goog-api-key', 'anthropic-version'],
])

test.each(CALLS)('on %s a caller of %s chooses neither the vendor host nor a header', async (path, model) => {
  started = await startGateway()
  const url = elsewhereUrl()
  const body = bodyFor(path, model, 'hello', {
    ...{ base_url: url, api_base: url, baseURL: url, endpoint: url, api_key: 'sk-stolen', proxy: url },
    ...{ extra_headers: { 'x-injected': '1' }, headers: { host: 'evil.example' }, organization: 'org-evil' },
  })
  const response = await started.post(path, body, {
    ...{ 'x-base-url': url, 'api-base': url, 'x-forwarded-host': 'evil.example', 'openai-organization': 'org-evil' },
    ...{ 'anthropic-beta': 'evil-2026', 'x-goog-user-project': 'evil', cookie: 'session=1', 'user-agent': 'evil/1' },
  })
  await response.body?.cancel()
  const calls = started.sandbox.requests

  // A vendor that refuses unknown fields has still been the only one to see them.
  expect([200, 400]).toContain(response.status)
  expect(elsewhereRequests).toEqual([])
  expect(calls).toHaveLength(1)
  expect(calls[0]?.headers['host']).toMatch(/^127\.0\.0\.1:\d+$/)
  expect(Object.keys(calls[0]?.headers ?? {}).filter((name) => !VENDOR_REQUEST_HEADERS.has(name))).toEqual([])
  expect(JSON.stringify(calls[0]?.headers)).not.toContain('evil')
  expect(JSON.stringify(calls[0]?.headers)).not.toContain(TEST_KEY)
})

test.each(CALLS)('on %s a redirect by the vendor of %s is not followed', async (path, model) => {
  started = await startGateway()
  started.sandbox.fault({ kind: 'redirect', location: `${elsewhereUrl()}/v1/steal` })
  const response = await started.post(path, bodyFor(path, model, 'hello'))
  const body = await response.json()

  expect(response.status).toBe(502)
  expect(body.error.code).toBe('upstream_invalid_response')
  expect(response.headers.get('location')).toBeNull()
  expect(elsewhereRequests).toEqual([])
})

describe('keys and prompts stay where they belong', () => {
  const PROMPT = 'prompt-canary-91bc'
  const FAULTS = [
    ...['status=400', 'status=401', 'status=403', 'status=404', 'status=413', 'status=429', 'status=500', 'status=503'],
    ...['quota', 'bad-key', 'leak-key', 'html=502', 'redirect', 'garbage', 'empty', 'half-json', 'error-event=2'],
    ...['reset', 'reset-mid-stream=2', 'end-early=2', 'hang', 'hang-body=2', 'blocked', 'usage=-1', 'no-usage'],
  ]

  function recordingLogger(lines: string[]): Logger {
    const line =
      (level: string) =>
      (message: string, fields?: Record<string, unknown>): void =>
        void lines.push(`${level} ${message} ${dump(fields)}`)
    return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
  }

  /** Everything that can be reached from a value, errors with their causes included. */
  function dump(value: unknown): string {
    const seen = new Set<unknown>()
    const text = (inner: unknown): string => {
      if (typeof inner === 'string' || typeof inner === 'function') return String(inner)
      if (inner instanceof Uint8Array) return Buffer.from(inner).toString('utf8')
      if (typeof inner !== 'object' || inner === null) return String(inner)
      if (seen.has(inner)) return ''
      seen.add(inner)
      if (inner instanceof Map || inner instanceof Set) return [...inner].map(text).join(' ')
      const own = Reflect.ownKeys(inner).map((name) => text((inner as Record<PropertyKey, unknown>)[name]))
      return [inner instanceof Error ? (inner.stack ?? '') : '', ...own].join(' ')
    }
    return text(value)
  }

  test.each(MODELS)('in every failure of %s', async (model) => {
    const logged: string[] = []
    const store = memoryStore()
    const written: unknown[] = []
    started = await startGateway({
      logger: recordingLogger(logged),
      // A model that reasons unseen may be silent for the whole time.
      timeouts: { firstByteMs: 150, idleMs: 150, totalMs: 1_500 },
      routing: { retryAfterTimeout: true },
      store: {
        ...store,
        ledger: {
          ...store.ledger,
          reserve: (reservation, nowMs) => {
            written.push(reservation)
            return store.ledger.reserve(reservation, nowMs)
          },
          settle: (settlement, nowMs) => {
            written.push(settlement)
            return store.ledger.settle(settlement, nowMs)
          },
        },
      },
    })
    const answers: string[] = []
    // A pause after a failure would keep later calls from the vendor, so whole and streamed calls go side by side only.
    for (const fault of FAULTS) {
      const ask = async (stream: boolean): Promise<void> => {
        const response = await started.post(CHAT, chatBody(model, `[[fault:${fault}]] ${PROMPT} one two`, { stream }))
        const body = await response.text()
        answers.push(`${fault} ${stream} ${dump([...response.headers])} ${body}`)
      }
      await Promise.all([ask(false), ask(true)])
    }
    const records = await started.gateway.keys.list(TEST_ACCOUNT)
    const entries = await started.gateway.accounts.ledger(TEST_ACCOUNT, { limit: 1000 })
    const output = { logged, events: started.events, stored: [records, entries, written] }

    expect(answers).toHaveLength(FAULTS.length * 2)
    for (const answer of answers) {
      expect(answer).not.toContain(VENDOR_KEY)
      expect(answer).not.toContain(TEST_KEY)
    }
    for (const [place, content] of Object.entries(output)) {
      const text = dump(content)
      expect({ place, holds: text.includes(VENDOR_KEY) }).toEqual({ place, holds: false })
      expect({ place, holds: text.includes(TEST_KEY) }).toEqual({ place, holds: false })
      expect({ place, holds: text.includes(PROMPT) }).toEqual({ place, holds: false })
    }
    expect(started.events.length).toBeGreaterThan(FAULTS.length)
    expect(logged.length).toBeGreaterThan(0)
  })

  test.each(EMBEDDING_MODELS)('when %s repeats the key in its error', async (model) => {
    const logged: string[] = []
    started = await startGateway({ logger: recordingLogger(logged) })
    started.sandbox.fault({ kind: 'leak-key' })
    const response = await started.post(EMBEDDINGS, { model, input: PROMPT })
    const body = await response.text()

    expect(response.status).toBe(503)
    expect(dump([body, [...response.headers], logged, started.events])).not.toContain(VENDOR_KEY)
    expect(dump([logged, started.events])).not.toContain(PROMPT)
  })

  test.each([
    ['a bad scheme', { authorization: 'Basic sk-caller-canary-55aa' }],
    ['an unknown key', { authorization: 'Bearer sk-caller-canary-55aa' }],
    ['a key in x-api-key', { authorization: '', 'x-api-key': 'sk-caller-canary-55aa' }],
  ])('when a caller is refused for %s', async (_name, headers) => {
    const logged: string[] = []
    started = await startGateway({ logger: recordingLogger(logged) })
    const response = await started.post(CHAT, chatBody('chat-relayed', PROMPT), headers)
    const body = await response.text()

    expect(response.status).toBe(401)
    expect(dump([body, [...response.headers], logged, started.events])).not.toContain('sk-caller-canary-55aa')
  })

  test('when the gateway itself fails', async () => {
    const logged: string[] = []
    const transport = {
      send: () => {
        throw new Error('no transport')
      },
      close: () => Promise.resolve(),
    }
    started = await startGateway({ logger: recordingLogger(logged), transport })
    const response = await started.post(CHAT, chatBody('chat-relayed', PROMPT))
    const body = await response.json()

    expect(response.status).toBe(500)
    expect(body.error).toEqual({
      message: 'Internal error: something went wrong in the gateway.',
      type: 'server_error',
      param: null,
      code: 'internal_error',
    })
    expect(dump([logged, started.events])).not.toContain(PROMPT)
    expect(dump([logged, started.events])).not.toContain(VENDOR_KEY)
  })
})

describe('response headers are an allow-list', () => {
  // Announced for models that end soon, so it depends on the day.
  const CONNECTION_HEADERS = ['connection', 'date', 'keep-alive', 'x-signalbox-model-retires']
  const namesOf = (response: Response): string[] =>
    [...response.headers.keys()].filter((name) => !CONNECTION_HEADERS.includes(name)).sort()
  const WHOLE_ANSWER = ['content-length', 'content-type', 'x-request-id', 'x-signalbox-cost', 'x-signalbox-vendor']
  const BOUND = 'x-signalbox-max-output-tokens'
  const LIMITS = ['limit', 'remaining', 'reset'].flatMap((part) => [
    `x-ratelimit-${part}-requests`,
    `x-ratelimit-${part}-tokens`,
  ])
  const limits = { requestsPerMinute: 100, tokensPerMinute: 1_000_000 }

  test.each(CALLS)('covers a whole answer on %s by %s', async (path, model) => {
    started = await startGateway({ limits })
    const response = await started.post(path, bodyFor(path, model, 'hello'))
    await response.body?.cancel()

    expect(response.status).toBe(200)
    expect(namesOf(response)).toEqual([...WHOLE_ANSWER, ...(path === CHAT ? [BOUND] : []), ...LIMITS].sort())
  })

  test.each(MODELS)('covers a stream by %s', async (model) => {
    started = await startGateway({ limits })
    const response = await started.post(CHAT, chatBody(model, 'hello', { stream: true }))
    await response.text()

    expect(namesOf(response)).toEqual(
      [
        ...['cache-control', 'content-type', 'transfer-encoding', 'x-accel-buffering', 'x-request-id'],
        ...['x-signalbox-vendor', BOUND, ...LIMITS],
      ].sort(),
    )
  })

  test.each(CALLS)('covers an error on %s by %s', async (path, model) => {
    started = await startGateway({ limits })
    const response = await started.post(path, bodyFor(path, model, '[[fault:status=429,retry-after=3]] hello'))
    await response.body?.cancel()

    expect(response.status).toBe(429)
    expect(namesOf(response)).toEqual(
      ['content-length', 'content-type', 'retry-after', 'x-request-id', 'x-signalbox-error-code', ...LIMITS].sort(),
    )
  })

  test('whatever else a vendor sends', async () => {
    const vendor = createServer((_request, response) => {
      response.writeHead(200, {
        ...{ 'content-type': 'application/json', 'set-cookie': 'a=1', server: 'cloud', 'x-powered-by': 'PHP' },
        ...{ 'openai-organization': 'org-operator', 'x-request-id': 'req_vendor', 'x-ratelimit-limit-requests': '7' },
        ...{ 'access-control-allow-origin': '*', 'strict-transport-security': 'max-age=1', 'x-signalbox-vendor': 'x' },
      })
      response.end(
        '{"id":"c","object":"chat.completion","created":1,"model":"gpt-5.4","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
      )
    })
    await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
    const baseURL = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
    started = await startGateway({ vendors: [openai({ apiKey: VENDOR_KEY, baseURL })] })
    const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
    await response.body?.cancel()
    vendor.closeAllConnections()
    await new Promise<void>((resolve) => vendor.close(() => resolve()))

    expect(response.status).toBe(200)
    expect(namesOf(response)).toEqual([...WHOLE_ANSWER, BOUND].sort())
    expect(response.headers.get('x-request-id')).not.toBe('req_vendor')
    expect(response.headers.get('x-signalbox-vendor')).toBe('openai')
  })
})
