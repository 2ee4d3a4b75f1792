import { randomUUID } from 'node:crypto'
import { isJsonObject } from '../../../core/json.ts'
import { withoutFaultMarks } from '../fault.ts'
import { videoLink } from '../files/stored-files.ts'
import { asList, asObject, asText, checkFields, type Fields, isGiven, ofType, oneOf, rule } from '../request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxReply,
} from '../sandbox-operation.ts'
import {
  booleanRule,
  DASHSCOPE_HEADERS,
  DASHSCOPE_NATIVE_ERRORS,
  DASHSCOPE_REQUEST_ID,
  nativeOperation,
  refuseNative,
  SETTING_RULES,
} from './dashscope.ts'

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
type CheckedVideoRequest = ReturnType<typeof checkedVideoRequest>

/**
 * Reads a request for a video like the vendor (DashScope, Wan API references and error codes page). Fields that the model does not
 * read are ignored.
 * @param canResolve Whether the call carries the header that `oss://` addresses need.
 * @throws RefusedCall if the vendor would answer with an error.
 */
function checkedVideoRequest({ model: name, input, parameters: given }: Fields, canResolve: boolean) {
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
type VideoUsageShape = (typeof SHAPES)[number]

/** `stuck` runs indefinitely, and `unknown` applies from the start. */
const ENDINGS = ['fail', 'missing-field', 'unknown', 'stuck'] as const

/**
 * Marks in the prompt that steer the task. Fault marks (see `Fault`) apply to the submission instead. Marks are not echoed and can
 * be combined. A malformed one gets a 400 that quotes it.
 */
interface VideoMarks {
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
function videoMarks(prompt: string): VideoMarks {
  let marks: VideoMarks = {}
  for (const [mark, name = '', value] of prompt.matchAll(MARK))
    marks = {
      ...marks,
      ...(readMark(name.trim(), value?.trim()) ?? refuseNative(`The stand-in cannot read the mark ${mark}.`)),
    }
  return marks
}

/** Returns the text that the model reads. */
function withoutVideoMarks(prompt: string): string {
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

/**
 * Makes the stand-in of DashScope's video API (Wan 2.5 to 2.7): tasks that are submitted, queried, listed and cancelled, whose
 * result is a link to a video that `VIDEO_FILES` draws. Marks in the prompt steer a task, see `VideoMarks`. A task waits for `pendingMs` and runs for `runningMs`.
 */
export function dashscopeVideos(times: { readonly pendingMs: number; readonly runningMs: number }) {
  const tasks = new VideoTasks()
  const [queries, cancels, lists] = [new CallMeter(), new CallMeter(), new CallMeter()]

  const submit = nativeOperation({
    operation: 'videos',
    post: '/api/v1/services/aigc/video-generation/video-synthesis',
    prompt: promptOf,
    json(call, { nowMs, blocked }, body) {
      if (call.headers['x-dashscope-async'] !== 'enable') {
        const message = 'current user api does not support synchronous calls'
        throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(403, message))
      }
      const request = checkedVideoRequest(body, call.headers['x-dashscope-ossresourceresolve'] === 'enable')
      if (blocked) refuseNative('Input data may contain inappropriate content.', 'DataInspectionFailed')
      const prompt = promptOf(body)
      const marks = videoMarks(prompt)
      const startMs = nowMs + (marks.pending ?? times.pendingMs)
      const isStuck = marks.ending === 'stuck'
      const task = tasks.add({
        key: credentialOf(call),
        request,
        marks,
        prompt: withoutVideoMarks(withoutFaultMarks(prompt)).slice(0, request.rules.promptLimit),
        isPromptExtended: asObject(body['parameters'])['prompt_extend'] !== false,
        submittedMs: nowMs,
        startMs,
        endMs: isStuck ? Number.POSITIVE_INFINITY : startMs + (marks.running ?? times.runningMs),
      })
      return answered({ output: { task_id: task.id, task_status: 'PENDING' } })
    },
  })

  const query = nativeOperation({
    operation: 'video-task',
    get: /^\/api\/v1\/tasks\/([^/]+)$/,
    answer(call, context, _request, [id = '']) {
      queries.count(call, context.nowMs)
      const task = tasks.find(id, credentialOf(call), context.nowMs)
      if (task !== undefined) return videoTaskReply(task, call, context)
      const output = { task_id: id, task_status: 'UNKNOWN' }
      return jsonReply(200, DASHSCOPE_HEADERS, answered({ output }))
    },
  })

  const cancel = nativeOperation({
    operation: 'video-cancel',
    post: /^\/api\/v1\/tasks\/([^/]+)\/cancel$/,
    needsJson: false,
    json(call, { nowMs }, _request, [id = '']) {
      cancels.count(call, nowMs)
      const isCanceled = tasks.cancel(id, credentialOf(call), nowMs)
      if (!isCanceled) refuseNative('The operation is unsupported on the referee object.', 'UnsupportedOperation')
      return answered({})
    },
  })

  const list = nativeOperation({
    operation: 'video-list',
    get: /^\/api\/v1\/tasks\/?$/,
    json(call, { nowMs }) {
      lists.count(call, nowMs)
      return videoTaskList(tasks.list(credentialOf(call), nowMs), call.query, nowMs)
    },
  })

  return {
    operations: [submit, query, cancel, list],
    /** Maximum number of task queries by one key within a second, except those answered by a queued fault. */
    get mostQueriesPerSecond(): number {
      return queries.most
    },
    /** Clears the calls of the last second, and the largest number of them. Tasks stay. */
    resetCounts(): void {
      for (const meter of [queries, cancels, lists]) meter.clear()
    },
  }
}

function promptOf({ input }: Fields): string {
  return asText(asObject(input)['prompt'])
}

function answered(members: Fields): Fields {
  return { request_id: DASHSCOPE_REQUEST_ID, ...members }
}

/** A submitted video. Its times and the clock determine its state. */
interface VideoTask {
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

/** How long the vendor stores a task (DashScope, Wan API references, "task_id"). */
const TASK_LIFE_MS = 24 * 60 * 60 * 1000
/** The oldest tasks are deleted first. */
const MAX_TASKS = 10_000

/** The tasks of one sandbox, ordered by submission. */
class VideoTasks {
  readonly #tasks = new Map<string, VideoTask>()

  /** Stores a task under a new id, so that equal submissions are different tasks. */
  add(fields: Omit<VideoTask, 'id'>): VideoTask {
    const task = { ...fields, id: randomUUID() }
    this.#tasks.set(task.id, task)
    for (const earlier of this.#tasks.values()) {
      const isExpired = task.submittedMs - earlier.submittedMs >= TASK_LIFE_MS
      if (!isExpired && this.#tasks.size <= MAX_TASKS) break
      this.#tasks.delete(earlier.id)
    }
    return task
  }

  /** Returns the task if this key submitted it less than 24 hours ago. */
  find(id: string, key: string, nowMs: number): VideoTask | undefined {
    const task = this.#tasks.get(id)
    return task?.key === key && nowMs - task.submittedMs < TASK_LIFE_MS ? task : undefined
  }

  /** Returns the tasks that {@link find} would find for the key, newest first. */
  list(key: string, nowMs: number): VideoTask[] {
    return [...this.#tasks.values()].filter(({ id }) => this.find(id, key, nowMs) !== undefined).reverse()
  }

  /** Cancels a pending task. Returns false for any other. */
  cancel(id: string, key: string, nowMs: number): boolean {
    const task = this.find(id, key, nowMs)
    if (task === undefined || statusOf(task, nowMs) !== 'PENDING') return false
    this.#tasks.set(id, { ...task, canceledMs: nowMs })
    return true
  }
}

/** Returns the state of a task at a time (DashScope, Wan API references, `task_status`). */
function statusOf({ marks, canceledMs, startMs, endMs }: VideoTask, nowMs: number) {
  if (marks.ending === 'unknown') return 'UNKNOWN'
  if (canceledMs !== undefined) return 'CANCELED'
  if (nowMs < startMs) return 'PENDING'
  if (nowMs < endMs) return 'RUNNING'
  return marks.ending === undefined ? 'SUCCEEDED' : 'FAILED'
}

const WINDOW_MS = 1000
/** Calls of an account in a second, for each of query, cancel and list (DashScope, "Manage asynchronous tasks"). */
const CALLS_PER_SECOND = 20
// The least recently used keys are dropped first.
const MAX_KEYS = 1000

/**
 * Counts the calls of each key within a second. A second is any 1,000 ms that end now, so no burst passes at the turn of a second.
 * Rejected calls do not count against the limit.
 */
class CallMeter {
  /** Maximum number of calls by one key within one second, including rejected ones. */
  most = 0
  readonly #calls = new Map<string, { readonly atMs: number; readonly isTaken: boolean }[]>()

  /** Counts a call, and rejects it if the key has had its calls of this second. */
  count(call: SandboxCall, nowMs: number): void {
    const key = credentialOf(call)
    const recent = (this.#calls.get(key) ?? []).filter(({ atMs }) => nowMs - atMs < WINDOW_MS)
    const isTaken = recent.filter((made) => made.isTaken).length < CALLS_PER_SECOND
    recent.push({ atMs: nowMs, isTaken })
    this.#calls.delete(key)
    this.#calls.set(key, recent)
    const [longestWaiting] = this.#calls.keys()
    if (this.#calls.size > MAX_KEYS && longestWaiting !== undefined) this.#calls.delete(longestWaiting)
    this.most = Math.max(this.most, recent.length)
    if (!isTaken) throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(429))
  }

  /** Clears all calls. */
  clear(): void {
    this.#calls.clear()
    this.most = 0
  }
}

/** The vendor writes times in China's time zone, without naming it. */
const CHINA_OFFSET_MS = 8 * 60 * 60 * 1000

/** Shapes without times, with counts of the task's parts (DashScope, Wan 2.6 and older API references). */
const OLDER_SHAPES: readonly VideoUsageShape[] = ['video-duration', 'video-ratio']

/** Returns the vendor's answer to a poll (DashScope, Wan API references, "Query the task"). */
function videoTaskReply(task: VideoTask, call: SandboxCall, context: AnswerContext): SandboxReply {
  const shape = shapeOf(task)
  const isDone = statusOf(task, context.nowMs) === 'SUCCEEDED'
  const usage = isDone && shape !== 'none' ? context.usage(usageOf(task, shape)) : undefined
  const output = outputOf(task, call, context.nowMs)
  const reply = jsonReply(200, DASHSCOPE_HEADERS, answered({ output, usage }))
  // Whole seconds as `10.0`, which JSON.stringify never writes.
  const withPoints = String(reply.pieces[0]).replace(/("(?:\w+_)?duration":\d+)(?=[,}])/g, '$1.0')
  return shape === 'float' ? { ...reply, pieces: [withPoints] } : reply
}

function outputOf(task: VideoTask, call: SandboxCall, nowMs: number): object {
  const status = statusOf(task, nowMs)
  const head = { task_id: task.id, task_status: status }
  const submitted = { submit_time: chinaTime(task.submittedMs) }
  const started = { ...submitted, scheduled_time: chinaTime(task.startMs) }
  const isLegacy = task.request.rules.protocol === 'legacy'
  switch (status) {
    case 'UNKNOWN':
      return head
    case 'PENDING':
      return { ...head, ...submitted }
    case 'RUNNING':
      return { ...head, ...started }
    case 'CANCELED':
      return { ...head, ...submitted, end_time: chinaTime(task.canceledMs ?? nowMs) }
    case 'FAILED':
      return { ...head, ...failureOf(task), ...(isLegacy ? metrics(0) : {}) }
    case 'SUCCEEDED': {
      const { width, height } = task.request.size
      const durationMs = Math.round(secondsOf(task) * 1000)
      const link = videoLink(call, { seed: task.id, width, height, durationMs }, task.endMs)
      if (OLDER_SHAPES.includes(shapeOf(task))) return { ...head, video_url: link, ...metrics(1) }
      const rewritten = { actual_prompt: `${task.prompt}, in steady light and fine detail` }
      return {
        ...head,
        ...started,
        end_time: chinaTime(task.endMs),
        orig_prompt: task.prompt,
        video_url: link,
        ...(isLegacy && task.isPromptExtended ? rewritten : {}),
      }
    }
  }
}

/** The vendor may detect a missing field only while the task runs. */
function failureOf({ marks, request: { rules } }: VideoTask): object {
  if (marks.ending !== 'missing-field')
    return { code: 'DataInspectionFailed', message: 'Input data may contain inappropriate content.' }
  const field = rules.protocol === 'new' ? 'media' : rules.kind === 'r2v' ? 'reference_urls' : 'img_url'
  return { code: 'InvalidParameter', message: `Field required: input.${field}` }
}

function usageOf(task: VideoTask, shape: VideoUsageShape): object {
  const { width, height, tier, ratio } = task.request.size
  const rendered = secondsOf(task)
  const given = task.marks.input ?? 0
  const total = rendered + given
  const seconds = { duration: total, input_video_duration: given, output_video_duration: rendered }
  const count = { video_count: 1 }
  const pixels = `${width}*${height}`
  switch (shape) {
    case 'size':
    case 'size-x':
      return { ...seconds, size: shape === 'size' ? pixels : pixels.replace('*', 'x'), ...count, SR: tier }
    case 'video-duration':
      return { ...count, video_duration: total }
    case 'video-ratio':
      return { ...count, video_duration: total, video_ratio: pixels }
    case 'absurd': {
      const durations = { duration: 2 ** 31, input_video_duration: -1.5, output_video_duration: '12' }
      return { ...durations, video_count: 0, SR: 'NaN', ratio: '0:0' }
    }
    case 'negative':
      return { duration: -1, input_video_duration: -1, output_video_duration: -1, ...count, SR: tier, ratio }
    default: {
      const written = { ...seconds, ...count, SR: shape === 'sr-text' ? String(tier) : tier }
      return task.request.rules.kind === 'i2v' ? written : { ...written, ratio }
    }
  }
}

function shapeOf({ marks, request: { rules } }: VideoTask): VideoUsageShape {
  return marks.usage ?? (rules.protocol === 'new' ? 'ratio' : rules.takesShots ? 'size' : 'video-duration')
}

function secondsOf({ marks, request }: VideoTask): number {
  return marks.seconds ?? request.seconds
}

function metrics(succeeded: number): object {
  return { task_metrics: { TOTAL: 1, SUCCEEDED: succeeded, FAILED: 1 - succeeded } }
}

/** `2026-08-03 09:12:40.118` */
function chinaTime(timeMs: number): string {
  return new Date(timeMs + CHINA_OFFSET_MS).toISOString().slice(0, 23).replace('T', ' ')
}

const DEFAULT_PAGE_SIZE = 10
/** Limit of the stand-in, because the vendor documents none. */
const MAX_PAGE_SIZE = 100

/**
 * Returns one page of a key's tasks, newest first (DashScope, "Query asynchronous tasks in batches"). Reads `task_id`, `status`,
 * `model_name`, `page_no` (default 1) and `page_size` (default 10), and ignores other query fields. Times are Unix milliseconds
 * here.
 */
function videoTaskList(tasks: readonly VideoTask[], query: string, nowMs: number): object {
  const wanted = new URLSearchParams(query)
  const pageNumber = wholeNumber(wanted, 'page_no', 1, Number.MAX_SAFE_INTEGER)
  const pageSize = wholeNumber(wanted, 'page_size', DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
  const fits = (name: string, value: string): boolean => [null, '', value].includes(wanted.get(name))
  const found = tasks
    .map((task) => listed(task, nowMs))
    .filter((row) => fits('task_id', row.task_id) && fits('model_name', row.model_name) && fits('status', row.status))
  const start = (pageNumber - 1) * pageSize
  return {
    request_id: DASHSCOPE_REQUEST_ID,
    total: found.length,
    total_page: Math.ceil(found.length / pageSize),
    page_no: pageNumber,
    page_size: pageSize,
    data: found.slice(start, start + pageSize),
  }
}

function listed(task: VideoTask, nowMs: number) {
  const endMs = task.canceledMs ?? task.endMs
  return {
    task_id: task.id,
    status: statusOf(task, nowMs),
    model_name: task.request.model,
    gmt_create: task.submittedMs,
    ...(task.canceledMs === undefined && nowMs >= task.startMs ? { start_time: task.startMs } : {}),
    ...(nowMs >= endMs ? { end_time: endMs } : {}),
    region: 'cn-beijing',
    request_id: DASHSCOPE_REQUEST_ID,
    api_key_id: '1',
    caller_parent_id: '1',
    caller_uid: '1',
    user_api_unique_key: `apikey:v1:aigc:video-generation:video-synthesis:${task.request.model}`,
  }
}

function wholeNumber(wanted: URLSearchParams, name: string, usual: number, most: number): number {
  const text = wanted.get(name) ?? ''
  if (text === '') return usual
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0
  return number >= 1 && number <= most ? number : refuseNative(`${name} must be in [1, ${most}]`)
}
