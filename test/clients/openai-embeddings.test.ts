import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { EMBEDDING_MODELS } from './support/models.ts'
import { OPENAI_VERSIONS, type OpenAIClient, openaiClient } from './support/openai-clients.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

describe.each(OPENAI_VERSIONS)('%s', (_name, OpenAI) => {
  let client: OpenAIClient

  beforeAll(() => {
    client = openaiClient(OpenAI, started.url)
  })

  describe.each(EMBEDDING_MODELS)('model %s', (model, dimensions) => {
    test('gets the same numbers by its default, base64, as by floats', async () => {
      const byDefault = await client.embeddings.create({ model, input: 'a lighthouse' })
      const byFloats = await client.embeddings.create({ model, input: 'a lighthouse', encoding_format: 'float' })

      expect(byDefault.object).toBe('list')
      expect(byDefault.model).toBe(model)
      expect(byDefault.usage.total_tokens).toBeGreaterThan(0)
      const vector = byDefault.data[0]?.embedding ?? []
      expect(vector).toHaveLength(dimensions)
      expect(vector.every((value) => typeof value === 'number' && Math.abs(value) <= 1)).toBe(true)
      // A float of 32 bits survives base64 exactly, and JSON up to the last digit that it holds.
      expect(vector.map(Math.fround)).toEqual(byFloats.data[0]?.embedding.map(Math.fround))
    })

    test('gets base64 itself when it asks for it', async () => {
      const answer = await client.embeddings.create({ model, input: 'a lighthouse', encoding_format: 'base64' })

      const encoded = answer.data[0]?.embedding as unknown
      expect(encoded).toBeTypeOf('string')
      expect(Buffer.from(String(encoded), 'base64')).toHaveLength(dimensions * 4)
    })

    test('gets the vectors of a batch in the order of its texts', async () => {
      const texts = Array.from({ length: 23 }, (_, index) => `text number ${index}`)

      const batch = await client.embeddings.create({ model, input: texts })
      const alone = await client.embeddings.create({ model, input: 'text number 17' })

      expect(batch.data.map((entry) => entry.index)).toEqual(texts.map((_, index) => index))
      expect(new Set(batch.data.map((entry) => entry.embedding.join())).size).toBe(23)
      expect(batch.data[17]?.embedding).toEqual(alone.data[0]?.embedding)
    })

    test('gets shorter vectors when it asks for them', async () => {
      const answer = await client.embeddings.create({ model, input: 'a lighthouse', dimensions: 256 })

      const vector = answer.data[0]?.embedding ?? []
      expect(vector).toHaveLength(256)
      expect(Math.hypot(...vector)).toBeCloseTo(1, 3)
    })
  })

  test('does not notice that a batch was split over the limit of the vendor', async () => {
    started.sandbox.reset()
    const texts = Array.from({ length: 25 }, (_, index) => `part ${index}`)

    const batch = await client.embeddings.create({ model: 'text-embedding-v4', input: texts })

    const sizes = started.sandbox.requests.map((call) => (call.body as { input: string[] }).input.length)
    expect(sizes.sort((left, right) => right - left)).toEqual([10, 10, 5])
    expect(batch.data.map((entry) => entry.index)).toEqual(texts.map((_, index) => index))
    expect(batch.usage.prompt_tokens).toBe(texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0))
  })
})
