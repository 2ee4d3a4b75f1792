import { z } from 'zod'
import { configurationError } from './configuration-error.ts'
import type { ModelDefinition } from './define-model.ts'

const modelKind = z.enum(['chat', 'embedding', 'image', 'image_edit', 'video', 'speech'])
const name = z
  .string()
  .min(1, 'must not be empty')
  .max(200, 'must have at most 200 characters')
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
const count = z.int().positive()
const isOrdered = (range: { readonly min: number; readonly max: number }): boolean => range.min <= range.max
const counts = z.strictObject({ min: count, max: count }).refine(isOrdered, 'min must not be above max')
const countsFromZero = z
  .strictObject({ min: z.int().nonnegative(), max: z.int().nonnegative() })
  .refine(isOrdered, 'min must not be above max')

const limits = z.strictObject({
  contextTokens: count.exactOptional(),
  maxOutputTokens: count.exactOptional(),
  dimensions: count.exactOptional(),
  nativeDimensions: z
    .union([z.array(count).nonempty(), counts], 'must be a list of sizes, or { "min", "max" }')
    .exactOptional(),
  truncatesDimensions: z.boolean().exactOptional(),
})

const words = z.array(z.string().min(1)).nonempty()

const image = z.strictObject({
  sizes: words.exactOptional(),
  defaultSize: z.string().min(1).exactOptional(),
  freeSize: z
    .strictObject({
      multipleOf: count.exactOptional(),
      maxSide: count.exactOptional(),
      maxRatio: z.number().min(1).exactOptional(),
      minPixels: count.exactOptional(),
      maxPixels: count.exactOptional(),
    })
    .exactOptional(),
  aspectRatios: words.exactOptional(),
  referenceImages: countsFromZero.exactOptional(),
  maxImages: count.exactOptional(),
  takesMask: z.boolean().exactOptional(),
  qualities: words.exactOptional(),
  refusedFields: words.exactOptional(),
  answersWithUrls: z.boolean().exactOptional(),
  outputTokens: z.record(z.string(), count).exactOptional(),
  inputTokensPerImage: count.exactOptional(),
})

const video = z.strictObject({
  task: z.enum(['t2v', 'i2v', 'r2v']),
  resolutions: words,
  durations: z.union([z.array(count).nonempty(), counts], 'must be a list of seconds, or { "min", "max" }'),
  durationsWithReferenceVideo: counts.exactOptional(),
  maxBilledSeconds: count.exactOptional(),
  geometry: z.enum(['size', 'resolution', 'resolution-ratio']),
  canMute: z.boolean().exactOptional(),
  takesShotType: z.boolean().exactOptional(),
})

const speech = z.strictObject({
  voices: words,
  formats: z.array(z.enum(['mp3', 'wav'])).nonempty(),
  takesInstructions: z.boolean(),
  maxCharacters: count,
})

const route = z.strictObject({
  vendor: name,
  upstream: name.exactOptional(),
  weight: z.number().positive().exactOptional(),
  priority: z.int().nonnegative().exactOptional(),
  when: z.record(z.string(), z.string()).exactOptional(),
})

const definitions = z.array(
  z.strictObject({
    id: name,
    kind: z.union(
      [modelKind, z.array(modelKind).nonempty()],
      `must be one of ${modelKind.options.join(', ')}, or a list of them`,
    ),
    vendor: name,
    upstream: name.exactOptional(),
    routes: z.array(route).nonempty().exactOptional(),
    protocol: name.exactOptional(),
    limits: limits.exactOptional(),
    image: image.exactOptional(),
    video: video.exactOptional(),
    speech: speech.exactOptional(),
    aliases: z.array(name).exactOptional(),
    fallbacks: z.array(name).exactOptional(),
    created: z.int().nonnegative().exactOptional(),
    displayName: z.string().min(1).max(200).exactOptional(),
  }),
)

/**
 * Reads the model rows of an operator's JSON file: `[{ id, kind, vendor, upstream?, limits?, aliases?, fallbacks?, … }]`,
 * the members of {@link ModelDefinition}.
 * @throws TypeError naming row and field of every fault: `models[2].kind: …`.
 */
export function parseModelDefinitions(json: unknown): readonly ModelDefinition[] {
  const result = definitions.safeParse(json)
  if (!result.success) throw configurationError('models', result.error.issues)
  return result.data
}
