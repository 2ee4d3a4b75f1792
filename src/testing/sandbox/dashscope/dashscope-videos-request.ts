import { randomUUID } from 'node:crypto'
import { isJsonObject } from '../../../core/json.ts'
import {
  asList,
  asObject,
  asText,
  checkFields,
  type FieldRule,
  type Fields,
  isGiven,
  ofType,
  oneOf,
  rule,
} from '../request-fields.ts'
import { RefusedCall } from '../sandbox-operation.ts'
import { booleanRule, DASHSCOPE_NATIVE_ERRORS, refuseNative, SETTING_RULES } from './dashscope-errors.ts'

/** Size of a video in pixels, and its names. */
export interface VideoSize {
  readonly width: number
  readonly height: number
  /** Lines that the vendor bills by: 480, 720, 1080. */
  readonly tier: number
  /** `16:9`. */
  readonly ratio: string
}

/** Limits of a video model. */
export interface DashScopeVideoRules {
  /** Layout of the body: `legacy` is that of Wan 2.5 and 2.6, `new` that of 2.7. */
  readonly protocol: 'legacy' | 'new'
  /** Source of the video: text, image, or references. */
  readonly kind: 't2v' | 'i2v' | 'r2v'
  /** Durations in seconds. */
  readonly durations: readonly number[]
  /** Durations in seconds for a request with a reference video. */
  readonly durationsWithVideo: readonly number[]
  readonly tiers: readonly number[]
  /** Maximum characters of the prompt. The vendor truncates longer ones. */
  readonly promptLimit: number
  /** Whether `shot_type` is read. */
  readonly takesShots: boolean
}

/** Proportions, in the order of the sizes below. */
export const VIDEO_RATIOS: readonly string[] = ['16:9', '9:16', '1:1', '4:3', '3:4']

/** Sizes by the lines of the tier (DashScope, Wan 2.6 API reference, `size`). */
const LEGACY_SIZES: ReadonlyMap<number, readonly string[]> = new Map([
  [480, ['832*480', '480*832', '624*624']],
  [720, ['1280*720', '720*1280', '960*960', '1088*832', '832*1088']],
  [1080, ['1920*1080', '1080*1920', '1440*1440', '1632*1248', '1248*1632']],
])
/** Sizes by the lines of the tier (DashScope, Wan 2.7 API reference, `ratio`). */
const NEW_SIZES: ReadonlyMap<number, readonly string[]> = new Map([
  [720, ['1280*720', '720*1280', '960*960', '1104*832', '832*1104']],
  [1080, ['1920*1080', '1080*1920', '1440*1440', '1648*1248', '1248*1648']],
])
const DEFAULT_TIER = 1080

const UP_TO_10 = wholeNumbers(2, 10)
const UP_TO_15 = wholeNumbers(2, 15)

const BASE_25 = { protocol: 'legacy', tiers: [480, 720, 1080], promptLimit: 1500, takesShots: false } as const
const BASE_26 = { protocol: 'legacy', tiers: [720, 1080], promptLimit: 1500, takesShots: true } as const
const BASE_27 = { protocol: 'new', tiers: [720, 1080], promptLimit: 5000, takesShots: false } as const

/** Rules by the start of the model's name, because dated and regional ids follow the same rules. */
const RULES: readonly (readonly [name: string, rules: DashScopeVideoRules])[] = [
  ['wan2.5-t2v-preview', { ...BASE_25, kind: 't2v', durations: [5, 10], durationsWithVideo: [5, 10] }],
  ['wan2.5-i2v-preview', { ...BASE_25, kind: 'i2v', durations: [5, 10], durationsWithVideo: [5, 10] }],
  ['wan2.6-t2v', { ...BASE_26, kind: 't2v', durations: UP_TO_15, durationsWithVideo: UP_TO_15 }],
  ['wan2.6-i2v', { ...BASE_26, kind: 'i2v', durations: UP_TO_15, durationsWithVideo: UP_TO_15 }],
  ['wan2.6-r2v', { ...BASE_26, kind: 'r2v', durations: UP_TO_10, durationsWithVideo: UP_TO_10 }],
  ['wan2.7-t2v', { ...BASE_27, kind: 't2v', durations: UP_TO_15, durationsWithVideo: UP_TO_15 }],
  ['wan2.7-i2v', { ...BASE_27, kind: 'i2v', durations: UP_TO_15, durationsWithVideo: UP_TO_15 }],
  ['wan2.7-r2v', { ...BASE_27, kind: 'r2v', durations: UP_TO_15, durationsWithVideo: UP_TO_10 }],
]

