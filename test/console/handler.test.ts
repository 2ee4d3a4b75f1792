import { gunzipSync } from 'node:zlib'
import express5 from 'express'
import { afterEach, describe, expect, test } from 'vitest'
import { expressHandler } from '../../src/adapters/express.ts'
import { nodeHandler } from '../../src/adapters/node.ts'
import { consoleAssets, consoleHandler } from '../../src/console/console-handler.ts'
import { compression, MOUNTS, type Mounted } from '../adapters/support/mounts.ts'
import { OPERATOR_KEY } from '../admin/support/start-admin.ts'
import { listen } from '../support/listen.ts'
import { startGateway } from '../support/start-gateway.ts'

const MAX_BYTES = 60_000
const OPERATORS = { operatorKeys: [{ name: 'ops', key: OPERATOR_KEY }] }

let closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.toReversed()) await close()
  closers = []
})

async function started(options = {}) {
  const gateway = await startGateway()
  closers.push(() => gateway.close())
  const handler = consoleHandler(gateway.gateway, { ...OPERATORS, ...options })
  return handler
}

function kept(mounted: Mounted): Mounted {
  closers.push(() => mounted.close())
  return mounted
}

test('the page, its script and its style together are at most 60 kB, compressed', () => {
  const { byName } = consoleAssets()
  const bytes = [...byName.values()].reduce((sum, { gzipped }) => sum + gzipped.byteLength, 0)

  expect(bytes).toBeGreaterThan(10_000)
  expect(bytes).toBeLessThanOrEqual(MAX_BYTES)
})

test('the source of the page writes text as text, and loads nothing from elsewhere', async () => {
  const { readdirSync, readFileSync } = await import('node:fs')
  const folder = 'src/console/page'
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(?:tsx?|css)$/.test(name),
  )
  const offences = files.flatMap((name) => {
    const text = readFileSync(`${folder}/${name}`, 'utf8')
    const found =
      /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|\beval\b|new Function|https?:|@import|url\(/.exec(
        text,
      )
    return found === null ? [] : [`${name}: ${found[0]}`]
  })

  expect(files.length).toBeGreaterThan(10)
  expect(offences).toEqual([])
})

test('without an operator no console is made', async () => {
  const { gateway, close } = await startGateway()
  closers.push(close)

  expect(() => consoleHandler(gateway)).toThrow(/operatorKeys or authorize/)
  expect(() => consoleHandler(gateway, { ...OPERATORS, publicPath: 'ops"><script>' })).toThrow(/publicPath/)
})

const IN_EXPRESS: typeof MOUNTS = {
  'a nested router of express': (handler) =>
    listen(express5().use('/a', express5.Router().use('/b/c', expressHandler(handler)))),
  'express behind compression()': (handler) =>
    listen(express5().use(compression()).use('/ai', expressHandler(handler))),
  'node at the root': (handler) => listen(nodeHandler(handler)),
  'a version of the API of its host, which does not say so': (handler) => listen(nodeHandler(handler)),
}
const PLACES: Readonly<Record<string, string>> = {
  'a nested router of express': '/a/b/c/',
  'node at the root': '/',
  'a version of the API of its host, which does not say so': '/api/v1/console/',
}

describe.each(Object.entries({ ...MOUNTS, ...IN_EXPRESS }))('mounted in %s', (name, mount) => {
  const place = PLACES[name] ?? '/ai/'

  test('the page, its files and the API answer, all by relative addresses', async () => {
    const { origin } = kept(await mount(await started()))
    const page = await fetch(`${origin}${place}`)
    const text = await page.text()
    const [, script = ''] = /src="([^"]+)"/.exec(text) ?? []
    const [, style = ''] = /rel="stylesheet" href="([^"]+)"/.exec(text) ?? []
    const files = await Promise.all([script, style].map((file) => fetch(new URL(file, `${origin}${place}`))))
    const session = await fetch(new URL('v1/session', `${origin}${place}`), {
      headers: { authorization: `Bearer ${OPERATOR_KEY}` },
    })
    const closed = await fetch(new URL('v1/session', `${origin}${place}`))
    const missing = await fetch(new URL('favicon.ico', `${origin}${place}`))

    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('cache-control')).toBe('no-cache')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(page.headers.get('x-frame-options')).toBe('DENY')
    expect(files.map(({ status }) => status)).toEqual([200, 200])
    expect(files.map(({ headers }) => headers.get('content-type'))).toEqual([
      'text/javascript; charset=utf-8',
      'text/css; charset=utf-8',
    ])
    expect(files[0]?.headers.get('cache-control')).toContain('immutable')
    expect(await session.json()).toMatchObject({ operator: 'ops' })
    expect(closed.status).toBe(401)
    // Below a version it might be a route of the API, which is closed.
    expect(missing.status).toBe(place.includes('/v1/') ? 401 : 404)
  })
})

test.each(Object.keys(MOUNTS))('in %s, an address without its slash leads to the one with it', async (name) => {
  const { origin } = kept(await MOUNTS[name]!(await started()))
  const response = await fetch(`${origin}/ai`, { redirect: 'manual' })

  expect(response.status).toBe(308)
  expect(new URL(response.headers.get('location') ?? '', `${origin}/ai`).pathname).toBe('/ai/')
  expect((await fetch(`${origin}/ai`)).status).toBe(200)
})

test('uses publicPath behind a proxy that strips the whole path', async () => {
  const { origin } = kept(await listen(nodeHandler(await started({ publicPath: '/ops/console/' }))))
  const text = await (await fetch(origin)).text()

  expect(text).toContain('<base href="/ops/console/">')
})

test('files are sent compressed where that is understood, and changes of the page are refused', async () => {
  const { origin } = kept(await listen(nodeHandler(await started())))
  const { get } = await import('node:http')
  const raw = await new Promise<{ encoding: string | undefined; body: Buffer }>((resolve) =>
    get(origin, { headers: { 'accept-encoding': 'gzip' } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ encoding: response.headers['content-encoding'], body: Buffer.concat(chunks) }))
    }),
  )
  const posted = await fetch(origin, { method: 'POST', body: 'x' })

  expect(raw.encoding).toBe('gzip')
  expect(gunzipSync(raw.body).toString()).toContain('<div id="app">')
  expect(posted.status).toBe(405)
})
