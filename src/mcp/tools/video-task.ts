import { z } from 'zod'
import { isTaskId } from '../../tasks/task-id.ts'
import type { GatewayCall } from '../gateway-call.ts'

/** Where tasks live. */
export const VIDEOS_PATH = '/v1/videos/generations'

/** A task as its owner reads it. */
export const taskRecord = z.looseObject({
  task_id: z.string(),
  model: z.string(),
  status: z.string().describe('queued, in_progress, completed, failed, cancelled or unknown.'),
  created_at: z.number().describe('Unix seconds.'),
})

/** States that a task does not leave. */
const FINAL: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/** Has the task ended? */
export function isFinal(record: Readonly<Record<string, unknown>>): boolean {
  return FINAL.has(record['status'])
}

/** A link to the finished video, as far as there is one. */
export function videoLink(record: Readonly<Record<string, unknown>>) {
  const content = record['content']
  const url = typeof content === 'object' && content !== null && 'video_url' in content ? content.video_url : undefined
  return typeof url === 'string'
    ? [{ type: 'resource_link' as const, uri: url, name: 'video', mimeType: 'video/mp4' }]
    : []
}

/**
 * A request about one task. An argument that cannot be an id asks for one that does not exist, so that it neither reaches
 * another path nor is answered differently.
 */
export function taskRequest(taskId: string, action?: 'cancel'): GatewayCall {
  const path = `${VIDEOS_PATH}/${isTaskId(taskId) ? encodeURIComponent(taskId) : 'none'}`
  return action === undefined ? { method: 'GET', path } : { method: 'POST', path: `${path}/${action}` }
}
