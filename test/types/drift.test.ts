import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createCatalog } from '../../src/catalog/catalog.ts'
import type { CatalogModel, ModelKind } from '../../src/catalog/model.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import { VendorModels } from '../../src/catalog/vendor-models/vendor-models.ts'
import { GatewayError } from '../../src/core/errors.ts'
import type { ChatRequest } from '../../src/endpoints/chat/chat-request.ts'
import { chatSchema } from '../../src/endpoints/chat/chat-schema.ts'
import { embeddingsSchema } from '../../src/endpoints/embeddings/embeddings-request.ts'
import { multimodalImageSchema } from '../../src/endpoints/images/images-endpoint.ts'
import { interactionSchema } from '../../src/endpoints/images/interactions/interaction-schema.ts'
import { USUAL_FORMATS } from '../../src/endpoints/images/openai/openai-image-request.ts'
import { pictureSchema } from '../../src/endpoints/images/openai/openai-image-schema.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { checkSpeechAbilities } from '../../src/endpoints/speech/check-speech-abilities.ts'
import { speechSchema } from '../../src/endpoints/speech/speech-request.ts'
import { parseVideoRequest, videoSchema } from '../../src/endpoints/videos/video-endpoint.ts'
import { ratiosOfTier, sizeFor } from '../../src/endpoints/videos/video-protocol.ts'
import { modelVendor } from '../../src/gateway/catalog-in-force.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { voyage } from '../../src/vendors/voyage/voyage.ts'
import { callFromRequest } from '../vendors/shared/vendor-call.ts'
import { readInterfaces, sorted } from './model-types.ts'

const interfaceOf = readInterfaces('src/client/index.ts')
const catalog = createCatalog(BUILT_IN_MODELS)
const VENDORS = [anthropic, dashscope, gemini, openai, voyage].map((make) => make({ apiKey: 'any' }))

function modelsOf(kind: ModelKind): CatalogModel[] {
  return catalog.list().filter(({ kinds }) => kinds.includes(kind))
}

/** Names that a list leaves out. */
function without(names: readonly string[], ...left: readonly string[]): string[] {
  return sorted(names.filter((name) => !left.includes(name)))
}

/** The values of an enumeration somewhere in a schema, by the path of the field. */
function valuesIn(schema: z.ZodType, ...path: readonly string[]): string[] {
  let node: unknown = z.toJSONSchema(schema, { unrepresentable: 'any' })
  for (const step of path) node = step === '[]' ? member(node, 'items') : member(member(node, 'properties'), step)
  const values = [node, ...((member(node, 'anyOf') as unknown[] | undefined) ?? [])].map((each) => member(each, 'enum'))
  return sorted((values.find((found) => found !== undefined) as string[] | undefined) ?? [])
}

function member(node: unknown, name: string): unknown {
  return (node as Record<string, unknown> | undefined)?.[name]
}

/** Models that need no row, which the types name as well: by the map of their types. */
const LISTED = {
  ChatModels: listedIn('ChatModels', 'chat'),
  EmbeddingModels: listedIn('EmbeddingModels', 'embedding'),
  ImageModels: listedIn('ImageModels', 'image'),
  ImageEditModels: listedIn('ImageEditModels', 'image_edit'),
  SpeechModels: listedIn('SpeechModels', 'speech'),
}

/** Models that only a map lists, without a row, as the catalog of a gateway with every vendor finds them. */
function listedIn(map: string, kind: ModelKind): CatalogModel[] {
  const withRows = new Set(modelsOf(kind).flatMap(({ id, aliases }) => [id, ...aliases]))
  const listed = new VendorModels(VENDORS.map((vendor) => modelVendor(vendor, ENDPOINTS)))
  const all = createCatalog([...BUILT_IN_MODELS, ...VENDORS.flatMap(({ models }) => models)], listed)
  return interfaceOf(map).members.flatMap((id) => (withRows.has(id) ? [] : [all.find(id) ?? absent(id)]))
}

function absent(id: string): never {
  throw new Error(`the types of requests name ${id}, which no catalog knows`)
}

test('the types of requests name models that need no row only under ids of their vendors', () => {
  for (const { id, kinds, upstream } of LISTED.ChatModels) expect([id, kinds]).toEqual([upstream, ['chat']])
  for (const { id, kinds, upstream } of LISTED.EmbeddingModels) expect([id, kinds]).toEqual([upstream, ['embedding']])
  for (const { id, kinds, upstream } of LISTED.SpeechModels) expect([id, kinds]).toEqual([upstream, ['speech']])
  for (const { id, kinds, upstream } of LISTED.ImageModels) expect([id, kinds[0]]).toEqual([upstream, 'image'])
  for (const { id, kinds, upstream } of LISTED.ImageEditModels)
    expect([id, kinds]).toEqual([upstream, ['image', 'image_edit']])
  expect(LISTED.ChatModels.map(({ id }) => id)).toContain('gpt-5.4')
})

