import { ERROR_TABLE } from '../../core/errors.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { readRenderedSize } from '../../endpoints/videos/video-rendering.ts'
import { isGiven } from '../../endpoints/videos/video-request.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import type { ErrorReader } from '../shared/openai-error.ts'
import { redactCredentials } from '../shared/redact-credentials.ts'
import type { AcceptedTask, TaskReport, WireAnswer } from '../vendor.ts'

type Status = TaskReport['status']

/** Values of `task_status` (DashScope, task query). Only the vendor's SDKs mention SUSPENDED; both spellings of cancelled occur. */
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

// Task ids are UUIDs. The id becomes part of a path.
const TASK_ID = /^[A-Za-z0-9][\w.:-]{0,199}$/

/** Reads the answer to a submission. Returns `undefined` if it names no task. */
export function acceptedTask(answer: WireAnswer): AcceptedTask | undefined {
  const output = outputOf(bodyOf(answer))
  const taskId = output?.['task_id']
  return typeof taskId === 'string' && TASK_ID.test(taskId) ? { upstreamId: taskId, output } : undefined
}

/** Whether the vendor confirms a cancellation: an object with the request id, and without a code, whatever the status. */
export function confirmsCancel(answer: WireAnswer): boolean {
  const body = bodyOf(answer)
  return body !== undefined && textOf(body['code']) === undefined
}

/** Error for the caller if the operator's account is at fault, as for every other call. */
const HIDDEN = { code: 'upstream_unavailable', message: ERROR_TABLE.upstream_unavailable.message } as const

/**
 * Reads a task record. Returns `undefined` for an unknown status, so that the answer is ignored.
 * @param apiKeys Removed from the vendor's texts.
 */
export function taskReport(
  answer: WireAnswer,
  apiKeys: readonly string[],
  errors: Pick<ErrorReader, 'fromStream'>,
): TaskReport | undefined {
  const body = bodyOf(answer)
  const output = outputOf(body)
  const status = STATUSES.get(output?.['task_status'])
  if (body === undefined || output === undefined || status === undefined) return undefined
  const usage = isJsonObject(body['usage']) ? body['usage'] : {}
  const seconds = billedSeconds(usage)
  const { video_url: contentUrl, seed, message } = output
  const error = status === 'failed' ? taskError(output, body, apiKeys) : undefined
  const failure = error && errors.fromStream(error)
  const accountProblem = failure?.kind === 'operator' ? failure : undefined
  const shown = typeof message === 'string' ? { ...output, message: redactCredentials(message, apiKeys) } : output
  return {
    status,
    output: accountProblem === undefined ? shown : { ...output, ...HIDDEN },
    usage: body['usage'],
    billed: seconds === undefined ? undefined : { videoSeconds: seconds },
    variant: renderedResolution(usage),
    contentUrl: typeof contentUrl === 'string' && contentUrl !== '' ? contentUrl : undefined,
    facts: Number.isInteger(seed) ? { seed: Number(seed) } : undefined,
    error: accountProblem === undefined ? error : HIDDEN,
    accountProblem,
  }
}

/** Code and text are in `output`, or at the top. */
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

/**
 * Returns the billed seconds of a task record (DashScope, task query of video synthesis): `duration`, which includes the seconds of
 * reference videos; else output and input seconds together; else `video_duration` of older models. Returns `undefined` if all are
 * absent, and NaN if a value is not a number, so that it does not count as absent.
 */
function billedSeconds(usage: Readonly<Record<string, unknown>>): number | undefined {
  const { duration, output_video_duration: made, input_video_duration: taken, video_duration: older } = usage
  if (isGiven(duration)) return secondsOf(duration)
  if (isGiven(made)) return secondsOf(made) + (isGiven(taken) ? secondsOf(taken) : 0)
  return isGiven(older) ? secondsOf(older) : undefined
}

function secondsOf(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN
}

/**
 * Returns the rendered tier of a task record, as callers write it: from `SR`, a number or a string, else from the pixels in `size`
 * or `video_ratio`.
 */
function renderedResolution(usage: Readonly<Record<string, unknown>>): string | undefined {
  const { SR: tier } = usage
  if (typeof tier === 'number' || typeof tier === 'string') {
    const lines = /^\s*([1-9]\d{0,4})\s*p?\s*$/i.exec(String(tier))?.[1]
    if (lines !== undefined) return `${lines}p`
  }
  for (const size of [usage['size'], usage['video_ratio']]) {
    const geometry = typeof size === 'string' ? readRenderedSize(size) : undefined
    if (geometry !== undefined) return geometry.resolution
  }
  return undefined
}
