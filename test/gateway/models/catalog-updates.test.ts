import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { listPrices } from '../../../src/catalog/prices/list-prices.ts'
import { BUILT_IN_SNAPSHOT } from '../../../src/catalog/vendor-models/snapshot.ts'
import { silentLogger } from '../../../src/core/logger.ts'
import { MAX_SNAPSHOT_BYTES } from '../../../src/gateway/catalog-updates.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import type { Transport } from '../../../src/transport/transport.ts'
import { undiciTransport } from '../../../src/transport/undici.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

const DAY_MS = 86_400_000
const builtInMs = Date.parse(BUILT_IN_SNAPSHOT.date)
const dayOf = (days: number): string => new Date(builtInMs + days * DAY_MS).toISOString().slice(0, 10)
const OPERATOR_KEY = 'operator-0123456789-abcdef'

let started: StartedGateway | undefined
let server: Server | undefined
let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-catalog-'))
  path = join(folder, 'catalog.json')
})
afterEach(async () => {
  await started?.close()
  started = undefined
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)))
  server = undefined
  rmSync(folder, { recursive: true, force: true })
})

/** A snapshot in which a call of `gpt-9` costs a dollar for a million tokens read and written, times `price`. */
function snapshot(days: number, price = 1, ...lines: string[]): string {
  const openai = [`gpt-9|GPT-9|c|100000|10000|t|t|ft|20260701|${price},${price}`, ...lines]
  return JSON.stringify({ date: dayOf(days), models: { openai } })
}

/** @param age Days since the built-in snapshot. */
async function start(options: Partial<GatewayOptions> = {}, age = 10): Promise<ReturnType<typeof fakeClock>> {
  const clock = fakeClock({ startMs: builtInMs + age * DAY_MS })
  started = await startGateway({ clock, prices: listPrices(), models: [], ...options })
  return clock
}

