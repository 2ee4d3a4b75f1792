import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { MOUNTS, type Mounted } from '../../adapters/support/mounts.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const CHAT = '/v1/chat/completions'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** A vendor that answers nothing by itself. */
interface SilentVendor {
  readonly baseURL: string
  /** The answer of the next call that arrives. */
  next(): Promise<ServerResponse>
}

async function silentVendor(): Promise<SilentVendor> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(async () => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return {
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async next() {
      const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]
      return response
    },
  }
}

interface Started {
  readonly clock: ReturnType<typeof fakeClock>
  readonly vendor: SilentVendor
  readonly started: StartedGateway
  readonly mounted: Mounted
}

async function start(mount: (typeof MOUNTS)[string], options: Partial<GatewayOptions> = {}): Promise<Started> {
  const clock = fakeClock()
  const vendor = await silentVendor()
  const { baseURL } = vendor
  const started = await startGateway({ clock, vendors: [openai({ apiKey: 'vendor-key', baseURL })], ...options })
  const mounted = await mount(started.gateway)
  cleanups.push(
    () => started.close(),
    () => mounted.close(),
  )
  return { clock, vendor, started, mounted }
}

/** Waits until the gateway has read what the vendor has written, by a short call of which it reads the answer after that. */
async function passed({ vendor, mounted }: Started): Promise<void> {
  const caller = rawPost(mounted.origin, `/ai${CHAT}`, chatBody('chat-relayed', 'hello'))
  const response = await vendor.next()
  response.writeHead(200, { 'content-type': 'application/json' })
  const choice = { index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }
  response.end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [choice] }))
  await caller.received('chat.completion')
  caller.leave()
}

describe.each(Object.entries(MOUNTS))('a stream that is silent from the beginning, in %s', (_name, mount) => {
  test('has its headers and a comment with the caller after 15 seconds', async () => {
    const bench = await start(mount)
    const arrives = bench.vendor.next()
    const caller = rawPost(bench.mounted.origin, `/ai${CHAT}`, chatBody('chat-relayed', 'hello', { stream: true }))
    const response = await arrives
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    await passed(bench)
    bench.clock.advance(15_000)
    const text = await caller.received(': keep-alive\n\n')

    expect(text).toContain('HTTP/1.1 200')
    expect(text).toContain('text/event-stream')
    bench.clock.advance(15_000)
    response.end('data: {"choices":[{"index":0,"delta":{"content":"late"}}]}\n\ndata: [DONE]\n\n')
    const whole = await caller.received('[DONE]')
    expect(whole.match(/: keep-alive/g)).toHaveLength(2)
    expect(whole.indexOf('keep-alive')).toBeLessThan(whole.indexOf('late'))
    caller.leave()
  })
})

describe('a stream whose vendor is silent before its own headers', () => {
  test('has its headers with the caller as soon as the vendor has sent any', async () => {
    const bench = await start(MOUNTS['node']!)
    const arrives = bench.vendor.next()
    const caller = rawPost(bench.mounted.origin, `/ai${CHAT}`, chatBody('chat-relayed', 'hello', { stream: true }))
    const response = await arrives
    bench.clock.advance(20_000)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()

    expect(await caller.received(': keep-alive\n\n')).toContain('HTTP/1.1 200')
    caller.leave()
  })

  test('still returns an answer that is not a stream as its error', async () => {
    const bench = await start(MOUNTS['node']!)
    const arrives = bench.vendor.next()
    const caller = rawPost(bench.mounted.origin, `/ai${CHAT}`, chatBody('chat-relayed', 'hello', { stream: true }))
    const response = await arrives
    bench.clock.advance(20_000)
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end('{"error":{"message":"no","type":"invalid_request_error"}}')

    expect(await caller.received('invalid_request_error')).toContain('HTTP/1.1 400')
    caller.leave()
  })
})

test('a stream whose first content comes in time gets no comment', async () => {
  const bench = await start(MOUNTS['node']!)
  const arrives = bench.vendor.next()
  const caller = rawPost(bench.mounted.origin, `/ai${CHAT}`, chatBody('chat-relayed', 'hello', { stream: true }))
  const response = await arrives
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end('data: {"choices":[{"index":0,"delta":{"content":"soon"}}]}\n\ndata: [DONE]\n\n')

  expect(await caller.received('[DONE]')).not.toContain('keep-alive')
  caller.leave()
})

describe('a stream that fails after its headers were sent and before any content', () => {
  const failed = `data: ${JSON.stringify({ error: { message: 'no', type: 'server_error', code: null } })}\n\n`
  const failures = {
    error: (response: ServerResponse): void => void response.end(failed),
    cut: (response: ServerResponse): void => void response.destroy(),
  }
  const fields = { stream: true, max_completion_tokens: 2_000, reasoning_effort: 'high' }

  async function failLate(how: keyof typeof failures) {
    const bench = await start(MOUNTS['node']!)
    const { started, mounted, vendor, clock } = bench
    const arrives = vendor.next()
    const caller = rawPost(mounted.origin, `/ai${CHAT}`, chatBody('chat-relayed', 'hello', fields))
    const response = await arrives
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    await passed(bench)
    clock.advance(15_000)
    await caller.received(': keep-alive\n\n')
    const before = await started.account()
    const ending = started.nextEnded()
    failures[how](response)
    const ended = await ending
    expect(await caller.received('"error"')).toContain('HTTP/1.1 200')
    const told = started.events.filter(({ type }) => type === 'unbilled-usage')
    return { ended, told, before, after: await started.account() }
  }

  test.each(['error', 'cut'] as const)(
    'is free as before the headers, and the possible bill of the vendor is reported (%s)',
    async (how) => {
      const { ended, told, before, after } = await failLate(how)

      expect(ended).toMatchObject({ ending: 'failed', usage: undefined, costNanoDollars: 0n })
      expect(told).toEqual([
        expect.objectContaining({
          isEstimated: true,
          usage: expect.objectContaining({ inputTokens: expect.any(Number) }),
        }),
      ])
      expect(after).toEqual({ balance: before.balance + before.held, held: 0n })
    },
  )
})
