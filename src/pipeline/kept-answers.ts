import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { AnswerAccess } from '../endpoints/endpoint.ts'
import type { Principal } from '../stores/principal.ts'
import type { StoredResponse } from '../stores/response-store.ts'
import type { Candidate, Parsed, Reserved } from './call-record.ts'
import { measureInput } from './media-estimate.ts'
import { checkCallerUrls } from './parse.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'

/** Returns the access to an account's stored answers. */
export function answerAccess(context: PipelineContext, { accountId }: Principal): AnswerAccess {
  const { keeps, retentionMs } = context.keptAnswers
  const { responses: store, conversations } = context.store
  const newId = (prefix: string): string => context.ids.next(prefix)
  const bounds = context.storedBounds
  return { store, conversations, bounds, accountId, nowMs: context.clock.now(), keeps, retentionMs, newId }
}

/**
 * Replaces the references of a request by their content, so that its estimate and hold cover everything. Only the owner's answers
 * are found: foreign, unknown and expired ids cause the same error.
 * @throws GatewayError `invalid_request` that names the reference, or an address in its content; `store_unavailable`.
 */
export async function recall(context: PipelineContext, parsed: Parsed): Promise<void> {
  const { kept } = parsed.endpoint
  if (kept === undefined) return
  const { body, bytes, principal } = parsed
  const freshId = parsed.answerId ?? context.ids.next(kept.idPrefix)
  let recalled: Awaited<ReturnType<typeof kept.recall>>
  try {
    recalled = await kept.recall(body, answerAccess(context, principal))
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
  const { request, bound, turn, ownIds } = recalled
  const written = recalled.original && { request: recalled.original, makers: recalled.makers }
  const original = written && { ...written, bytes: written.request === body ? bytes : undefined }
  parsed.continues({ previous: bound, isStored: turn !== undefined, freshId, recalled: { original, turn, ownIds } })
  if (request === body) return
  // Items of a conversation may have been added without a request.
  checkCallerUrls(context, parsed.endpoint.callerUrls?.(request), parsed.chain)
  // The model also reads the history.
  const text = Buffer.from(JSON.stringify(request))
  parsed.recalled(request, measureInput(parsed.endpoint, { body: request, bytes: text }))
}

/**
 * Stores an answer before its owner gets its end, so that an immediate follow-up finds it. Never fails, because a store failure
 * must not withhold an answer. The host then gets an `internal-error` event, and the answer cannot be continued.
 */
export async function keepAnswer(
  context: PipelineContext,
  reserved: Reserved,
  candidate: Candidate,
  response: Readonly<Record<string, unknown>>,
): Promise<void> {
  const turn = keptTurn(context, reserved, candidate, response)
  if (turn === undefined) return
  try {
    await context.store.responses.save(turn)
  } catch (error) {
    reportFault(context, reserved.requestId, 'responses', error)
  }
}

/** Returns the stored form of an answer, or `undefined` if it is not stored. */
export function keptTurn(
  context: PipelineContext,
  reserved: Reserved,
  candidate: Candidate,
  response: Readonly<Record<string, unknown>>,
): StoredResponse | undefined {
  const { endpoint, continued, principal, body } = reserved
  const turn = continued?.recalled?.turn
  const { id } = response
  if (endpoint.kept === undefined || turn === undefined || typeof id !== 'string') return undefined
  const nowMs = context.clock.now()
  return {
    ...turn,
    id,
    accountId: principal.accountId,
    vendor: candidate.vendor.id,
    credentialId: candidate.credentialId,
    upstreamId: endpoint.kept.isKeptAtVendor(body, candidate.vendor) ? id : undefined,
    model: candidate.model.id,
    response,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + context.keptAnswers.retentionMs,
  }
}
