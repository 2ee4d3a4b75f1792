import { isJsonObject } from '../../core/json.ts'
import type { InlineBatches, InlineBatchState } from '../inline-batches.ts'
import { anthropicErrors } from './messages-errors.ts'

const CUSTOM_ID = /^[A-Za-z0-9_-]{1,64}$/

/** Anthropic's batches of messages (Anthropic API, "Message Batches"). */
export const messageBatches: InlineBatches = {
  path: '/v1/messages/batches',
  idPrefix: 'msgbatch',
  listMember: 'requests',
  bodyMember: 'params',
  cursors: { after: 'after_id', before: 'before_id' },
  maxPage: 1_000,
  resultsType: 'application/x-jsonl',
  readRequest(value) {
    if (!isJsonObject(value)) return { param: null, reason: 'expected an object' }
    const { custom_id: customId, params, ...others } = value
    const [unknown] = Object.keys(others)
    if (unknown !== undefined) return { param: unknown.slice(0, 64), reason: 'is not known here' }
    if (typeof customId !== 'string' || !CUSTOM_ID.test(customId))
      return { param: 'custom_id', reason: 'expected 1 to 64 letters, digits, hyphens and underscores' }
    if (!isJsonObject(params)) return { param: 'params', reason: 'expected an object' }
    return { customId, body: params }
  },
  record: messageBatch,
  list: ({ batches, hasMore }) => ({
    data: batches.map(messageBatch),
    has_more: hasMore,
    first_id: batches[0]?.id ?? null,
    last_id: batches.at(-1)?.id ?? null,
  }),
  deleted: (id) => ({ id, type: 'message_batch_deleted' }),
  resultLine(customId, result) {
    const head = `{"custom_id":${JSON.stringify(customId)},"result":`
    switch (result.kind) {
      case 'answered':
        return `${head}{"type":"succeeded","message":${result.body}}}`
      case 'failed':
        return `${head}{"type":"errored","error":${result.body}}}`
      case 'cancelled':
        return `${head}{"type":"canceled"}}`
      case 'expired':
        return `${head}{"type":"expired"}}`
    }
  },
  errorText: (error, requestId) => anthropicErrors.body(error, requestId),
}

/** Returns the object of a batch, with `cost` in dollars if it was charged. */
function messageBatch(batch: InlineBatchState): object {
  const { answered, failed, cancelled, expired } = batch.ended
  const hasEnded = batch.endedAtMs !== null
  return {
    id: batch.id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : batch.cancellingAtMs === null ? 'in_progress' : 'canceling',
    request_counts: {
      processing: hasEnded ? 0 : batch.total,
      succeeded: answered,
      errored: failed,
      canceled: cancelled,
      expired,
    },
    created_at: timeText(batch.createdAtMs),
    ended_at: timeText(batch.endedAtMs),
    expires_at: timeText(batch.expiresAtMs),
    cancel_initiated_at: timeText(batch.cancellingAtMs),
    archived_at: timeText(batch.archivedAtMs),
    results_url: batch.resultsUrl,
    ...(batch.cost === undefined ? {} : { cost: batch.cost }),
  }
}

function timeText(timeMs: number | null): string | null {
  return timeMs === null ? null : new Date(timeMs).toISOString()
}
