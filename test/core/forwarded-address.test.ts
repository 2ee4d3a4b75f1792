import { describe, expect, test } from 'vitest'
import { forwardedAddress } from '../../src/core/exchange.ts'

const requestFrom = (remoteAddress: string | undefined, forwarded?: string) => ({
  method: 'GET',
  path: '/readyz',
  remoteAddress,
  header: (name: string) => (name === 'x-forwarded-for' ? forwarded : undefined),
})

describe('the address of a client behind proxies', () => {
  const clientAddress = forwardedAddress(['10.0.0.0/8', '192.0.2.1', '2001:db8::/32'])

  test.each([
    ['10.1.2.3', '198.51.100.7', '198.51.100.7'],
    ['10.1.2.3', '6.6.6.6, 198.51.100.7', '198.51.100.7'],
    ['10.1.2.3', '6.6.6.6, 198.51.100.7, 192.0.2.1', '198.51.100.7'],
    ['::ffff:10.1.2.3', '198.51.100.7', '198.51.100.7'],
    ['2001:db8::1', '[2001:dead::1]:4711', '2001:dead::1'],
    ['10.1.2.3', '198.51.100.7:4711', '198.51.100.7'],
    ['198.51.100.9', '6.6.6.6', '198.51.100.9'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['10.1.2.3', '6.6.6.6, unknown', '10.1.2.3'],
    ['10.1.2.3', '10.4.4.4', '10.4.4.4'],
    [undefined, '6.6.6.6', undefined],
  ])('follows X-Forwarded-For: a request from %s with %j is from %s', (remote, forwarded, client) => {
    expect(clientAddress(requestFrom(remote, forwarded))).toBe(client)
  })

  test.each(['loopback', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '', '::1/129', '10.0.0.0/x'])(
    'rejects the proxy %j',
    (proxy) => {
      expect(() => forwardedAddress([proxy])).toThrow(/neither an IP address nor a block/)
    },
  )
})