describe('the types of requests name the models of the catalog, with their aliases', () => {
  test.each([
    ['ChatModels', 'chat'],
    ['EmbeddingModels', 'embedding'],
    ['ImageModels', 'image'],
    ['ImageEditModels', 'image_edit'],
    ['VideoModels', 'video'],
    ['SpeechModels', 'speech'],
    ['RerankModels', 'rerank'],
  ] as const)('in %s', (name, kind) => {
    const models = modelsOf(kind)

    const listed = name in LISTED ? LISTED[name as keyof typeof LISTED].map(({ id }) => id) : []

    expect(interfaceOf(name).members).toEqual(
      sorted([...models.flatMap(({ id, aliases }) => [id, ...aliases]), ...listed]),
    )
    for (const { id, aliases } of models)
      for (const alias of aliases) expect(rowOf(name, alias).type, alias).toBe(rowOf(name, id).type)
  })
})

describe.each([...modelsOf('chat'), ...LISTED.ChatModels])('the type of chats with $id', ({ id, vendor }) => {
  const request = { model: id, messages: [{ role: 'user', content: 'hi' }] } as const

  /** Values of fields that ask for more than the vendors' defaults. */
  const ASKING = {
    n: 2,
    logit_bias: { 1: 1 },
    logprobs: true,
    seed: 1,
    parallel_tool_calls: false,
    top_p: 0.5,
  } as const

  test.each(Object.entries(ASKING))('takes %s if the vendor does', (field, value) => {
    const offer = VENDORS.find((each) => each.id === vendor)!.chat!
    const call = callFromRequest<ChatRequest>({ ...request, messages: [...request.messages], [field]: value })
    const refused = refuses(() => offer.toWire(call))
    const literals = rowOf('ChatModels', id).at(`request.${field}`)?.literals

    expect(literals?.includes(value as never) === false).toBe(refused)
  })
})

// The vendor whose dialect this is takes all of them.
test.each([...modelsOf('chat'), ...LISTED.ChatModels].filter(({ vendor }) => vendor !== 'openai'))(
  'the type of chats with $id has none of the fields that the vendor refuses and no model of another vendor needs',
  ({ id, vendor }) => {
    const offer = VENDORS.find((each) => each.id === vendor)!.chat!
    for (const field of ['functions', 'function_call', 'audio']) {
      const messages = [{ role: 'user' as const, content: 'hi' }]
      const call = callFromRequest<ChatRequest>({ model: id, messages, [field]: { name: 'f' } })
      expect(refuses(() => offer.toWire(call))).toBe(true)
      expect(rowOf('ChatModels', id).at('request')?.members).not.toContain(field)
    }
  },
)

test.each([...modelsOf('embedding'), ...LISTED.EmbeddingModels])(
  'the type of $id takes token ids if the vendor does',
  ({ id, vendor }) => {
    const input = rowOf('EmbeddingModels', id).member('request')?.member('input')
    const { takesTokens } = VENDORS.find((each) => each.id === vendor)!.embeddings!

    // A list of numbers, or of lists of them, has an element that is not text.
    expect(input?.member('[]')?.isText).toBe(!takesTokens)
  },
)

function refuses(run: () => unknown): boolean {
  try {
    run()
    return false
  } catch (error) {
    if (GatewayError.isInstance(error) && error.code === 'unsupported_parameter') return true
    throw error
  }
}