/** Returns the rules of a model (DashScope, Wan API references), or `undefined` for an unknown model. */
export function videoRulesOf(model: string): DashScopeVideoRules | undefined {
  return RULES.find(([name]) => model === name || model.startsWith(`${name}-`))?.[1]
}

/**
 * Returns the rendered size of a checked request, or `undefined` if its field names no size of the model. Only the field that the
 * model reads counts: a Wan 2.6 text-to-video model renders 1080P, whatever `resolution` says. A video from an image is 16:9 here,
 * because no image is fetched.
 */
export function videoSizeOf(body: unknown, rules: DashScopeVideoRules): VideoSize | undefined {
  const parameters = asObject(asObject(body)['parameters'])
  const sizes = rules.protocol === 'new' ? NEW_SIZES : LEGACY_SIZES
  if (rules.protocol === 'legacy' && rules.kind !== 'i2v') {
    const size = parameters['size'] ?? '1920*1080'
    for (const tier of rules.tiers) {
      const index = sizes.get(tier)?.indexOf(asText(size)) ?? -1
      if (index !== -1) return sizeAt(sizes, tier, index)
    }
    return undefined
  }
  const tier = rules.tiers.find((lines) => (parameters['resolution'] ?? `${DEFAULT_TIER}P`) === `${lines}P`)
  const index = followsPicture(body, rules) ? 0 : VIDEO_RATIOS.indexOf(asText(parameters['ratio'] ?? '16:9'))
  return tier === undefined || index === -1 ? undefined : sizeAt(sizes, tier, index)
}

/** Whether the image sets the proportions, so that `ratio` is not read. */
export function followsPicture(body: unknown, rules: DashScopeVideoRules): boolean {
  return rules.kind === 'i2v' || mediaTypesOf(body).includes('first_frame')
}

/** Returns the types of `input.media`, in order. Missing types are empty strings. */
export function mediaTypesOf(body: unknown): readonly string[] {
  return asList(asObject(asObject(body)['input'])['media']).map((item) => asText(asObject(item)['type']))
}

function sizeAt(sizes: ReadonlyMap<number, readonly string[]>, tier: number, index: number): VideoSize | undefined {
  const [width, height] = (sizes.get(tier)?.[index] ?? '').split('*').map(Number)
  return width === undefined || height === undefined
    ? undefined
    : { width, height, tier, ratio: VIDEO_RATIOS[index] ?? '' }
}

function wholeNumbers(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

const DEFAULT_SECONDS = 5

/** A request that the vendor accepts. */
interface CheckedVideoRequest {
  readonly model: string
  readonly rules: DashScopeVideoRules
  readonly size: VideoSize
  /** Requested duration in seconds. */
  readonly seconds: number
}

/**
 * Reads a request for a video like the vendor (DashScope, Wan API references and error codes page). Fields that the model does not
 * read are ignored.
 * @param canResolve Whether the call carries the header that `oss://` addresses need.
 * @throws RefusedCall if the vendor would answer with an error.
 */
export function checkedVideoRequest(body: unknown, canResolve: boolean): CheckedVideoRequest {
  const { model: name, input, parameters } = asObject(body)
  const model = asText(name)
  if (model === '') refuseNative('Required parameter "model" missing from request.', 'BadRequest.EmptyModel')
  const rules = videoRulesOf(model)
  if (rules === undefined) throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(404))
  if (!isJsonObject(input)) refuseNative('Required input parameter missing from request.', 'BadRequest.EmptyInput')
  if (isGiven(parameters) && !isJsonObject(parameters)) refuseNative('Input should be a valid object: parameters')
  checkVideoMedia(body, rules, canResolve)
  checkPrompts(input, rules)
  checkSettings(asObject(parameters), rules)
  const durations = hasReferenceVideo(body) ? rules.durationsWithVideo : rules.durations
  return { model, rules, size: checkedSize(body, rules), seconds: checkedSeconds(asObject(parameters), durations) }
}

const TEXT_RULES: readonly FieldRule[] = ['prompt', 'negative_prompt'].map((name) =>
  rule(name, ofType('string'), `Input should be a valid string: input.${name}`),
)
const SHOT_RULE = rule(
  'shot_type',
  oneOf('single', 'multi'),
  "Input should be 'single' or 'multi': parameters.shot_type",
)

function checkPrompts(input: Fields, { kind }: DashScopeVideoRules): void {
  checkFields(input, TEXT_RULES, (text) => refuseNative(text))
  if (kind !== 'i2v' && asText(input['prompt']) === '') refuseNative('Field required: input.prompt')
}

function checkSettings(parameters: Fields, { protocol, takesShots }: DashScopeVideoRules): void {
  const rules = [
    ...SETTING_RULES,
    ...(protocol === 'legacy' ? [booleanRule('audio')] : []),
    ...(takesShots ? [SHOT_RULE] : []),
  ]
  checkFields(parameters, rules, (text) => refuseNative(text))
}

