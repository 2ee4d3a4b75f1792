import * as z from 'zod'
import { objectOf } from '../core/json.ts'
import { checkEnumerated, checkMembers, memberNames, schemaError } from '../core/known-members.ts'
import { MODEL_KINDS } from '../core/model-kind.ts'
import { whileUsed } from '../core/on-demand.ts'
import type {
  CatalogModel,
  ImageAbilities,
  ModelDefinition,
  ModelLimits,
  ModelRoute,
  SpeechAbilities,
  TranscriptionAbilities,
  VideoAbilities,
} from './model.ts'
import { SPEECH_FORMATS, TRANSCRIPTION_FORMATS, VIDEO_GEOMETRIES, VIDEO_TASKS } from './model-facts.ts'
import { ABILITIES, MODALITIES } from './vendor-models/vendor-model.ts'

/** A schema for each member of an interface. A missing or unknown member does not compile. */
type SchemasOf<Facts> = { readonly [Name in keyof Facts]-?: z.ZodType<Facts[Name]> }

const modelKind = whileUsed(() => z.enum(MODEL_KINDS))
const name = whileUsed(() =>
  z
    .string()
    .min(1, 'must not be empty')
    .max(200, 'must have at most 200 characters')
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces'),
)
const count = whileUsed(() => z.int().positive())
const isOrdered = (range: { readonly min: number; readonly max: number }): boolean => range.min <= range.max
const counts = whileUsed(() =>
  z.strictObject({ min: count(), max: count() }).refine(isOrdered, 'min must not be above max'),
)
const countsFromZero = whileUsed(() =>
  z
    .strictObject({ min: z.int().nonnegative(), max: z.int().nonnegative() })
    .refine(isOrdered, 'min must not be above max'),
)

const limits = whileUsed(() =>
  z.strictObject({
    contextTokens: count().exactOptional(),
    maxOutputTokens: count().exactOptional(),
    dimensions: count().exactOptional(),
    nativeDimensions: z
      .union([z.array(count()).nonempty(), counts()], 'must be a list of sizes, or { "min", "max" }')
      .exactOptional(),
    truncatesDimensions: z.boolean().exactOptional(),
  } satisfies SchemasOf<ModelLimits>),
)

const words = whileUsed(() => z.array(z.string().min(1)).nonempty())

const freeSize = whileUsed(() =>
  z.strictObject({
    multipleOf: count().exactOptional(),
    maxSide: count().exactOptional(),
    maxRatio: z.number().min(1).exactOptional(),
    minPixels: count().exactOptional(),
    maxPixels: count().exactOptional(),
  } satisfies SchemasOf<NonNullable<ImageAbilities['freeSize']>>),
)

const image = whileUsed(() =>
  z.strictObject({
    sizes: words().exactOptional(),
    defaultSize: z.string().min(1).exactOptional(),
    freeSize: freeSize().exactOptional(),
    aspectRatios: words().exactOptional(),
    referenceImages: countsFromZero().exactOptional(),
    maxImages: count().exactOptional(),
    takesMask: z.boolean().exactOptional(),
    qualities: words().exactOptional(),
    outputFormats: words().exactOptional(),
    refusedFields: words().exactOptional(),
    answersWithUrls: z.boolean().exactOptional(),
    outputTokens: z.record(z.string(), count()).exactOptional(),
    inputTokensPerImage: count().exactOptional(),
  } satisfies SchemasOf<ImageAbilities>),
)

const video = whileUsed(() =>
  z.strictObject({
    task: z.enum(VIDEO_TASKS),
    resolutions: words(),
    durations: z.union([z.array(count()).nonempty(), counts()], 'must be a list of seconds, or { "min", "max" }'),
    durationsWithReferenceVideo: counts().exactOptional(),
    maxBilledSeconds: count().exactOptional(),
    geometry: z.enum(VIDEO_GEOMETRIES),
    canMute: z.boolean().exactOptional(),
    takesShotType: z.boolean().exactOptional(),
  } satisfies SchemasOf<VideoAbilities>),
)

const speech = whileUsed(() =>
  z.strictObject({
    voices: words(),
    formats: z.array(z.enum(SPEECH_FORMATS)).nonempty(),
    takesInstructions: z.boolean(),
    maxCharacters: count(),
  } satisfies SchemasOf<SpeechAbilities>),
)

const transcription = whileUsed(() =>
  z.strictObject({
    formats: z.array(z.enum(TRANSCRIPTION_FORMATS)).nonempty(),
    streams: z.boolean(),
    refusedFields: words().exactOptional(),
    maxFileBytes: count().exactOptional(),
  } satisfies SchemasOf<TranscriptionAbilities>),
)

const route = whileUsed(() =>
  z.strictObject({
    vendor: name(),
    upstream: name().exactOptional(),
    weight: z.number().positive().exactOptional(),
    priority: z.int().nonnegative().exactOptional(),
    when: z.record(z.string(), z.string()).exactOptional(),
  } satisfies SchemasOf<ModelRoute>),
)

