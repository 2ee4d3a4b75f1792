import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { Authenticate } from '../../../src/stores/principal.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'
const HANGING = chatBody('chat-relayed', '[[fault:hang]] hello')

let started: StartedGateway

afterEach(() => started.close())

/** Sends the head of a request and no body; what comes back. */
async function headOnly(contentLength: number): Promise<string> {
  const { hostname, port } = new URL(started.url)
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TEST_KEY}\r\ncontent-type: application/json\r\ncontent-length: ${contentLength}\r\n\r\n`,
  )
  let text = ''
  for await (const chunk of socket) {
    text += String(chunk)
    if (text.includes('\r\n\r\n')) break
  }
  socket.destroy()
  return text
}

describe('beyond a bound of requests in progress', () => {
  test('a request is refused before its body is read, and health and account are served', async () => {
    started = await startGateway({ overload: { maxInFlight: 2 }, drainMs: 1 })
    const leaving = new AbortController()
    const hanging = [1, 2].map(() => started.post(CHAT, HANGING, {}, leaving.signal).catch(() => undefined))
    for (let count = 0; count < 2; count++) await started.sandbox.nextRequest()
    const refused = await headOnly(1_000_000)
    const authorization = { headers: { authorization: `Bearer ${TEST_KEY}` } }
    const others = await Promise.all(
      ['/readyz', '/v1/account', '/v1/models'].map((path) => fetch(`${started.url}${path}`, authorization)),
    )

    expect(refused).toMatch(/^HTTP\/1.1 503 /)
    expect(refused).toMatch(/\r\nretry-after: 1\r\n/i)
    expect(refused).toMatch(/\r\nx-signalbox-overload: in-flight\r\n/i)
    expect(refused).toMatch(/\r\nx-signalbox-error-code: overloaded\r\n/i)
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(started.events).toContainEqual(
      expect.objectContaining({ type: 'request-refused', code: 'overloaded', endpoint: 'chat', status: 503 }),
    )
    leaving.abort()
    await Promise.all(hanging)
    await expect.poll(async () => (await started.post(CHAT, chatBody('chat-relayed', 'hello'))).status).toBe(200)
  })
})

describe('beyond a bound of held bytes', () => {
  test('a body that has no room is refused unread, and one that has is taken', async () => {
    started = await startGateway({ overload: { maxHeldBytes: 100_000 }, drainMs: 1 })
    const large = chatBody('chat-relayed', `[[fault:hang]] ${'x'.repeat(80_000)}`)
    const leaving = new AbortController()
    const hanging = started.post(CHAT, large, {}, leaving.signal).catch(() => undefined)
    await started.sandbox.nextRequest()

    expect(await headOnly(30_000)).toMatch(/^HTTP\/1.1 503 [\s\S]*x-signalbox-overload: held-bytes\r\n/i)
    expect((await started.post(CHAT, chatBody('chat-relayed', 'x'.repeat(10_000)))).status).toBe(200)
    leaving.abort()
    await hanging
    await expect
      .poll(async () => (await started.post(CHAT, chatBody('chat-relayed', 'x'.repeat(30_000)))).status)
      .toBe(200)
  })

  test('an unknown caller takes no room', async () => {
    started = await startGateway({ overload: { maxHeldBytes: 1_000 } })
    for (let count = 0; count < 5; count++) {
      const authorization = 'Bearer sk-unknown'
      expect((await started.post(CHAT, chatBody('chat-relayed', 'x'.repeat(600)), { authorization })).status).toBe(401)
    }

    expect((await started.post(CHAT, chatBody('chat-relayed', 'x'.repeat(600)))).status).toBe(200)
  })
})

test.each([undefined, { maxHeldBytes: 1_000_000 }])(
  "the host is given the framework's own request (overload: %j)",
  async (overload) => {
    const urls: unknown[] = []
    const authenticate: Authenticate = ({ request }) => {
      urls.push((request as IncomingMessage | undefined)?.url)
      return { accountId: 'acct_test', keyId: 'host', tier: 'paid' }
    }
    started = await startGateway({ authenticate, billing: 'off', ...(overload && { overload }) })

    expect((await started.post(CHAT, chatBody('chat-relayed', 'hello'))).status).toBe(200)
    expect(urls).toEqual([CHAT])
  },
)

test('while the event loop lags behind, requests are refused, and taken again when it does not', async () => {
  started = await startGateway({ overload: { maxEventLoopDelayMs: 300 } })
  // A busy machine may lag by itself; a loop that is blocked for longer certainly does.
  await expect
    .poll(async () => {
      const untilMs = performance.now() + 900
      while (performance.now() < untilMs);
      const response = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
      return [response.status, response.headers.get('x-signalbox-overload')]
    })
    .toEqual([503, 'event-loop-delay'])

  await expect
    .poll(async () => (await started.post(CHAT, chatBody('chat-relayed', 'hello'))).status, { timeout: 10_000 })
    .toBe(200)
})

test.each<[unknown, string]>([
  [{ maxInFlight: 0 }, 'overload.maxInFlight must be a positive number'],
  [{ maxRequests: 1 }, 'createGateway: overload.maxRequests is unknown'],
  [5, 'overload must be an object'],
])('%j is refused at start', async (overload, message) => {
  started = await startGateway()

  await expect(startGateway({ overload: overload as GatewayOptions['overload'] & object })).rejects.toThrow(message)
})
