import { jsonReply, type SandboxReply } from '../sandbox-operation.ts'
import { DASHSCOPE_HEADERS } from './dashscope-errors.ts'
import { DASHSCOPE_REQUEST_ID, refuseNative } from './dashscope-native-errors.ts'
import { type VideoTask, videoTaskStatus } from './dashscope-videos-tasks.ts'

const DEFAULT_PAGE_SIZE = 10
/** The vendor's pages name no bound; this is the stand-in's. */
const MAX_PAGE_SIZE = 100

/**
 * One page of a key's tasks, newest first (DashScope, "Query asynchronous tasks in batches"). Reads `task_id`, `status`,
 * `model_name`, `page_no` (1 by default) and `page_size` (10 by default); other fields of the query are passed over. Times are
 * Unix milliseconds here.
 * @throws RefusedCall when the page is no whole number above 0.
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
