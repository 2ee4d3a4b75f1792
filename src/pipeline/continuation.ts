import { GatewayError } from '../core/errors.ts'
import type { AnswerIds } from '../endpoints/stream-transform.ts'
import type { InteractionRecord } from '../stores/interaction-store.ts'
import type { Candidate, Parsed, Reserved } from './call-record.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'

/**
 * Finds the stored answer that a request continues. Only its owner can find it: foreign, unknown and expired ids cause the same
 * error.
 * @throws GatewayError `interaction_not_found`, in the endpoint's wording, or `store_unavailable` if ownership cannot be checked.
 */
export async function findContinued(context: PipelineContext, parsed: Parsed): Promise<Parsed> {
  const { continuation } = parsed.endpoint
  const asked = continuation?.of(parsed.body)
  if (continuation === undefined || asked === undefined) return parsed
  const { previousId, isStored } = asked
  const freshId = context.ids.next(continuation.idPrefix)
  if (previousId === undefined) return parsed.continues({ previous: undefined, isStored, freshId })
  let previous: InteractionRecord | undefined
  try {
    const store = continuation.store(context.store)
    previous = await store.find(parsed.principal.accountId, previousId, context.clock.now())
  } catch (cause) {
    throw new GatewayError('store_unavailable', { cause })
  }
  if (previous === undefined) throw notFound(parsed)
  return parsed.continues({ previous, isStored, freshId })
}

/** The same error as for an id that never existed. */
export function notFound({ endpoint: { continuation } }: Parsed): GatewayError {
  return continuation?.notFound?.() ?? new GatewayError('interaction_not_found', { param: continuation?.param })
}

/**
 * Stores the owner of an answer before the owner gets its id, so that the owner can continue it. Never fails, because a store
 * failure must not withhold an answer. The host then gets an `internal-error` event, and the answer cannot be continued.
 */
export async function saveContinuation(
  context: PipelineContext,
  reserved: Reserved,
  candidate: Candidate,
  answerIds: AnswerIds,
): Promise<void> {
  const { endpoint, continued, principal, requestId } = reserved
  if (continued?.isStored !== true || endpoint.continuation === undefined) return
  const { retentionMs, store } = endpoint.continuation
  const nowMs = context.clock.now()
  try {
    await store(context.store).save({
      id: answerIds.id,
      accountId: principal.accountId,
      vendor: candidate.vendor.id,
      credentialId: candidate.credentialId,
      upstreamId: answerIds.upstreamId,
      model: candidate.model.id,
      createdAtMs: nowMs,
      expiresAtMs: nowMs + retentionMs[principal.tier],
    })
  } catch (error) {
    reportFault(context, requestId, 'interactions', error)
  }
}

/** Whether this candidate may continue the conversation. Its vendor stores the history for only one credential. */
export function canContinue({ continued }: Parsed, candidate: Candidate): boolean {
  const previous = continued?.previous
  if (previous === undefined || previous.credentialId === candidate.credentialId) return true
  return continued?.recalled !== undefined && previous.vendor !== candidate.vendor.id
}
