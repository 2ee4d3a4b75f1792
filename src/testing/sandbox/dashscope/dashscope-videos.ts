import { withoutFaultMarks } from '../fault.ts'
import { asObject, asText } from '../request-fields.ts'
import {
  checkBearer,
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
} from '../sandbox-operation.ts'
import { DASHSCOPE_HEADERS, DASHSCOPE_NATIVE_ERRORS, DASHSCOPE_REQUEST_ID, refuseNative } from './dashscope-errors.ts'
import { taskReply, unknownTaskReply, videoTaskList, videoTaskReply } from './dashscope-videos-record.ts'
import { checkedVideoRequest } from './dashscope-videos-request.ts'
import { videoMarks, videoTasks, withoutVideoMarks } from './dashscope-videos-tasks.ts'

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
