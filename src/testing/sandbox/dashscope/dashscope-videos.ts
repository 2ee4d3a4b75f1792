import { withoutFaultMarks } from '../fault.ts'
import { videoLink } from '../files/stored-files.ts'
import { asObject, asText } from '../request-fields.ts'
import {
  type AnswerContext,
  checkBearer,
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
} from '../sandbox-operation.ts'
import { DASHSCOPE_HEADERS, DASHSCOPE_NATIVE_ERRORS, DASHSCOPE_REQUEST_ID, refuseNative } from './dashscope-errors.ts'
import {
  checkedVideoRequest,
  type VideoTask,
  type VideoUsageShape,
  videoMarks,
  videoTaskStatus,
  videoTasks,
  withoutVideoMarks,
} from './dashscope-videos-request.ts'

/** Durations of tasks. */
export interface VideoTimes {
  /** Milliseconds until a task runs. */
  readonly pendingMs: number
  /** Milliseconds until a running task ends. */
  readonly runningMs: number
}

/** Video at DashScope, with the tasks of one sandbox. */
export interface DashScopeVideos {
  /** `videos` (submission), `video-task`, `video-cancel` and `video-list`. No two match the same call. */
  readonly operations: readonly SandboxOperation[]
  /** Maximum number of task queries by one key within a second, except those answered by a queued fault. */
  readonly mostQueriesPerSecond: number
  /** Clears the calls of the last second, and the largest number of them. Tasks stay. */
  resetCounts(): void
}

const SUBMIT_PATH = '/api/v1/services/aigc/video-generation/video-synthesis'
const TASK_PATH = /^\/api\/v1\/tasks\/([^/]+)$/
const CANCEL_PATH = /^\/api\/v1\/tasks\/([^/]+)\/cancel$/
const LIST_PATH = /^\/api\/v1\/tasks\/?$/

/** Calls of an account in a second, for each of query, cancel and list (DashScope, "Manage asynchronous tasks"). */
const CALLS_PER_SECOND = 20

const BASE = { vendor: 'dashscope', errors: DASHSCOPE_NATIVE_ERRORS }

/**
 * Makes the stand-in of DashScope's video API (Wan 2.5 to 2.7): tasks that are submitted, queried, listed and cancelled, whose
 * result is a link to a video that `VIDEO_FILES` draws. Marks in the prompt steer a task, see `VideoMarks`.
 */
export function dashscopeVideos(times: VideoTimes): DashScopeVideos {
  const tasks = videoTasks()
  const queries = callMeter(CALLS_PER_SECOND)
  const cancels = callMeter(CALLS_PER_SECOND)
  const lists = callMeter(CALLS_PER_SECOND)

  const submit: SandboxOperation = {
    ...BASE,
    operation: 'videos',
    matches: ({ method, path }) => method === 'POST' && path === SUBMIT_PATH,
    promptText: promptOf,
    answer(call, { nowMs, blocked }) {
      checkBearer(call, DASHSCOPE_NATIVE_ERRORS)
      if (call.headers['x-dashscope-async'] !== 'enable') {
        const message = 'current user api does not support synchronous calls'
        throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(403, message))
      }
      const request = checkedVideoRequest(call.body, call.headers['x-dashscope-ossresourceresolve'] === 'enable')
      if (blocked) refuseNative('Input data may contain inappropriate content.', 'DataInspectionFailed')
      const prompt = promptOf(call.body)
      const marks = videoMarks(prompt)
      const startMs = nowMs + (marks.pendingMs ?? times.pendingMs)
      const isStuck = marks.ending === 'stuck'
      const task = tasks.add({
        key: credentialOf(call),
        request,
        marks,
        prompt: withoutVideoMarks(withoutFaultMarks(prompt)).slice(0, request.rules.promptLimit),
        isPromptExtended: asObject(asObject(call.body)['parameters'])['prompt_extend'] !== false,
        submittedMs: nowMs,
        startMs,
        endMs: isStuck ? Number.POSITIVE_INFINITY : startMs + (marks.runningMs ?? times.runningMs),
      })
      return taskReply({ task_id: task.id, task_status: 'PENDING' })
    },
  }

  const query: SandboxOperation = {
    ...BASE,
    operation: 'video-task',
    needsJson: false,
    matches: ({ method, path }) => method === 'GET' && TASK_PATH.test(path),
    promptText: () => '',
    answer(call, context) {
      checkCaller(call, queries, context.nowMs)
      const id = idIn(call.path, TASK_PATH)
      const task = tasks.find(id, credentialOf(call), context.nowMs)
      return task === undefined ? unknownTaskReply(id) : videoTaskReply(task, call, context)
    },
  }

  const cancel: SandboxOperation = {
    ...BASE,
    operation: 'video-cancel',
    needsJson: false,
    matches: ({ method, path }) => method === 'POST' && CANCEL_PATH.test(path),
    promptText: () => '',
    answer(call, { nowMs }) {
      checkCaller(call, cancels, nowMs)
      const isCanceled = tasks.cancel(idIn(call.path, CANCEL_PATH), credentialOf(call), nowMs)
      if (!isCanceled) refuseNative('The operation is unsupported on the referee object.', 'UnsupportedOperation')
      return jsonReply(200, DASHSCOPE_HEADERS, { request_id: DASHSCOPE_REQUEST_ID })
    },
  }

  const list: SandboxOperation = {
    ...BASE,
    operation: 'video-list',
    needsJson: false,
    matches: ({ method, path }) => method === 'GET' && LIST_PATH.test(path),
    promptText: () => '',
    answer(call, { nowMs }) {
      checkCaller(call, lists, nowMs)
      return videoTaskList(tasks.list(credentialOf(call), nowMs), call.query, nowMs)
    },
  }

  return {
    operations: [submit, query, cancel, list],
    get mostQueriesPerSecond() {
      return queries.most
    },
    resetCounts() {
      for (const meter of [queries, cancels, lists]) meter.clear()
    },
  }
}

