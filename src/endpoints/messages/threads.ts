import { DetailedError } from '../../core/detailed-error.ts'
import type { Continuation } from '../endpoint.ts'
import type { MessagesRequest } from './messages-request.ts'

/** Time for which a thread can be continued, in milliseconds: 30 days. */
const THREAD_RETENTION_MS = 30 * 24 * 60 * 60 * 1_000

const PARAM = 'thread.previous_message_id'

/**
 * Threads stored by the vendor (Anthropic SDK, "Message threads"). One key of the operator has the threads of many accounts, so an
 * account can continue only its own answers, with the key that generated them.
 */
export const threads: Continuation<MessagesRequest> = {
  of({ thread }) {
    if (thread === undefined || thread === null) return undefined
    const { previous_message_id: id } = thread
    return { previousId: typeof id === 'string' ? id : undefined, isStored: true }
  },
  param: PARAM,
  // Clients then send the whole conversation in a new thread.
  notFound: () =>
    new DetailedError(
      'interaction_not_found',
      { message: `${PARAM}: there is no such message, or its thread has expired. Send all messages.`, param: PARAM },
      { error_code: 'thread_not_found' },
    ),
  idPrefix: 'msg',
  retentionMs: { paid: THREAD_RETENTION_MS, free: THREAD_RETENTION_MS },
  store: ({ interactions }) => interactions,
}