/** Schema of a row in an operator's list of models. */
export const modelDefinition = whileUsed(() =>
  z
    .strictObject({
      id: name(),
      kind: z.union(
        [modelKind(), z.array(modelKind()).nonempty()],
        `must be one of ${MODEL_KINDS.join(', ')}, or a list of them`,
      ),
      vendor: name().exactOptional(),
      upstream: name().exactOptional(),
      routes: z.array(route()).nonempty().exactOptional(),
      protocol: name().exactOptional(),
      limits: limits().exactOptional(),
      hasHiddenReasoning: z.boolean().exactOptional(),
      image: image().exactOptional(),
      video: video().exactOptional(),
      speech: speech().exactOptional(),
      transcription: transcription().exactOptional(),
      aliases: z.array(name()).exactOptional(),
      fallbacks: z.array(name()).exactOptional(),
      created: z.int().nonnegative().exactOptional(),
      retires: z.iso.date('must be a date such as 2026-12-31').exactOptional(),
      displayName: z.string().min(1).max(200).exactOptional(),
      inputModalities: z.array(z.enum(MODALITIES)).nonempty().exactOptional(),
      outputModalities: z.array(z.enum(MODALITIES)).nonempty().exactOptional(),
      abilities: z.array(z.enum(ABILITIES)).exactOptional(),
      groups: z.array(name()).exactOptional(),
      promptCaching: z.enum(['auto', 'off']).exactOptional(),
    } satisfies SchemasOf<ModelDefinition>)
    .refine(({ vendor, routes }) => vendor !== undefined || routes !== undefined, {
      message: 'is required, unless the row has routes',
      path: ['vendor'],
      when: ({ value }) => isObject(value),
    }),
)

/**
 * Parses the model rows of an operator's JSON file: `[{ id, kind, vendor?, upstream?, routes?, limits?, aliases?, fallbacks?, …
 * }]`, with the members of {@link ModelDefinition}.
 * @throws TypeError with the first unknown member, otherwise with row and field of every fault: `models[2].kind: …`.
 */
export function parseModelDefinitions(json: unknown): readonly ModelDefinition[] {
  if (Array.isArray(json) && json.every(isObject)) checkModelRows(json, '')
  const result = z.array(modelDefinition()).safeParse(json)
  if (!result.success) throw schemaError('models', result.error.issues)
  return result.data
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** Members of a row that has its defaults. */
const catalogMembers = whileUsed(() => {
  const { kind: _, ...others } = modelDefinition().shape
  return { ...others, ...memberNames<Omit<CatalogModel, keyof typeof others>>()('kinds isOpen family efforts') }
})

/**
 * Rejects unknown members of model rows, and unknown values of enumerated members. Other values are not checked.
 * @param owner Name of the called function for the message.
 * @param path Path of the list below it.
 * @throws TypeError with the path: `models[2].limits.maxOutputToken`.
 */
export function checkModelRows(rows: unknown, owner: string, path = 'models'): void {
  if (!Array.isArray(rows)) return
  for (const [index, row] of rows.entries()) checkModelRow(row, owner, `${path}[${index}]`)
}

/**
 * Rejects rows without the required members.
 * @param owner Name of the called function for the message.
 * @param path Path of the list below it.
 * @throws TypeError with the path: `models[2].vendor`.
 */
export function checkWholeRows(rows: readonly unknown[], owner: string, path = 'models'): void {
  for (const [index, row] of rows.entries()) {
    const { id, kind, kinds = kind, vendor, routes } = objectOf(row)
    const fail = (member: string, rule: string): never => {
      throw new TypeError(`${owner}: ${path}[${index}].${member} must be ${rule}`)
    }
    if (!isName(id)) fail('id', 'the id that callers write')
    if (!isName(kinds) && !Array.isArray(kinds)) fail('kind', "what the model does, such as 'chat', or a list of kinds")
    const isRouted = vendor === undefined && Array.isArray(routes) && routes.length > 0
    if (!isName(vendor) && !isRouted) fail('vendor', 'the id of a vendor, unless the row has routes')
  }
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function checkModelRow(row: unknown, owner: string, path: string): void {
  const given = objectOf(row)
  checkMembers(row, 'kinds' in given ? catalogMembers() : modelDefinition().shape, owner, path)
  const parts = {
    ...{ limits: limits(), image: image(), video: video(), speech: speech(), transcription: transcription() },
    ...{ 'limits.nativeDimensions': counts(), 'image.freeSize': freeSize(), 'image.referenceImages': counts() },
    ...{ 'video.durations': counts(), 'video.durationsWithReferenceVideo': counts() },
  }
  for (const [name, { shape }] of Object.entries(parts)) {
    const part = memberAt(given, name)
    // Sizes and durations may also be lists.
    if (!(Array.isArray(part) && name.includes('.'))) checkMembers(part, shape, owner, `${path}.${name}`)
  }
  const words: Readonly<Record<string, readonly string[]>> = {
    ...{ 'video.task': VIDEO_TASKS, 'video.geometry': VIDEO_GEOMETRIES, 'speech.formats': SPEECH_FORMATS },
    ...{ 'transcription.formats': TRANSCRIPTION_FORMATS, inputModalities: MODALITIES, outputModalities: MODALITIES },
    abilities: ABILITIES,
  }
  for (const [name, known] of Object.entries(words))
    for (const value of [memberAt(given, name)].flat()) checkEnumerated(value, known, owner, `${path}.${name}`)
  for (const [index, one] of (Array.isArray(given['routes']) ? given['routes'] : []).entries())
    checkMembers(one, route().shape, owner, `${path}.routes[${index}]`)
}

/** Returns the value at a path such as `video.task`. */
function memberAt(row: Readonly<Record<string, unknown>>, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => objectOf(value)[name], row)
}