async function serveOn(listener: RequestListener): Promise<string> {
  server = createServer(listener)
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/catalog.json?token=secret-7f3a`
}

/** Sends each call after `held` has come true. */
function heldTransport(held: Promise<void>): { transport: Transport; sent: Promise<void> } {
  const inner = undiciTransport()
  let tell: () => void = () => undefined
  const sent = new Promise<void>((resolve) => {
    tell = resolve
  })
  const transport: Transport = {
    send(request, handler) {
      let control: ReturnType<Transport['send']> | undefined
      tell()
      void held.then(() => {
        control = inner.send(request, handler)
      })
      return {
        abort: () => control?.abort(),
        pause: () => control?.pause(),
        resume: () => control?.resume(),
        get isBodySent() {
          return control?.isBodySent ?? false
        },
      }
    },
    close: () => inner.close(),
  }
  return { transport, sent }
}

const idsOf = () => started!.gateway.models().map(({ id }) => id)
const warned = (code: string) =>
  started!.gateway.warnings().flatMap((warning) => (warning.code === code ? [warning.message] : []))
const ask = async (model: string) => {
  const response = await started!.post('/v1/chat/completions', chatBody(model, 'good morning'))
  return { status: response.status, response }
}

describe('a newer catalog', () => {
  test('is in force before the first request, with its models and list prices', async () => {
    writeFileSync(path, snapshot(5))

    await start({ catalog: { from: path } })

    expect((await ask('gpt-9')).status).toBe(200)
    expect(idsOf()).toContain('gpt-9')
    expect(idsOf()).not.toContain('gpt-4o')
    expect(started!.gateway.prices()?.find(({ model }) => model === 'gpt-9')?.prices).toHaveLength(2)
    expect((await started!.gateway.health()).catalog).toEqual({
      ...{ date: dayOf(5), ageDays: 5, isOld: false, error: undefined },
    })
    expect(started!.gateway.warnings()).toEqual([])
  })

  test('is taken from a file at the interval, and prices follow', async () => {
    writeFileSync(path, snapshot(5))
    const clock = await start({ catalog: { from: path, refreshMs: 1_000 } })
    const priceOf = () => started!.gateway.prices()?.find(({ model }) => model === 'gpt-9')?.prices[0]?.amount
    expect(priceOf()).toBe('1')

    writeFileSync(path, snapshot(6, 3, 'gpt-9-mini|GPT-9 mini|c|1000|100|t|t|f|20260701|1,1'))
    clock.advance(1_000)

    await vi.waitFor(() => expect(priceOf()).toBe('3'))
    expect((await ask('gpt-9-mini')).status).toBe(200)
    const first = await ask('gpt-9')
    expect(first.response.headers.get('x-signalbox-cost')).toBeTruthy()
  })

  test('leaves a request in flight its model and its price', async () => {
    writeFileSync(path, snapshot(5))
    await start({ catalog: { from: path } })
    const before = (await started!.ended((await ask('gpt-9')).response)).costNanoDollars
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const { transport, sent } = heldTransport(held)
    await started!.close()
    await start({ catalog: { from: path }, transport })

    const slow = ask('gpt-9')
    await sent
    writeFileSync(
      path,
      JSON.stringify({
        date: dayOf(6),
        models: { openai: ['gpt-10|GPT-10|c|100000|10000|t|t|ft|20260701|5,5'] },
      }),
    )
    expect(await started!.gateway.loadCatalog()).toMatchObject({ date: dayOf(6), error: undefined })
    release()

    const { status, response } = await slow
    expect(status).toBe(200)
    expect((await started!.ended(response)).costNanoDollars).toBe(before)
    expect((await ask('gpt-9')).status).toBe(404)
    const after = await ask('gpt-10')
    expect((await started!.ended(after.response)).costNanoDollars).toBe(5n * (before ?? 0n))
    expect((await started!.account()).held).toBe(0n)
  })

  test('is taken from an address at the interval by the transport of the gateway', async () => {
    let content = snapshot(5)
    const from = await serveOn((_request, response) => response.end(content))
    const clock = await start({ catalog: { from, refreshMs: 1_000 } })
    expect(idsOf()).toContain('gpt-9')

    content = snapshot(6, 1, 'gpt-10|GPT-10|c|1000|100|t|t|f|20260701|1,1')
    clock.advance(1_000)

    await vi.waitFor(() => expect(idsOf()).toContain('gpt-10'))
  })

  test('is of one gateway, and not of another one in the process', async () => {
    writeFileSync(path, snapshot(5))
    const other = await startGateway({ prices: listPrices(), models: [] })
    await start({ catalog: { from: path } })

    expect(idsOf()).toContain('gpt-9')
    expect(other.gateway.catalog.find('gpt-4o')).toBeDefined()
    expect(other.gateway.catalog.find('gpt-9')?.isOpen).toBe(true)
    await other.close()
  })
})

describe('a catalog that cannot be used', () => {
  const older = (): string => snapshot(-1)
  test.each([
    ['is no JSON', () => '{"date": "2026', 'JSON'],
    ['is of another format', () => '{"openai":{"models":{}}}', 'date: must be a day'],
    ['has a damaged line', () => snapshot(5, 1, 'gpt-10|GPT'), 'models.openai[1]: is not a well-formed model line'],
    ['is older than the built-in one', older, `date: ${dayOf(-1)} is older than ${BUILT_IN_SNAPSHOT.date}`],
    ['is too large', () => ' '.repeat(MAX_SNAPSHOT_BYTES + 1), `it is larger than ${MAX_SNAPSHOT_BYTES} bytes`],
  ])('because it %s is refused with the reason, from a file and from an address', async (_name, content, reason) => {
    writeFileSync(path, content())
    const address = await serveOn((_request, response) => response.end(content()))
    await start({ catalog: { from: path } })

    expect(idsOf()).toContain('gpt-4o')
    expect(warned('catalog-refused')).toHaveLength(1)
    expect(warned('catalog-refused')[0]).toContain(reason)
    const { status, catalog } = await started!.gateway.health()
    expect([status, catalog.date]).toEqual(['ok', BUILT_IN_SNAPSHOT.date])
    expect(catalog.error).toContain(`${path}: `)
    await expect(started!.gateway.loadCatalog(address)).rejects.toThrow(reason)
    expect(idsOf()).toContain('gpt-4o')
    expect(JSON.stringify(started!.gateway.warnings())).not.toContain('secret-7f3a')
  })

  test.each([
    ['is missing', 404, 'status 404'],
    ['redirects', 302, 'status 302; redirects are not followed'],
  ])('because the address %s is refused with the status', async (_name, status, reason) => {
    const from = await serveOn((_request, response) => response.writeHead(status, { location: '/' }).end())
    await start({ catalog: { from } })

    expect(warned('catalog-refused')[0]).toContain(reason)
    expect(started!.events).toContainEqual(expect.objectContaining({ code: 'catalog-refused' }))
  })

  test('because nothing answers at the address is refused, until the address works again', async () => {
    let isDown = true
    const from = await serveOn((request, response) => {
      if (isDown) request.socket.destroy()
      else response.end(snapshot(5))
    })
    const clock = await start({ catalog: { from, refreshMs: 1_000 } })
    expect((await started!.gateway.health()).catalog.error).toContain('/catalog.json: ')

    isDown = false
    clock.advance(1_000)

    await vi.waitFor(() => expect(idsOf()).toContain('gpt-9'))
    expect((await started!.gateway.health()).catalog.error).toBeUndefined()
  })

  test('because the address never ends its answer is given up after 30 seconds', async () => {
    const from = await serveOn((_request, response) => response.write('{'))
    const clock = await start()

    const loading = started!.gateway.loadCatalog(from)
    await vi.waitFor(() => expect(clock.pending).toBeGreaterThan(0))
    clock.advance(30_000)

    await expect(loading).rejects.toThrow('no complete answer within 30000 ms')
    server?.closeAllConnections()
  })

  test('because it is older than the one that was loaded is refused', async () => {
    writeFileSync(path, snapshot(5))
    await start({ catalog: { from: path } })
    writeFileSync(path, snapshot(4))

    await expect(started!.gateway.loadCatalog()).rejects.toThrow(`${dayOf(4)} is older than ${dayOf(5)}`)
    expect(idsOf()).toContain('gpt-9')
  })

  test('because prices cannot be made of it is refused as a whole', async () => {
    writeFileSync(path, snapshot(5))
    const given = listPrices()
    let isBroken = false
    const prices: typeof given = {
      forCatalog(catalog) {
        if (isBroken) throw new TypeError('no prices today')
        return given.forCatalog(catalog)
      },
    }
    await start({ prices })
    isBroken = true

    await expect(started!.gateway.loadCatalog(path)).rejects.toThrow('no prices today')
    expect(idsOf()).toContain('gpt-4o')
  })

  test('is not looked for after the gateway has closed', async () => {
    writeFileSync(path, snapshot(5))
    const clock = await start({ catalog: { from: path } })
    await started!.gateway.close()

    await expect(started!.gateway.loadCatalog()).rejects.toMatchObject({ code: 'gateway_closing' })
    expect(clock.pending).toBe(0)
  })

  test('without a path and without the option is a TypeError', async () => {
    await start()

    await expect(started!.gateway.loadCatalog()).rejects.toThrow('loadCatalog needs a path or an address')
  })

  test.each([
    [{ from: '' }, 'catalog.from must be the path'],
    [{ from: 'a.json', refreshMs: 0 }, 'catalog.refreshMs must be a positive number'],
    [{ from: 'a.json', proxy: 'ftp://a' }, 'proxy: must be an http or https URL'],
    [{ from: 'a.json', every: 1 }, 'catalog.every'],
  ])('is refused when the gateway is made if the option is %j', async (catalog, message) => {
    await expect(start({ catalog })).rejects.toThrow(message)
  })
})

describe('the age of the catalog', () => {
  test('is in health() and in /readyz?verbose, and not in /readyz', async () => {
    await start({ operatorKey: OPERATOR_KEY }, 60)

    const age = { date: BUILT_IN_SNAPSHOT.date, ageDays: 60, isOld: false }
    expect((await started!.gateway.health()).catalog).toEqual({ ...age, error: undefined })
    const headers = { authorization: `Bearer ${OPERATOR_KEY}` }
    const verbose = await fetch(`${started!.url}/readyz?verbose`, { headers })
    expect(await verbose.json()).toMatchObject({ status: 'ok', catalog: age })
    expect(await (await fetch(`${started!.url}/readyz`)).json()).toEqual({ status: 'ok' })
  })

  test.each([
    ['above 60 days', {}, 61, 1],
    ['up to 60 days', {}, 60, 0],
    ['where no vendor of the gateway is in the catalog', { vendors: [] }, 61, 0],
  ])('is logged at start %s', async (_name, options, age, lines) => {
    const warn = vi.fn()

    await start({ ...options, logger: { ...silentLogger, warn } }, age)

    const told = warn.mock.calls.filter(([message]) => String(message).includes('more than 60 days old'))
    expect(told).toHaveLength(lines)
    if (lines > 0) expect(told[0]?.[1]).toEqual({ date: BUILT_IN_SNAPSHOT.date, ageDays: 61 })
    expect((await started!.gateway.health()).catalog.isOld).toBe(age > 60)
    expect(started!.gateway.warnings()).toEqual([])
  })

  test('is 0 days for a clock that is behind it', async () => {
    await start({}, -400)

    expect((await started!.gateway.health()).catalog).toMatchObject({ ageDays: 0, isOld: false })
  })
})
