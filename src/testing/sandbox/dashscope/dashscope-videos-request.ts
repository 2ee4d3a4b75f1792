import { isJsonObject } from '../../../core/json.ts'
import { asList, asObject, asText, checkFields, type Fields, isGiven, ofType, oneOf, rule } from '../request-fields.ts'
import { RefusedCall } from '../sandbox-operation.ts'
import { booleanRule, DASHSCOPE_NATIVE_ERRORS, refuseNative, SETTING_RULES } from './dashscope-errors.ts'

/** Size of a video in pixels, and its names. */
interface VideoSize {
  readonly width: number
  readonly height: number
  /** Lines that the vendor bills by: 480, 720, 1080. */
  readonly tier: number
  /** `16:9`. */
  readonly ratio: string
}

/** Limits of a video model. */
interface DashScopeVideoRules {
  /** Layout of the body: `legacy` is that of Wan 2.5 and 2.6, `new` that of 2.7. */
  readonly protocol: 'legacy' | 'new'
  /** Source of the video: text, image, or references. */
  readonly kind: 't2v' | 'i2v' | 'r2v'
  /** Durations in seconds. */
  readonly durations: readonly number[]
  /** Durations in seconds for a request with a reference video, if they differ. */
  readonly durationsWithVideo?: readonly number[]
  readonly tiers: readonly number[]
  /** Maximum characters of the prompt. The vendor truncates longer ones. */
  readonly promptLimit: number
  /** Whether `shot_type` is read. */
  readonly takesShots: boolean
}

/** Proportions, in the order of the sizes below. */
const VIDEO_RATIOS: readonly string[] = ['16:9', '9:16', '1:1', '4:3', '3:4']

/** Sizes by protocol and the lines of the tier (DashScope, Wan 2.6 API reference, `size`; Wan 2.7 API reference, `ratio`). */
const SIZES: Readonly<Record<DashScopeVideoRules['protocol'], ReadonlyMap<number, readonly string[]>>> = {
  legacy: new Map([
    [480, ['832*480', '480*832', '624*624']],
    [720, ['1280*720', '720*1280', '960*960', '1088*832', '832*1088']],
    [1080, ['1920*1080', '1080*1920', '1440*1440', '1632*1248', '1248*1632']],
  ]),
  new: new Map([
    [720, ['1280*720', '720*1280', '960*960', '1104*832', '832*1104']],
    [1080, ['1920*1080', '1080*1920', '1440*1440', '1648*1248', '1248*1648']],
  ]),
}

const UP_TO_10 = Array.from({ length: 9 }, (_, index) => 2 + index)
const UP_TO_15 = Array.from({ length: 14 }, (_, index) => 2 + index)

const LEGACY = { protocol: 'legacy', promptLimit: 1500 } as const
const WAN_25 = { ...LEGACY, tiers: [480, 720, 1080], takesShots: false, durations: [5, 10] }
const WAN_26 = { ...LEGACY, tiers: [720, 1080], takesShots: true, durations: UP_TO_15 }
const WAN_27 = { ...WAN_26, protocol: 'new', promptLimit: 5000, takesShots: false } as const

/** Rules by the start of the model's name, because dated and regional ids follow the same rules (DashScope, Wan API references). */
const RULES: readonly (readonly [name: string, rules: DashScopeVideoRules])[] = [
  ['wan2.5-t2v-preview', { ...WAN_25, kind: 't2v' }],
  ['wan2.5-i2v-preview', { ...WAN_25, kind: 'i2v' }],
  ['wan2.6-t2v', { ...WAN_26, kind: 't2v' }],
  ['wan2.6-i2v', { ...WAN_26, kind: 'i2v' }],
  ['wan2.6-r2v', { ...WAN_26, kind: 'r2v', durations: UP_TO_10 }],
  ['wan2.7-t2v', { ...WAN_27, kind: 't2v' }],
  ['wan2.7-i2v', { ...WAN_27, kind: 'i2v' }],
  ['wan2.7-r2v', { ...WAN_27, kind: 'r2v', durationsWithVideo: UP_TO_10 }],
]

const DEFAULT_SECONDS = 5

