import type { Clock } from '../core/clock.ts'
import { pause } from './client-clock.ts'
import { ClientError } from './client-error.ts'
import { isFinal, type VideoTask } from './video-task.ts'

const FIRST_INTERVAL_MS = 1_000
const LONGEST_INTERVAL_MS = 10_000

/** What is known of a video that is waited for. */
export interface VideoProgress {
  readonly task: VideoTask
  /** Since the waiting began. Vendors do not tell how much is left. */
  readonly elapsedMs: number
}

/** How to wait for a video. */
export interface WaitOptions {
  /** Told after every look, the last one included. */
  readonly onProgress?: (progress: VideoProgress) => void
  /** Ends the waiting, not the video. */
  readonly signal?: AbortSignal
  /** Milliseconds between two looks. Default: one second at first, growing to ten. */
  readonly intervalMs?: number
  /** Most milliseconds to wait. Default: as long as it takes. */
  readonly timeoutMs?: number
}

/**
 * Looks at a video until it has ended, well or not.
 * @throws ClientError `task_not_finished` when `timeoutMs` is over; the reason of the signal; what `look` throws.
 */
export async function waitForVideo(
  { id, look }: { readonly id: string; readonly look: (signal: AbortSignal) => Promise<VideoTask> },
  clock: Clock,
  { onProgress, signal, intervalMs, timeoutMs = Number.POSITIVE_INFINITY }: WaitOptions,
): Promise<VideoTask> {
  const startedAtMs = clock.now()
  const leaving = new AbortController()
  let requestId: string | undefined
  const timer = clock.schedule(timeoutMs, () => {
    const message = `The video ${id} has not ended within ${timeoutMs} ms.`
    leaving.abort(new ClientError('task_not_finished', { message, requestId }))
  })
  const leave = (): void => leaving.abort(signal?.reason)
  if (signal?.aborted === true) leave()
  else signal?.addEventListener('abort', leave, { once: true })
  try {
    for (let delayMs = intervalMs ?? FIRST_INTERVAL_MS; ; ) {
      const task = await look(leaving.signal)
      requestId = task.request_id
      onProgress?.({ task, elapsedMs: clock.now() - startedAtMs })
      if (isFinal(task)) return task
      await pause(clock, delayMs, leaving.signal)
      if (intervalMs === undefined) delayMs = Math.min(LONGEST_INTERVAL_MS, delayMs * 1.5)
    }
  } finally {
    timer.cancel()
    signal?.removeEventListener('abort', leave)
  }
}
