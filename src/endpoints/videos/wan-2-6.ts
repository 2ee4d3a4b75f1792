import type { VideoAbilities } from '../../catalog/model-facts.ts'
import { isSet } from '../../core/json.ts'
import {
  kindsToNumbered,
  type MisplacedField,
  namesNumbered,
  ratiosOfTier,
  referenceKind,
  sizeFor,
  taskOfIntent,
  type VideoIntent,
  type VideoModelFacts,
  type VideoProtocol,
  type VideoReference,
  type WrittenIntent,
  writtenSettings,
} from './video-protocol.ts'
import { fieldRequired, type VideoParts, type VideoRequest, videoFault } from './video-request.ts'

/** DashScope, reference-to-video of Wan 2.6: images and videos together, and the videos among them. */
const MAX_REFERENCES = 5
const MAX_REFERENCE_VIDEOS = 3

const MEDIA_FIELDS = {
  i2v: 'input.img_url',
  r2v: 'input.reference_urls',
  t2v: 'input.prompt alone',
} satisfies Record<VideoAbilities['task'], string>

/**
 * The layout of Wan 2.5 and 2.6: `img_url`, `reference_urls`; `size` in pixels for text and references, `resolution` for an image.
 * A `size` for an image model is kept, because the API specification lists it for all of 2.6.
 */
export const wan26: VideoProtocol = {
  name: 'wan-2-6',
  describedAs: 'a 2.5 or 2.6 model',
  maxPromptCharacters: 1500,
  misplacedField,
  check,
  holdsReferenceVideo: ({ input }) =>
    listOf(input['reference_video_urls']).length > 0 ||
    listOf(input['reference_urls']).some((url) => typeof url === 'string' && referenceKind(url) === 'video'),
  fillIn,
  writeIntent,
}

function misplacedField({ input, parameters = {} }: VideoParts, model: VideoModelFacts): MisplacedField | undefined {
  const geometry = model.video?.geometry
  if (isSet(input['media'])) return { param: 'input.media', use: mediaField(model) }
  if (isSet(parameters['ratio']))
    return { param: 'parameters.ratio', use: `parameters.${geometry ?? 'size or resolution'}` }
  if (geometry === 'size' && isSet(parameters['resolution'])) {
    return { param: 'parameters.resolution', use: 'parameters.size' }
  }
  return undefined
}

function mediaField({ video }: VideoModelFacts): string {
  return video === undefined ? `${MEDIA_FIELDS.i2v} or ${MEDIA_FIELDS.r2v}` : MEDIA_FIELDS[video.task]
}

function check({ input }: VideoParts, model: VideoModelFacts): void {
  const task = model.video?.task
  if (task === 'i2v') requireText(input, 'img_url')
  if (task === 't2v' || task === 'r2v') requireText(input, 'prompt')
  if (task !== 'r2v') return
  const references = [...listOf(input['reference_urls']), ...listOf(input['reference_video_urls'])]
  if (references.length === 0) throw fieldRequired('input.reference_urls')
  if (references.length > MAX_REFERENCES) {
    throw videoFault('input.reference_urls', `must hold at most ${MAX_REFERENCES} references`)
  }
}

function requireText(input: VideoParts['input'], name: string): void {
  if (!isSet(input[name]) || input[name] === '') throw fieldRequired(`input.${name}`)
}

function fillIn(request: VideoRequest, model: VideoModelFacts): Record<string, unknown> {
  const parameters: Record<string, unknown> = Object.assign({}, request.parameters)
  if (takesSize(request, model)) {
    if (!isSet(parameters['size'])) parameters['size'] = chosenSize(request)
  } else if (!isSet(parameters['resolution'])) parameters['resolution'] = request.resolution.toUpperCase()
  if (!isSet(parameters['duration'])) parameters['duration'] = request.duration
  return parameters
}

/** If abilities are unknown, the body decides: an image, or a tier, implies `resolution`. */
function takesSize({ input, parameters }: VideoRequest, model: VideoModelFacts): boolean {
  if (model.video !== undefined) return model.video.geometry === 'size'
  return !isSet(input['img_url']) && !isSet(parameters?.['resolution'])
}

function chosenSize({ resolution, aspect_ratio }: VideoRequest): string {
  const size = sizeFor(resolution, aspect_ratio)
  if (size !== undefined) return size
  throw videoFault('aspect_ratio', `must be one of ${ratiosOfTier(resolution).join(', ')} at ${resolution}`)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function writeIntent(intent: VideoIntent, model: VideoModelFacts): WrittenIntent {
  const task = model.video?.task ?? taskOfIntent(intent)
  const impossible: string[] = []
  const input = writtenInput(intent, task, impossible)
  const parameters: Record<string, unknown> = {
    ...writtenGeometry(intent, model.video?.geometry ?? (task === 'i2v' ? 'resolution' : 'size'), impossible),
    duration: intent.seconds,
    ...writtenShots(intent, model.video, impossible),
    ...writtenSettings(intent),
  }
  return { input, parameters, impossible }
}

function writtenInput(intent: VideoIntent, task: VideoAbilities['task'], impossible: string[]) {
  const input: Record<string, unknown> = {}
  const { prompt, negativePrompt, firstFrame, audio, references = [] } = intent
  if (prompt !== undefined) {
    input['prompt'] = kindsToNumbered(prompt, references)
    if (namesNumbered(prompt, references)) impossible.push('prompt')
  }
  if (negativePrompt !== undefined) input['negative_prompt'] = negativePrompt
  if (firstFrame !== undefined && task === 'i2v') input['img_url'] = firstFrame
  else if (firstFrame !== undefined) impossible.push('firstFrame')
  if (intent.lastFrame !== undefined) impossible.push('lastFrame')
  if (intent.firstClip !== undefined) impossible.push('firstClip')
  if (references.length > 0) {
    impossible.push(...impossibleReferences(references, task))
    if (task === 'r2v') input['reference_urls'] = references.map(({ url }) => url)
  }
  if (audio !== undefined && task === 'r2v') impossible.push('audio')
  else if (audio !== undefined) input['audio_url'] = audio
  return input
}

function writtenGeometry(intent: VideoIntent, geometry: VideoAbilities['geometry'], impossible: string[]) {
  if (geometry !== 'size') return { resolution: intent.resolution.toUpperCase() }
  const size = sizeFor(intent.resolution, intent.aspectRatio ?? '16:9')
  if (size !== undefined) return { size }
  impossible.push('aspectRatio')
  return {}
}

/** Only some models support `audio` and `shot_type`. A model of unknown abilities is assumed to support both. */
function writtenShots({ mute, shotType }: VideoIntent, video: VideoAbilities | undefined, impossible: string[]) {
  const canMute = video === undefined || video.canMute === true
  const takesShotType = video === undefined || video.takesShotType === true
  if (mute === true && !canMute) impossible.push('mute')
  if (shotType !== undefined && shotType !== 'single' && !takesShotType) impossible.push('shotType')
  return {
    ...(mute === true && canMute ? { audio: false } : {}),
    ...(shotType !== undefined && takesShotType ? { shot_type: shotType } : {}),
  }
}

function impossibleReferences(references: readonly VideoReference[], task: string): string[] {
  const videos = references.filter(({ kind }) => kind === 'video').length
  if (task !== 'r2v' || references.length > MAX_REFERENCES || videos > MAX_REFERENCE_VIDEOS) return ['references']
  return references.flatMap(({ url, voice }, index) => [
    // Only uploaded files and files on the web are accepted.
    ...(url.startsWith('data:') ? [`references[${index}]`] : []),
    ...(voice === undefined ? [] : [`references[${index}].voice`]),
  ])
}
