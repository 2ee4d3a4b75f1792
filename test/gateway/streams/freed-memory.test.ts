import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { defineHook } from '../../../src/hooks/hook.ts'
import type { Transport, TransportControl, TransportRequest } from '../../../src/transport/transport.ts'
import { undiciTransport } from '../../../src/transport/undici.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { editForm, postForm } from '../images/image-requests.ts'
import { type ScriptedVendor, scriptedVendor } from '../images/image-vendor.ts'
import { paddedPng } from '../images/large-images.ts'

let started: StartedGateway
let vendor: Pick<ScriptedVendor, 'origin' | 'close'>

afterEach(async () => {
  await started.close()
  await vendor.close()
})

const MEGABYTE = 1024 * 1024
const EMBEDDINGS = '/v1/embeddings'
const INPUTS = 100
const REQUEST = { model: 'embedding-relayed', input: Array.from({ length: INPUTS }, (_, index) => `text ${index}`) }

/** Vectors of 1.9 MB in total, without repeated parts. */
const VECTORS = Array.from({ length: INPUTS }, (_, index) =>
  Array.from({ length: 1_536 }, (_, dimension) => Math.sin(index * 1_536 + dimension)),
)
const ANSWER = JSON.stringify({
  object: 'list',
  data: VECTORS.map((embedding, index) => ({ object: 'embedding', index, embedding })),
  model: 'text-embedding-3-small',
  usage: { prompt_tokens: 300, total_tokens: 300 },
})

/** A transport that notes the bytes that pass through it: those of requests, and those of answers. */
function watched(givesBytesAway: boolean) {
  const inner = undiciTransport()
  const sent: Uint8Array[] = []
  const given: Uint8Array[] = []
  const transport: Transport = {
    givesBytesAway,
    send(request: TransportRequest, handler): TransportControl {
      if (Array.isArray(request.body)) sent.push(...(request.body as Uint8Array[]))
      return inner.send(request, {
        onHead: (status, headers) => handler.onHead(status, headers),
        onData(chunk) {
          given.push(chunk)
          handler.onData(chunk)
        },
        onEnd: () => handler.onEnd(),
        onFailure: (failure) => handler.onFailure(failure),
      })
    },
    close: () => inner.close(),
  }
  return { transport, sent, given }
}

const freedOf = (list: readonly Uint8Array[]): number => list.filter(({ length }) => length === 0).length

async function start(givesBytesAway: boolean, options: Partial<GatewayOptions> = {}) {
  vendor = await scriptedVendor('application/json', [ANSWER])
  const seen = watched(givesBytesAway)
  const vendors = [openai({ apiKey: 'vendor-key', baseURL: vendor.origin })]
  started = await startGateway({ vendors, transport: seen.transport, ...options })
  return seen
}

/** Asks once; throws where the vectors are not those of the vendor. */
async function checkEmbeddings(headers: Record<string, string> = {}): Promise<void> {
  const response = await started.post(EMBEDDINGS, REQUEST, headers)
  const body = (await response.json()) as { data?: { embedding: number[] }[] }
  expect(body.data?.map(({ embedding }) => embedding)).toEqual(VECTORS)
}

describe('the memory of a large answer', () => {
  test('is freed when it is sent', async () => {
    const { given } = await start(true)

    await checkEmbeddings()

    // Those at the edges share their memory with heads.
    await expect.poll(() => freedOf(given)).toBeGreaterThan(given.length / 2)
  })

  test.each<[string, Partial<GatewayOptions>, Record<string, string>]>([
    ['a record of it is kept under an Idempotency-Key', {}, { 'idempotency-key': 'one' }],
    ['the cache has it', { cache: {} }, {}],
    ['a hook may have kept it', { hooks: [defineHook({ name: 'reader', answer: () => undefined })] }, {}],
  ])('stays where %s, and the second caller gets it too', async (_reason, options, headers) => {
    const { given } = await start(true, options)

    await checkEmbeddings(headers)
    await checkEmbeddings(headers)

    expect(freedOf(given)).toBe(0)
  })

  test("stays where it is the transport's", async () => {
    const { given } = await start(false)

    await checkEmbeddings()

    expect(freedOf(given)).toBe(0)
  })
})

const PICTURE_ANSWER = JSON.stringify({ created: 1, data: [{ b64_json: 'aGVsbG8=' }], usage: { output_tokens: 1 } })

/** A vendor that answers each call in turn, and tells what of its body it had read by then. */
async function editVendor(answers: readonly { readonly status: number; readonly readsFirst: boolean }[]) {
  const bodies: Promise<string>[] = []
  const server = createServer((request, response) => {
    const { status, readsFirst } = answers[bodies.length]!
    const answer = () => response.writeHead(status, { 'content-type': 'application/json' }).end(PICTURE_ANSWER)
    const hash = createHash('sha256')
    let byteLength = 0
    bodies.push(
      new Promise((resolve) => {
        const tell = () => resolve(`${byteLength} ${hash.digest('hex')}`)
        request.on('data', (chunk: Buffer) => {
          hash.update(chunk)
          byteLength += chunk.length
        })
        request.on('close', tell)
        if (readsFirst) request.on('end', answer)
      }),
    )
    if (readsFirst) return
    request.pause()
    answer()
  })
  const { origin, close } = await listen(server)
  return {
    origin,
    bodies,
    close,
  }
}

async function startEdits(answers: Parameters<typeof editVendor>[0], megabytes: number) {
  const edits = await editVendor(answers)
  vendor = edits
  const seen = watched(true)
  const vendors = [openai({ apiKey: 'vendor-key', baseURL: edits.origin })]
  started = await startGateway({ vendors, transport: seen.transport })
  const form = editForm({ model: 'gp-image-2', prompt: 'a kettle' }, [
    { name: 'image', bytes: new Uint8Array(Buffer.from(paddedPng(megabytes * MEGABYTE), 'base64')) },
  ])
  const response = await postForm(started.url, form)
  return { status: response.status, answer: await response.json(), sent: seen.sent, bodies: edits.bodies }
}

/** Memory of bytes that were passed to the transport: gone with all of it, whichever part they are. */
const goneOf = (list: readonly Uint8Array[]): number => list.filter(({ buffer }) => buffer.byteLength === 0).length

describe('the memory of a form', () => {
  test('is freed when the vendor has answered', async () => {
    const { status, sent } = await startEdits([{ status: 200, readsFirst: true }], 2)

    expect(status).toBe(200)
    expect(sent.length).toBeGreaterThan(8)
    await expect.poll(() => goneOf(sent)).toBeGreaterThan(sent.length / 2)
  })

  test('is whole where a second call is made, and stays then', async () => {
    const answers = [
      { status: 503, readsFirst: true },
      { status: 200, readsFirst: true },
    ]

    const { status, sent, bodies } = await startEdits(answers, 2)

    expect(status).toBe(200)
    const [first, second] = await Promise.all(bodies)
    const lengthOf = (told = '') => Number(told.split(' ')[0])
    expect(lengthOf(second)).toBeGreaterThan(MEGABYTE)
    expect(lengthOf(second)).toBe(lengthOf(first))
    expect(goneOf(sent)).toBe(0)
  })

  test('stays while the system has not taken it: the vendor answers without reading', async () => {
    const { status, sent } = await startEdits([{ status: 200, readsFirst: false }], 40)

    expect(status).toBe(200)

    expect(goneOf(sent)).toBe(0)
  })
})
