/** Where a video stands. `unknown`: the vendor may be at work, but its answer to the submission was lost. */
export type VideoStatus = 'queued' | 'in_progress' | 'unknown' | 'completed' | 'failed' | 'cancelled'

/** A video and what has become of it. */
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
  /** Once completed. The address expires; `videos.content` fetches what is behind it. */
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

const FINAL: ReadonlySet<VideoStatus> = new Set<VideoStatus>(['completed', 'failed', 'cancelled'])

/** Will this video change no more? */
export function isFinal({ status }: VideoTask): boolean {
  return FINAL.has(status)
}
