import { MAX_PLAUSIBLE_COUNT } from '../../catalog/prices/plausible-usage.ts'
import type { TaskRecord, TaskState } from '../../stores/task-store.ts'
import type { TaskBehaviour } from '../task.ts'
import type { VideosOffer } from './video-operation.ts'
import type { VideoRequest } from './video-request.ts'

/** How videos are followed, priced by resolution, and shown (API specification, "Video generation request"). */
export const videoTask: TaskBehaviour<VideoRequest, VideosOffer> = {
  settings({ resolution, parameters, webhook_url }) {
    const seed = parameters?.['seed']
    return { variant: resolution, webhookUrl: webhook_url, facts: typeof seed === 'number' ? { seed } : {} }
  },
  operation: ({ videos }) => videos,
  variants: ({ video }, fields) =>
    (video?.resolutions ?? []).map((resolution) => [
      resolution,
      resolution === fields['resolution'] ? fields : { ...fields, resolution },
    ]),
  billedUsage({ videoSeconds }, model) {
    if (videoSeconds === undefined) return undefined
    const most = model?.video?.maxBilledSeconds ?? MAX_PLAUSIBLE_COUNT
    return Number.isFinite(videoSeconds) && videoSeconds > 0 && videoSeconds <= most ? { videoSeconds } : undefined
  },
  receipt: videoReceipt,
  record: videoRecord,
  eventType: (state) => `video.generation.${state}`,
}

/** A task with an unknown submission outcome reads as queued; callers do not have its id before the outcome is known. */
function publicStatus(state: TaskState): string {
  return state === 'submitting' ? 'queued' : state
}

/** Unix seconds, as every time of the gateway's own. */
function seconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000)
}

/** `output` is the vendor's; undefined, and so absent in JSON, if the vendor did not answer. */
function videoReceipt(task: TaskRecord): Record<string, unknown> {
  const { details } = task
  return {
    task_id: task.id,
    id: task.id,
    object: 'video.generation',
    model: details.model,
    status: publicStatus(task.state),
    created_at: seconds(task.createdAtMs),
    request_id: details.requestId,
    output: details.output,
  }
}

/**
 * The record of a task: the vendor's `output` and `usage` unchanged, and, once it has ended, `content`, `usage` and `seed`,
 * or `error`.
 */
function videoRecord(task: TaskRecord): object {
  const { details, state } = task
  const record: Record<string, unknown> = { ...videoReceipt(task), updated_at: seconds(task.updatedAtMs) }
  if (details.usage !== undefined) record['usage'] = details.usage
  if (state === 'completed') {
    record['content'] = { video_url: details.contentUrl ?? null }
    record['usage'] = details.usage ?? null
    record['seed'] = details.facts['seed'] ?? null
  } else if (state === 'failed' || state === 'cancelled') {
    record['error'] = state === 'cancelled' ? null : (details.error ?? null)
  }
  if (details.cost !== undefined) record['cost'] = details.cost
  return record
}
