import { referenceKind } from './reference-kind.ts'
import { fieldRequired, isGiven, videoFault } from './video-fault.ts'
import type { MisplacedField, VideoModelFacts, VideoParts, VideoProtocol } from './video-protocol.ts'
import type { VideoRequest } from './video-request.ts'
import { ratiosOfTier, sizeFor } from './video-sizes.ts'
import { readWan26Intent, writeWan26Intent } from './wan-2-6-intent.ts'

const MAX_REFERENCES = 5

/**
 * The layout of Wan 2.5 and 2.6: `img_url`, `reference_urls`; `size` in pixels for text and references, `resolution` for a
 * picture. A `size` for a picture model is left in place, because the API specification lists it for all of 2.6.
 */
export const wan26: VideoProtocol = {
  name: 'wan-2-6',
  describedAs: 'a 2.5 or 2.6 model',
  maxPromptCharacters: 1500,
  misplacedField,
  check,
  holdsReferenceVideo: ({ input }) =>
    isFilledList(input['reference_video_urls']) ||
    listOf(input['reference_urls']).some((url) => typeof url === 'string' && referenceKind(url) === 'video'),
  fillIn,
  readIntent: readWan26Intent,
  writeIntent: writeWan26Intent,
}

function misplacedField({ input, parameters = {} }: VideoParts, model: VideoModelFacts): MisplacedField | undefined {
  const geometry = model.video?.geometry
  const geometryField = geometry === undefined ? 'size or resolution' : geometry
  if (isGiven(input['media'])) return { param: 'input.media', use: mediaField(model) }
  if (isGiven(parameters['ratio'])) return { param: 'parameters.ratio', use: `parameters.${geometryField}` }
  if (geometry === 'size' && isGiven(parameters['resolution'])) {
    return { param: 'parameters.resolution', use: 'parameters.size' }
  }
  return undefined
}

function mediaField(model: VideoModelFacts): string {
  switch (model.video?.task) {
    case 'i2v':
      return 'input.img_url'
    case 'r2v':
      return 'input.reference_urls'
    case 't2v':
      return 'input.prompt alone'
    case undefined:
      return 'input.img_url or input.reference_urls'
  }
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
  if (!isGiven(input[name]) || input[name] === '') throw fieldRequired(`input.${name}`)
}

function fillIn(request: VideoRequest, model: VideoModelFacts): Record<string, unknown> {
  const parameters: Record<string, unknown> = Object.assign({}, request.parameters)
  if (takesSize(request, model)) {
    if (!isGiven(parameters['size'])) parameters['size'] = chosenSize(request)
  } else if (!isGiven(parameters['resolution'])) parameters['resolution'] = request.resolution.toUpperCase()
  if (!isGiven(parameters['duration'])) parameters['duration'] = request.duration
  return parameters
}

/** For a model of unknown abilities the body tells: a picture, or a tier, goes with `resolution`. */
function takesSize({ input, parameters }: VideoRequest, model: VideoModelFacts): boolean {
  if (model.video !== undefined) return model.video.geometry === 'size'
  return !isGiven(input['img_url']) && !isGiven(parameters?.['resolution'])
}

function chosenSize({ resolution, aspect_ratio }: VideoRequest): string {
  const size = sizeFor(resolution, aspect_ratio)
  if (size !== undefined) return size
  throw videoFault('aspect_ratio', `must be one of ${ratiosOfTier(resolution).join(', ')} at ${resolution}`)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function isFilledList(value: unknown): boolean {
  return listOf(value).length > 0
}
