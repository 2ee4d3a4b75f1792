import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { chatSchema } from '../../src/endpoints/chat/chat-schema.ts'
import { embeddingsSchema } from '../../src/endpoints/embeddings/embeddings-request.ts'
import { imageReferencesSchema } from '../../src/endpoints/image-edits/image-edit-request.ts'
import { multimodalImageSchema } from '../../src/endpoints/images/images-endpoint.ts'
import { interactionSchema } from '../../src/endpoints/images/interactions/interaction-schema.ts'
import { pictureSchema } from '../../src/endpoints/images/openai/openai-image-schema.ts'
import { countTokensSchema, messagesSchema } from '../../src/endpoints/messages/messages-request.ts'
import { rerankSchema } from '../../src/endpoints/rerank/rerank-request.ts'
import { acceptanceOf, listOf } from '../../src/endpoints/schema.ts'
import { speechSchema } from '../../src/endpoints/speech/speech-request.ts'
import { videoSchema } from '../../src/endpoints/videos/video-endpoint.ts'
import { oddBodies, rawJson } from './fuzz-bodies.ts'
import {
  countBodies,
  editBodies,
  generationBodies,
  interactionBodies,
  messageBodies,
  multimodalBodies,
  rerankBodies,
  speechBodies,
  videoBodies,
} from './fuzz-proper-bodies.ts'

