import { z } from 'zod'
import type { Clock } from '../../core/clock.ts'
import { GatewayError } from '../../core/errors.ts'
import { defineTool, LOOKS_UP_AT_VENDOR, type ToolContext } from '../tool.ts'
import { taskId } from './arguments.ts'
import { isFinal, taskRecord, taskRequest, videoLink } from './video-task.ts'

/** Below the minute that clients of the protocol wait for an answer unless they are told otherwise. */
const DEFAULT_WAIT_SECONDS = 50

const LONGEST_WAIT_SECONDS = 900

/** How often the task is looked at. The gateway itself asks the vendor no more often than the vendor recommends. */
const LOOK_INTERVAL_MS = 2_000

/** Looks at a task until it has ended, or the time is over. */
export const waitForVideo = defineTool({
  name: 'wait_for_video',
  title: 'Wait for a video',
  description:
    'Waits until a video task has ended and returns its record, with progress notifications on the way. When the time is ' +
    'over first, finished is false: call it again with the same task_id. The task goes on either way.',
  annotations: LOOKS_UP_AT_VENDOR,
  input: z.object({
    task_id: taskId,
    timeout_seconds: z
      .number()
      .min(0)
      .max(LONGEST_WAIT_SECONDS)
      .optional()
      .describe(`Longest wait. Default ${DEFAULT_WAIT_SECONDS}, at most ${LONGEST_WAIT_SECONDS}.`),
  }),
  output: taskRecord.extend({ finished: z.boolean().describe('False: the time was over before the task ended.') }),
  async answer({ task_id: id, timeout_seconds: timeoutSeconds = DEFAULT_WAIT_SECONDS }, context) {
    const { clock, signal } = context
    const startedAtMs = clock.now()
    const endsAtMs = startedAtMs + timeoutSeconds * 1000
    for (;;) {
      const record = await context.json(taskRequest(id))
      if (isFinal(record)) return { structured: { ...record, finished: true }, content: videoLink(record) }
      const leftMs = endsAtMs - clock.now()
      if (leftMs <= 0) return { structured: { ...record, finished: false } }
      await tellProgress(context, { startedAtMs, timeoutSeconds, status: String(record['status']) })
      await pause(clock, Math.min(LOOK_INTERVAL_MS, leftMs), signal)
    }
  },
})

interface Waiting {
  readonly startedAtMs: number
  readonly timeoutSeconds: number
  readonly status: string
}

/** Nobody knows how far a video is, so progress is told in seconds of the wait. */
function tellProgress(context: ToolContext, { startedAtMs, timeoutSeconds, status }: Waiting): Promise<void> {
  const seconds = (context.clock.now() - startedAtMs) / 1000
  return context.progress({
    progress: Math.min(seconds, timeoutSeconds),
    total: timeoutSeconds,
    message: `${status}, waited ${Math.round(seconds)} s`,
  })
}

/** @throws GatewayError `client_closed_request` when the caller leaves meanwhile. */
function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      timer.cancel()
      reject(new GatewayError('client_closed_request'))
    }
    const timer = clock.schedule(delayMs, () => {
      signal.removeEventListener('abort', leave)
      resolve()
    })
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
}