describe.each(modelsOf('video'))('the type of $id', (model) => {
  const { id, video } = model
  const row = rowOf('VideoModels', id)
  const { task, resolutions, durations, geometry, canMute = false, takesShotType = false } = video!

  test('has the kind, tiers and seconds of the catalog', () => {
    expect(row.at('kind')?.literals).toEqual([task])
    expect(row.at('request.resolution')?.literals).toEqual(sorted(resolutions))
    expect(row.at('request.duration')?.literals).toEqual('min' in durations ? undefined : sorted(durations))
  })

  test('has the geometry of its layout', () => {
    const isOld = model.protocol === 'wan-2-6'
    const sizes = resolutions.flatMap((tier) => ratiosOfTier(tier).map((ratio) => sizeFor(tier, ratio)!))
    const tiers = sorted(resolutions.map((tier) => tier.toUpperCase()))

    expect(row.at('request.parameters.size')?.literals).toEqual(isOld ? sorted(sizes) : undefined)
    expect(row.at('request.parameters.resolution')?.literals).toEqual(geometry === 'size' ? undefined : tiers)
    expect(row.at('request.parameters')?.members.includes('ratio')).toBe(geometry === 'resolution-ratio')
  })

  test('knows of sound and shots what the catalog knows', () => {
    const members = row.at('request.parameters')?.members ?? []
    const abilities = row.at('ability')?.literals ?? []

    expect(members.includes('audio')).toBe(canMute)
    expect(abilities.includes('mute')).toBe(canMute)
    // 2.7 takes the field without effect, so the types leave it out.
    expect(members.includes('shot_type')).toBe(takesShotType && model.protocol === 'wan-2-6')
    expect(abilities.includes('shots')).toBe(takesShotType && model.protocol === 'wan-2-6')
  })

  test('lists the media that the endpoint takes', () => {
    const types = row.at('request.input.media.[].type')?.literals ?? []
    const url = 'https://cdn.example.net/a.png'
    const refused = types.filter((type) =>
      [[type], [type, 'first_frame'], [type, 'reference_image']].every((together) => {
        const media = together.map((each) => ({ type: each, url }))
        try {
          parseVideoRequest({ model: id, input: { prompt: 'a', media } }, model)
          return false
        } catch {
          return true
        }
      }),
    )

    expect(types.length > 0).toBe(model.protocol === 'wan-2-7' && task !== 't2v')
    expect(refused).toEqual([])
  })
})

describe.each([...modelsOf('image'), ...LISTED.ImageModels])('the type of $id', ({ id, protocol, image }) => {
  const row = rowOf('ImageModels', id)

  test('has the sizes, ratios and fields of the catalog', () => {
    const refused = image?.refusedFields ?? []
    if (protocol === 'multimodal') {
      expect(row.at('request.parameters.size')?.literals).toEqual(
        image?.sizes === undefined ? undefined : sorted(image.sizes),
      )
      expect(refused.filter((field) => row.at('request.parameters')?.members.includes(field))).toEqual([])
      const block = row.at('request.input.messages.[].content.[]')
      expect(block?.members.includes('image')).toBe((image?.referenceImages?.max ?? 0) > 0)
    } else if (protocol === 'interactions') {
      const listed = (values: readonly string[] | undefined) => values && sorted(values)
      expect(row.at('request.response_format.image_size')?.literals).toEqual(listed(image?.sizes))
      expect(row.at('request.response_format.aspect_ratio')?.literals).toEqual(listed(image?.aspectRatios))
      const thinks = row.at('request.generation_config')?.members.includes('thinking_level')
      expect(thinks).toBe(!refused.includes('generation_config.thinking_level'))
    } else {
      const isFree = image?.freeSize !== undefined
      const sizes = sorted(['auto', ...(image?.sizes ?? []).filter((size) => size !== 'auto')])
      expect(row.at('request.size')?.literals).toEqual(isFree ? undefined : sizes)
      expect(refused.filter((field) => row.at('request')?.members.includes(field))).toEqual([])
      expect(row.at('request.response_format')?.literals?.includes('url') === true).toBe(
        image?.answersWithUrls === true,
      )
      const qualities = row.at('request.quality')?.literals ?? []
      expect(image?.qualities?.filter((quality) => !qualities.includes(quality))).toEqual([])
    }
  })
})

test('models stream whose shape does: all but those of the multimodal one, and those that do not take stream', () => {
  const streaming = (map: string) =>
    interfaceOf(map).members.filter((id) => (rowOf(map, id).at('event')?.members ?? []).length > 0)
  const namesOf = (models: readonly CatalogModel[], kind: string) =>
    sorted(
      models
        .filter(({ kinds, protocol }) => kinds.includes(kind) && protocol !== 'multimodal')
        .filter(({ image }) => image?.refusedFields?.includes('stream') !== true)
        .flatMap(({ id, aliases }) => [id, ...aliases.filter((alias) => !alias.includes('/'))]),
    )

  expect(streaming('ImageModels')).toEqual(namesOf([...catalog.list(), ...LISTED.ImageModels], 'image'))
  expect(streaming('ImageEditModels')).toEqual(namesOf([...catalog.list(), ...LISTED.ImageEditModels], 'image_edit'))
})

describe.each(modelsOf('image_edit'))('the type of edits by $id', ({ id, image }) => {
  const row = rowOf('ImageEditModels', id)

  test('has the sizes, fields and forms of answer of the catalog', () => {
    const refused = image?.refusedFields ?? []
    expect(row.at('request.size')?.literals).toEqual(sorted(['auto', ...(image?.sizes ?? [])]))
    expect(refused.filter((field) => row.at('request')?.members.includes(field))).toEqual([])
    expect(row.at('request')?.members.includes('output_format')).toBe(!refused.includes('output_format'))
    expect(row.at('request.response_format')?.literals?.includes('url')).toBe(image?.answersWithUrls === true)
  })
})

