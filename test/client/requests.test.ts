import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { answering, json, type StandIn, showing, startStandIn } from './stand-in.ts'

const EMBEDDING = { model: 'vy-4', input: 'hello' } as const

let standIn: StandIn

beforeAll(() => {
  standIn = startStandIn()
})
afterEach(() => standIn.server.resetHandlers())
afterAll(() => standIn.server.close())

function vectors(...embeddings: unknown[]) {
  return json({ object: 'list', data: embeddings.map((embedding, index) => ({ index, embedding })) })
}

test('a call carries the key, its own headers and fields that the types do not know', async () => {
  standIn.server.use(answering('/embeddings', vectors()))
  await standIn.client.embeddings.create(EMBEDDING, {
    headers: { 'x-tenant': 'blue', 'content-type': 'application/json; charset=utf-8' },
    extraBody: { input_type: 'query' },
  })
  const request = standIn.requests.at(-1)!

  expect(request.headers.get('authorization')).toBe('Bearer sk-test')
  expect(request.headers.get('x-tenant')).toBe('blue')
  expect(request.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(await request.json()).toEqual({ ...EMBEDDING, input_type: 'query' })
})

test('a form carries them too, and says its own boundary', async () => {
  standIn.server.use(answering('/images/edits', json({ created: 1, data: [] })))
  await standIn.client.images.edit(
    { model: 'gp-image-2', prompt: 'a sail', image: new Blob(['x'], { type: 'image/png' }), n: 2 },
    { extraBody: { input_fidelity: 'high' } },
  )
  const request = standIn.requests.at(-1)!
  const form = await request.formData()

  expect(request.headers.get('content-type')).toMatch(/^multipart\/form-data; boundary=/)
  expect([...form.keys()]).toEqual(['model', 'prompt', 'n', 'image', 'input_fidelity'])
  expect((form.get('image') as File).name).toBe('image.png')
})

test.each([
  ['PNG', '\x89PNG\r\n\x1a\n', 'image/png'],
  ['JPEG', '\xff\xd8\xff\xe0', 'image/jpeg'],
  ['WebP', 'RIFF\x10\x00\x00\x00WEBP', 'image/webp'],
  ['anything else', 'hello', 'application/octet-stream'],
])('bytes of %s are named and typed by what they begin with', async (_name, head, type) => {
  standIn.server.use(answering('/images/edits', json({ created: 1, data: [] })))
  await standIn.client.images.edit({ model: 'de-2', prompt: 'a', image: Uint8Array.from(Buffer.from(head, 'latin1')) })
  const file = (await standIn.requests.at(-1)!.formData()).get('image') as File

  expect(file.type).toBe(type)
})

test('a path that leads nowhere fails as Node does, and nothing is sent', async () => {
  const count = standIn.requests.length
  const call = standIn.client.images.edit({ model: 'de-2', prompt: 'a', image: { path: 'no/such/picture.png' } })

  await expect(call).rejects.toMatchObject({ code: 'ENOENT' })
  expect(standIn.requests).toHaveLength(count)
})

describe('vectors', () => {
  test('are decoded from little-endian floats', async () => {
    const bytes = new DataView(new ArrayBuffer(8))
    bytes.setFloat32(0, 0.5, true)
    bytes.setFloat32(4, -2, true)
    standIn.server.use(answering('/embeddings', vectors(Buffer.from(bytes.buffer).toString('base64'))))
    const answer = await standIn.client.embeddings.create({ ...EMBEDDING, encoding_format: 'base64' })

    expect(answer.data[0]?.embedding).toEqual(Float32Array.of(0.5, -2))
  })

  test.each([null, {}, { data: null }, 'text'])('are reported if they are missing in the answer %j', async (body) => {
    standIn.server.use(answering('/embeddings', json(body, 200, { 'x-request-id': 'req_1' })))

    await expect(standIn.client.embeddings.create(EMBEDDING)).rejects.toMatchObject({
      code: 'upstream_invalid_response',
      requestId: 'req_1',
    })
  })

  test.each([
    ['cut off', 'AAAA'],
    ['no base64', '*'],
  ])('are rejected if they are %s', async (_name, embedding) => {
    standIn.server.use(answering('/embeddings', vectors(embedding)))
    const call = standIn.client.embeddings.create({ ...EMBEDDING, encoding_format: 'base64' })

    await expect(call).rejects.toMatchObject({ code: 'upstream_invalid_response' })
  })
})

test('passes the head to onResponse, and throws its error once', async () => {
  const headers = {
    'x-request-id': 'req_1',
    'x-signalbox-cost': '0.01',
    'x-signalbox-cost-due': '0.03',
    'x-signalbox-dropped': 'seed, user',
  }
  standIn.server.use(showing('/models', json({ data: [] }, 200, headers)))
  const seen: unknown[] = []
  await standIn.client.models.list({ onResponse: ({ headers: _all, ...facts }) => void seen.push(facts) })
  const count = standIn.requests.length
  const call = standIn.client.models.list({
    onResponse: () => {
      throw new RangeError('mine')
    },
  })

  expect(seen).toEqual([{ status: 200, requestId: 'req_1', cost: '0.01', costDue: '0.03', dropped: ['seed', 'user'] }])
  await expect(call).rejects.toThrow(RangeError)
  expect(standIn.requests).toHaveLength(count + 1)
})

test.each([
  ['http://127.0.0.1:8787', 'http://127.0.0.1:8787/v1/models'],
  ['http://127.0.0.1:8787/v1', 'http://127.0.0.1:8787/v1/models'],
  ['https://gateway.example/ai', 'https://gateway.example/ai/v1/models'],
  ['https://gateway.example/ai/v1', 'https://gateway.example/ai/v1/models'],
  ['https://gateway.example/ai/v1/', 'https://gateway.example/ai/v1/models'],
  ['https://gateway.example/api/v1/ai', 'https://gateway.example/api/v1/ai/v1/models'],
])('the base URL %s calls %s', async (baseURL, url) => {
  const called: string[] = []
  const client = createClient({
    baseURL,
    fetch: async (request) => {
      called.push(request.url)
      return Response.json({ object: 'list', data: [] })
    },
  })
  await client.models.list()

  expect(called).toEqual([url])
})

test.each(['/ai', '/ai/v1', '/ai/v1/'])(
  'the base URL %s of a page is below the origin of the page',
  async (baseURL) => {
    vi.stubGlobal('location', { origin: 'https://app.example' })
    const called: string[] = []
    const client = createClient({
      baseURL,
      fetch: async (request) => {
        called.push(request.url)
        return Response.json({ object: 'list', data: [] })
      },
    })
    await client.models.list().finally(() => vi.unstubAllGlobals())

    expect(called).toEqual(['https://app.example/ai/v1/models'])
  },
)

test.each(['localhost', 'localhost:8787/v1', '/v1', undefined])('the base URL %s is refused at once', (baseURL) => {
  const make = () => createClient({ baseURL: baseURL as string })

  expect(make).toThrow(TypeError)
  expect(make).toThrow(`baseURL: expected the address of a gateway, such as http://127.0.0.1:8787/v1; got ${baseURL}`)
})

test('rejects a key that is not a string immediately', () => {
  const apiKey = (async () => 'sk-secret') as unknown as string

  expect(() => createClient({ baseURL: 'http://127.0.0.1:8787/v1', apiKey })).toThrow('apiKey: expected a string')
})

test.each(['sk-\nsecret', 'sk-sécret'])('a key that no header can hold is refused at once, and not shown', (apiKey) => {
  expect(() => createClient({ baseURL: 'http://127.0.0.1:8787/v1', apiKey })).toThrow(
    'apiKey: holds a line break, or a character that is not ASCII',
  )
})

test.each([undefined, 'boat.png', 5, {}])('rejects the image %s with its field, and sends nothing', async (image) => {
  const count = standIn.requests.length
  const call = standIn.client.images.edit({ model: 'gp-image-2', prompt: 'a', image: image as Blob })

  await expect(call).rejects.toMatchObject({
    code: 'invalid_request',
    param: 'image',
    message: "image: expected a Blob, bytes, or { path: 'boat.png' }",
  })
  expect(standIn.requests).toHaveLength(count)
})
