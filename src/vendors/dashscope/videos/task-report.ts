import { isJsonObject, parseVendorJson } from '../../../core/json.ts'
import { asBuffer } from '../../shared/json-bytes.ts'
import { redactCredentials } from '../../shared/redact-credentials.ts'
import type { AcceptedTask, TaskReport, WireAnswer } from '../../vendor.ts'
import { billedSeconds } from './billed-seconds.ts'
import { renderedResolution } from './rendered-resolution.ts'

type Status = TaskReport['status']

/** DashScope, task query: `task_status`. SUSPENDED stands in the vendor's SDKs only; both spellings of cancelled occur. */
const STATUSES: ReadonlyMap<unknown, Status> = new Map<unknown, Status>([
  ['PENDING', 'queued'],
  ['RUNNING', 'in_progress'],
  ['SUSPENDED', 'in_progress'],
  ['SUCCEEDED', 'completed'],
  ['FAILED', 'failed'],
  ['CANCELED', 'cancelled'],
  ['CANCELLED', 'cancelled'],
  ['UNKNOWN', 'unknown'],
])

// Their ids are UUIDs. It becomes part of a path.
const TASK_ID = /^[A-Za-z0-9][\w.:-]{0,199}$/

/** Reads the answer to a submission; undefined when it names no task. */
export function acceptedTask(answer: WireAnswer): AcceptedTask | undefined {
  const output = outputOf(bodyOf(answer))
  const taskId = output?.['task_id']
  return typeof taskId === 'string' && TASK_ID.test(taskId) ? { upstreamId: taskId, output } : undefined
}

/**
 * Reads a task record. Undefined when it has no status that is known: such an answer is no verdict.
 * @param apiKeys Removed from the vendor's texts.
 */
export function taskReport(answer: WireAnswer, apiKeys: readonly string[]): TaskReport | undefined {
  const body = bodyOf(answer)
  const output = outputOf(body)
  const status = STATUSES.get(output?.['task_status'])
  if (body === undefined || output === undefined || status === undefined) return undefined
  const usage = isJsonObject(body['usage']) ? body['usage'] : {}
  const seconds = billedSeconds(usage)
  const { video_url: contentUrl, seed, message } = output
  return {
    status,
    output: typeof message === 'string' ? { ...output, message: redactCredentials(message, apiKeys) } : output,
    usage: body['usage'],
    billed: seconds === undefined ? undefined : { videoSeconds: seconds },
    resolution: renderedResolution(usage),
    contentUrl: typeof contentUrl === 'string' && contentUrl !== '' ? contentUrl : undefined,
    seed: Number.isInteger(seed) ? Number(seed) : undefined,
    error: status === 'failed' ? taskError(output, body, apiKeys) : undefined,
  }
}

/** Code and text stand in `output`, or at the top. */
function taskError(
  output: Record<string, unknown>,
  body: Record<string, unknown>,
  apiKeys: readonly string[],
): NonNullable<TaskReport['error']> {
  const code = textOf(output['code']) ?? textOf(body['code']) ?? 'task_failed'
  const message = textOf(output['message']) ?? textOf(body['message']) ?? 'The vendor could not render the video.'
  return { code, message: redactCredentials(message, apiKeys) }
}

function bodyOf(answer: WireAnswer): Record<string, unknown> | undefined {
  const body = parseVendorJson(asBuffer(answer.body).toString('utf8'))
  return isJsonObject(body) ? body : undefined
}

function outputOf(body: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
  const output = body?.['output']
  return isJsonObject(output) ? output : undefined
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
