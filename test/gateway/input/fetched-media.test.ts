import { createServer, type Server, type ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { listen } from '../../support/listen.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const OTHER_KEY = 'sk-test-other-account'
const MODEL = { id: 'old-eyes', kind: 'chat', vendor: 'gemini', upstream: 'gemini-2.0-flash' } as const

let started: StartedGateway
let host: Server
let origin: string
let closeHost: () => Promise<void>
/** Answers that have begun and not ended. */
let open: Set<ServerResponse>

beforeEach(async () => {
  open = new Set()
  host = createServer((request, response) => {
    open.add(response)
    response.on('close', () => open.delete(response))
    const [, kind = '', bytes = '0'] = (request.url ?? '').split('/')
    if (kind === 'missing') return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': 'image/png' })
    response.write(Buffer.alloc(Number(bytes)))
    // `stalled`: the rest never comes.
    if (kind === 'whole') response.end()
  })
  ;({ origin, close: closeHost } = await listen(host))
})
afterEach(async () => {
  await started.close()
  host.closeAllConnections()
  await closeHost()
})

async function start(options: Partial<GatewayOptions> = {}): Promise<void> {
  started = await startGateway({
    models: [MODEL],
    billing: 'off',
    keys: [
      { key: TEST_KEY, account: 'acct_test' },
      { key: OTHER_KEY, account: 'acct_other' },
    ],
    ...options,
  })
}

function chat(paths: readonly string[], members: object = {}): object {
  const images = paths.map((path) => ({ type: 'image_url', image_url: { url: `${origin}/${path}` } }))
  return {
    model: 'old-eyes',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, ...images] }],
    ...members,
  }
}

function messages(paths: readonly string[]): object {
  const images = paths.map((path) => ({ type: 'image', source: { type: 'url', url: `${origin}/${path}` } }))
  return { model: 'old-eyes', max_tokens: 10, messages: [{ role: 'user', content: images }] }
}

function responses(paths: readonly string[]): object {
  const content = paths.map((path) => ({ type: 'input_image', image_url: `${origin}/${path}` }))
  return { model: 'old-eyes', input: [{ role: 'user', content }], store: false }
}

const ENDPOINTS = [
  [CHAT, chat],
  ['/v1/messages', messages],
  ['/v1/responses', responses],
] as const

describe.each(ENDPOINTS)('%s', (path, body) => {
  test('answers 429 when the images of the requests of an account have too many bytes while they arrive', async () => {
    await start({ fetchedBytesPerAccount: 1_000_000 })
    const leaving = new AbortController()
    const waiting = Array.from({ length: 15 }, () =>
      started
        .post(path, body(Array.from({ length: 4 }, () => 'stalled/300000')), {}, leaving.signal)
        .catch(() => undefined),
    )
    const refused = await Promise.any(waiting.map(async (answer) => (await answer) ?? Promise.reject()))

    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await refused.text()).toContain('1000000 bytes together')
    await expect.poll(() => open.size).toBeLessThanOrEqual(4)
    expect((await started.post(path, body(['whole/300000']), { authorization: `Bearer ${OTHER_KEY}` })).status).toBe(
      200,
    )
    leaving.abort()
    await Promise.all(waiting)
    await expect.poll(() => open.size).toBe(0)
    expect((await started.post(path, body(['whole/900000']))).status).toBe(200)
  })

  test('ends the other fetches when one fails', async () => {
    await start()
    const answer = await started.post(path, body(['stalled/1000', 'stalled/1000', 'missing/', 'stalled/1000']))

    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('answered with status 404')
    await expect.poll(() => open.size).toBe(0)
  })

  test('ends the fetches when the caller disconnects', async () => {
    await start()
    const caller = rawPost(started.url, path, body(['stalled/1000', 'stalled/1000']))
    await expect.poll(() => open.size).toBe(2)
    caller.leave()

    await expect.poll(() => open.size).toBe(0)
    await expect.poll(() => started.events.map(({ type }) => type)).toContain('request-ended')
    expect(started.events).toContainEqual(expect.objectContaining({ type: 'request-ended', ending: 'abandoned' }))
    expect(started.sandbox.requests).toEqual([])
  })
})

test('bytes of images count towards the bytes that the process may hold', async () => {
  await start({ overload: { maxHeldBytes: 500_000 } })
  const leaving = new AbortController()
  const waiting = started.post(CHAT, chat(['stalled/300000']), {}, leaving.signal).catch(() => undefined)
  await expect.poll(() => open.size).toBe(1)
  const other = { authorization: `Bearer ${OTHER_KEY}` }
  await expect
    .poll(async () => (await started.post(CHAT, chat(['whole/300000']), other)).headers.get('x-signalbox-overload'))
    .toBe('held-bytes')
  leaving.abort()
  await waiting

  await expect.poll(async () => (await started.post(CHAT, chat(['whole/300000']), other)).status).toBe(200)
})

test('the images of one request are bounded by the bytes that have arrived, not by whole images', async () => {
  await start()
  const answer = await started.post(CHAT, chat(Array.from({ length: 4 }, () => `stalled/${9 * 1024 * 1024}`)))

  expect(answer.status).toBe(400)
  expect(await answer.text()).toContain('33554432 bytes together')
  await expect.poll(() => open.size).toBe(0)
})

test('images no longer count when the stream of their answer has begun', async () => {
  await start({ fetchedBytesPerAccount: 500_000 })
  const first = await started.post(CHAT, chat(['whole/300000'], { stream: true }))
  const second = await started.post(CHAT, chat(['whole/300000'], { stream: true }))

  expect([first.status, second.status]).toEqual([200, 200])
  await Promise.all([first.text(), second.text()])
})

test('images of an earlier try no longer count', async () => {
  await start({ fetchedBytesPerAccount: 500_000 })
  started.sandbox.fault({ kind: 'status', status: 503 })

  expect((await started.post(CHAT, chat(['whole/300000']))).status).toBe(200)
  expect(started.sandbox.requests).toHaveLength(2)
})

test('a request that is over its time ends its fetches', async () => {
  await start({ timeouts: { totalMs: 300 } })
  const answer = await started.post(CHAT, chat(['stalled/1000', 'stalled/1000']))

  expect(answer.status).toBe(504)
  await expect.poll(() => open.size).toBe(0)
})

test.each([0, -1, Number.NaN, '1' as unknown as number])('a bound of %j is refused at the start', async (bound) => {
  await start()

  expect(() => createGateway({ vendors: [], billing: 'off', fetchedBytesPerAccount: bound })).toThrow(
    'fetchedBytesPerAccount',
  )
})
