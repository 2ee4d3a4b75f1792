import { expect, test } from 'vitest'
import { configuredVendors } from '../../src/cli/configured-vendors.ts'
import { environmentProxy } from '../../src/cli/environment-proxy.ts'
import { SettingError } from '../../src/cli/setting-values.ts'

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

test.each(['proxy.example:3128', 'socks5://user:canary@proxy'])(
  'refuses HTTPS_PROXY=%j without repeating it',
  (text) => {
    const read = (): unknown => environmentProxy('https://api.example.com', { HTTPS_PROXY: text })
    expect(read).toThrow(SettingError)
    expect(read).toThrow(/^HTTPS_PROXY: is not an http or https URL such as http:\/\/proxy\.example:3128$/)
  },
)
