import type { VideoAbilities } from '../../catalog/model-facts.ts'
import { isJsonObject, isSet } from '../../core/json.ts'
import {
  type MisplacedField,
  taskOfIntent,
  type VideoIntent,
  type VideoModelFacts,
  type VideoProtocol,
  type VideoReference,
  type WrittenIntent,
  writtenSettings,
} from './video-protocol.ts'
import { fieldRequired, type VideoParts, type VideoRequest, videoFault } from './video-request.ts'

/** Ratio that DashScope's text-to-video of Wan 2.7 renders without `ratio`. */
const VENDOR_DEFAULT_RATIO = '16:9'

/** Values of `ratio` in DashScope's text-to-video of Wan 2.7. */
const RATIOS: readonly string[] = ['16:9', '9:16', '1:1', '4:3', '3:4']

/** DashScope, reference-to-video of Wan 2.7: images and videos together. */
const MAX_REFERENCES = 5

const OLD_MEDIA_FIELDS = ['img_url', 'reference_urls', 'reference_video_urls'] as const

/** The layout of Wan 2.7: `media` with types, `resolution` as a tier, and `ratio` unless media decide it. */
export const wan27: VideoProtocol = {
  name: 'wan-2-7',
  describedAs: 'a 2.7 model',
  maxPromptCharacters: 5000,
  misplacedField,
  check,
  holdsReferenceVideo: ({ input }) => mediaTypes(input['media']).includes('reference_video'),
  fillIn,
  writeIntent,
}

function misplacedField({ input, parameters = {} }: VideoParts, model: VideoModelFacts): MisplacedField | undefined {
  for (const name of OLD_MEDIA_FIELDS) if (isSet(input[name])) return { param: `input.${name}`, use: 'input.media' }
  if (isSet(input['audio_url'])) {
    if (model.video?.task === 'i2v') return { param: 'input.audio_url', use: 'input.media with driving_audio' }
    if (model.video?.task === 'r2v') return { param: 'input.audio_url', use: 'input.media with reference_voice' }
  }
  if (!isSet(parameters['size'])) return undefined
  const hasRatio = model.video?.geometry !== 'resolution'
  return { param: 'parameters.size', use: `parameters.resolution${hasRatio ? ' and parameters.ratio' : ''}` }
}

function check({ input }: VideoParts, model: VideoModelFacts): void {
  const task = model.video?.task
  const prompt = input['prompt']
  if ((task === 't2v' || task === 'r2v') && (!isSet(prompt) || prompt === '')) throw fieldRequired('input.prompt')
  if (task === 'i2v') checkPictureMedia(input['media'])
  if (task === 'r2v') checkReferenceMedia(input['media'])
}

function fillIn(request: VideoRequest, model: VideoModelFacts): Record<string, unknown> {
  const parameters: Record<string, unknown> = Object.assign({}, request.parameters)
  if (!isSet(parameters['resolution'])) parameters['resolution'] = request.resolution.toUpperCase()
  if (takesRatio(request, model) && !isSet(parameters['ratio']) && request.aspect_ratio !== VENDOR_DEFAULT_RATIO) {
    parameters['ratio'] = request.aspect_ratio
  }
  if (!isSet(parameters['duration'])) parameters['duration'] = request.duration
  return parameters
}

/** If abilities are unknown, the body decides: a first frame or clip sets the ratio. */
function takesRatio({ input }: VideoRequest, model: VideoModelFacts): boolean {
  if (model.video !== undefined) return model.video.geometry === 'resolution-ratio'
  return !mediaTypes(input['media']).some((type) => type === 'first_frame' || type === 'first_clip')
}

/** Combinations in DashScope's image-to-video of Wan 2.7. Each type may occur once. */
const PICTURE_COMBINATIONS: readonly (readonly string[])[] = [
  ['first_frame'],
  ['first_frame', 'driving_audio'],
  ['first_frame', 'last_frame'],
  ['first_frame', 'last_frame', 'driving_audio'],
  ['first_clip'],
  ['first_clip', 'last_frame'],
]
const PICTURE_COMBINATION_KEYS: ReadonlySet<string> = new Set(PICTURE_COMBINATIONS.map(combinationKey))

