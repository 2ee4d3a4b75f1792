import { randomUUID } from 'node:crypto'
import { withoutFaultMarks } from '../fault.ts'
import { videoLink } from '../files/stored-files.ts'
import { asObject, asText, type Fields } from '../request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
} from '../sandbox-operation.ts'
import {
  DASHSCOPE_HEADERS,
  DASHSCOPE_NATIVE_ERRORS,
  DASHSCOPE_REQUEST_ID,
  nativeOperation,
  refuseNative,
} from './dashscope-errors.ts'
import {
  type CheckedVideoRequest,
  checkedVideoRequest,
  type VideoMarks,
  type VideoUsageShape,
  videoMarks,
  withoutVideoMarks,
} from './dashscope-videos-request.ts'

/** Durations of tasks. */
interface VideoTimes {
  /** Milliseconds until a task runs. */
  readonly pendingMs: number
  /** Milliseconds until a running task ends. */
  readonly runningMs: number
}

/** Video at DashScope, with the tasks of one sandbox. */
interface DashScopeVideos {
  /** `videos` (submission), `video-task`, `video-cancel` and `video-list`. No two match the same call. */
  readonly operations: readonly SandboxOperation[]
  /** Maximum number of task queries by one key within a second, except those answered by a queued fault. */
  readonly mostQueriesPerSecond: number
  /** Clears the calls of the last second, and the largest number of them. Tasks stay. */
  resetCounts(): void
}

/**
 * Makes the stand-in of DashScope's video API (Wan 2.5 to 2.7): tasks that are submitted, queried, listed and cancelled, whose
 * result is a link to a video that `VIDEO_FILES` draws. Marks in the prompt steer a task, see `VideoMarks`.
 */
export function dashscopeVideos(times: VideoTimes): DashScopeVideos {
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
    get mostQueriesPerSecond() {
      return queries.most
    },
    resetCounts() {
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