function checkCaller(call: SandboxCall, meter: CallMeter, nowMs: number): void {
  checkBearer(call, DASHSCOPE_NATIVE_ERRORS)
  if (!meter.take(credentialOf(call), nowMs)) throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(429))
}

function promptOf(body: unknown): string {
  return asText(asObject(asObject(body)['input'])['prompt'])
}

function idIn(path: string, pattern: RegExp): string {
  return pattern.exec(path)?.[1] ?? ''
}

/** Calls of each key within a second. */
export interface CallMeter {
  /** Counts a call. False when the key has had its calls of this second. */
  take(key: string, nowMs: number): boolean
  /** Maximum number of calls by one key within one second, including rejected ones. */
  readonly most: number
  /** Clears all calls. */
  clear(): void
}

const WINDOW_MS = 1000
// The least recently used keys are dropped first.
const MAX_KEYS = 1000

/** Calls in the same millisecond. */
interface Moment {
  readonly atMs: number
  made: number
  taken: number
}

/**
 * Creates a meter. A second is any 1,000 ms that end now, so no burst passes at the turn of a second. Rejected calls do not count
 * against the limit.
 */
export function callMeter(callsPerSecond: number): CallMeter {
  const moments = new Map<string, Moment[]>()
  let most = 0
  return {
    take(key, nowMs) {
      const recent = (moments.get(key) ?? []).filter(({ atMs }) => nowMs - atMs < WINDOW_MS)
      moments.delete(key)
      moments.set(key, recent)
      const [longestWaiting] = moments.keys()
      if (moments.size > MAX_KEYS && longestWaiting !== undefined) moments.delete(longestWaiting)

      const latest = recent.at(-1)
      const moment = latest?.atMs === nowMs ? latest : { atMs: nowMs, made: 0, taken: 0 }
      if (moment !== latest) recent.push(moment)
      const mayCall = recent.reduce((sum, { taken }) => sum + taken, 0) < callsPerSecond
      moment.made++
      if (mayCall) moment.taken++
      most = Math.max(
        most,
        recent.reduce((sum, { made }) => sum + made, 0),
      )
      return mayCall
    },
    get most() {
      return most
    },
    clear() {
      moments.clear()
      most = 0
    },
  }
}

/** The vendor writes times in China's time zone, without naming it. */
const CHINA_OFFSET_MS = 8 * 60 * 60 * 1000

/** Shapes without times, with counts of the task's parts (DashScope, Wan 2.6 and older API references). */
const OLDER_SHAPES: readonly VideoUsageShape[] = ['video-duration', 'video-ratio']

/** Returns the vendor's answer to a poll (DashScope, Wan API references, "Query the task"). */
function videoTaskReply(task: VideoTask, call: SandboxCall, context: AnswerContext): SandboxReply {
  const shape = shapeOf(task)
  const isDone = videoTaskStatus(task, context.nowMs) === 'SUCCEEDED'
  const usage = isDone && shape !== 'none' ? context.usage(usageOf(task, shape)) : undefined
  const reply = taskReply(outputOf(task, call, context.nowMs), usage)
  return shape === 'float' ? { ...reply, pieces: reply.pieces.map(withPoints) } : reply
}

/** Returns the vendor's answer about an unknown or expired task. */
function unknownTaskReply(id: string): SandboxReply {
  return taskReply({ task_id: id, task_status: 'UNKNOWN' })
}

/** Returns a 200 of the native API with an `output`. */
function taskReply(output: object, usage?: object): SandboxReply {
  return jsonReply(200, DASHSCOPE_HEADERS, { request_id: DASHSCOPE_REQUEST_ID, output, usage })
}

function outputOf(task: VideoTask, call: SandboxCall, nowMs: number): object {
  const status = videoTaskStatus(task, nowMs)
  const head = { task_id: task.id, task_status: status }
  const submitted = { submit_time: chinaTime(task.submittedMs) }
  const started = { ...submitted, scheduled_time: chinaTime(task.startMs) }
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
      return { ...head, ...failureOf(task), ...(isLegacy(task) ? metrics(0) : {}) }
    case 'SUCCEEDED': {
      const { width, height } = task.request.size
      const durationMs = Math.round(secondsOf(task) * 1000)
      const link = videoLink(call, { seed: task.id, width, height, durationMs }, task.endMs)
      if (OLDER_SHAPES.includes(shapeOf(task))) return { ...head, video_url: link, ...metrics(1) }
      const isRewritten = isLegacy(task) && task.isPromptExtended
      return {
        ...head,
        ...started,
        end_time: chinaTime(task.endMs),
        orig_prompt: task.prompt,
        video_url: link,
        ...(isRewritten ? { actual_prompt: `${task.prompt}, in steady light and fine detail` } : {}),
      }
    }
  }
}

