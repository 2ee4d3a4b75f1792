import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { modelsFromModelsDev } from '../../../src/catalog/vendor-models/from-models-dev.ts'
import { BUILT_IN_SNAPSHOT } from '../../../src/catalog/vendor-models/snapshot.ts'
import { readVendorModel, writeVendorModel } from '../../../src/catalog/vendor-models/vendor-model.ts'
import { parseDecimal } from '../../../src/core/money.ts'

const path = 'src/catalog/vendor-models/snapshot.json'
const snapshot = JSON.parse(readFileSync(path, 'utf8')) as {
  source: string
  sources: Record<string, string>
  models: Record<string, string[]>
}
const lines = Object.entries(snapshot.models).flatMap(([vendor, models]) =>
  models.map((line) => [vendor, line] as const),
)

describe('the snapshot of public models', () => {
  test('says its source, its licence and its day, and is small', () => {
    expect(snapshot.source).toContain('models.dev')
    expect(snapshot.source).toContain('MIT licence')
    for (const source of Object.values(snapshot.sources)) expect(source).toMatch(/, \d{4}-\d{2}-\d{2}$/)
    expect(BUILT_IN_SNAPSHOT.date).toMatch(/^\d{4}-\d{2}-\d{2}$/)
    expect(readFileSync(path).length).toBeLessThan(200_000)
  })

  test('has a line for each model that is read and written without a loss', () => {
    expect(lines.length).toBeGreaterThan(1_000)
    for (const [, line] of lines) expect(writeVendorModel(readVendorModel(line))).toBe(line)
  })

  test('names each model of a vendor once, with a kind and amounts that are decimals', () => {
    for (const [vendor, models] of Object.entries(snapshot.models)) {
      const ids = models.map((line) => readVendorModel(line).id)
      expect(new Set(ids).size, vendor).toBe(ids.length)
    }
    for (const [vendor, line] of lines) {
      const { id, kinds, price, tiers, batchPrice, batchTiers = [], source = '' } = readVendorModel(line)
      expect(kinds.length, `${vendor}/${id}`).toBeGreaterThan(0)
      expect(Object.keys(snapshot.sources), `${vendor}/${id}`).toEqual(expect.arrayContaining([...source]))
      expect(source, `${vendor}/${id}`).not.toBe('')
      const listed = [
        { inputTokensAbove: 0, ...price },
        { inputTokensAbove: 0, ...batchPrice },
        ...tiers,
        ...batchTiers,
      ]
      for (const { inputTokensAbove: _above, ...amounts } of listed)
        for (const amount of Object.values(amounts)) expect(() => parseDecimal(amount)).not.toThrow()
    }
  })

  test.each([
    ['openai', 'gpt-4o', 'chat', { contextTokens: 128_000, maxOutputTokens: 16_384 }],
    ['openai', 'text-embedding-3-small', 'embedding', { contextTokens: 8_191, dimensions: 1_536 }],
    ['anthropic', 'claude-haiku-4-5-20251001', 'chat', { contextTokens: 200_000, maxOutputTokens: 64_000 }],
    ['gemini', 'gemini-2.5-pro', 'chat', { contextTokens: 1_048_576, maxOutputTokens: 65_536 }],
  ])('knows %s %s', (vendor, id, kind, limits) => {
    expect(BUILT_IN_SNAPSHOT.of(vendor).get(id)).toMatchObject({ kinds: [kind], limits })
  })

  test('has no models of a vendor that it does not know, whatever its name', () => {
    for (const name of ['nobody', 'constructor', '__proto__', '']) expect(BUILT_IN_SNAPSHOT.of(name).size).toBe(0)
  })
})

describe('a provider of models.dev', () => {
  const base = { modalities: { input: ['text'], output: ['text'] }, limit: { context: 100, output: 10 } }

  test('gives its models by id, with list prices, tiers and what they can do', () => {
    const [model] = modelsFromModelsDev('some', {
      models: {
        'chat-1': {
          ...base,
          name: 'Chat 1',
          reasoning: true,
          tool_call: true,
          release_date: '2026-04',
          cost: {
            input: 0.25,
            output: 2,
            cache_read: 3e-7,
            tiers: [
              { tier: { type: 'context', size: 200_000 }, input: 0.5 },
              { tier: { type: 'time', size: 9 }, input: 7 },
            ],
          },
        },
      },
    })

    expect(model).toEqual({
      id: 'chat-1',
      displayName: 'Chat 1',
      kinds: ['chat'],
      limits: { contextTokens: 100, maxOutputTokens: 10 },
      inputModalities: ['text'],
      outputModalities: ['text'],
      abilities: ['reasoning', 'tool_call'],
      created: Date.UTC(2026, 3, 1) / 1000,
      price: { input: '0.25', output: '2', cachedInput: '0.0000003' },
      tiers: [{ inputTokensAbove: 200_000, input: '0.5' }],
    })
  })

  test('has no price where every amount is 0, which also stands for unknown', () => {
    const [model] = modelsFromModelsDev('some', { models: { free: { ...base, cost: { input: 0, output: 0 } } } })

    expect(model?.price).toBeUndefined()
  })

  test.each([
    ['some-embed-1', ['text'], ['text'], ['embedding']],
    ['painter', ['text', 'image'], ['image'], ['image', 'image_edit']],
    ['drawer', ['text'], ['image'], ['image']],
    ['speaker', ['text'], ['audio'], ['speech']],
    ['listener', ['audio'], ['text'], ['transcription']],
    ['talk-realtime', ['audio'], ['text'], undefined],
    ['filmer', ['text'], ['video'], undefined],
  ])('sorts %s, which reads %j and writes %j', (id, input, output, kinds) => {
    const [model] = modelsFromModelsDev('some', { models: { [id]: { modalities: { input, output } } } })

    expect(model?.kinds).toEqual(kinds)
  })

  test('is rejected by name if it is not an object of models', () => {
    expect(() => modelsFromModelsDev('some', { models: [] })).toThrow('some.models: must be an object')
    expect(() => modelsFromModelsDev('some', { models: { odd: 7 } })).toThrow('some/odd: must be an object')
  })
})
