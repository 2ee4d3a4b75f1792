import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { listPriceRows } from '../../../src/catalog/prices/list-prices.ts'
import { SNAPSHOT_DATE, VendorModels } from '../../../src/catalog/vendor-models/vendor-models.ts'
import type { AnyModelKind } from '../../../src/core/model-kind.ts'

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

/** Ids without a row, with the reason. Those that their vendors have ended: OpenAI, "Deprecations"; the SDK of Anthropic. */
const NO_ROW: Readonly<Record<string, string>> = {
  'chatgpt-4o-latest': 'ended on 2026-02-17',
  'claude-mythos-preview': 'ended on 2026-06-30',
  'codex-mini-latest': 'ended on 2026-01-16',
  'computer-use-preview': 'ended on 2026-07-23',
  'dall-e-2': 'ended on 2026-05-12',
  'dall-e-3': 'ended on 2026-05-12',
  'gemini-omni-1.1-flash': 'makes films',
  'gemini-omni-1.2-flash': 'makes films',
  'gemini-omni-flash-preview': 'makes films',
  'gpt-3.5-turbo-16k': 'ended on 2024-09-13',
  'gpt-4-0125-preview': 'ended on 2026-03-26',
  'gpt-4-1106-preview': 'ended on 2026-10-23',
  'gpt-4-32k': 'ended on 2025-06-06',
  'gpt-4-turbo-preview': 'ended on 2026-03-26',
  'gpt-4-vision-preview': 'ended on 2024-12-06',
  'gpt-4o-mini-search-preview': 'ended on 2026-07-23',
  'gpt-4o-search-preview': 'ended on 2026-07-23',
  'lyria-3-clip-preview': 'makes music',
  'lyria-3-pro-preview': 'makes music',
  'lyria-3.5': 'makes music',
  'o1-mini': 'ended on 2025-10-27',
  'o1-preview': 'ended on 2025-07-28',
  'text-moderation-latest': 'ended on 2025-10-27',
  'text-moderation-stable': 'ended on 2025-10-27',
}

const SPOKEN = 'spoken answers cost more than written ones, and are not counted apart'
const UNPUBLISHED = 'no source of the snapshot tells a price'

/** Ids with a row and without a list price, with the reason. */
const NO_PRICE: Readonly<Record<string, string>> = {
  'chatgpt-image-latest': UNPUBLISHED,
  'claude-mythos-5-1': UNPUBLISHED,
  'claude-mythos-5-2': UNPUBLISHED,
  'gemini-3.1-flash-tts-preview': UNPUBLISHED,
  'gemini-3.5-transcribe': UNPUBLISHED,
  'gemini-3.8-flash-lite-tts': UNPUBLISHED,
  'gemini-3.8-flash-tts': UNPUBLISHED,
  'gemini-nano-banana-2.1': 'the sources tell no price of its pictures',
  'gemini-robotics-er-1.6-preview': UNPUBLISHED,
  'gemma-4-26b-a4b-it': 'free of charge',
  'gemma-4-31b-it': 'free of charge',
  'gpt-4o-audio-preview': SPOKEN,
  'gpt-4o-mini-audio-preview': SPOKEN,
  'gpt-4o-mini-tts': 'sold by tokens, which speech is not counted in',
  'gpt-6-rosalind': UNPUBLISHED,
  'gpt-6.2-astra-law': UNPUBLISHED,
  'gpt-audio-mini': SPOKEN,
  'gpt-rosalind-research': UNPUBLISHED,
  'nano-banana-pro-preview': UNPUBLISHED,
  'omni-moderation-latest': 'free of charge',
  'omni-moderation-2024-09-26': 'free of charge',
}

const KINDS = ['chat', 'embedding', 'image', 'image_edit', 'speech', 'transcription', 'moderation'] as const
const kinds = new Map<AnyModelKind, undefined>(KINDS.map((kind) => [kind, undefined]))
const models = new VendorModels(
  ['openai', 'anthropic', 'gemini'].map((id) => ({ id, isConfigured: true, kinds, passUnknownModels: false })),
)

const listed = UNIONS.flatMap(([vendor, file, type, kind]) => {
  const text = readFileSync(`node_modules/${file}`, 'utf8')
  const union = new RegExp(`type ${type} = ([^;]+);`).exec(text)?.[1] ?? ''
  const ids = [...union.matchAll(/['"]([^'"]+)['"]/g)].map(([, id = '']) => id)
  return ids.map((id) => ({ vendor, type, id, kind: kind ?? kindOf(id) }))
})

/** Types of Google name models of all kinds. */
function kindOf(id: string): AnyModelKind {
  if (/-image|banana/.test(id)) return 'image'
  if (/-tts/.test(id)) return 'speech'
  return /-transcribe/.test(id) ? 'transcription' : 'chat'
}

/** The id without the day of its version: `gpt-4-0613` and `o3-2025-04-16` are versions of `gpt-4` and `o3`. */
function undated(id: string): string {
  return id.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{4})$/, '')
}

function lookUp(id: string) {
  const model = models.find(id) ?? models.find(undated(id))
  const facts = model === undefined ? undefined : models.facts(model.vendor, model.upstream)
  const isPriced = model !== undefined && facts !== undefined && listPriceRows(model, facts, '1').length > 0
  return { model, isPriced, hasEnded: (facts?.retires ?? Number.POSITIVE_INFINITY) <= Date.parse(SNAPSHOT_DATE) / 1000 }
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