function checkedSeconds(parameters: Readonly<Record<string, unknown>>, durations: readonly number[]): number {
  const duration = parameters['duration'] ?? DEFAULT_SECONDS
  if (typeof duration !== 'number' || !Number.isInteger(duration)) {
    refuseNative('Input should be a valid integer: parameters.duration')
  }
  if (!durations.includes(duration)) refuseNative(`duration must be one of ${durations}: parameters.duration`)
  return duration
}

function checkedSize(body: unknown, rules: DashScopeVideoRules): VideoSize {
  const size = videoSizeOf(body, rules)
  if (size !== undefined) return size
  const { size: pixels, resolution, ratio } = asObject(asObject(body)['parameters'])
  if (rules.protocol === 'legacy' && rules.kind !== 'i2v') {
    return refuseNative(`size ${String(pixels)} is not supported: parameters.size`)
  }
  if (!rules.tiers.some((lines) => (resolution ?? '1080P') === `${lines}P`)) {
    return refuseNative(`resolution ${String(resolution)} is not supported: parameters.resolution`)
  }
  return refuseNative(`ratio ${String(ratio)} is not supported: parameters.ratio`)
}

type Input = Readonly<Record<string, unknown>>

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
 * @param canResolve Whether the call carries the header that `oss://` addresses need.
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

/** Whether the vendor would also bill a given video, or allow only shorter ones. */
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

/** `reference_video_urls` is the older field of the first models with references. */
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

/** States of a task (DashScope, Wan API references, `task_status`). */
export type VideoTaskStatus = 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED' | 'UNKNOWN'

/** A submitted video. Its times and the clock determine its state. */
export interface VideoTask {
  /** A UUID. */
  readonly id: string
  /** Key of the submitter. Each key is an account here, and others cannot see the task. */
  readonly key: string
  readonly request: CheckedVideoRequest
  readonly marks: VideoMarks
  /** Prompt without marks, truncated like the vendor does. */
  readonly prompt: string
  /** Whether the vendor rewrote the prompt. */
  readonly isPromptExtended: boolean
  /** Time of submission in Unix milliseconds, like all times here. */
  readonly submittedMs: number
  readonly startMs: number
  /** Time of the end; Infinity if it never ends. */
  readonly endMs: number
  readonly canceledMs?: number
}

/** The tasks of one sandbox. */
export interface VideoTasks {
  /** Stores a task under a new id, so that equal submissions are different tasks. */
  add(task: Omit<VideoTask, 'id'>): VideoTask
  /** Returns the task if this key submitted it less than 24 hours ago. */
  find(id: string, key: string, nowMs: number): VideoTask | undefined
  /** Returns the tasks that {@link find} would find for the key, newest first. */
  list(key: string, nowMs: number): VideoTask[]
  /** Cancels a pending task. Returns false for any other. */
  cancel(id: string, key: string, nowMs: number): boolean
}

/** How long the vendor stores a task (DashScope, Wan API references, "task_id"). */
const TASK_LIFE_MS = 24 * 60 * 60 * 1000
/** The oldest tasks are deleted first. */
const MAX_TASKS = 10_000

/** Creates an empty list of tasks. */
export function videoTasks(): VideoTasks {
  // Ordered by submission.
  const tasks = new Map<string, VideoTask>()
  const isKnown = (task: VideoTask, key: string, nowMs: number): boolean =>
    task.key === key && nowMs - task.submittedMs < TASK_LIFE_MS
  const find: VideoTasks['find'] = (id, key, nowMs) => {
    const task = tasks.get(id)
    return task !== undefined && isKnown(task, key, nowMs) ? task : undefined
  }

  return {
    add(fields) {
      const task = { ...fields, id: randomUUID() }
      tasks.set(task.id, task)
      for (const earlier of tasks.values()) {
        const isExpired = task.submittedMs - earlier.submittedMs >= TASK_LIFE_MS
        if (!isExpired && tasks.size <= MAX_TASKS) break
        tasks.delete(earlier.id)
      }
      return task
    },
    find,
    list: (key, nowMs) => [...tasks.values()].filter((task) => isKnown(task, key, nowMs)).reverse(),
    cancel(id, key, nowMs) {
      const task = find(id, key, nowMs)
      if (task === undefined || videoTaskStatus(task, nowMs) !== 'PENDING') return false
      tasks.set(id, { ...task, canceledMs: nowMs })
      return true
    },
  }
}