const chatBodies = [
  {
    model: 'm',
    messages: [
      { role: 'system', content: 'be brief' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'what is this?' },
          { type: 'image_url', image_url: { url: 'https://cdn.example.com/a.png' } },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', content: 'done', tool_call_id: 'c' },
    ],
    temperature: 2,
    max_tokens: 1,
    n: 128,
    stop: ['a', 'b'],
    stream: true,
    stream_options: { include_usage: true },
    logit_bias: { 50: -100 },
    tools: [{ type: 'function', function: { name: 'f' } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
    reasoning_effort: 'low',
    seed: 7,
    user: 'u',
    unknown: { of: ['any', 'kind'] },
  },
  { model: 'm', messages: [{ role: 'user', content: 'hello' }], stop: 'a', tool_choice: 'auto', user: null },
]
const embeddingBodies = [
  { model: 'm', input: ['a', 'b'], dimensions: 256, encoding_format: 'base64', user: 'u' },
  { model: 'm', input: [[1, 2], [3]] },
  { model: 'm', input: [1, 2, 3] },
]

/** Factor of the usual number of random values. */
const TIMES = process.env['DRILL'] === 'long' ? 20 : 1

type Bodies = readonly Readonly<Record<string, unknown>>[]

const SCHEMAS: readonly (readonly [string, z.ZodType, Bodies])[] = [
  ['chat', chatSchema(), chatBodies],
  ['embeddings', embeddingsSchema(), embeddingBodies],
  ['messages', messagesSchema(), messageBodies],
  ['count_tokens', countTokensSchema(), countBodies],
  ['multimodal images', multimodalImageSchema(), multimodalBodies],
  ['interactions', interactionSchema(), interactionBodies],
  ['generations', pictureSchema(), generationBodies],
  ['edits', pictureSchema(), editBodies],
  ['pictures of edits', imageReferencesSchema(), editBodies],
  ['rerank', rerankSchema(), rerankBodies],
  ['speech', speechSchema(), speechBodies],
  ['videos', videoSchema(), videoBodies],
]

/** Returns what a schema decides about a value. A schema that throws accepts nothing. */
function says(accepts: () => boolean): boolean {
  try {
    return accepts()
  } catch {
    return false
  }
}

/** Returns both answers, which must be equal. */
function answers(schema: z.ZodType, value: unknown) {
  return [says(() => acceptanceOf(schema)(value)), says(() => schema.safeParse(value).success)]
}

describe.each(SCHEMAS)('the schema of %s', (_name, schema, bodies) => {
  test('accepts proper bodies, by both ways', () => {
    for (const body of bodies) expect(answers(schema, body)).toEqual([true, true])
  })

  test('says the same of any body as safeParse does', () => {
    fc.assert(
      fc.property(oddBodies(bodies), (body) => {
        const [accepted, parsed] = answers(schema, JSON.parse(rawJson(body)))
        expect(accepted).toBe(parsed)
      }),
      { numRuns: 500 * TIMES },
    )
  })

  test('says the same of a body without one of its members, and with one of another kind', () => {
    const change = fc.record({ body: fc.constantFrom(...bodies), value: fc.jsonValue(), isLeftOut: fc.boolean() })
    fc.assert(
      fc.property(change, fc.nat(), ({ body, value, isLeftOut }, at) => {
        const names = Object.keys(body)
        const name = names[at % names.length]!
        const { [name]: _old, ...rest } = body
        const [accepted, parsed] = answers(schema, isLeftOut ? rest : { ...rest, [name]: value })
        expect(accepted).toBe(parsed)
      }),
      { numRuns: 300 * TIMES },
    )
  })
})

/** Every kind of schema that has its own check, and some that are left to `safeParse`. */
const KINDS: readonly (readonly [string, z.ZodType])[] = [
  ['any', z.any()],
  ['unknown', z.unknown()],
  ['null', z.null()],
  ['boolean', z.boolean()],
  ['coerced boolean', z.coerce.boolean()],
  ['string', z.string()],
  ['coerced string', z.coerce.string()],
  ['bounded string', z.string().min(2).max(4)],
  ['pattern', z.string().regex(/a/)],
  ['trimmed string', z.string().trim().min(1)],
  ['url', z.url()],
  ['number', z.number()],
  ['bounded number', z.number().gt(-1).lt(1)],
  ['inclusive bounds', z.number().min(-1).max(1)],
  ['integer', z.int().min(0).max(5)],
  ['32-bit integer', z.int32()],
  ['multiple', z.number().multipleOf(2)],
  ['enum', z.enum(['a', 'b'])],
  ['literal', z.literal(['a', 1, null])],
  ['optional', z.string().optional()],
  ['nullable', z.string().nullable()],
  ['nullish', z.int().nullish()],
  ['default', z.string().default('a')],
  ['union', z.union([z.string(), z.array(z.number())])],
  ['exclusive union', z.xor([z.string(), z.string().min(2)])],
  ['discriminated union', z.discriminatedUnion('a', [z.object({ a: z.literal(1) }), z.object({ a: z.literal('b') })])],
  ['array', z.array(z.string()).min(1).max(2)],
  ['list', listOf(z.string().min(1)).max(2)],
  ['object', z.object({ a: z.string(), b: z.any() })],
  ['strict object', z.strictObject({ a: z.string().optional() })],
  ['loose object', z.looseObject({ a: z.string().optional() })],
  ['object with typed rest', z.object({ a: z.string().optional() }).catchall(z.number())],
  ['inherited name', z.looseObject({ toString: z.string().optional() })],
  ['record', z.record(z.string(), z.number())],
  ['refined', z.looseObject({ a: z.unknown() }).refine(({ a }) => a === 1)],
  ['transformed', z.string().transform((text) => text.length)],
  ['piped', z.string().pipe(z.string().min(2))],
  ['lazy', z.lazy(() => z.string())],
]

const values = fc.oneof(
  fc.jsonValue(),
  fc.constant(undefined),
  fc.constantFrom('a', 'b', 'aa', '', ' ', 0, 1, -1, 5, 2 ** 40, 0.5, Number.NaN, Number.POSITIVE_INFINITY),
  fc.constantFrom<unknown>([], ['a'], ['a', ''], ['a', 'b', 'c'], [1], { a: 1 }, { a: 'b' }, { a: 'b', c: 1 }, {}),
  fc.constantFrom('https://example.com', new Date(0)),
)

describe('acceptanceOf', () => {
  test.each(KINDS)('says of any value what safeParse says: %s', (_name, schema) => {
    fc.assert(
      fc.property(values, (value) => {
        const [accepted, parsed] = answers(schema, value)
        expect(accepted).toBe(parsed)
      }),
      { numRuns: 200 * TIMES },
    )
  })

  test('changes nothing in what it is asked about', () => {
    const value = { a: ' x ' }
    expect(acceptanceOf(z.object({ a: z.string().trim() }))(value)).toBe(true)
    expect(value).toEqual({ a: ' x ' })
  })
})
