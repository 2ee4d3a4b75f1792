import { lookup } from 'node:dns'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { MAX_PENDING_PER_OWNER, NameResolver } from '../../src/transport/name-resolver.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'

const PUBLIC = '93.184.215.14'

let dns: DnsServer
let clock: FakeClock
let names: NameResolver

beforeEach(async () => {
  dns = await startDnsServer({ 'images.example.com': [PUBLIC], 'slow.example.com': 'silence' })
  clock = fakeClock()
  names = new NameResolver({ servers: [dns.address], clock })
})
afterEach(() => dns.close())

describe('a name', () => {
  test('resolves to its addresses, whatever its case', async () => {
    expect(await names.resolve('Images.Example.com')).toEqual([{ address: PUBLIC, family: 4 }])
  })

  test('is queried once for everyone who waits for it, and again after ten seconds', async () => {
    await Promise.all([names.resolve('images.example.com', 'a'), names.resolve('images.example.com', 'b')])
    clock.advance(9_999)
    await names.resolve('images.example.com')
    expect(dns.queried).toEqual(['images.example.com'])

    clock.advance(1)
    await names.resolve('images.example.com')
    expect(dns.queried).toHaveLength(2)
  })

  test.each([
    ['one private address', ['127.0.0.1']],
    ['a private address among public ones', [PUBLIC, '10.0.0.1']],
  ])('is refused with %s', async (_case, addresses) => {
    dns.records = { 'images.example.com': addresses }

    await expect(names.resolve('images.example.com')).rejects.toThrow(
      'images.example.com resolves to a private address',
    )
  })

  test('is queried again after it had no address', async () => {
    await expect(names.resolve('other.example.com')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    dns.records = { 'other.example.com': [PUBLIC] }

    expect(await names.resolve('other.example.com')).toEqual([{ address: PUBLIC, family: 4 }])
  })

  test('fails after five seconds without an answer', async () => {
    const resolving = names.resolve('slow.example.com')
    const outcome = expect(resolving).rejects.toMatchObject({ code: 'ETIMEOUT' })
    await expect.poll(() => dns.queried.length).toBeGreaterThan(0)
    clock.advance(5_000)

    await outcome
    expect(clock.pending).toBe(0)
  })

  test('fails when the resolver closes', async () => {
    const resolving = names.resolve('slow.example.com')
    const outcome = expect(resolving).rejects.toMatchObject({ code: 'ECANCELLED' })
    await expect.poll(() => dns.queried.length).toBeGreaterThan(0)
    names.close()

    await outcome
  })

  test('is read from the hosts file without a query', async () => {
    await expect(promisify(lookup)('localhost')).resolves.toBeDefined()
    await expect(names.resolve('localhost')).rejects.toThrow('localhost resolves to a private address')
    const addresses = await new NameResolver({ servers: [dns.address], allowPrivate: true }).resolve('localhost')

    expect(addresses).toContainEqual({ address: '127.0.0.1', family: 4 })
    expect(dns.queried).toEqual([])
  })

  test('is looked up by the system if DNS does not know it and private addresses are allowed', async () => {
    dns.records = {}
    const lenient = new NameResolver({ servers: [dns.address], allowPrivate: true })

    // An old way to write an address, which no DNS server knows.
    expect(await lenient.resolve('127.1')).toEqual([{ address: '127.0.0.1', family: 4 }])
    expect(dns.queried).toEqual(['127.1'])
  })
})

test('an address resolves to itself, unless it is private', async () => {
  expect(await names.resolve('8.8.8.8')).toEqual([{ address: '8.8.8.8', family: 4 }])
  expect(await names.resolve('[2606:4700:4700::1111]')).toEqual([{ address: '2606:4700:4700::1111', family: 6 }])
  await expect(names.resolve('127.0.0.1')).rejects.toThrow('private address')
})

describe('names that are never answered', () => {
  test('are bounded for one owner, and leave room for others', async () => {
    dns.records = { '*': 'silence', 'images.example.com': [PUBLIC] }
    const waiting = Array.from({ length: MAX_PENDING_PER_OWNER }, (_, index) =>
      names.resolve(`n${index}.example.com`, 'acct_one').catch(() => undefined),
    )

    await expect(names.resolve('images.example.com', 'acct_one')).rejects.toMatchObject({ code: 'EBUSY' })
    expect(await names.resolve('images.example.com', 'acct_two')).toEqual([{ address: PUBLIC, family: 4 }])
    // A known name needs no query.
    expect(await names.resolve('images.example.com', 'acct_one')).toHaveLength(1)
    clock.advance(5_000)
    await Promise.all(waiting)
  })

  test('are bounded for the process', async () => {
    dns.records = { '*': 'silence' }
    const waiting = Array.from({ length: 512 }, (_, index) =>
      names.resolve(`n${index}.example.com`, `acct_${index}`).catch(() => undefined),
    )

    await expect(names.resolve('images.example.com', 'acct_other')).rejects.toMatchObject({ code: 'EBUSY' })
    clock.advance(5_000)
    await Promise.all(waiting)
  })

  test('delay no look-up of the system', async () => {
    dns.records = { '*': 'silence' }
    const waiting = Array.from({ length: 200 }, (_, index) =>
      names.resolve(`n${index}.example.com`, `acct_${index % 10}`).catch(() => undefined),
    )
    const startMs = performance.now()
    await promisify(lookup)('localhost')

    expect(performance.now() - startMs).toBeLessThan(1_000)
    clock.advance(5_000)
    await Promise.all(waiting)
  })
})

describe('the look-up of a connection', () => {
  const resolve = promisify(
    (host: string, options: object, done: (error: Error | null, address: unknown) => void): void =>
      names.lookup(host, options, done),
  )

  test.each([{}, { all: true }, { family: 4 }])('fails for a private address (options %j)', async (options) => {
    await expect(resolve('localhost', options)).rejects.toThrow('localhost resolves to a private address')
  })

  test('returns addresses in the form that was asked for', async () => {
    expect(await resolve('images.example.com', {})).toBe(PUBLIC)
    expect(await resolve('images.example.com', { all: true })).toEqual([{ address: PUBLIC, family: 4 }])
  })

  test('fails if there is no address of the family', async () => {
    await expect(resolve('images.example.com', { family: 6 })).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })
})