/** A request that the vendor accepts. */
export type CheckedVideoRequest = ReturnType<typeof checkedVideoRequest>

/**
 * Reads a request for a video like the vendor (DashScope, Wan API references and error codes page). Fields that the model does not
 * read are ignored.
 * @param canResolve Whether the call carries the header that `oss://` addresses need.
 * @throws RefusedCall if the vendor would answer with an error.
 */
export function checkedVideoRequest({ model: name, input, parameters: given }: Fields, canResolve: boolean) {
  const model = asText(name)
  if (model === '') refuseNative('Required parameter "model" missing from request.', 'BadRequest.EmptyModel')
  const rules = RULES.find(([start]) => model === start || model.startsWith(`${start}-`))?.[1]
  if (rules === undefined) throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(404))
  if (!isJsonObject(input)) refuseNative('Required input parameter missing from request.', 'BadRequest.EmptyInput')
  if (isGiven(given) && !isJsonObject(given)) refuseNative('Input should be a valid object: parameters')
  const parameters = asObject(given)
  checkMedia(input, rules, canResolve)
  checkFields(input, TEXT_RULES, (text) => refuseNative(text))
  if (rules.kind !== 'i2v' && asText(input['prompt']) === '') refuseNative('Field required: input.prompt')
  const settings = [
    ...SETTING_RULES,
    ...(rules.protocol === 'legacy' ? [booleanRule('audio')] : []),
    ...(rules.takesShots ? [SHOT_RULE] : []),
  ]
  checkFields(parameters, settings, (text) => refuseNative(text))
  const size = checkedSize(input, parameters, rules)
  const hasVideo = mediaTypesOf(input).includes('reference_video')
  const durations = (hasVideo ? rules.durationsWithVideo : undefined) ?? rules.durations
  const seconds = parameters['duration'] ?? DEFAULT_SECONDS
  if (typeof seconds !== 'number' || !Number.isInteger(seconds))
    refuseNative('Input should be a valid integer: parameters.duration')
  if (!durations.includes(seconds)) refuseNative(`duration must be one of ${durations}: parameters.duration`)
  return { model, rules, size, seconds }
}

const TEXT_RULES = ['prompt', 'negative_prompt'].map((name) =>
  rule(name, ofType('string'), `Input should be a valid string: input.${name}`),
)
const SHOT_RULE = rule(
  'shot_type',
  oneOf('single', 'multi'),
  "Input should be 'single' or 'multi': parameters.shot_type",
)

/** Returns the types of `input.media`, in order. Missing types are empty strings. */
function mediaTypesOf(input: Fields): readonly string[] {
  return asList(input['media']).map((item) => asText(asObject(item)['type']))
}

/**
 * Returns the rendered size. Only the field that the model reads counts: a Wan 2.6 text-to-video model renders 1080P, whatever
 * `resolution` says. A video from an image is 16:9 here, because no image is fetched.
 */
function checkedSize(input: Fields, parameters: Fields, { protocol, kind, tiers }: DashScopeVideoRules): VideoSize {
  const sizes = SIZES[protocol]
  const sizeAt = (tier: number, index: number): VideoSize => {
    const [width = 0, height = 0] = (sizes.get(tier)?.[index] ?? '').split('*').map(Number)
    return { width, height, tier, ratio: VIDEO_RATIOS[index] ?? '' }
  }
  const { size = '1920*1080', resolution = '1080P', ratio = '16:9' } = withoutNulls(parameters)
  if (protocol === 'legacy' && kind !== 'i2v') {
    const found = tiers.find((tier) => sizes.get(tier)?.includes(asText(size)))
    if (found === undefined) return refuseNative(`size ${String(size)} is not supported: parameters.size`)
    return sizeAt(found, sizes.get(found)?.indexOf(asText(size)) ?? 0)
  }
  const tier = tiers.find((lines) => resolution === `${lines}P`)
  if (tier === undefined)
    return refuseNative(`resolution ${String(resolution)} is not supported: parameters.resolution`)
  const followsPicture = kind === 'i2v' || mediaTypesOf(input).includes('first_frame')
  const index = followsPicture ? 0 : VIDEO_RATIOS.indexOf(asText(ratio))
  return index === -1 ? refuseNative(`ratio ${String(ratio)} is not supported: parameters.ratio`) : sizeAt(tier, index)
}

function withoutNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isGiven(value)))
}

/** Sets of media that Wan 2.7 can animate an image with, each in alphabetical order. */
const PICTURE_SETS: readonly string[] = [
  'first_frame',
  'driving_audio,first_frame',
  'first_frame,last_frame',
  'driving_audio,first_frame,last_frame',
  'first_clip',
  'first_clip,last_frame',
]
const REFERENCE_TYPES: readonly string[] = ['first_frame', 'reference_image', 'reference_video']
/** Media that may be inline in the request instead of a URL. */
const PICTURE_TYPES: readonly string[] = ['first_frame', 'last_frame', 'reference_image']

const MAX_REFERENCES = 5
const MAX_REFERENCE_VIDEOS = 3

/**
 * Rejects images, videos and audio that the model does not support (DashScope, Wan 2.6 and 2.7 API references, `input`). Fields of
 * the other protocol are ignored, because the vendor's own clients send some of them too.
 */
function checkMedia(input: Fields, { kind, protocol }: DashScopeVideoRules, canResolve: boolean): void {
  const checkUrl = (value: unknown, place: string, takesInlineImages = false): void => {
    if (!isGiven(value)) return
    if (typeof value !== 'string') refuseNative(`Input should be a valid string: input.${place}`)
    if (value.startsWith('oss://')) {
      const message = 'Unable to download the media resource during the data inspection process.'
      if (!canResolve) refuseNative(message, 'InvalidParameter.DataInspection')
    } else if (!(takesInlineImages && value.startsWith('data:image/')) && !/^https?:\/\/./.test(value)) {
      refuseNative('Invalid URL provided in your request.', 'InvalidURL')
    }
  }
  if (kind === 't2v' || protocol === 'legacy') checkUrl(input['audio_url'], 'audio_url')
  if (kind === 't2v') return
  if (protocol === 'new') checkMediaList(input, kind, checkUrl)
  else if (kind === 'r2v') checkReferences(input, checkUrl)
  else if (asText(input['img_url']) === '') refuseNative('Field required: input.img_url')
  else checkUrl(input['img_url'], 'img_url', true)
}

type UrlCheck = (value: unknown, place: string, takesInlineImages?: boolean) => void

function checkMediaList(input: Fields, kind: 'i2v' | 'r2v', checkUrl: UrlCheck): void {
  const media = asList(input['media']).map(asObject)
  if (media.length === 0) refuseNative('Field required: input.media')
  for (const [index, item] of media.entries()) {
    const missing = ['type', 'url'].find((name) => !isGiven(item[name]))
    if (missing !== undefined) refuseNative(`Field required: input.media.${index}.${missing}`)
    checkUrl(item['url'], `media.${index}.url`, PICTURE_TYPES.includes(asText(item['type'])))
    checkUrl(item['reference_voice'], `media.${index}.reference_voice`)
  }
  const types = mediaTypesOf(input)
  if (kind === 'i2v') {
    const set = [...types].sort().join(',')
    if (!PICTURE_SETS.includes(set)) refuseNative(`media types [${set}] are not supported together: input.media`)
    return
  }
  const unknown = types.find((type) => !REFERENCE_TYPES.includes(type))
  if (unknown !== undefined) refuseNative(`media type ${unknown} is not supported: input.media`)
  const frames = types.filter((type) => type === 'first_frame').length
  const references = types.length - frames
  if (frames > 1) refuseNative('first_frame must be given once: input.media')
  if (references < 1 || references > MAX_REFERENCES)
    refuseNative(`reference images and videos must be 1 to ${MAX_REFERENCES}: input.media`)
}

