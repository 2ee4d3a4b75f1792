import { videoLink } from '../files/stored-files.ts'
import { type AnswerContext, jsonReply, type SandboxCall, type SandboxReply } from '../sandbox-operation.ts'
import { DASHSCOPE_HEADERS, DASHSCOPE_REQUEST_ID, refuseNative } from './dashscope-errors.ts'
import { type VideoTask, type VideoUsageShape, videoTaskStatus } from './dashscope-videos-tasks.ts'

/** The vendor writes times in China's time zone, without naming it. */
const CHINA_OFFSET_MS = 8 * 60 * 60 * 1000

/** Shapes without times, with counts of the task's parts (DashScope, Wan 2.6 and older API references). */
const OLDER_SHAPES: readonly VideoUsageShape[] = ['video-duration', 'video-ratio']

/** Returns the vendor's answer to a poll (DashScope, Wan API references, "Query the task"). */
export function videoTaskReply(task: VideoTask, call: SandboxCall, context: AnswerContext): SandboxReply {
  const shape = shapeOf(task)
  const isDone = videoTaskStatus(task, context.nowMs) === 'SUCCEEDED'
  const usage = isDone && shape !== 'none' ? context.usage(usageOf(task, shape)) : undefined
  const reply = taskReply(outputOf(task, call, context.nowMs), usage)
  return shape === 'float' ? { ...reply, pieces: reply.pieces.map(withPoints) } : reply
}

/** Returns the vendor's answer about an unknown or expired task. */
export function unknownTaskReply(id: string): SandboxReply {
  return taskReply({ task_id: id, task_status: 'UNKNOWN' })
}

/** Returns a 200 of the native API with an `output`. */
export function taskReply(output: object, usage?: object): SandboxReply {
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
export function videoTaskList(tasks: readonly VideoTask[], query: string, nowMs: number): SandboxReply {
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
