import type { Clock } from '../core/clock.ts'
import { ClientError } from './client-error.ts'
import { pause } from './connection.ts'

const FIRST_INTERVAL_MS = 1_000
const MAX_INTERVAL_MS = 10_000

/** State of a video. With `unknown`, the vendor may be working on it, but its answer to the submission was lost. */
export type VideoStatus = 'queued' | 'in_progress' | 'unknown' | 'completed' | 'failed' | 'cancelled'

/** Video and its state. */
export interface VideoTask {
  /** Equal to `id`. */
  readonly task_id: string
  readonly id: string
  readonly object: 'video.generation'
  readonly model: string
  readonly status: VideoStatus
  /** Creation time in Unix seconds. */
  readonly created_at: number
  /** Time of the last change in Unix seconds. Missing in the answer to the submission. */
  readonly updated_at?: number
  readonly request_id: string
  /** Vendor's own record. */
  readonly output?: Readonly<Record<string, unknown>>
  /** Vendor's own usage report. */
  readonly usage?: Readonly<Record<string, unknown>> | null
  /** Address of the completed video. It expires; `videos.content` downloads the file. */
  readonly content?: { readonly video_url: string | null }
  /** Seed of the completed video. */
  readonly seed?: number | null
  /** Error of a failed video. */
  readonly error?: { readonly code: string; readonly message: string } | null
  /** Cost in decimal dollars, if billing is on and the cost is known. */
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

/** Progress of a video during `wait`. */
export interface VideoProgress {
  readonly task: VideoTask
  /** Time since the start of `wait`. Vendors do not report the remaining time. */
  readonly elapsedMs: number
}

export interface WaitOptions {
  /** Called after every poll, including the last one. */
  readonly onProgress?: (progress: VideoProgress) => void
  /** Stops waiting, but not the video. */
  readonly signal?: AbortSignal
  /** Interval between polls in milliseconds. By default it grows from one second to ten. */
  readonly intervalMs?: number
  /** Maximum time to wait, in milliseconds. Unlimited by default. */
  readonly timeoutMs?: number
}

const FINAL: ReadonlySet<VideoStatus> = new Set<VideoStatus>(['completed', 'failed', 'cancelled'])

/**
 * Polls a video until it is completed, failed or cancelled.
 * @throws ClientError `task_not_finished` after `timeoutMs`; the reason of the signal; what `poll` throws.
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
      if (intervalMs === undefined) delayMs = Math.min(MAX_INTERVAL_MS, delayMs * 1.5)
    }
  } finally {
    timer.cancel()
    signal?.removeEventListener('abort', abort)
  }
}
