import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ByteSink } from '../../src/core/exchange.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { TaskRecord } from '../../src/stores/task-store.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'

const CHUNK = Buffer.alloc(64 * 1024, 7)
/** Far more than sockets and buffers on the way take up. */
const CHUNKS = 2_000
const BEHIND_THE_END = 'bytes=999999999-'

let started: StartedGateway
let files: Server
let cutOff: Promise<unknown>
let fileType: string | undefined

beforeEach(async () => {
  fileType = 'video/mp4'
  let onCutOff: (value: unknown) => void
  cutOff = new Promise((resolve) => {
    onCutOff = resolve
  })
  files = createServer((request, response) => {
    if (request.headers.range === BEHIND_THE_END)
      return void response.writeHead(416, { 'content-range': 'bytes */5' }).end()
    if (request.headers['if-range'] !== undefined)
      return void response.writeHead(request.headers['if-range'] === '"this"' ? 206 : 200).end('bytes')
    response.once('close', () => onCutOff(response.writableFinished))
    response.writeHead(200, { ...(fileType && { 'content-type': fileType }), 'content-length': CHUNK.length * CHUNKS })
    let left = CHUNKS
    const send = (): void => {
      while (left > 0 && !response.destroyed) {
        left -= 1
        if (!response.write(CHUNK)) return void response.once('drain', send)
      }
      response.end()
    }
    send()
  }).listen(0, '127.0.0.1')
  await once(files, 'listening')
  const store = memoryStore()
  started = await startGateway({ store })
  const { port } = files.address() as AddressInfo
  await store.tasks.insert(completed(`http://127.0.0.1:${port}/video.mp4`))
})
afterEach(async () => {
  await started.close()
  files.closeAllConnections()
  files.close()
})

function completed(contentUrl: string): TaskRecord {
  const nowMs = Date.now()
  return {
    id: 'task_made',
    accountId: TEST_ACCOUNT,
    keyId: 'key_1',
    state: 'completed',
    upstreamId: 'upstream-1',
    credentialId: 'dashscope:0123456789abcdef',
    holdId: undefined,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    nextPollAtMs: nowMs,
    deadlineAtMs: nowMs,
    details: {
      requestId: 'req_1',
      model: 'wv2.7-t2v',
      vendor: 'dashscope',
      heldUsage: { videoSeconds: 4 },
      endpoint: 'videos',
      variant: '720p',
      facts: {},
      polls: 1,
      unknownReports: 0,
      contentUrl,
    },
  }
}

/** A caller who has begun a download and reads no further. */
async function stalledDownload(): Promise<IncomingMessage> {
  const request = get(`${started.url}/v1/videos/generations/task_made/content`, {
    headers: { authorization: `Bearer ${TEST_KEY}` },
  })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.on('error', () => undefined)
  return response
}

test('a caller who stops reading stops the transfer from the vendor, and does not keep the gateway from closing', async () => {
  const response = await stalledDownload()

  await started.gateway.close({ drainMs: 50 })
  const wasWhole = await cutOff

  expect(response.statusCode).toBe(200)
  expect(wasWhole).toBe(false)
})

test('serves content other than video or audio not as a page of the gateway', async () => {
  const types: (string | null)[] = []
  for (fileType of ['video/mp4; codecs=avc1', 'image/png', 'TEXT/html; charset=utf-8', 'image/svg+xml', undefined]) {
    const response = await fetch(`${started.url}/v1/videos/generations/task_made/content`, {
      headers: { authorization: `Bearer ${TEST_KEY}` },
    })
    await response.body?.cancel()

    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    types.push(response.headers.get('content-type'))
  }
  expect(types).toEqual(['video/mp4; codecs=avc1', 'image/png', ...Array(3).fill('application/octet-stream')])
})

test('ends the transfer from the vendor when the caller disconnects', async () => {
  const response = await stalledDownload()

  response.destroy()

  expect(await cutOff).toBe(false)
})

test('answers a range after the end with 416, without a fault of the vendor', async () => {
  const headers = { authorization: `Bearer ${TEST_KEY}`, range: BEHIND_THE_END }
  const answer = await fetch(`${started.url}/v1/videos/generations/task_made/content`, { headers })

  expect([answer.status, answer.headers.get('content-range')]).toEqual([416, 'bytes */5'])
  expect(await answer.json()).toMatchObject({ error: { code: 'invalid_request', param: 'Range' } })
})

test.each([
  ['"this"', 206],
  ['"another"', 200],
])(
  'a part of the file %s is answered with %s, so that a download goes on with the same file only',
  async (file, status) => {
    const headers = { authorization: `Bearer ${TEST_KEY}`, range: 'bytes=0-4', 'if-range': file }
    const answer = await fetch(`${started.url}/v1/videos/generations/task_made/content`, { headers })

    expect(answer.status).toBe(status)
    expect(await answer.text()).toBe('bytes')
  },
)

test('a slow caller gets every byte', async () => {
  const response = await stalledDownload()
  let byteLength = 0
  for await (const chunk of response) byteLength += (chunk as Buffer).length

  expect(byteLength).toBe(CHUNK.length * CHUNKS)
})

test.each(['head', 'write', 'end'] as const)(
  'a caller’s side that throws at %s ends the download, and does not keep the gateway from closing',
  async (step) => {
    const given = {
      closed: false,
      head: () => undefined,
      write: () => true,
      end: () => undefined,
      onDrain: () => undefined,
      onClose: () => undefined,
    }
    let steps = 0
    let onDestroyed: () => void = () => undefined
    const destroyed = new Promise<void>((resolve) => {
      onDestroyed = resolve
    })
    const sink: ByteSink = {
      ...given,
      destroy: () => onDestroyed(),
      [step]: () => {
        steps++
        throw new Error('the host has made a mistake')
      },
    }
    const path = '/v1/videos/generations/task_made/content'
    const headers = new Map([['authorization', `Bearer ${TEST_KEY}`]])
    const header = (name: string): string | undefined => headers.get(name)
    started.gateway.handle({ method: 'GET', path, query: '', header, readBody: () => undefined }, sink)

    await destroyed
    await started.gateway.close({ drainMs: 50 })

    expect(steps).toBeGreaterThanOrEqual(1)
  },
)