test.each(modelsOf('embedding'))('the type of $id has the sizes of the catalog', ({ id, limits }) => {
  const native = limits.nativeDimensions ?? []
  const closed = limits.truncatesDimensions === false && !('min' in native) ? sorted(native) : undefined

  expect(rowOf('EmbeddingModels', id).at('request.dimensions')?.literals).toEqual(closed)
})

test.each([...modelsOf('speech'), ...LISTED.SpeechModels])(
  'the type of $id has the voices and formats of the catalog',
  (model) => {
    const row = rowOf('SpeechModels', model.id)
    const voices = (row.at('request.voice')?.literals ?? []) as string[]
    const standIns = voices.filter((voice) => !model.speech?.voices.includes(voice))
    const hasOthers = model.vendor !== 'openai'

    expect(sorted(voices.filter((voice) => !standIns.includes(voice)))).toEqual(sorted(model.speech?.voices ?? []))
    expect(standIns.length > 10).toBe(hasOthers)
    for (const voice of standIns) expect(() => checkSpeechAbilities({ voice }, model)).not.toThrow()
    expect(() => checkSpeechAbilities({ voice: 'Nobody' }, model)).toThrow('voice')
    expect(row.at('request.response_format')?.literals).toEqual(sorted(model.speech?.formats ?? []))
    expect(row.at('request')?.members.includes('instructions')).toBe(model.speech?.takesInstructions)
  },
)

describe('the types have the fields and values of the schemas', () => {
  test('covers chats', () => {
    const fields = interfaceOf('ChatFields')

    expect(fields.members).toEqual(without(Object.keys(chatSchema().shape), 'model', 'stream'))
    expect(fields.at('reasoning_effort')?.literals).toEqual(valuesIn(chatSchema(), 'reasoning_effort'))
    expect(interfaceOf('ChatMessage').at('role')?.literals).toEqual(valuesIn(chatSchema(), 'messages', '[]', 'role'))
  })

  test('covers embeddings', () => {
    expect(interfaceOf('EmbeddingFields').members).toEqual(
      without(Object.keys(embeddingsSchema().shape), 'model', 'encoding_format'),
    )
  })

  test("covers images in OpenAI's shape", () => {
    const fields = interfaceOf('OpenAIImageRequest')
    // The call itself has `stream`, and the answer has one form only.
    const expected = without(Object.keys(pictureSchema().shape), 'model', 'stream', 'response_format')

    expect(fields.members).toEqual(expected)
    for (const field of ['background', 'moderation']) {
      expect(fields.at(field)?.literals).toEqual(valuesIn(pictureSchema(), field))
    }
    // Rows may list others.
    expect(fields.at('output_format')?.literals).toEqual(sorted(USUAL_FORMATS))
    const partials = fields.at('partial_images')?.literals ?? []
    expect(partials.every((count) => pictureSchema().shape.partial_images.safeParse(count).success)).toBe(true)
    expect(pictureSchema().shape.partial_images.safeParse(partials.length).success).toBe(false)
  })

  test('covers images in the multimodal shape', () => {
    const parameters = member(
      member(z.toJSONSchema(multimodalImageSchema(), { unrepresentable: 'any' }), 'properties'),
      'parameters',
    )

    expect(interfaceOf('MultimodalPictureRequest').at('parameters')?.members).toEqual(
      sorted(Object.keys(member(parameters, 'properties') as object)),
    )
  })

  test('covers images in the interactions shape', () => {
    // Tools and the tier are taken out by the gateway, and the call itself has `stream`.
    expect(interfaceOf('InteractionImageRequest').members).toEqual(
      without(Object.keys(interactionSchema().shape), 'model', 'tools', 'service_tier', 'stream', 'background'),
    )
  })

  test('covers speech', () => {
    expect(interfaceOf('InstructedSpeechFields').members).toEqual(
      without(Object.keys(speechSchema().shape), 'model', 'stream_format'),
    )
  })

  test('covers videos', () => {
    expect(interfaceOf('VideoFields').members).toEqual(
      without(Object.keys(videoSchema().shape), 'model', 'input', 'parameters'),
    )
  })
})

/** Row of a map of models. Ids contain dots, so they are not paths. */
function rowOf(map: string, id: string) {
  const row = interfaceOf(map).member(id)
  if (row === undefined) throw new Error(`${map} has no ${id}`)
  return row
}
