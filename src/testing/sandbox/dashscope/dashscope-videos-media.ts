import { asList, asObject, asText, isGiven } from '../model/loose-json.ts'
import { refuseNative } from './dashscope-native-errors.ts'
import { type DashScopeVideoRules, mediaTypesOf } from './dashscope-videos-rules.ts'

type Input = Readonly<Record<string, unknown>>

/** The sets of media that Wan 2.7 animates a picture with, each in alphabetical order. */
const PICTURE_SETS: readonly string[] = [
  'first_frame',
  'driving_audio,first_frame',
  'first_frame,last_frame',
  'driving_audio,first_frame,last_frame',
  'first_clip',
  'first_clip,last_frame',
]
const REFERENCE_TYPES: readonly string[] = ['first_frame', 'reference_image', 'reference_video']
/** Media that may stand in the request itself instead of being fetched. */
const PICTURE_TYPES: readonly string[] = ['first_frame', 'last_frame', 'reference_image']

const MAX_REFERENCES = 5
const MAX_REFERENCE_VIDEOS = 3

/**
 * Refuses pictures, videos and sound that the model does not take (DashScope, Wan 2.6 and 2.7 API references, `input`). Fields
 * of the other protocol are passed over, as the vendor's own clients send some of them too.
 * @param canResolve The call carries the header that `oss://` addresses need.
 */
export function checkVideoMedia(body: unknown, rules: DashScopeVideoRules, canResolve: boolean): void {
  const input = asObject(asObject(body)['input'])
  if (rules.kind === 't2v' || rules.protocol === 'legacy') checkUrl(input['audio_url'], 'input.audio_url', canResolve)
  if (rules.protocol === 'new') {
    if (rules.kind !== 't2v') checkMediaList(body, rules, canResolve)
  } else if (rules.kind === 'i2v') {
    if (asText(input['img_url']) === '') refuseNative('Field required: input.img_url')
    checkUrl(input['img_url'], 'input.img_url', canResolve, 'image')
  } else if (rules.kind === 'r2v') {
    checkReferences(input, canResolve)
  }
}

/** True when the vendor would bill a video that was given too, or allow shorter ones only. */
export function hasReferenceVideo(body: unknown): boolean {
  return mediaTypesOf(body).includes('reference_video')
}

function checkMediaList(body: unknown, rules: DashScopeVideoRules, canResolve: boolean): void {
  const media = asList(asObject(asObject(body)['input'])['media']).map(asObject)
  if (media.length === 0) refuseNative('Field required: input.media')
  media.forEach((item, index) => {
    for (const name of ['type', 'url']) {
      if (!isGiven(item[name])) refuseNative(`Field required: input.media.${index}.${name}`)
    }
    const isPicture = PICTURE_TYPES.includes(asText(item['type']))
    checkUrl(item['url'], `input.media.${index}.url`, canResolve, isPicture ? 'image' : undefined)
    checkUrl(item['reference_voice'], `input.media.${index}.reference_voice`, canResolve)
  })
  const types = mediaTypesOf(body)
  if (rules.kind === 'i2v') {
    const set = [...types].sort().join(',')
    if (!PICTURE_SETS.includes(set)) refuseNative(`media types [${set}] are not supported together: input.media`)
    return
  }
  const unknown = types.find((type) => !REFERENCE_TYPES.includes(type))
  if (unknown !== undefined) refuseNative(`media type ${unknown} is not supported: input.media`)
  const frames = types.filter((type) => type === 'first_frame').length
  const references = types.length - frames
  if (frames > 1) refuseNative('first_frame must be given once: input.media')
  if (references < 1 || references > MAX_REFERENCES) {
    refuseNative(`reference images and videos must be 1 to ${MAX_REFERENCES}: input.media`)
  }
}

/** `reference_video_urls` is the older field of the first models that take references. */
function checkReferences(input: Input, canResolve: boolean): void {
  const isOlder = !isGiven(input['reference_urls']) && isGiven(input['reference_video_urls'])
  const name = isOlder ? 'reference_video_urls' : 'reference_urls'
  const urls = asList(input[name])
  if (urls.length === 0) refuseNative(`Field required: input.${name}`)
  urls.forEach((url, index) => void checkUrl(url, `input.${name}.${index}`, canResolve))
  const videos = isOlder ? urls : urls.filter((url) => /\.(?:mp4|mov)(?:$|[?#])/i.test(asText(url)))
  if (urls.length > MAX_REFERENCES || videos.length > MAX_REFERENCE_VIDEOS) {
    const limits = `at most ${MAX_REFERENCES}, of which ${MAX_REFERENCE_VIDEOS} videos`
    refuseNative(`too many references, ${limits}: input.${name}`)
  }
  if (isOlder && isGiven(input['audio_url'])) refuseNative('audio_url cannot be combined with reference_video_urls')
}

function checkUrl(value: unknown, place: string, canResolve: boolean, embedded?: 'image'): void {
  if (!isGiven(value)) return
  if (typeof value !== 'string') refuseNative(`Input should be a valid string: ${place}`)
  if (value.startsWith('oss://')) {
    const message = 'Unable to download the media resource during the data inspection process.'
    if (!canResolve) refuseNative(message, 'InvalidParameter.DataInspection')
    return
  }
  const isEmbedded = embedded !== undefined && value.startsWith(`data:${embedded}/`)
  if (!isEmbedded && !/^https?:\/\/./.test(value)) refuseNative('Invalid URL provided in your request.', 'InvalidURL')
}
