import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { type VertexOptions, vertex } from '../../../src/vendors/gemini/gemini.ts'
import { chatCall, embeddingsCall, jsonAnswer, NOW_MS } from './gemini-call.ts'
import { interactionCall } from './interaction-call.ts'

const PLACE = { project: 'our-project', location: 'europe-west4' }
const provider = () => ({ token: 'any' })

interface GoldenRequest {
  readonly model: string
  readonly stream?: boolean
  readonly request: ChatRequest
  readonly path: string
  readonly expected: Record<string, unknown>
  readonly dropped: readonly string[]
}

const REQUESTS = new URL('./fixtures/vertex/', import.meta.url)

describe('golden requests of Vertex AI', () => {
  test.each(readdirSync(REQUESTS))('%s goes out exactly as recorded, with what was left out named', (file) => {
    const golden = JSON.parse(readFileSync(new URL(file, REQUESTS), 'utf8')) as GoldenRequest
    const call = chatCall(golden.request, { upstream: golden.model, stream: golden.stream === true })

    const sent = vertex({ ...PLACE, apiKey: provider }).chat!.toWire({ ...call, apiKey: '' })

    expect(sent.path).toBe(golden.path)
    expect(JSON.parse(String(sent.body))).toEqual(golden.expected)
    expect(sent.dropped).toEqual(golden.dropped)
    expect(sent.headers).not.toContain('x-goog-api-key')
  })

  test('a count of tokens is asked with the request itself', () => {
    const call = chatCall({}, { upstream: 'gemini-2.5-pro' })

    const sent = vertex({ ...PLACE, apiKey: provider }).tokenCount!.toWire(call)

    expect(sent.path).toMatch(/models\/gemini-2\.5-pro:countTokens$/)
    expect(JSON.parse(String(sent.body))).toEqual({ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] })
  })

  test('embeddings are asked for by the method that the model has', () => {
    const { embeddings } = vertex({ ...PLACE, apiKey: provider })
    const older = embeddings!.toWire(embeddingsCall({ input: ['red'], dimensions: 256 }))
    const newer = embeddings!.toWire(embeddingsCall({ input: ['red'], dimensions: 256 }, 'gemini-embedding-2'))

    expect(older.path).toMatch(/publishers\/google\/models\/gemini-embedding-001:predict$/)
    expect(JSON.parse(String(older.body))).toEqual({
      instances: [{ content: 'red' }],
      parameters: { autoTruncate: false, outputDimensionality: 256 },
    })
    expect(newer.path).toMatch(/publishers\/google\/models\/gemini-embedding-2:embedContent$/)
    expect(JSON.parse(String(newer.body))).toEqual({
      content: { role: 'user', parts: [{ text: 'red' }] },
      outputDimensionality: 256,
    })
  })

  test('requests vectors and images of tuned models at their endpoints', () => {
    const { embeddings, images } = vertex({ ...PLACE, apiKey: provider })
    const place = '/v1/projects/our-project/locations/europe-west4'

    const vectors = embeddings!.toWire(embeddingsCall({ input: ['red'] }, 'endpoints/1234'))
    const pictures = images!.interactions!.toWire(interactionCall({ input: 'a boat' }, { upstream: 'endpoints/1234' }))

    expect(vectors.path).toBe(`${place}/endpoints/1234:predict`)
    expect(pictures.path).toBe(`${place}/endpoints/1234:generateContent`)
  })
})

describe('answers to embeddings', () => {
  const { embeddings } = vertex({ ...PLACE, apiKey: provider })
  const prediction = (values: unknown, statistics?: object) => ({ embeddings: { values, statistics } })

  test('are read for predict with the sum of their tokens', () => {
    const call = embeddingsCall({ input: ['a', 'b'] }, 'text-embedding-005')
    const predictions = [prediction([1, 0], { token_count: 3 }), prediction([0, 1], { token_count: 4 })]

    expect(embeddings!.fromWire(jsonAnswer({ predictions }), call)).toEqual({
      vectors: [
        [1, 0],
        [0, 1],
      ],
      usage: { inputTokens: 7 },
    })
    expect(embeddings!.fromWire(jsonAnswer({ predictions: [predictions[0]] }), call)).toBeUndefined()
    expect(embeddings!.fromWire(jsonAnswer({ predictions: [predictions[0], prediction('x')] }), call)).toBeUndefined()
    expect(
      embeddings!.fromWire(jsonAnswer({ predictions: [predictions[0], prediction([0, 1])] }), call)?.usage,
    ).toBeUndefined()
  })

  test('are one vector for embedContent', () => {
    const call = embeddingsCall({ input: 'a' }, 'gemini-embedding-2')
    const answer = { embedding: { values: [0.6, 0.8] }, usageMetadata: { promptTokenCount: 2 } }

    expect(embeddings!.fromWire(jsonAnswer(answer), call)).toEqual({
      vectors: [[0.6, 0.8]],
      usage: { inputTokens: 2 },
    })
    expect(embeddings!.fromWire(jsonAnswer({ embedding: {} }), call)).toBeUndefined()
  })
})

