import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import express from 'express'
import fastify from 'fastify'
import OpenAI, { toFile } from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { expressHandler } from '../../../src/adapters/express.ts'
import { fastifyGateway } from '../../../src/adapters/fastify.ts'
import type { BatchOptions } from '../../../src/gateway/catalog-options.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/index.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

const open: StartedGateway[] = []
afterEach(async () => {
  for (const started of open.splice(0)) await started.close()
})

async function start(batches: BatchOptions = {}, clock = fakeClock(), options: Partial<GatewayOptions> = {}) {
  const started = await startGateway({ batches, clock, ...options })
  open.push(started)
  return { ...started, clock, client: new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 }) }
}

const file = (text: string, name = 'requests.jsonl') => toFile(Buffer.from(text), name)

describe('a file', () => {
  test('is kept, read, listed and deleted', async () => {
    const { client } = await start()
    const first = await client.files.create({ file: await file('one\n', 'first ü.jsonl'), purpose: 'batch' })
    const second = await client.files.create({ file: await file('two\n'), purpose: 'batch' })

    expect(first).toMatchObject({ object: 'file', bytes: 4, filename: 'first ü.jsonl', purpose: 'batch' })
    expect(await client.files.retrieve(first.id)).toEqual(first)
    expect(await (await client.files.content(first.id)).text()).toBe('one\n')
    expect((await client.files.list({ limit: 1, order: 'asc' })).data).toEqual([first])
    expect((await client.files.list({ after: second.id })).data).toEqual([first])
    expect(await client.files.delete(first.id)).toEqual({ id: first.id, object: 'file', deleted: true })
    await expect(client.files.content(first.id)).rejects.toMatchObject({ status: 404, code: 'file_not_found' })
    await expect(client.files.delete(first.id)).rejects.toMatchObject({ status: 404 })
  })

  test('rejects a compressed upload with the reason', async () => {
    const { url, client } = await start()
    const form = '--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b--\r\n'
    const send = (encoding: string, body: BodyInit) =>
      fetch(`${url}/v1/files`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${TEST_KEY}`,
          'content-type': 'multipart/form-data; boundary=b',
          'content-encoding': encoding,
        },
        body,
      })

    const compressed = await send('gzip', gzipSync(form))
    expect([compressed.status, await compressed.json()]).toMatchObject([
      415,
      { error: { code: 'unsupported_media_type', message: expect.stringContaining('Content-Encoding "gzip"') } },
    ])
    expect((await send('identity', form)).status).toBe(400)
    expect((await client.files.list()).data).toEqual([])
  })

  test('is kept once for one Idempotency-Key, and its answer is sent again', async () => {
    const { blobs = expect.fail() } = memoryStore()
    const stored = new Set<string>()
    const { client, url, clock } = await start({
      blobs: {
        ...blobs,
        put(blob, content) {
          stored.add(blob.id)
          return blobs.put(blob, content)
        },
        delete(id) {
          stored.delete(id)
          return blobs.delete(id)
        },
      },
    })
    const send = async (text: string, key: string, purpose = 'batch', fields: Record<string, string> = {}) => {
      const form = new FormData()
      form.set('purpose', purpose)
      for (const [name, value] of Object.entries(fields)) form.set(name, value)
      form.set('file', new Blob([text]), 'requests.jsonl')
      const headers = { authorization: `Bearer ${TEST_KEY}`, 'idempotency-key': key }
      const answer = await fetch(`${url}/v1/files`, { method: 'POST', headers, body: form })
      const { id, error } = (await answer.json()) as { id?: string; error?: { code: string } }
      return [answer.status, id ?? error?.code, answer.headers.get('idempotent-replayed')]
    }

    const [status, id] = await send('one', 'k')
    expect(status).toBe(200)
    expect(await send('one', 'k')).toEqual([200, id, 'true'])
    expect(await send('two', 'k')).toEqual([422, 'idempotency_mismatch', null])
    const sooner = { 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '3600' }
    expect(await send('one', 'k', 'batch', sooner)).toEqual([422, 'idempotency_mismatch', null])
    expect([...stored]).toEqual([id])
    expect((await client.files.list()).data.map((kept) => kept.id)).toEqual([id])
    // A refused upload frees its key.
    expect(await send('three', 'other', 'vision')).toEqual([400, 'invalid_request', null])
    expect((await send('three', 'other'))[0]).toBe(200)
    clock.advance(24 * 3_600_000)
    expect((await send('one', 'k'))[1]).not.toBe(id)
  })

  test('expires when its caller says, and no later than the operator allows', async () => {
    const { client, clock } = await start({ retentionDays: 2 })
    const short = await client.files.create({
      file: await file('one'),
      purpose: 'batch',
      expires_after: { anchor: 'created_at', seconds: 3_600 },
    })
    const long = await client.files.create({
      file: await file('two'),
      purpose: 'batch',
      expires_after: { anchor: 'created_at', seconds: 2_592_000 },
    })
    expect([short.expires_at! - short.created_at, long.expires_at! - long.created_at]).toEqual([3_600, 172_800])

    clock.advance(3_600_000)

    await expect(client.files.retrieve(short.id)).rejects.toMatchObject({ status: 404 })
    expect((await client.files.list()).data.map(({ id }) => id)).toEqual([long.id])
  })

  test.each([
    [undefined, 30 * 86_400],
    [{ anchor: 'created_at', seconds: 3_600 } as const, 3_600],
    [{ anchor: 'created_at', seconds: 86_400 } as const, 86_400],
  ])("expires a batch's output file when its caller requests: %j", async (output_expires_after, seconds) => {
    const clock = fakeClock()
    const started = await startGateway({ batches: { native: false }, billing: 'off', clock })
    open.push(started)
    const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
    const body = { model: 'chat-relayed', messages: [{ role: 'user', content: 'hi' }] }
    const line = { custom_id: 'one', method: 'POST', url: '/v1/chat/completions', body }
    const { id } = await client.files.create({ file: await file(JSON.stringify(line)), purpose: 'batch' })
    const batch = await client.batches.create({
      ...{ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' },
      ...(output_expires_after && { output_expires_after }),
    })
    await started.taskEnded(batch.id)
    const { output_file_id: output } = await client.batches.retrieve(batch.id)
    const made = await client.files.retrieve(output!)

    expect(made.expires_at! - made.created_at).toBe(seconds)
  })

  test.each([
    [{ anchor: 'created_at', seconds: 60 }, 'output_expires_after.seconds'],
    [{ anchor: 'created_at', seconds: '3600' }, 'output_expires_after.seconds'],
    [{ anchor: 'ended_at', seconds: 3_600 }, 'output_expires_after.anchor'],
    ['soon', 'output_expires_after.anchor'],
  ])('rejects a batch output file that expires at %j', async (output_expires_after, param) => {
    const { client } = await start()
    const batch = { input_file_id: 'file_x', endpoint: '/v1/chat/completions', completion_window: '24h' } as const
    const create = client.batches.create({ ...batch, output_expires_after } as never)

    await expect(create).rejects.toMatchObject({ status: 400, param })
  })

  test('is deleted from the store after it has expired, also where the clock was set back by an hour', async () => {
    const store = memoryStore()
    const { files = expect.fail() } = store
    const purgedAtMs: number[] = []
    const purge: typeof files.purge = (nowMs, limit) => {
      purgedAtMs.push(nowMs)
      return files.purge(nowMs, limit)
    }
    const clock = fakeClock()
    let backMs = 0
    const started = await startGateway({
      batches: {},
      clock: { now: () => clock.now() - backMs, schedule: clock.schedule },
      store: { ...store, files: { ...files, purge } },
    })
    open.push(started)
    await expect.poll(() => purgedAtMs.length).toBe(1)

    backMs = 3_600_000
    await expect
      .poll(() => {
        clock.advance(1_000)
        return purgedAtMs.length
      })
      .toBe(2)
  })

  test('is refused when it is too large, has no room or is for something else, and nothing is kept then', async () => {
    const { client, gateway, url } = await start({ maxFileBytes: 100 }, fakeClock(), {
      accountStorage: { files: { byteLength: 150 } },
    })
    const refused = async (body: Promise<unknown>) => body.catch(({ status, param }) => [status, param] as const)

    expect(await refused(client.files.create({ file: await file('x'.repeat(101)), purpose: 'batch' }))).toEqual([
      413,
      'file',
    ])
    expect(await refused(client.files.create({ file: await file('x'.repeat(200_000)), purpose: 'batch' }))).toEqual([
      413,
      null,
    ])
    expect(await refused(client.files.create({ file: await file('x'), purpose: 'vision' }))).toEqual([400, 'purpose'])
    const seconds = { anchor: 'created_at', seconds: 60 } as const
    expect(
      await refused(client.files.create({ file: await file('x'), purpose: 'batch', expires_after: seconds })),
    ).toEqual([400, 'expires_after[seconds]'])
    await client.files.create({ file: await file('x'.repeat(100)), purpose: 'batch' })
    expect(await refused(client.files.create({ file: await file('x'.repeat(60)), purpose: 'batch' }))).toEqual([
      429,
      null,
    ])
    const form = new FormData()
    form.set('purpose', 'batch')
    const headers = { authorization: `Bearer ${TEST_KEY}` }
    expect((await fetch(`${url}/v1/files`, { method: 'POST', headers, body: form })).status).toBe(400)
    expect((await fetch(`${url}/v1/files`, { method: 'POST', headers, body: 'text' })).status).toBe(415)
    expect((await client.files.list()).data.length).toBe(1)
    expect(gateway.warnings()).toEqual([])
  })

  test('allows exactly what the account has room for when files come at the same time', async () => {
    const started = await startGateway({ batches: {}, accountStorage: { files: { byteLength: 150 } } })
    open.push(started)
    const client = new OpenAI({ apiKey: TEST_KEY, baseURL: `${started.url}/v1`, maxRetries: 0 })
    const upload = async () => client.files.create({ file: await file('x'.repeat(60)), purpose: 'batch' })
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, upload))

    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBe(2)
    expect((await client.files.list()).data.length).toBe(2)
  })

  test('is stored while it arrives', async () => {
    const pieces: number[] = []
    const { client } = await start({
      blobs: {
        async put(_blob, content) {
          let byteLength = 0
          for await (const piece of content) {
            pieces.push(piece.byteLength)
            byteLength += piece.byteLength
          }
          return byteLength
        },
        get: async () => undefined,
        delete: async () => true,
        purge: async () => 0,
      },
    })
    const bytes = 8 * 2 ** 20

    const { bytes: stored } = await client.files.create({ file: await file('x'.repeat(bytes)), purpose: 'batch' })

    expect(stored).toBe(bytes)
    expect(Math.max(...pieces)).toBeLessThan(2 ** 20)
  })

  test('is not lost without an answer when the store fails', async () => {
    const { client } = await start({
      blobs: {
        put: () => Promise.reject(new Error('the disk is full')),
        get: async () => undefined,
        delete: async () => true,
        purge: async () => 0,
      },
    })
    const upload = client.files.create({ file: await file('x'.repeat(3_000_000)), purpose: 'batch' })

    await expect(upload).rejects.toMatchObject({ status: 503, code: 'store_unavailable' })
  })
})

describe('a file arrives through', () => {
  const form = (text: string): FormData => {
    const made = new FormData()
    made.set('purpose', 'batch')
    made.set('file', new Blob([text]), 'requests.jsonl')
    return made
  }
  const headers = { authorization: `Bearer ${TEST_KEY}` }
  const text = 'x'.repeat(300_000)

  test('Fastify', async () => {
    const { gateway } = await start()
    const app = fastify()
    await app.register(fastifyGateway, { gateway })
    const origin = await app.listen({ host: '127.0.0.1', port: 0 })

    const answer = await fetch(`${origin}/v1/files`, { method: 'POST', headers, body: form(text) })

    expect([answer.status, ((await answer.json()) as { bytes: number }).bytes]).toEqual([200, 300_000])
    await app.close()
  })

  test('Express', async () => {
    const { gateway } = await start()
    const app = express().use(express.json()).use(expressHandler(gateway))
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo

    const answer = await fetch(`http://127.0.0.1:${port}/v1/files`, { method: 'POST', headers, body: form(text) })

    expect([answer.status, ((await answer.json()) as { bytes: number }).bytes]).toEqual([200, 300_000])
    server.closeAllConnections()
    server.close()
  })

  test('web requests, of any length', async () => {
    const { gateway } = await start({ maxFileBytes: 1_000 })
    const send = (body: string) =>
      gateway.fetch(new Request('http://g/v1/files', { method: 'POST', headers, body: form(body) }))

    expect((await send('short')).status).toBe(200)
    expect((await send(text)).status).toBe(413)
  })
})

test('a gateway without the option has neither files nor batches', async () => {
  const started = await startGateway()
  open.push(started)
  const headers = { authorization: `Bearer ${TEST_KEY}` }
  for (const path of ['/v1/files', '/v1/batches', '/v1/batches/batch_1'])
    expect((await fetch(`${started.url}${path}`, { headers })).status).toBe(404)
})
