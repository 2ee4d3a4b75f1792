import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'

import { MOUNTS, type Mounted } from './support/mounts.ts'
import { RawClient } from './support/raw-client.ts'
import { BLOCK, type EchoAnswer, StandInGateway } from './support/stand-in-gateway.ts'

const FLOOD_BYTES = 64 * 1024 * 1024

describe.each(Object.entries(MOUNTS))('the gateway in %s', (_name, mount) => {
  let gateway: StandInGateway
  let mounted: Mounted
  const strays: unknown[] = []
  const keepStray = (error: unknown): void => {
    strays.push(error)
  }

  beforeEach(async () => {
    gateway = new StandInGateway()
    mounted = await mount(gateway)
    strays.length = 0
    process.on('unhandledRejection', keepStray)
    process.on('uncaughtException', keepStray)
  })

  afterEach(async () => {
    await mounted.close()
    process.off('unhandledRejection', keepStray)
    process.off('uncaughtException', keepStray)
    expect(strays, 'nothing is left unhandled').toEqual([])
  })

  it('sees method, path below the mount, query, headers and the whole body', async () => {
    const body = JSON.stringify({ text: 'é'.repeat(200_000) })

    const response = await fetch(`${mounted.origin}/ai/v1/files/a%2Fb%20c?x=1&y=%3F`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })

    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      method: 'POST',
      path: '/v1/files/a%2Fb%20c',
      query: 'x=1&y=%3F',
      contentType: 'application/json',
      failure: null,
      body,
    })
  })

  it('takes a body of any type, or none', async () => {
    const binary = await fetch(`${mounted.origin}/ai/v1/x`, { method: 'POST', body: new Uint8Array([104, 105]) })
    const none = await fetch(`${mounted.origin}/ai/v1/x`, { method: 'POST' })
    const form = await fetch(`${mounted.origin}/ai/v1/x`, { method: 'POST', body: new URLSearchParams({ a: 'b' }) })

    expect(await binary.json()).toMatchObject({ body: 'hi', contentType: null })
    expect(await none.json()).toMatchObject({ body: '', failure: null })
    expect(await form.json()).toMatchObject({ body: 'a=b', failure: null })
  })

  it('sends the status, the headers and a stream piece by piece', async () => {
    const response = await fetch(`${mounted.origin}/ai/v1/stream`)
    const text = await response.text()

    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(text).toBe('data: one\n\ndata: zwei – ünï\n\ndata: [DONE]\n\n')
  })

  it.each(['/ai/v1/x', '/ai/v1/stream', '/ai/v1/refuse', '/ai/v1/empty'])(
    'closes the connection after the answer to %s if the process is about to end',
    async (path) => {
      gateway.isClosing = true
      const client = await RawClient.open(mounted.port)
      client.send('GET', path)

      expect(await client.ended()).toMatch(/^connection: close\r$/im)
    },
  )

  it('sends the first event before the answer has ended', async () => {
    const client = await RawClient.open(mounted.port)

    client.send('GET', '/ai/v1/hang')

    expect(await client.until('data: one')).toContain('200 OK')
    client.leave()
    await gateway.next('left')
  })

  it('answers HEAD and 204 without a body and keeps the connection usable', async () => {
    const client = await RawClient.open(mounted.port)

    client.send('HEAD', '/ai/v1/models')
    const head = await client.until('\r\n\r\n')
    client.send('GET', '/ai/v1/empty')
    const both = await client.until('204 No Content')
    client.send('GET', '/ai/v1/last')
    const all = await client.until('"/v1/last"')

    expect(head).toMatch(/content-length: [1-9]/i)
    expect(head.endsWith('\r\n\r\n')).toBe(true)
    expect(both).not.toContain('"path"')
    expect(all.match(/HTTP\/1\.1 /g)).toHaveLength(3)
    client.leave()
  })

  it('serves several requests on one connection without piling up listeners', async () => {
    const client = await RawClient.open(mounted.port)
    const warnings: Error[] = []
    const keepWarning = (warning: Error): void => {
      warnings.push(warning)
    }
    process.on('warning', keepWarning)

    for (let index = 0; index < 30; index++) {
      const length = String(index).length
      client.send('POST', '/ai/v1/x', [`content-length: ${length}`, 'content-type: text/plain'], String(index))
      await client.until(`"body":"${index}"`)
    }

    process.off('warning', keepWarning)
    expect(warnings).toEqual([])
    expect(gateway.left).toEqual([])
    client.leave()
  })

  it('answers pipelined requests in order', async () => {
    const client = await RawClient.open(mounted.port)

    for (let index = 0; index < 15; index++) client.send('GET', `/ai/v1/pipelined/${index}`)
    const text = await client.until('"/v1/pipelined/14"')

    expect([...text.matchAll(/pipelined\/(\d+)"/g)].map((match) => Number(match[1]))).toEqual([...Array(15).keys()])
    client.leave()
  })

  it('reads a body that was announced with expect: 100-continue', async () => {
    const client = await RawClient.open(mounted.port)

    client.send('POST', '/ai/v1/x', ['content-length: 5', 'content-type: text/plain', 'expect: 100-continue'])
    await client.until('100 Continue')
    client.socket.write('hello')

    expect(await client.until('"body"')).toContain('"body":"hello"')
    client.leave()
  })

  it.each(['/v1/silent', '/v1/hang'])('notices each disconnect of the caller (%s)', async (path) => {
    for (let round = 0; round < 5; round++) {
      const client = await RawClient.open(mounted.port)
      const handled = gateway.next('handled')
      client.send('POST', `/ai${path}`, ['content-length: 2', 'content-type: application/json'], '{}')
      await handled
      if (path === '/v1/hang') await client.until('data: one')
      const left = gateway.next('left')
      client.leave()
      expect(await left).toBe(true)
    }

    expect(gateway.left).toEqual(Array(5).fill(path))
  })

  it('notices a disconnect in the middle of a stream under backpressure, once', async () => {
    const client = await RawClient.open(mounted.port)
    client.socket.pause()
    const full = gateway.next('full')
    client.send('GET', '/ai/v1/flood')
    await full

    const left = gateway.next('left')
    client.leave()
    await left

    expect(gateway.left).toEqual(['/v1/flood'])
    expect(gateway.floodedBytes).toBeLessThan(FLOOD_BYTES)
  })

  it('stops at a caller who does not read, and goes on when it does', async () => {
    const full = gateway.next('full')
    const response = await fetch(`${mounted.origin}/ai/v1/flood`)
    await full
    let receivedBytes = 0

    for await (const chunk of response.body!) receivedBytes += chunk.byteLength

    expect(receivedBytes).toBe(FLOOD_BYTES)
    expect(receivedBytes % BLOCK.byteLength).toBe(0)
    expect(gateway.drains).toBeGreaterThan(0)
    expect(gateway.left).toEqual([])
  })

  it('fails the body with "aborted" if the caller disconnects in the middle of it', async () => {
    const client = await RawClient.open(mounted.port)
    const handled = gateway.next('handled')
    client.send('POST', '/ai/v1/x', ['content-length: 100', 'content-type: text/plain'], 'only this')
    await handled

    const read = gateway.next('read')
    client.leave()

    expect(await read).toBe('aborted')
    expect(gateway.failures).toEqual(['aborted'])
  })

  it('refuses an announced body over the limit, and the caller gets the answer', async () => {
    gateway.limitBytes = 1000
    const client = await RawClient.open(mounted.port)

    client.send('POST', '/ai/v1/x', ['content-length: 3000000', 'content-type: text/plain'], 'begun')

    expect(await client.until('"failure"')).toContain('413')
    client.leave()
  })

  it('stops a body that grows over the limit, and the caller gets the answer', async () => {
    gateway.limitBytes = 100_000
    const client = await RawClient.open(mounted.port)
    client.send('POST', '/ai/v1/x', ['transfer-encoding: chunked', 'content-type: text/plain'])
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`

    for (let index = 0; index < 100; index++) client.socket.write(chunk)
    client.socket.write('0\r\n\r\n')
    const answer = await client.until('"failure":"too_large"')

    expect(answer).toContain('413')
    client.leave()
  })

  it('delivers a refusal whole to a caller who sends everything before it reads', async () => {
    gateway.limitBytes = 100_000

    const response = await fetch(`${mounted.origin}/ai/v1/x`, { method: 'POST', body: 'x'.repeat(8_000_000) })

    expect(response.status).toBe(413)
    expect(((await response.json()) as EchoAnswer).failure).toBe('too_large')
  })

  it('answers a refusal that was made without reading the body', async () => {
    const response = await fetch(`${mounted.origin}/ai/v1/refuse`, { method: 'POST', body: 'x'.repeat(500_000) })

    expect(response.status).toBe(401)
    expect(await response.text()).toBe('{}')
  })

  it('cuts the connection on destroy, so that the answer does not look whole', async () => {
    // The Hono server prints the stream's error.
    const print = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => print.mockRestore())
    const client = await RawClient.open(mounted.port)

    client.send('GET', '/ai/v1/cut')
    const text = await client.ended()

    expect(text).toContain('data: one')
    expect(text).not.toContain('\r\n0\r\n\r\n')
    expect(gateway.left).toEqual([])
  })
})
