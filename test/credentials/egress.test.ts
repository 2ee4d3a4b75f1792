import { createServer as createProxy, type IncomingMessage, type Server } from 'node:http'
import { createServer } from 'node:https'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../src/core/events.ts'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import type { ConnectionOptions } from '../../src/vendors/vendor.ts'
import { listen } from '../support/listen.ts'
import { TEST_ACCOUNT } from '../support/start-gateway.ts'
import fixtures from './certificates.json' with { type: 'json' }
import { CLOUD_KEYS, CLOUD_MODEL, CLOUD_PRICES, cloudRequest } from './token-vendor.ts'

/**
 * A private authority with a server's certificate and a client's, and another authority. They hold for a hundred years, and are
 * kept because not every machine has openssl: `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1`, and
 * `openssl x509 -req` with `subjectAltName=DNS:localhost,IP:127.0.0.1`.
 */
const certificates = fixtures.one
const otherCa = fixtures.two.ca

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function listening(server: Server): Promise<number> {
  const { port, close } = await listen(server)
  closers.push(close)
  return port
}

/** Vendor over TLS that can require a client certificate. */
async function tlsVendor(wantsCertificate = false) {
  const calls: { readonly url: string; readonly headers: IncomingMessage['headers']; readonly peer: string }[] = []
  const sockets = new Set<unknown>()
  const { server, ca } = certificates
  const options = { ...server, ca, requestCert: wantsCertificate, rejectUnauthorized: wantsCertificate }
  const port = await listening(
    createServer(options, (request, response) => {
      const peer = (request.socket as TLSSocket).getPeerCertificate().subject?.CN ?? ''
      calls.push({ url: request.url ?? '', headers: request.headers, peer: String(peer) })
      sockets.add(request.socket)
      request.resume().on('end', () => {
        response.writeHead(200, { 'content-type': 'application/json' })
        const message = { role: 'assistant', content: 'yes' }
        const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
        const choices = [{ index: 0, message, finish_reason: 'stop' }]
        response.end(JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
      })
    }),
  )
  return { baseURL: `https://localhost:${port}/v1`, port, calls, sockets }
}

/** A proxy that knows CONNECT only. */
async function connectProxy(answer: (request: IncomingMessage) => number = () => 200) {
  const asked: string[] = []
  const server = createProxy((_request, response) => response.writeHead(405).end())
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    asked.push(request.url ?? '')
    const status = answer(request)
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\nconnection: close\r\n\r\n`)
      return
    }
    const [, port] = (request.url ?? '').split(':')
    const upstream = connect(Number(port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      upstream.pipe(socket).pipe(upstream)
    })
    for (const side of [upstream, socket]) side.on('error', () => void [upstream, socket].map((end) => end.destroy()))
    socket.on('close', () => upstream.destroy())
  })
  return { port: await listening(server), asked }
}

async function started(baseURL: string, options: ConnectionOptions) {
  const events: GatewayEvent[] = []
  const gateway: Gateway = createGateway({
    vendors: [openaiCompatible({ id: 'cloud', baseURL, apiKey: 'key-canary-0123456789', models: [], ...options })],
    models: [CLOUD_MODEL],
    prices: CLOUD_PRICES,
    keys: CLOUD_KEYS,
    onEvent: (event) => void events.push(event),
  })
  await gateway.start()
  await gateway.accounts.credit(TEST_ACCOUNT, '100')
  closers.push(() => gateway.close({ drainMs: 1 }))
  return {
    gateway,
    problem: () => events.flatMap((event) => (event.type === 'vendor-account-problem' ? [event.message] : []))[0] ?? '',
    async money() {
      const account = await gateway.accounts.get(TEST_ACCOUNT)
      return { balance: account?.balance, held: account?.held }
    },
  }
}

const UNTOUCHED = { balance: 100_000_000_000n, held: 0n }

describe('a vendor with certificates of its own', () => {
  test('is called with its authority and with a client certificate', async () => {
    const vendor = await tlsVendor(true)
    const { gateway } = await started(vendor.baseURL, { tls: { ca: certificates.ca, ...certificates.client } })
    expect((await gateway.fetch(cloudRequest())).status).toBe(200)
    expect(vendor.calls[0]?.peer).toBe('client')
  })

  test.each([
    ['without', undefined],
    ['with another', (): string => otherCa],
  ])('is refused %s authority, naming tls.ca, and nothing is charged', async (_name, ca) => {
    const vendor = await tlsVendor()
    const { gateway, problem, money } = await started(vendor.baseURL, ca === undefined ? {} : { tls: { ca: ca() } })
    const answer = await gateway.fetch(cloudRequest())
    expect(answer.status).toBe(503)
    expect(await answer.text()).not.toContain('tls.ca')
    expect(problem()).toMatch(/^TLS failed \(\w+: .+\): set tls\.ca of the vendor/)
    expect(vendor.calls).toHaveLength(0)
    expect(await money()).toEqual(UNTOUCHED)
  })
})

describe('a vendor behind a proxy', () => {
  test('is reached by CONNECT, over connections that are kept', async () => {
    const vendor = await tlsVendor()
    const proxy = await connectProxy()
    const options = { tls: { ca: certificates.ca }, proxy: `http://127.0.0.1:${proxy.port}` }
    const { gateway } = await started(vendor.baseURL, options)
    for (let call = 0; call < 5; call++) {
      const answer = await gateway.fetch(cloudRequest())
      expect(answer.status).toBe(200)
      await answer.text()
    }
    expect(proxy.asked).toEqual([`localhost:${vendor.port}`])
    expect(vendor.sockets.size).toBe(1)
  })

  test('sends user and password to the proxy only', async () => {
    const vendor = await tlsVendor()
    const wanted = `Basic ${Buffer.from('us er:p@ss').toString('base64')}`
    const proxy = await connectProxy(({ headers }) => (headers['proxy-authorization'] === wanted ? 200 : 407))
    const options = { tls: { ca: certificates.ca }, proxy: `http://us%20er:p%40ss@127.0.0.1:${proxy.port}` }
    const { gateway } = await started(vendor.baseURL, options)
    expect((await gateway.fetch(cloudRequest())).status).toBe(200)
    expect(vendor.calls[0]?.headers['proxy-authorization']).toBeUndefined()
  })

  test.each([
    [407, /refuses CONNECT localhost:\d+ with 407: set user and password in the URL of proxy, or of HTTPS_PROXY/],
    [
      403,
      /refuses CONNECT localhost:\d+ with 403: allow it there, or set proxy of the vendor \(HTTPS_PROXY, NO_PROXY\)/,
    ],
  ])('names what to set when the proxy refuses with %i, and nothing is charged', async (status, words) => {
    const vendor = await tlsVendor()
    const proxy = await connectProxy(() => status)
    const options = { tls: { ca: certificates.ca }, proxy: `http://user:password-canary@127.0.0.1:${proxy.port}` }
    const { gateway, problem, money } = await started(vendor.baseURL, options)
    expect((await gateway.fetch(cloudRequest())).status).toBe(503)
    expect(problem()).toMatch(words)
    expect(problem()).not.toContain('canary')
    expect(vendor.calls).toHaveLength(0)
    expect(await money()).toEqual(UNTOUCHED)
  })

  test('names the proxy when nothing listens there', async () => {
    const vendor = await tlsVendor()
    const proxy = await connectProxy()
    await closers.pop()?.()
    const { gateway, problem, money } = await started(vendor.baseURL, { proxy: `http://127.0.0.1:${proxy.port}` })
    expect((await gateway.fetch(cloudRequest())).status).toBe(503)
    expect(problem()).toMatch(/the proxy http:\/\/127\.0\.0\.1:\d+ cannot be reached \(.*ECONNREFUSED.*\): set proxy/)
    expect(await money()).toEqual(UNTOUCHED)
  })
})