describe('the address', () => {
  test.each([
    ['global', 'https://aiplatform.googleapis.com'],
    ['us', 'https://aiplatform.us.rep.googleapis.com'],
    ['eu', 'https://aiplatform.eu.rep.googleapis.com'],
    ['us-central1', 'https://us-central1-aiplatform.googleapis.com'],
    ['northamerica-northeast1', 'https://northamerica-northeast1-aiplatform.googleapis.com'],
  ])('depends on the location: %s has %s', (location, origin) => {
    const vendor = vertex({ project: 'our-project', location, apiKey: provider })

    expect(vendor.origin).toBe(origin)
    expect(vendor.chat!.toWire(chatCall()).path).toContain(`/v1/projects/our-project/locations/${location}/`)
  })

  test('is that of express mode for a key without a project', () => {
    const vendor = vertex({ apiKey: 'AQ.express-key-0123456789' })
    const sent = vendor.chat!.toWire({ ...chatCall(), apiKey: 'AQ.express-key-0123456789' })

    expect(vendor.origin).toBe('https://aiplatform.googleapis.com')
    expect(sent.path).toBe('/v1/publishers/google/models/gemini-2.5-flash:generateContent')
    expect(sent.headers).toContain('AQ.express-key-0123456789')
  })

  test('may be another one, with or without the version', () => {
    for (const baseURL of ['https://proxy.example/vertex', 'https://proxy.example/vertex/v1/']) {
      const sent = vertex({ ...PLACE, baseURL, apiKey: provider }).chat!.toWire(chatCall())
      expect(sent.path).toBe(
        '/vertex/v1/projects/our-project/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent',
      )
    }
  })

  test.each<[VertexOptions, RegExp]>([
    [{ location: 'global', apiKey: provider }, /^vertex: set project \(GOOGLE_CLOUD_PROJECT\)/],
    [{ project: 'our-project', apiKey: provider }, /^vertex: set location \(GOOGLE_CLOUD_LOCATION\) to global, us, eu/],
    [{}, /^vertex: set project/],
    [{ project: 'Our Project', location: 'global' }, /project \(GOOGLE_CLOUD_PROJECT\).*"Our Project"/],
    [{ project: '../x', location: 'global' }, /project \(GOOGLE_CLOUD_PROJECT\)/],
    [{ project: 'our-project', location: 'us-central1-a' }, /a region such as europe-west4: "us-central1-a"/],
    [{ project: 'our-project', location: 'evil.example/' }, /location \(GOOGLE_CLOUD_LOCATION\) must be/],
    [{ ...PLACE, apiKey: 'ya29.an-access-token' }, /access token.*googleDefaultCredentials/],
    [{ ...PLACE, region: 'global' } as VertexOptions, /region is unknown; known: id/],
    [{ ...PLACE, apiVersion: 'latest' }, /apiVersion/],
  ])('%j is refused with what to set', (options, message) => {
    expect(() => vertex(options)).toThrow(message)
  })
})

describe('failures', () => {
  const error = (code: number, status: string, message: string, reason?: string) => ({
    error: { code, status, message, details: reason === undefined ? [] : [{ reason }] },
  })
  const missing =
    'Publisher Model `projects/p/locations/europe-west4/publishers/google/models/x` was not found or your project does not have access to it.'

  test.each([
    [404, error(404, 'NOT_FOUND', missing), 'operator', /GOOGLE_CLOUD_LOCATION.*europe-west4/],
    [404, [error(404, 'NOT_FOUND', missing)], 'operator', /GOOGLE_CLOUD_LOCATION/],
    [404, '<html>Error 404</html>', 'operator', /GOOGLE_CLOUD_LOCATION/],
    [400, error(400, 'FAILED_PRECONDITION', 'Not in this region.'), 'operator', /GOOGLE_CLOUD_LOCATION/],
    [400, error(400, 'INVALID_ARGUMENT', 'contents: wrong'), 'caller', /^contents: wrong$/],
    [401, error(401, 'UNAUTHENTICATED', 'Invalid credentials.'), 'operator', /GOOGLE_APPLICATION_CREDENTIALS/],
    [
      403,
      error(403, 'PERMISSION_DENIED', "Permission 'aiplatform.endpoints.predict' denied on resource models/x"),
      'operator',
      /roles\/aiplatform\.user.*our-project/,
    ],
    [403, error(403, 'PERMISSION_DENIED', 'off', 'SERVICE_DISABLED'), 'operator', /enable the Vertex AI API/],
    [403, error(403, 'PERMISSION_DENIED', 'gone', 'CONSUMER_INVALID'), 'operator', /GOOGLE_CLOUD_PROJECT/],
    [429, error(429, 'RESOURCE_EXHAUSTED', 'Resource exhausted, please try again later.'), 'rate_limited', /^Resource/],
    [503, error(503, 'UNAVAILABLE', 'busy'), 'unavailable', /^busy$/],
    [504, error(504, 'DEADLINE_EXCEEDED', 'slow'), 'timeout', /^slow$/],
  ])('%i %j is %s', (status, body, kind, message) => {
    const { errorFrom } = vertex({ ...PLACE, apiKey: provider })
    const failure = errorFrom(
      typeof body === 'string' ? { status, headers: {}, body: Buffer.from(body) } : jsonAnswer(body, status),
      NOW_MS,
    )

    expect(failure).toMatchObject({ kind, status })
    expect(failure.message).toMatch(message)
    if (status === 403) expect(failure.concerns).toBe('key')
  })
})
