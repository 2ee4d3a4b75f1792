import type { Clock } from '../core/clock.ts'
import { pause } from './client-clock.ts'
import { ClientError } from './client-error.ts'

const FIRST_INTERVAL_MS = 1_000
const LONGEST_INTERVAL_MS = 10_000

/** State of a video. `unknown`: the vendor may be working on it, but its answer to the submission was lost. */
export type VideoStatus = 'queued' | 'in_progress' | 'unknown' | 'completed' | 'failed' | 'cancelled'

/** A video and its state. */
export interface VideoTask {
  /** The same as `id`. */
  readonly task_id: string
  readonly id: string
  readonly object: 'video.generation'
  readonly model: string
  readonly status: VideoStatus
  /** Unix seconds. */
  readonly created_at: number
  /** Unix seconds. Missing in the answer to the submission. */
  readonly updated_at?: number
  readonly request_id: string
  /** The vendor's own record. */
  readonly output?: Readonly<Record<string, unknown>>
  /** The vendor's own report of what was used. */
  readonly usage?: Readonly<Record<string, unknown>> | null
  /** Once completed. The address expires; `videos.content` downloads the file. */
  readonly content?: { readonly video_url: string | null }
  /** Once completed. */
  readonly seed?: number | null
  /** Why it failed. */
  readonly error?: { readonly code: string; readonly message: string } | null
  /** What it cost, in decimal dollars; with billing on, once that is known. */
  readonly cost?: string
}

/** A page of videos, newest first. */
export interface VideoList {
  readonly object: 'list'
  readonly data: readonly VideoTask[]
  readonly has_more: boolean
  readonly first_id: string | null
  readonly last_id: string | null
}

/** What is known of a video that is waited for. */
export interface VideoProgress {
  readonly task: VideoTask
  /** Since the waiting began. Vendors do not report the remaining time. */
  readonly elapsedMs: number
}

/** How to wait for a video. */
export interface WaitOptions {
  /** Called after every poll, the last one included. */
  readonly onProgress?: (progress: VideoProgress) => void
  /** Ends the waiting, not the video. */
  readonly signal?: AbortSignal
  /** Milliseconds between two polls. Default: one second at first, growing to ten. */
  readonly intervalMs?: number
  /** Most milliseconds to wait. Default: as long as it takes. */
  readonly timeoutMs?: number
}

const FINAL: ReadonlySet<VideoStatus> = new Set<VideoStatus>(['completed', 'failed', 'cancelled'])

/**
 * Polls a video until it is completed, failed or cancelled.
 * @throws ClientError `task_not_finished` when `timeoutMs` is over; the reason of the signal; what `poll` throws.
 */
export async function waitForVideo(
  { id, poll }: { readonly id: string; readonly poll: (signal: AbortSignal) => Promise<VideoTask> },
  clock: Clock,
  { onProgress, signal, intervalMs, timeoutMs = Number.POSITIVE_INFINITY }: WaitOptions,
): Promise<VideoTask> {
  const startedAtMs = clock.now()
  const ending = new AbortController()
  let requestId: string | undefined
  const timer = clock.schedule(timeoutMs, () => {
    const message = `The video ${id} has not ended within ${timeoutMs} ms.`
    ending.abort(new ClientError('task_not_finished', { message, requestId }))
  })
  const abort = (): void => ending.abort(signal?.reason)
  if (signal?.aborted === true) abort()
  else signal?.addEventListener('abort', abort, { once: true })
  try {
    for (let delayMs = intervalMs ?? FIRST_INTERVAL_MS; ; ) {
      const task = await poll(ending.signal)
      requestId = task.request_id
      onProgress?.({ task, elapsedMs: clock.now() - startedAtMs })
      if (FINAL.has(task.status)) return task
      await pause(clock, delayMs, ending.signal)
      if (intervalMs === undefined) delayMs = Math.min(LONGEST_INTERVAL_MS, delayMs * 1.5)
    }
  } finally {
    timer.cancel()
    signal?.removeEventListener('abort', abort)
  }
}