/** Returns the state of a task at a time. */
export function videoTaskStatus(task: VideoTask, nowMs: number): VideoTaskStatus {
  if (task.marks.ending === 'unknown') return 'UNKNOWN'
  if (task.canceledMs !== undefined) return 'CANCELED'
  if (nowMs < task.startMs) return 'PENDING'
  if (nowMs < task.endMs) return 'RUNNING'
  return task.marks.ending === 'succeeded' ? 'SUCCEEDED' : 'FAILED'
}

/** How a finished video reports its usage. Each shape is documented by the vendor or was observed in its answers. */
export type VideoUsageShape =
  /** Wan 2.7 (its default): billed, given and rendered seconds, `SR` and `ratio`, which is absent for images. */
  | 'ratio'
  /** Wan 2.6 (its default): like `ratio`, with `size` in place of `ratio`. */
  | 'size'
  /** Like `size`, with `1280x720` for `1280*720`. */
  | 'size-x'
  /** Wan 2.5 (its default): only `video_count` and `video_duration`, and `task_metrics` next to the link. */
  | 'video-duration'
  /** Like `video-duration`, with `video_ratio`, which contains pixels. */
  | 'video-ratio'
  /** Wan 2.7 with a string for `SR`. */
  | 'sr-text'
  /** Wan 2.7 with seconds like `10.0`. */
  | 'float'
  /** No usage. */
  | 'none'
  /** Wan 2.7 with an impossible value in each field. */
  | 'absurd'
  /** Wan 2.7 with -1 for all seconds. */
  | 'negative'

/** How a task ends. `unknown` applies from the start. */
export type VideoEnding = 'succeeded' | 'fail' | 'missing-field' | 'unknown' | 'stuck'

/**
 * Marks in the prompt that steer the task. Fault marks (see `Fault`) apply to the submission instead. Marks are not echoed and can
 * be combined. A malformed one gets a 400 that quotes it.
 */
export interface VideoMarks {
  /** `[[video:fail]]`, `[[video:missing-field]]`, `[[video:unknown]]`, `[[video:stuck]]` (runs indefinitely). */
  readonly ending: VideoEnding
  /** `[[video:usage=size]]` */
  readonly usage: VideoUsageShape | undefined
  /** Rendered seconds, 0.1 to 600. Defaults to the requested ones. `[[video:seconds=10]]` */
  readonly seconds: number | undefined
  /** Seconds of given videos, which are billed too. Default 0, because no file is fetched. `[[video:input=5]]` */
  readonly inputSeconds: number
  /** Replaces the setting `videoPendingMs`. `[[video:pending=60000]]` */
  readonly pendingMs: number | undefined
  /** Replaces the setting `videoRunningMs`. `[[video:running=0]]` */
  readonly runningMs: number | undefined
}

const MARK = /\[\[video:([^\]=]*)(?:=([^\]]*))?\]\]/g

const ENDINGS: ReadonlySet<string> = new Set<VideoEnding>(['fail', 'missing-field', 'unknown', 'stuck'])
const SHAPES: ReadonlySet<string> = new Set<VideoUsageShape>([
  'ratio',
  'size',
  'size-x',
  'video-duration',
  'video-ratio',
  'sr-text',
  'float',
  'none',
  'absurd',
  'negative',
])
const MAX_SECONDS = 600

/** Reads the marks of a prompt. Throws RefusedCall if one is malformed. */
export function videoMarks(prompt: string): VideoMarks {
  let marks: VideoMarks = {
    ending: 'succeeded',
    usage: undefined,
    seconds: undefined,
    inputSeconds: 0,
    pendingMs: undefined,
    runningMs: undefined,
  }
  for (const [mark, name = '', value] of prompt.matchAll(MARK)) {
    const setting = readMark(name.trim(), value?.trim())
    if (setting === undefined) return refuseNative(`The stand-in cannot read the mark ${mark}.`)
    marks = { ...marks, ...setting }
  }
  return marks
}

/** Returns the text that the model reads. */
export function withoutVideoMarks(prompt: string): string {
  return prompt.replace(MARK, '').trim()
}

function readMark(name: string, value: string | undefined): Partial<VideoMarks> | undefined {
  if (value === undefined) return ENDINGS.has(name) ? { ending: name as VideoEnding } : undefined
  if (name === 'usage') return SHAPES.has(value) ? { usage: value as VideoUsageShape } : undefined
  const number = /^\d{1,9}(?:\.\d{1,3})?$/.test(value) ? Number(value) : undefined
  if (number === undefined) return undefined
  switch (name) {
    case 'seconds':
      return number >= 0.1 && number <= MAX_SECONDS ? { seconds: number } : undefined
    case 'input':
      return { inputSeconds: number }
    case 'pending':
      return { pendingMs: number }
    case 'running':
      return { runningMs: number }
    default:
      return undefined
  }
}
