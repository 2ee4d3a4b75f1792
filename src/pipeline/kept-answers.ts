import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { AnswerAccess } from '../endpoints/endpoint.ts'
import type { Principal } from '../stores/principal.ts'
import type { StoredResponse } from '../stores/response-store.ts'
import type { Candidate, Parsed, Reserved } from './call-record.ts'
import { measureInput } from './media-estimate.ts'
import { checkCallerUrls } from './parse.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'

/** Where an account's answers are kept. */
export function answerAccess(context: PipelineContext, { accountId }: Principal): AnswerAccess {
  const { keeps, retentionMs } = context.keptAnswers
  const { responses: store, conversations } = context.store
  const newId = (prefix: string): string => context.ids.next(prefix)
  const bounds = context.storedBounds
  return { store, conversations, bounds, accountId, nowMs: context.clock.now(), keeps, retentionMs, newId }
}

/**
 * Puts what a request refers to in its place, so that it is estimated and held for as a whole. Only the owner's answers are
 * found: foreign, unknown and expired ids give the same error.
 * @throws GatewayError `invalid_request` naming the reference, or an address in what it refers to; `store_unavailable`.
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
  // Items of a conversation may have come without a request.
  checkCallerUrls(context, parsed.endpoint.callerUrls?.(request), parsed.chain)
  // The history is read by the model too.
  const text = Buffer.from(JSON.stringify(request))
  parsed.recalled(request, measureInput(parsed.endpoint, { body: request, bytes: text }))
}

/**
 * Keeps an answer before its owner has its end, so that a follow-up finds it at once. Never fails: a store that is down must
 * not withhold an answer. The host then gets an `internal-error` event, and the answer cannot be continued.
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

/** An answer as it is kept; undefined: it is not. */
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
