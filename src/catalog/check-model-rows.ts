import { checkEnumerated, checkMembers, memberNames } from '../core/known-members.ts'
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

const MODEL_LIMITS_MEMBERS = memberNames<ModelLimits>()(
  'contextTokens maxOutputTokens dimensions nativeDimensions truncatesDimensions',
)
const IMAGE_MEMBERS = memberNames<ImageAbilities>()(
  'sizes defaultSize freeSize aspectRatios referenceImages maxImages takesMask qualities outputFormats',
  'refusedFields answersWithUrls outputTokens inputTokensPerImage',
)
const VIDEO_MEMBERS = memberNames<VideoAbilities>()(
  'task resolutions durations durationsWithReferenceVideo maxBilledSeconds geometry canMute takesShotType',
)
const SPEECH_MEMBERS = memberNames<SpeechAbilities>()('voices formats takesInstructions maxCharacters')
export const TRANSCRIPTION_MEMBERS = memberNames<TranscriptionAbilities>()('formats streams refusedFields maxFileBytes')
const ROUTE_MEMBERS = memberNames<ModelRoute>()('vendor upstream weight priority when')
export const MODEL_MEMBERS = memberNames<ModelDefinition>()(
  'id kind vendor upstream routes aliases fallbacks created retires displayName inputModalities outputModalities',
  'abilities groups promptCaching protocol limits reasonsUnseen image video speech transcription',
)
const { kind: _, ...OPTIONAL_MEMBERS } = MODEL_MEMBERS
const CATALOG_MEMBERS = {
  ...OPTIONAL_MEMBERS,
  ...memberNames<Omit<CatalogModel, keyof typeof OPTIONAL_MEMBERS>>()('kinds isOpen family efforts'),
}
const FREE_SIZE_MEMBERS = memberNames<NonNullable<ImageAbilities['freeSize']>>()(
  'multipleOf maxSide maxRatio minPixels maxPixels',
)
const RANGE_MEMBERS = { min: true, max: true } as const

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
  checkMembers(row, 'kinds' in given ? CATALOG_MEMBERS : MODEL_MEMBERS, owner, path)
  const { limits, image, video, speech, transcription, routes } = given
  checkMembers(limits, MODEL_LIMITS_MEMBERS, owner, `${path}.limits`)
  checkMembers(image, IMAGE_MEMBERS, owner, `${path}.image`)
  checkMembers(video, VIDEO_MEMBERS, owner, `${path}.video`)
  checkMembers(speech, SPEECH_MEMBERS, owner, `${path}.speech`)
  checkMembers(transcription, TRANSCRIPTION_MEMBERS, owner, `${path}.transcription`)
  const { freeSize, referenceImages } = objectOf(image)
  const { durations, durationsWithReferenceVideo } = objectOf(video)
  const ranges = {
    'limits.nativeDimensions': objectOf(limits)['nativeDimensions'],
    'image.referenceImages': referenceImages,
    'video.durations': durations,
    'video.durationsWithReferenceVideo': durationsWithReferenceVideo,
  }
  checkMembers(freeSize, FREE_SIZE_MEMBERS, owner, `${path}.image.freeSize`)
  for (const [name, range] of Object.entries(ranges))
    if (!Array.isArray(range)) checkMembers(range, RANGE_MEMBERS, owner, `${path}.${name}`)
  checkEnumerated(objectOf(video)['task'], VIDEO_TASKS, owner, `${path}.video.task`)
  checkEnumerated(objectOf(video)['geometry'], VIDEO_GEOMETRIES, owner, `${path}.video.geometry`)
  const lists: readonly [string, unknown, readonly string[]][] = [
    ['speech.formats', objectOf(speech)['formats'], SPEECH_FORMATS],
    ['transcription.formats', objectOf(transcription)['formats'], TRANSCRIPTION_FORMATS],
    ['inputModalities', given['inputModalities'], MODALITIES],
    ['outputModalities', given['outputModalities'], MODALITIES],
    ['abilities', given['abilities'], ABILITIES],
  ]
  for (const [name, list, known] of lists)
    for (const value of Array.isArray(list) ? list : [list]) checkEnumerated(value, known, owner, `${path}.${name}`)
  if (!Array.isArray(routes)) return
  for (const [index, route] of routes.entries()) checkMembers(route, ROUTE_MEMBERS, owner, `${path}.routes[${index}]`)
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
}