test('sends headers and query of a vendor in each call, in place of those of the gateway', async () => {
  const vendor = await tlsVendor()
  const { gateway } = await started(vendor.baseURL, {
    tls: { ca: certificates.ca },
    headers: { Authorization: 'Other scheme', 'X-Project': 'p1' },
    query: { 'api-version': '2024-10-21', a: 'b c' },
  })
  expect((await gateway.fetch(cloudRequest())).status).toBe(200)
  const [call] = vendor.calls
  expect(call?.url).toBe('/v1/chat/completions?api-version=2024-10-21&a=b+c')
  expect(call?.headers).toMatchObject({ authorization: 'Other scheme', 'x-project': 'p1' })
})

test.each([
  [{ proxy: 'not a url with password-canary' }, 'proxy: is not a URL'],
  [{ proxy: 'socks5://127.0.0.1:1' }, 'proxy: must be an http or https URL, not socks5:'],
  [{ proxy: 'http://127.0.0.1:1/path' }, 'proxy: must have no path'],
  [{ tls: { cert: 'x' } }, 'tls: a client certificate needs both cert and key'],
  [{ headers: { 'a b': 'c' } }, 'headers: "a b" is not a header name'],
  [{ headers: { host: 'c' } }, 'headers: "host" is set by the connection itself'],
  [{ headers: { a: 'c\r\nd: canary' } }, 'headers: the value of "a"'],
] as const)('refuses %j at start', (options, words) => {
  const make = (): unknown => openaiCompatible({ id: 'cloud', baseURL: 'https://localhost/v1', models: [], ...options })
  expect(make).toThrow(words)
  expect(make).not.toThrow('canary')
})
