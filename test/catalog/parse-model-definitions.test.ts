import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { parseModelDefinitions } from '../../src/catalog/parse-model-definitions.ts'

const GOOD = { id: 'gp-5', kind: 'chat', vendor: 'openai' }

describe('parseModelDefinitions', () => {
  it('reads rows with every member of a model file', () => {
    const rows = parseModelDefinitions([
      GOOD,
      {
        id: 'my-embedder',
        kind: ['embedding'],
        vendor: 'local',
        upstream: 'embedder-v2',
        limits: {
          contextTokens: 512,
          dimensions: 384,
          nativeDimensions: { min: 64, max: 384 },
          truncatesDimensions: true,
        },
        aliases: ['embedder'],
        fallbacks: [],
      },
    ])

    expect(createCatalog(rows).find('embedder')).toMatchObject({
      id: 'my-embedder',
      kinds: ['embedding'],
      upstream: 'embedder-v2',
      limits: { dimensions: 384, nativeDimensions: { min: 64, max: 384 } },
    })
    expect(createCatalog(rows).find('gp-5')?.upstream).toBe('gp-5')
  })

  it.each([
    [{}, 'models: '],
    [[GOOD, 7], 'models[1]: '],
    [[{ ...GOOD, id: '' }], 'models[0].id: '],
    [[{ ...GOOD, id: 'two words' }], 'models[0].id: '],
    [[GOOD, { ...GOOD, kind: 'chats' }], 'models[1].kind: must be one of chat, embedding, '],
    [[{ ...GOOD, kind: [] }], 'models[0].kind: '],
    [[{ id: 'gp-5', kind: 'chat' }], 'models[0].vendor: is required, unless the row has routes'],
    [[{ id: 'gp-5', kind: 'chat', routes: [] }], 'models[0].routes: '],
    [[{ ...GOOD, upstream: 5 }], 'models[0].upstream: '],
    [[{ ...GOOD, limits: { maxOutputTokens: -1 } }], 'models[0].limits.maxOutputTokens: '],
    [[{ ...GOOD, limits: { maxOutputTokens: 1.5 } }], 'models[0].limits.maxOutputTokens: '],
    [[{ ...GOOD, limits: { tokens: 5 } }], 'models[0].limits.tokens is unknown'],
    [[{ ...GOOD, limits: { nativeDimensions: { min: 9, max: 3 } } }], 'models[0].limits.nativeDimensions: '],
    [[{ ...GOOD, aliases: 'five' }], 'models[0].aliases: '],
    [[{ ...GOOD, fallbacks: [7] }], 'models[0].fallbacks[0]: '],
    [[{ ...GOOD, vendr: 'openai' }], 'models[0].vendr is unknown; did you mean vendor?'],
  ])('refuses %j, saying where', (json, message) => {
    expect(() => parseModelDefinitions(json)).toThrow(TypeError)
    expect(() => parseModelDefinitions(json)).toThrow(message)
  })

  it('reads a row with routes and without a vendor', () => {
    const rows = parseModelDefinitions([{ id: 'm', kind: 'chat', routes: [{ vendor: 'a' }, { vendor: 'b' }] }])

    expect(createCatalog(rows).find('m')).toMatchObject({ vendor: 'a', upstream: 'm' })
  })

  it('names every fault at once', () => {
    expect(() =>
      parseModelDefinitions([
        { ...GOOD, id: '' },
        { ...GOOD, vendor: 7 },
      ]),
    ).toThrow(/models\[0\]\.id: .*\nmodels\[1\]\.vendor: /)
  })

  it('either reads junk or refuses it with a TypeError', () => {
    fc.assert(
      fc.property(fc.anything(), (junk) => {
        try {
          expect(Array.isArray(parseModelDefinitions(junk))).toBe(true)
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError)
        }
      }),
    )
  })
})
