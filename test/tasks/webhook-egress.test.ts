import type { ResolverOptions } from 'node:dns'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { checkPublicUrl } from '../../src/transport/egress.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { type WebhookBench, webhookBench } from './support/webhook-bench.ts'
import { startReceiver, type WebhookReceiver } from './support/webhook-receiver.ts'

let dns: DnsServer

/** Resolvers query the test's own server. */
vi.mock('node:dns', async (original) => {
  const real = await original<typeof import('node:dns')>()
  class Resolver extends real.promises.Resolver {
    constructor(options?: ResolverOptions) {
      super(options)
      this.setServers([dns.address])
    }
  }
  return { ...real, promises: { ...real.promises, Resolver } }
})

const NAME = 'receiver.example.com'

let bench: WebhookBench
let receiver: WebhookReceiver

beforeEach(async () => {
  dns = await startDnsServer({})
  bench = webhookBench()
  receiver = await startReceiver()
})
afterEach(async () => {
  await bench.close()
  await receiver.close()
  await dns.close()
})

async function attemptAt(url: string, allowPrivateUrls: boolean) {
  bench.queue('msg_one', url)
  bench.deliverer({ allowPrivateUrls }).start()
  return (await bench.recorded(1))[0]
}

describe('a private address at delivery', () => {
  test.each([
    ['127.0.0.1', (port: string) => `http://127.0.0.1:${port}/`],
    ['[::ffff:127.0.0.1]', (port: string) => `http://[::ffff:127.0.0.1]:${port}/`],
    ['2130706433', (port: string) => `http://2130706433:${port}/`],
    ['localhost', (port: string) => `http://localhost:${port}/`],
    ['the metadata service', () => 'http://169.254.169.254/latest/meta-data'],
    ['a private network', () => 'https://10.0.0.1/'],
  ])('%s is never connected to, and the attempt is recorded as failed', async (_name, url) => {
    const attempt = await attemptAt(url(new URL(receiver.origin).port), false)

    expect(attempt?.error).toBe('the URL must not point to a private address')
    expect((await bench.delivery('msg_one')).state).toBe('pending')
    expect(receiver.connections).toBe(0)
  })

  test('a name that was public at submission and is private at delivery is not connected to', async () => {
    dns.records = { [NAME]: ['127.0.0.1'] }
    const url = `http://receiver.example.com:${new URL(receiver.origin).port}/`
    expect(checkPublicUrl(url)).toHaveProperty('url')

    const attempt = await attemptAt(url, false)

    expect(attempt?.error).toBe('no connection: receiver.example.com resolves to a private address')
    expect(receiver.connections).toBe(0)
  })

  test('one private address among public ones refuses the name', async () => {
    dns.records = { [NAME]: ['93.184.215.14', '127.0.0.1'] }

    const attempt = await attemptAt(`http://receiver.example.com:${new URL(receiver.origin).port}/`, false)

    expect(attempt?.error).toContain('resolves to a private address')
    expect(receiver.connections).toBe(0)
  })

  test('a name is looked up afresh at each attempt', async () => {
    const first = await attemptAt(`http://receiver.example.com:${new URL(receiver.origin).port}/`, false)
    dns.records = { [NAME]: ['127.0.0.1'] }

    bench.clock.advance(5_000)

    const [, second] = await bench.recorded(2)
    expect(first?.error).toBe('no connection: receiver.example.com cannot be resolved (ENOTFOUND)')
    expect(second?.error).toBe('no connection: receiver.example.com resolves to a private address')
    expect(receiver.connections).toBe(0)
  })

  test('is reached when the operator allows it', async () => {
    const attempt = await attemptAt(`${receiver.origin}/`, true)

    expect(attempt?.status).toBe(204)
  })
})

test.each([
  ['ftp://receiver.example.com/', 'the URL must be an http or https URL'],
  ['https://user:word@receiver.example.com/', 'the URL must not contain credentials'],
  ['not a url', 'the URL is not a URL'],
])('%s is recorded as failed even where private addresses are allowed', async (url, error) => {
  expect((await attemptAt(url, true))?.error).toBe(error)
})
