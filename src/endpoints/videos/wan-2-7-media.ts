import { isJsonObject } from '../../core/json.ts'
import { fieldRequired, videoFault } from './video-fault.ts'

/** DashScope, image-to-video of Wan 2.7: each type at most once, and only together like this. */
const PICTURE_COMBINATIONS: readonly (readonly string[])[] = [
  ['first_frame'],
  ['first_frame', 'driving_audio'],
  ['first_frame', 'last_frame'],
  ['first_frame', 'last_frame', 'driving_audio'],
  ['first_clip'],
  ['first_clip', 'last_frame'],
]
const PICTURE_COMBINATION_KEYS: ReadonlySet<string> = new Set(PICTURE_COMBINATIONS.map(combinationKey))

/** DashScope, reference-to-video of Wan 2.7: pictures and videos together. */
export const MAX_WAN_27_REFERENCES = 5

/**
 * Checks the media of a model that begins with a picture.
 * @throws GatewayError `invalid_request` for `input.media`.
 */
export function checkPictureMedia(media: unknown): void {
  const types = requiredTypes(media)
  if (PICTURE_COMBINATION_KEYS.has(combinationKey(types))) return
  const allowed = PICTURE_COMBINATIONS.map((combination) => combination.join(' + ')).join('; ')
  throw videoFault('input.media', `${types.join(' + ')} do not go together; allowed are ${allowed}`)
}

/**
 * Checks the media of a model that works from references. Types that are not counted here are for the vendor to judge.
 * @throws GatewayError `invalid_request` for `input.media`.
 */
export function checkReferenceMedia(media: unknown): void {
  const types = requiredTypes(media)
  const references = types.filter(isReference).length
  if (references === 0) throw videoFault('input.media', 'must hold a reference_image or a reference_video')
  if (references > MAX_WAN_27_REFERENCES) {
    throw videoFault('input.media', `must hold at most ${MAX_WAN_27_REFERENCES} references`)
  }
  if (types.filter((type) => type === 'first_frame').length > 1) {
    throw videoFault('input.media', 'must hold at most one first_frame')
  }
}

/** The types of media, in order; an item without one counts as `''`. */
export function mediaTypes(media: unknown): string[] {
  if (!Array.isArray(media)) return []
  return media.map((item: unknown) => (isJsonObject(item) && typeof item['type'] === 'string' ? item['type'] : ''))
}

function requiredTypes(media: unknown): string[] {
  const types = mediaTypes(media)
  if (types.length === 0) throw fieldRequired('input.media')
  for (const [index, item] of (media as readonly unknown[]).entries()) {
    if (types[index] === '') throw fieldRequired(`input.media[${index}].type`)
    if (!isJsonObject(item) || typeof item['url'] !== 'string') throw fieldRequired(`input.media[${index}].url`)
  }
  return types
}

function isReference(type: string): boolean {
  return type === 'reference_image' || type === 'reference_video'
}

function combinationKey(types: readonly string[]): string {
  return [...types].sort().join('+')
}
