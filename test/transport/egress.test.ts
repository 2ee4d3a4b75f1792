import { describe, expect, test } from 'vitest'
import { checkPublicUrl, isPublicAddress } from '../../src/transport/egress.ts'

describe('addresses', () => {
  test.each([
    ...['1.1.1.1', '8.8.8.8', '11.0.0.1', '100.63.255.255', '100.128.0.0', '172.15.255.255', '172.32.0.0'],
    ...[
      '168.63.129.15',
      '168.63.129.17',
      '169.253.255.255',
      '192.0.1.1',
      '192.169.0.0',
      '198.20.0.0',
      '223.255.255.255',
    ],
    ...['2606:4700:4700::1111', '2a00:1450:4001:80b::200e', '2003::1', '::ffff:8.8.8.8'],
  ])('%s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  test.each([
    ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.127.255.255', '127.0.0.1'],
    ...['127.255.255.254', '169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.1', '192.0.2.1'],
    ...['168.63.129.16', '192.88.99.1', '192.168.1.1', '198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.1'],
    ...['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
    ...['::', '::1', 'fe80::1', 'fc00::1', 'fd12:3456::1', 'ff02::1', '64:ff9b::7f00:1', '100::1'],
    ...['2001::1', '2001:db8::1', '2002:7f00:1::', '3fff::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1'],
    ...['::ffff:7f00:1', '::127.0.0.1', 'fe80::1%eth0'],
    ...['', 'localhost', 'example.com', '1.2.3', '0x7f000001', '017700000001'],
  ])('%j is not', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})

describe('URLs', () => {
  test.each([
    'https://example.com/a.png?x=1',
    'http://example.com:8080/',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]/',
    'https://localhost.example.com/',
  ])('%s may be fetched', (text) => {
    expect(checkPublicUrl(text)).toEqual({ url: new URL(text) })
  })

  test.each([
    ['', 'is not a URL'],
    ['example.com', 'is not a URL'],
    ['/etc/passwd', 'is not a URL'],
    ['file:///etc/passwd', 'must be an http or https URL'],
    ['ftp://example.com/', 'must be an http or https URL'],
    ['gopher://example.com/', 'must be an http or https URL'],
    ['data:image/png;base64,AA==', 'must be an http or https URL'],
    ['https://user@example.com/', 'must not contain credentials'],
    ['https://:secret@example.com/', 'must not contain credentials'],
    ['http://127.0.0.1/', 'must not point to a private address'],
    ['http://127.1/', 'must not point to a private address'],
    ['http://0x7f.0.0.1/', 'must not point to a private address'],
    ['http://0177.0.0.1/', 'must not point to a private address'],
    ['http://2130706433/', 'must not point to a private address'],
    ['http://[::1]/', 'must not point to a private address'],
    ['http://[::ffff:127.0.0.1]/', 'must not point to a private address'],
    ['http://169.254.169.254/latest/meta-data', 'must not point to a private address'],
    ['http://localhost/', 'must not point to a private address'],
    ['http://LOCALHOST./', 'must not point to a private address'],
    ['http://printer.local/', 'must not point to a private address'],
    ['http://metadata.google.internal/', 'must not point to a private address'],
    ['http://grafana:3000/', 'must not point to a private address'],
    ['http://vault.prod.svc/', 'must not point to a private address'],
    ['http://router.lan./', 'must not point to a private address'],
    ['http://１２７.0.0.1/', 'must not point to a private address'],
  ])('%j %s', (text, reason) => {
    expect(checkPublicUrl(text)).toEqual({ reason })
  })

  test('may include private addresses, but never other schemes or credentials', () => {
    expect(checkPublicUrl('http://127.0.0.1/', { allowPrivate: true })).toHaveProperty('url')
    expect(checkPublicUrl('file:///etc/passwd', { allowPrivate: true })).toHaveProperty('reason')
    expect(checkPublicUrl('http://a:b@127.0.0.1/', { allowPrivate: true })).toHaveProperty('reason')
  })
})
