import * as z from 'zod'
import type { Clock } from '../../core/clock.ts'
import { GatewayError } from '../../core/errors.ts'
import { objectOf } from '../../core/json.ts'
import { isTaskId } from '../../tasks/task-requests.ts'
import type { GatewayCall } from '../gateway-call.ts'
import { defineTool, idempotencyKey, LOOKS_UP_AT_VENDOR, MAKES, model, type ToolContext, taskId } from '../tool.ts'

const VIDEOS_PATH = '/v1/videos/generations'

/** A task as its owner sees it. */
const taskRecord = z.looseObject({
  task_id: z.string(),
  model: z.string(),
  status: z.string().describe('queued, in_progress, completed, failed, cancelled or unknown.'),
  created_at: z.number().describe('Unix seconds.'),
})

const FINAL_STATES: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

const members = z.record(z.string(), z.unknown())

/** `POST /v1/videos/generations`. */
export const submitVideo = defineTool({
  name: 'submit_video',
  title: 'Start a video',
  description:
    'Starts a video and returns the id of its task immediately; wait_for_video waits for the result. Charged by the second. ' +
    'The fields of input and parameters depend on the model, see gateway://reference/videos.',
  annotations: MAKES,
  input: z.looseObject({
    model,
    duration: z.int().min(1).optional().describe('Seconds. Default 5.'),
    resolution: z.string().optional().describe('480p, 720p (default) or 1080p, if the model supports it.'),
    aspect_ratio: z.string().optional().describe('Such as 16:9.'),
    input: members.describe('Content of the video: prompt, and images or videos by their URLs.'),
    parameters: members.optional().describe('Additional settings, passed to the vendor unchanged.'),
    webhook_url: z.string().optional().describe('Called when the task has ended.'),
    idempotency_key: idempotencyKey,
  }),
  output: taskRecord,
  async answer({ idempotency_key: key, ...body }, { json }) {
    return { structured: await json({ method: 'POST', path: VIDEOS_PATH, body, idempotencyKey: key }) }
  },
})

/** `GET /v1/videos/generations/{id}`. */
export const getVideoTask = defineTool({
  name: 'get_video_task',
  title: 'Look at a video task',
  description:
    'Returns the record of a video task: its status and, once it has ended, the address of the video or the error.',
  annotations: LOOKS_UP_AT_VENDOR,
  input: z.object({ task_id: taskId }),
  output: taskRecord,
  async answer({ task_id: id }, { json }) {
    const record = await json(taskRequest(id))
    return { structured: record, content: videoLink(record) }
  },
})

/** Below one minute, the default timeout of the protocol's clients. */
const DEFAULT_WAIT_SECONDS = 50

const MAX_WAIT_SECONDS = 900

/** Interval between reads of the task, in milliseconds. The gateway polls the vendor only as often as the vendor recommends. */
const LOOK_INTERVAL_MS = 2_000

/** Tool that polls a task until it has ended or the wait has timed out. */
export const waitForVideo = defineTool({
  name: 'wait_for_video',
  title: 'Wait for a video',
  description:
    'Waits until a video task has ended and returns its record, with progress notifications on the way. After the ' +
    'timeout, finished is false: call it again with the same task_id. The task continues in both cases.',
  annotations: LOOKS_UP_AT_VENDOR,
  input: z.object({
    task_id: taskId,
    timeout_seconds: z
      .number()
      .min(0)
      .max(MAX_WAIT_SECONDS)
      .optional()
      .describe(`Maximum wait. Default ${DEFAULT_WAIT_SECONDS}, at most ${MAX_WAIT_SECONDS}.`),
  }),
  output: taskRecord.extend({ finished: z.boolean().describe('Whether the task ended before the timeout.') }),
  async answer({ task_id: id, timeout_seconds: timeoutSeconds = DEFAULT_WAIT_SECONDS }, context) {
    const { clock, signal } = context
    const startedAtMs = clock.now()
    const endsAtMs = startedAtMs + timeoutSeconds * 1000
    let record: Record<string, unknown> | undefined
    for (;;) {
      const look = await lookAt(id, context)
      record = look.record ?? record
      if (record !== undefined && FINAL_STATES.has(record['status']))
        return { structured: { ...record, finished: true }, content: videoLink(record) }
      const leftMs = endsAtMs - clock.now()
      if (leftMs <= 0 && record === undefined) throw look.refusal
      if (leftMs <= 0) return { structured: { ...record, finished: false } }
      // Progress in seconds of waiting, because vendors do not report the progress of a video.
      const seconds = (clock.now() - startedAtMs) / 1000
      await context.progress({
        progress: Math.min(seconds, timeoutSeconds),
        total: timeoutSeconds,
        message: `${String(record?.['status'] ?? 'not read yet')}, waited ${Math.round(seconds)} s`,
      })
      await pause(clock, Math.min(look.nextInMs, leftMs), signal)
    }
  },
})

/** Result of one read. It has no record if the key's rate limit rejected the read for now. */
interface Look {
  readonly record: Record<string, unknown> | undefined
  readonly refusal: GatewayError | undefined
  readonly nextInMs: number
}

/** @throws GatewayError for an error that waiting cannot solve. */
async function lookAt(taskId: string, { json }: ToolContext): Promise<Look> {
  try {
    return { record: await json(taskRequest(taskId)), refusal: undefined, nextInMs: LOOK_INTERVAL_MS }
  } catch (cause) {
    const refusal = GatewayError.from(cause)
    if (refusal.status !== 429) throw cause
    const askedMs = (refusal.retryAfterSeconds ?? 0) * 1_000
    return { record: undefined, refusal, nextInMs: Math.max(LOOK_INTERVAL_MS, askedMs) }
  }
}

/** @throws GatewayError `client_closed_request` if the caller disconnects in the meantime. */
function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      timer.cancel()
      reject(new GatewayError('client_closed_request'))
    }
    const timer = clock.schedule(delayMs, () => {
      signal.removeEventListener('abort', abort)
      resolve()
    })
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}

/** `POST /v1/videos/generations/{id}/cancel`. */
export const cancelVideo = defineTool({
  name: 'cancel_video',
  title: 'Cancel a video',
  description:
    'Cancels a video task that has not begun to run, and releases its money. A running task cannot be cancelled.',
  // A cancelled task cannot be resumed; cancelling again changes nothing.
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
  input: z.object({ task_id: taskId }),
  output: taskRecord,
  async answer({ task_id: id }, { json }) {
    return { structured: await json(taskRequest(id, 'cancel')) }
  },
})

/** A link to the finished video, if there is one. */
function videoLink(record: Readonly<Record<string, unknown>>) {
  const url = objectOf(record['content'])['video_url']
  return typeof url === 'string'
    ? [{ type: 'resource_link' as const, uri: url, name: 'video', mimeType: 'video/mp4' }]
    : []
}

/**
 * Builds a request about one task. A malformed id is replaced by an unknown one, so that it reaches no other path and gets the same
 * answer.
 */
function taskRequest(taskId: string, action?: 'cancel'): GatewayCall {
  const path = `${VIDEOS_PATH}/${isTaskId(taskId) ? encodeURIComponent(taskId) : 'none'}`
  return action === undefined ? { method: 'GET', path } : { method: 'POST', path: `${path}/${action}` }
}
