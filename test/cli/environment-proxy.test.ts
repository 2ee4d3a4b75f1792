import { createServer, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { configuredVendors } from '../../src/cli/configured-vendors.ts'
import { environmentProxy } from '../../src/cli/environment-proxy.ts'
import { SettingError } from '../../src/cli/setting-values.ts'
import type { Environment } from '../../src/cli/terminal.ts'
import { listen } from '../support/listen.ts'

const PROXY = 'http://user:password@proxy.example:3128'

test.each([
  ['https://api.example.com', undefined, PROXY],
  ['https://api.example.com', '', PROXY],
  ['https://api.example.com', 'other.com, localhost', PROXY],
  ['https://api.example.com', 'ample.com', PROXY],
  ['https://api.example.com', 'example.com:8443', PROXY],
  ['https://api.example.com', 'localhost,EXAMPLE.com', undefined],
  ['https://api.example.com', '.example.com', undefined],
  ['https://api.example.com', '*.example.com', undefined],
  ['https://api.example.com', 'example.com:443', undefined],
  ['https://api.example.com:8443', 'example.com:8443', undefined],
  ['https://api.example.com', '*', undefined],
  ['http://127.0.0.1:1234', undefined, undefined],
])('%s with NO_PROXY=%j is called through %j', (origin, noProxy, expected) => {
  expect(environmentProxy(origin, { HTTPS_PROXY: PROXY, NO_PROXY: noProxy })).toBe(expected)
  expect(environmentProxy(origin, { https_proxy: PROXY, no_proxy: noProxy })).toBe(expected)
  expect(environmentProxy(origin, { NO_PROXY: noProxy })).toBeUndefined()
})

test('serve gives the proxy to vendors that are not excepted', () => {
  const environment = {
    HTTPS_PROXY: PROXY,
    NO_PROXY: 'api.anthropic.com',
    OPENAI_API_KEY: 'sk-one',
    ANTHROPIC_API_KEY: 'sk-two',
  }
  const vendors = new Map(configuredVendors(environment, undefined).map(({ vendor }) => [vendor.id, vendor]))
  expect(vendors.get('openai')?.egress).toEqual({
    proxy: {
      url: 'http://proxy.example:3128',
      authorization: `Basic ${Buffer.from('user:password').toString('base64')}`,
    },
  })
  expect(vendors.get('anthropic')?.egress).toBeUndefined()
})

// If the environment of the process is read, a missing profile ends the search before a metadata server is called.
beforeEach(() => {
  vi.stubEnv('AWS_PROFILE', 'not-there')
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/not-there')
})
afterEach(() => {
  vi.unstubAllEnvs()
})

/** The credential that serve makes of an environment for Amazon Bedrock. */
function bedrockCredential(environment: Environment) {
  const found = configuredVendors({ AWS_REGION: 'eu-central-1', ...environment }, undefined)
  const provider = found.find(({ vendor }) => vendor.id === 'amazon-bedrock')?.vendor.credentialProviders?.[0]
  return Promise.resolve(provider?.({ signal: AbortSignal.timeout(5_000), nowMs: Date.now() }))
}

test('serve takes keys of AWS from the environment that it was given', async () => {
  const keys = { AWS_ACCESS_KEY_ID: 'AKIDGIVEN', AWS_SECRET_ACCESS_KEY: 'secret' }

  expect(await bedrockCredential(keys)).toMatchObject({ token: 'AKIDGIVEN' })
})

test('serve asks the token service of AWS through the proxy', async () => {
  const tunnels: unknown[] = []
  const proxy = createServer().on('connect', ({ url }: IncomingMessage, socket: Duplex) => {
    tunnels.push(url)
    socket.end('HTTP/1.1 403 No\r\nconnection: close\r\n\r\n')
  })
  const { origin, close } = await listen(proxy)
  const identity = { AWS_WEB_IDENTITY_TOKEN_FILE: import.meta.filename, AWS_ROLE_ARN: 'arn:aws:iam::1:role/r' }

  await expect(bedrockCredential({ ...identity, HTTPS_PROXY: origin })).rejects.toThrow(/sts\.eu-central-1/)
  await close()

  expect(tunnels).toEqual(['sts.eu-central-1.amazonaws.com:443'])
})

test.each(['proxy.example:3128', 'socks5://user:canary@proxy'])(
  'refuses HTTPS_PROXY=%j without repeating it',
  (text) => {
    const read = (): unknown => environmentProxy('https://api.example.com', { HTTPS_PROXY: text })
    expect(read).toThrow(SettingError)
    expect(read).toThrow(/^HTTPS_PROXY: is not an http or https URL such as http:\/\/proxy\.example:3128$/)
  },
)