/** `reference_video_urls` is the older field of the first models with references. */
function checkReferences(input: Fields, checkUrl: UrlCheck): void {
  const isOlder = !isGiven(input['reference_urls']) && isGiven(input['reference_video_urls'])
  const name = isOlder ? 'reference_video_urls' : 'reference_urls'
  const urls = asList(input[name])
  if (urls.length === 0) refuseNative(`Field required: input.${name}`)
  for (const [index, url] of urls.entries()) checkUrl(url, `${name}.${index}`)
  const videos = isOlder ? urls : urls.filter((url) => /\.(?:mp4|mov)(?:$|[?#])/i.test(asText(url)))
  if (urls.length > MAX_REFERENCES || videos.length > MAX_REFERENCE_VIDEOS) {
    const limits = `at most ${MAX_REFERENCES}, of which ${MAX_REFERENCE_VIDEOS} videos`
    refuseNative(`too many references, ${limits}: input.${name}`)
  }
  if (isOlder && isGiven(input['audio_url'])) refuseNative('audio_url cannot be combined with reference_video_urls')
}

/** How a finished video reports its usage. Each shape is documented by the vendor or was observed in its answers. */
const SHAPES = [
  // Wan 2.7 (its default): billed, given and rendered seconds, `SR` and `ratio`, which is absent for images.
  'ratio',
  // Wan 2.6 (its default): like `ratio`, with `size` in place of `ratio`; `size-x` has `1280x720` for `1280*720`.
  'size',
  'size-x',
  // Wan 2.5 (its default): only `video_count` and `video_duration`, and `task_metrics` next to the link.
  'video-duration',
  // Like `video-duration`, with `video_ratio`, which contains pixels.
  'video-ratio',
  // Wan 2.7 with a string for `SR`, with seconds like `10.0`, or without usage.
  'sr-text',
  'float',
  'none',
  // Wan 2.7 with an impossible value in each field, or with -1 for all seconds.
  'absurd',
  'negative',
] as const
/** Shape of a usage report. */
export type VideoUsageShape = (typeof SHAPES)[number]

/** `stuck` runs indefinitely, and `unknown` applies from the start. */
const ENDINGS = ['fail', 'missing-field', 'unknown', 'stuck'] as const

/**
 * Marks in the prompt that steer the task. Fault marks (see `Fault`) apply to the submission instead. Marks are not echoed and can
 * be combined. A malformed one gets a 400 that quotes it.
 */
export interface VideoMarks {
  /** How the task ends, unless it succeeds. `[[video:fail]]` */
  readonly ending?: (typeof ENDINGS)[number]
  /** `[[video:usage=size]]` */
  readonly usage?: VideoUsageShape
  /** Rendered seconds, 0.1 to 600. Defaults to the requested ones. `[[video:seconds=10]]` */
  readonly seconds?: number
  /** Seconds of given videos, which are billed too. Default 0, because no file is fetched. `[[video:input=5]]` */
  readonly input?: number
  /** Replaces the setting `videoPendingMs`. `[[video:pending=60000]]` */
  readonly pending?: number
  /** Replaces the setting `videoRunningMs`. `[[video:running=0]]` */
  readonly running?: number
}

const MARK = /\[\[video:([^\]=]*)(?:=([^\]]*))?\]\]/g
const MAX_SECONDS = 600

/** Reads the marks of a prompt. Throws RefusedCall if one is malformed. */
export function videoMarks(prompt: string): VideoMarks {
  let marks: VideoMarks = {}
  for (const [mark, name = '', value] of prompt.matchAll(MARK))
    marks = {
      ...marks,
      ...(readMark(name.trim(), value?.trim()) ?? refuseNative(`The stand-in cannot read the mark ${mark}.`)),
    }
  return marks
}

/** Returns the text that the model reads. */
export function withoutVideoMarks(prompt: string): string {
  return prompt.replace(MARK, '').trim()
}

function readMark(name: string, value: string | undefined): VideoMarks | undefined {
  const ending = ENDINGS.find((one) => one === name)
  if (value === undefined) return ending && { ending }
  const usage = SHAPES.find((shape) => shape === value)
  if (name === 'usage') return usage && { usage }
  const number = /^\d{1,9}(?:\.\d{1,3})?$/.test(value) ? Number(value) : undefined
  if (number === undefined || !['seconds', 'input', 'pending', 'running'].includes(name)) return undefined
  return name === 'seconds' && (number < 0.1 || number > MAX_SECONDS) ? undefined : { [name]: number }
}