/** Checks the media of a model that begins with an image. */
function checkPictureMedia(media: unknown): void {
  const types = requiredTypes(media)
  if (PICTURE_COMBINATION_KEYS.has(combinationKey(types))) return
  const allowed = PICTURE_COMBINATIONS.map((combination) => combination.join(' + ')).join('; ')
  throw videoFault('input.media', `${types.join(' + ')} cannot be combined; allowed are ${allowed}`)
}

/** Checks the media of a model that works from references. The vendor checks other types. */
function checkReferenceMedia(media: unknown): void {
  const types = requiredTypes(media)
  const references = types.filter(isReference).length
  if (references === 0) throw videoFault('input.media', 'must hold a reference_image or a reference_video')
  if (references > MAX_REFERENCES) {
    throw videoFault('input.media', `must hold at most ${MAX_REFERENCES} references`)
  }
  if (types.filter((type) => type === 'first_frame').length > 1) {
    throw videoFault('input.media', 'must hold at most one first_frame')
  }
}

/** Returns the types of media, in order. An item without a type counts as `''`. */
function mediaTypes(media: unknown): string[] {
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

/** Whether a `type` of media is a reference. */
export function isReference(type: unknown): boolean {
  return type === 'reference_image' || type === 'reference_video'
}

function combinationKey(types: readonly string[]): string {
  return [...types].sort().join('+')
}

type SingleMediaField = 'firstFrame' | 'lastFrame' | 'firstClip' | 'audio'

/** Field of the intent for each media `type` other than references. */
export const SINGLE_MEDIA: ReadonlyMap<unknown, SingleMediaField> = new Map([
  ['first_frame', 'firstFrame'],
  ['last_frame', 'lastFrame'],
  ['first_clip', 'firstClip'],
  ['driving_audio', 'audio'],
])

function writeIntent(intent: VideoIntent, model: VideoModelFacts): WrittenIntent {
  const task = model.video?.task ?? taskOfIntent(intent)
  const impossible: string[] = []
  const input = writtenInput(intent, task, impossible)
  const geometry = model.video?.geometry ?? (task === 'i2v' ? 'resolution' : 'resolution-ratio')
  const ratio = geometry === 'resolution-ratio' ? intent.aspectRatio : undefined
  if (ratio !== undefined && !RATIOS.includes(ratio)) impossible.push('aspectRatio')
  if (intent.mute === true) impossible.push('mute')
  if (intent.shotType !== undefined && intent.shotType !== 'single') impossible.push('shotType')
  const parameters: Record<string, unknown> = {
    resolution: intent.resolution.toUpperCase(),
    ...(ratio === undefined ? {} : { ratio }),
    duration: intent.seconds,
    ...writtenSettings(intent),
  }
  return { input, parameters, impossible }
}

function writtenInput(intent: VideoIntent, task: VideoAbilities['task'], impossible: string[]) {
  const input: Record<string, unknown> = {}
  if (intent.prompt !== undefined) input['prompt'] = intent.prompt
  if (intent.negativePrompt !== undefined) input['negative_prompt'] = intent.negativePrompt
  const media: Record<string, unknown>[] = []
  const allowed = allowedMedia(intent, task)
  for (const [type, field] of SINGLE_MEDIA) {
    const url = intent[field]
    if (url === undefined) continue
    if (task === 't2v' && field === 'audio') input['audio_url'] = url
    else if (allowed.includes(field)) media.push({ type, url })
    else impossible.push(field)
  }
  const references = intent.references ?? []
  const hasTooMany = references.length > MAX_REFERENCES
  if (references.length > 0 && (task !== 'r2v' || hasTooMany)) impossible.push('references')
  media.push(...references.map(referenceItem))
  if (media.length > 0) input['media'] = media
  return input
}

/** With a first clip, DashScope's Wan 2.7 allows only a last frame; with references, only a first frame. */
function allowedMedia(intent: VideoIntent, task: string): readonly string[] {
  if (task === 't2v') return []
  if (task === 'r2v') return ['firstFrame']
  return intent.firstClip === undefined ? ['firstFrame', 'lastFrame', 'audio'] : ['firstClip', 'lastFrame']
}

function referenceItem({ kind, url, voice }: VideoReference): Record<string, unknown> {
  const type = kind === 'video' ? 'reference_video' : 'reference_image'
  return { type, url, ...(voice === undefined ? {} : { reference_voice: voice }) }
}