/** The vendor may detect a missing field only while the task runs. */
function failureOf(task: VideoTask): object {
  if (task.marks.ending === 'missing-field') {
    const legacyField = task.request.rules.kind === 'r2v' ? 'reference_urls' : 'img_url'
    return { code: 'InvalidParameter', message: `Field required: input.${isLegacy(task) ? legacyField : 'media'}` }
  }
  return { code: 'DataInspectionFailed', message: 'Input data may contain inappropriate content.' }
}

function usageOf(task: VideoTask, shape: VideoUsageShape): object {
  const { width, height, tier, ratio } = task.request.size
  const rendered = secondsOf(task)
  const given = task.marks.inputSeconds
  const seconds = { duration: rendered + given, input_video_duration: given, output_video_duration: rendered }
  const count = { video_count: 1 }
  switch (shape) {
    case 'size':
    case 'size-x':
      return { ...seconds, size: `${width}${shape === 'size' ? '*' : 'x'}${height}`, ...count, SR: tier }
    case 'video-duration':
      return { ...count, video_duration: rendered + given }
    case 'video-ratio':
      return { ...count, video_duration: rendered + given, video_ratio: `${width}*${height}` }
    case 'absurd':
      return {
        duration: 2 ** 31,
        input_video_duration: -1.5,
        output_video_duration: '12',
        video_count: 0,
        SR: 'NaN',
        ratio: '0:0',
      }
    case 'negative':
      return { duration: -1, input_video_duration: -1, output_video_duration: -1, ...count, SR: tier, ratio }
    default: {
      const isPicture = task.request.rules.kind === 'i2v'
      return {
        ...seconds,
        ...count,
        SR: shape === 'sr-text' ? String(tier) : tier,
        ...(isPicture ? {} : { ratio }),
      }
    }
  }
}

function shapeOf({ marks, request }: VideoTask): VideoUsageShape {
  if (marks.usage !== undefined) return marks.usage
  if (request.rules.protocol === 'new') return 'ratio'
  return request.rules.takesShots ? 'size' : 'video-duration'
}

function secondsOf({ marks, request }: VideoTask): number {
  return marks.seconds ?? request.seconds
}

function isLegacy({ request }: VideoTask): boolean {
  return request.rules.protocol === 'legacy'
}

function metrics(succeeded: number): object {
  return { task_metrics: { TOTAL: 1, SUCCEEDED: succeeded, FAILED: 1 - succeeded } }
}

/** `2026-08-03 09:12:40.118` */
function chinaTime(timeMs: number): string {
  return new Date(timeMs + CHINA_OFFSET_MS).toISOString().slice(0, 23).replace('T', ' ')
}

/** Writes whole seconds as `10.0`, which JSON.stringify never does. */
function withPoints(piece: string | Uint8Array): string | Uint8Array {
  return typeof piece === 'string' ? piece.replace(/("(?:\w+_)?duration":\d+)(?=[,}])/g, '$1.0') : piece
}

const DEFAULT_PAGE_SIZE = 10
/** Limit of the stand-in, because the vendor documents none. */
const MAX_PAGE_SIZE = 100

/**
 * Returns one page of a key's tasks, newest first (DashScope, "Query asynchronous tasks in batches"). Reads `task_id`, `status`,
 * `model_name`, `page_no` (default 1) and `page_size` (default 10), and ignores other query fields. Times are Unix milliseconds
 * here.
 * @throws RefusedCall if the page is not an integer above 0.
 */
function videoTaskList(tasks: readonly VideoTask[], query: string, nowMs: number): SandboxReply {
  const wanted = new URLSearchParams(query)
  const pageNumber = wholeNumber(wanted, 'page_no', 1, Number.MAX_SAFE_INTEGER)
  const pageSize = wholeNumber(wanted, 'page_size', DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
  const fits = (name: string, value: string): boolean => [null, '', value].includes(wanted.get(name))
  const found = tasks.filter(
    (task) =>
      fits('task_id', task.id) &&
      fits('model_name', task.request.model) &&
      fits('status', videoTaskStatus(task, nowMs)),
  )
  const start = (pageNumber - 1) * pageSize
  return jsonReply(200, DASHSCOPE_HEADERS, {
    request_id: DASHSCOPE_REQUEST_ID,
    total: found.length,
    total_page: Math.ceil(found.length / pageSize),
    page_no: pageNumber,
    page_size: pageSize,
    data: found.slice(start, start + pageSize).map((task) => listed(task, nowMs)),
  })
}

function listed(task: VideoTask, nowMs: number): object {
  const endMs = task.canceledMs ?? task.endMs
  return {
    task_id: task.id,
    status: videoTaskStatus(task, nowMs),
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
