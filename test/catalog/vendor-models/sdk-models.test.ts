import { describe, expect, test } from 'vitest'
import { listPriceRows } from '../../../src/catalog/prices/list-prices.ts'
import { BUILT_IN_SNAPSHOT } from '../../../src/catalog/vendor-models/snapshot.ts'
import { VendorModels } from '../../../src/catalog/vendor-models/vendor-models.ts'
import type { AnyModelKind } from '../../../src/core/model-kind.ts'
import { literalsOf, NO_PRICE, NO_ROW, undated } from '../../support/sdk-model-ids.ts'

/** The types of the newest SDKs that name models, and the kind of those. */
const UNIONS = [
  ['openai', 'openai/resources/shared.d.ts', 'ChatModel', 'chat'],
  ['openai', 'openai/resources/shared.d.ts', 'ResponsesModel', 'chat'],
  ['openai', 'openai/resources/embeddings.d.ts', 'EmbeddingModel', 'embedding'],
  ['openai', 'openai/resources/images.d.ts', 'ImageModel', 'image'],
  ['openai', 'openai/resources/audio/speech.d.ts', 'SpeechModel', 'speech'],
  ['openai', 'openai/resources/audio/audio.d.ts', 'AudioModel', 'transcription'],
  ['openai', 'openai/resources/moderations.d.ts', 'ModerationModel', 'moderation'],
  ['anthropic', '@anthropic-ai/sdk/resources/messages/messages.d.ts', 'Model', 'chat'],
  ['gemini', '@google/genai/dist/genai.d.ts', 'Model_2', undefined],
] as const

const KINDS = ['chat', 'embedding', 'image', 'image_edit', 'speech', 'transcription', 'moderation'] as const
const kinds = new Map<AnyModelKind, undefined>(KINDS.map((kind) => [kind, undefined]))
const models = new VendorModels(
  ['openai', 'anthropic', 'gemini'].map((id) => ({ id, isConfigured: true, kinds, passUnknownModels: false })),
)

const listed = UNIONS.flatMap(([vendor, file, type, kind]) =>
  literalsOf(file, type).map((id) => ({ vendor, type, id, kind: kind ?? kindOf(id) })),
)

/** Types of Google name models of all kinds. */
function kindOf(id: string): AnyModelKind {
  if (/-image|banana/.test(id)) return 'image'
  if (/-tts/.test(id)) return 'speech'
  return /-transcribe/.test(id) ? 'transcription' : 'chat'
}

function lookUp(id: string) {
  const model = models.find(id) ?? models.find(undated(id))
  const facts = model === undefined ? undefined : models.facts(model.vendor, model.upstream)
  const isPriced = model !== undefined && facts !== undefined && listPriceRows(model, facts, '1').length > 0
  return {
    model,
    isPriced,
    hasEnded: (facts?.retires ?? Number.POSITIVE_INFINITY) <= Date.parse(BUILT_IN_SNAPSHOT.date) / 1000,
  }
}

describe('the model ids in the types of the newest SDKs', () => {
  test.each(UNIONS.map(([, file, type]) => [type, file]))('are read from %s of %s', (type) => {
    expect(listed.filter((one) => one.type === type).length).toBeGreaterThanOrEqual(3)
  })

  test.each(listed.filter(({ id }) => NO_ROW[undated(id)] === undefined))(
    'have $id as a $kind model of $vendor with a list price',
    ({ id, kind, vendor }) => {
      const { model, isPriced, hasEnded } = lookUp(id)

      expect(model, 'refresh the snapshot with make-snapshot.mjs, or tell why there is no row').toMatchObject({
        vendor,
      })
      expect(model?.kinds).toContain(kind)
      expect(isPriced || hasEnded || (NO_PRICE[id] ?? NO_PRICE[undated(id)]) !== undefined, 'has no list price').toBe(
        true,
      )
    },
  )

  test.each(Object.entries(NO_ROW))('have %s, which has no row: %s', (id) => {
    expect(listed.flatMap((one) => [one.id, undated(one.id)])).toContain(id)
    expect(models.find(id)).toBeUndefined()
  })

  test.each(Object.entries(NO_PRICE))('have %s, which has no list price: %s', (id) => {
    expect(listed.flatMap((one) => [one.id, undated(one.id)])).toContain(id)
    expect(lookUp(id)).toMatchObject({ model: { vendor: expect.any(String) }, isPriced: false, hasEnded: false })
  })
})
