import { fieldRequired, isGiven } from './video-fault.ts'
import type { MisplacedField, VideoModelFacts, VideoParts, VideoProtocol } from './video-protocol.ts'
import type { VideoRequest } from './video-request.ts'
import { readWan27Intent, writeWan27Intent } from './wan-2-7-intent.ts'
import { checkPictureMedia, checkReferenceMedia, mediaTypes } from './wan-2-7-media.ts'

/** DashScope, text-to-video of Wan 2.7: what is rendered without `ratio`. */
const VENDOR_DEFAULT_RATIO = '16:9'

const OLD_MEDIA_FIELDS = ['img_url', 'reference_urls', 'reference_video_urls'] as const

/** The layout of Wan 2.7: `media` with types, `resolution` as a tier, and `ratio` where no picture decides. */
export const wan27: VideoProtocol = {
  name: 'wan-2-7',
  describedAs: 'a 2.7 model',
  maxPromptCharacters: 5000,
  misplacedField,
  check,
  holdsReferenceVideo: ({ input }) => mediaTypes(input['media']).includes('reference_video'),
  fillIn,
  readIntent: readWan27Intent,
  writeIntent: writeWan27Intent,
}

function misplacedField({ input, parameters = {} }: VideoParts, model: VideoModelFacts): MisplacedField | undefined {
  for (const name of OLD_MEDIA_FIELDS) if (isGiven(input[name])) return { param: `input.${name}`, use: 'input.media' }
  if (isGiven(input['audio_url'])) {
    if (model.video?.task === 'i2v') return { param: 'input.audio_url', use: 'input.media with driving_audio' }
    if (model.video?.task === 'r2v') return { param: 'input.audio_url', use: 'input.media with reference_voice' }
  }
  if (!isGiven(parameters['size'])) return undefined
  const hasRatio = model.video?.geometry !== 'resolution'
  return { param: 'parameters.size', use: `parameters.resolution${hasRatio ? ' and parameters.ratio' : ''}` }
}

function check({ input }: VideoParts, model: VideoModelFacts): void {
  const task = model.video?.task
  const prompt = input['prompt']
  if ((task === 't2v' || task === 'r2v') && (!isGiven(prompt) || prompt === '')) throw fieldRequired('input.prompt')
  if (task === 'i2v') checkPictureMedia(input['media'])
  if (task === 'r2v') checkReferenceMedia(input['media'])
}

function fillIn(request: VideoRequest, model: VideoModelFacts): Record<string, unknown> {
  const parameters: Record<string, unknown> = Object.assign({}, request.parameters)
  if (!isGiven(parameters['resolution'])) parameters['resolution'] = request.resolution.toUpperCase()
  if (takesRatio(request, model) && !isGiven(parameters['ratio']) && request.aspect_ratio !== VENDOR_DEFAULT_RATIO) {
    parameters['ratio'] = request.aspect_ratio
  }
  if (!isGiven(parameters['duration'])) parameters['duration'] = request.duration
  return parameters
}

/** For a model of unknown abilities the body tells: a first picture or clip decides the ratio. */
function takesRatio({ input }: VideoRequest, model: VideoModelFacts): boolean {
  if (model.video !== undefined) return model.video.geometry === 'resolution-ratio'
  return !mediaTypes(input['media']).some((type) => type === 'first_frame' || type === 'first_clip')
}
