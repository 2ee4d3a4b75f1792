import { GatewayError } from '../core/errors.ts'
import type { StageContext } from '../stages/stage-context.ts'
import { isTaskId } from './task-id.ts'
import { type VideoRecord, videoRecord } from './video-record.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** A page of records, newest first, as OpenAI's lists are written. */
export interface VideoList {
  readonly object: 'list'
  readonly data: readonly VideoRecord[]
  readonly has_more: boolean
  readonly first_id: string | null
  readonly last_id: string | null
}

/**
 * An account's own tasks. The query takes `limit` (1 to 100, default 20), `after` and `before` (ids of ours).
 * @throws GatewayError `invalid_request` naming the parameter.
 */
export async function listTasks(context: StageContext, accountId: string, query: string): Promise<VideoList> {
  const parameters = new URLSearchParams(query)
  const page = await context.store.tasks.list(accountId, {
    limit: limitOf(parameters.get('limit')),
    after: cursorOf(parameters, 'after'),
    before: cursorOf(parameters, 'before'),
  })
  const data = page.tasks.map(videoRecord)
  return {
    object: 'list',
    data,
    has_more: page.hasMore,
    first_id: page.tasks[0]?.id ?? null,
    last_id: page.tasks.at(-1)?.id ?? null,
  }
}

function limitOf(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new GatewayError('invalid_request', { message: `limit: must be 1 to ${MAX_LIMIT}`, param: 'limit' })
}

function cursorOf(parameters: URLSearchParams, name: 'after' | 'before'): string | undefined {
  const id = parameters.get(name)
  if (id === null) return undefined
  if (!isTaskId(id))
    throw new GatewayError('invalid_request', { message: `${name}: is not the id of a task`, param: name })
  return id
}
