import { Buffer } from 'node:buffer'
import type { Credential } from '../core/credential.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { AnswerAccess, Endpoint, KeptAnswers } from '../endpoints/endpoint.ts'
import type { AnswerIds } from '../endpoints/stream-transform.ts'
import type { VendorKey } from '../routing/candidate.ts'
import type { Principal } from '../stores/principal.ts'
import type { InteractionRecord } from '../stores/response-cache.ts'
import type { StoredResponse } from '../stores/response-store.ts'
import type { TransportRequest } from '../transport/transport.ts'
import { checkEndpointScope } from './authenticate.ts'
import type { Candidate, Parsed, Reserved } from './call-record.ts'
import { measureInput } from './estimate.ts'
import { checkCallerUrls } from './parse.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'
import { countReading, EVENT_STREAM, respondJson, respondWhole } from './respond.ts'
import { BufferedCall, headersAt, pathAt, withCredential } from './vendor-access.ts'

/** Format of an id in a path, of the gateway or a vendor. Other ids are unknown without a store lookup. */
const ANSWER_ID = /^[A-Za-z0-9_-]{1,200}$/

/** Timeout for the deletion of an answer at a vendor. */
const DELETION_TIMEOUT_MS = 30_000

/** Request about a stored answer, from an authenticated caller. */
export interface StoredAnswerRequest {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly principal: Principal
  readonly endpoint: Endpoint
  readonly id: string
  readonly action: string
  /** Answers requests about an answer that does not exist yet. Omitted if there are none. */
  readonly pending?: (context: PipelineContext, asked: StoredAnswerRequest) => Promise<PendingOutcome>
}

/** State of an answer that is not stored. `ended` means that it is stored now. */
export type PendingOutcome = 'served' | 'ended' | 'none'

/**
 * Answers a request about a stored answer. An account sees only its own; foreign, unknown, expired and malformed ids get the same
 * bytes.
 * @throws GatewayError `response_not_found`, `invalid_request`, `permission_denied` for a key that may not use the endpoint,
 *   `rate_limited`, `upstream_unavailable` if the vendor's copy cannot be deleted, and `store_unavailable`.
 */
export async function serveStoredAnswer(context: PipelineContext, asked: StoredAnswerRequest): Promise<void> {
  const { principal, endpoint, id, request } = asked
  const { kept } = endpoint
  checkEndpointScope(principal, endpoint.id)
  await countReading(context, principal)
  if (kept === undefined || !ANSWER_ID.test(id)) throw new GatewayError('response_not_found')
  const serve = (): Promise<void> =>
    request.method === 'DELETE' ? remove(context, asked, kept) : read(context, asked, kept)
  try {
    await serve().catch(async (cause: unknown) => {
      if (asked.pending === undefined || !isNotFound(cause)) throw cause
      const outcome = await asked.pending(context, asked)
      if (outcome === 'none') throw cause
      if (outcome === 'ended') await serve()
    })
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

function isNotFound(cause: unknown): boolean {
  return GatewayError.isInstance(cause) && cause.code === 'response_not_found'
}

async function read(
  context: PipelineContext,
  { request, sink, requestId, principal, id, action }: StoredAnswerRequest,
  kept: Kept,
): Promise<void> {
  const parameters = new URLSearchParams(request.query)
  const reply = await kept.read({ id, action, parameters }, answerAccess(context, principal))
  if ('json' in reply) return respondJson(sink, requestId, reply.json)
  const headers = ['content-type', EVENT_STREAM, 'cache-control', 'no-cache, no-transform', 'x-request-id', requestId]
  respondWhole(sink, { status: 200, headers }, [Buffer.from(reply.events)])
}

type Kept = KeptAnswers<{ readonly model: string }, object>

/** Deletes at the vendor first, so that the id of a remaining copy is not lost. */
async function remove(
  context: PipelineContext,
  { sink, requestId, principal, id }: StoredAnswerRequest,
  kept: Kept,
): Promise<void> {
  const { store, accountId, nowMs } = answerAccess(context, principal)
  const turn = await store.find(accountId, id, nowMs)
  if (turn === undefined) throw new GatewayError('response_not_found')
  if (turn.upstreamId !== undefined) await removeAtVendor(context, turn, turn.upstreamId, kept)
  await store.delete(accountId, id)
  context.storedBounds.freed(accountId, 'responses')
  respondJson(sink, requestId, { id, object: 'response', deleted: true })
}

/** A vendor or key that is no longer configured cannot be called; its copy ends with the vendor's own retention. */
async function removeAtVendor(
  context: PipelineContext,
  { vendor: vendorId, credentialId }: StoredResponse,
  upstreamId: string,
  kept: Kept,
): Promise<void> {
  const routed = context.routes.vendor(vendorId)
  const key = routed?.keys.find((one) => one.credentialId === credentialId)
  if (routed === undefined || key === undefined) return
  const deletion = kept.deletion(routed.vendor, upstreamId, key.apiKey)
  if (deletion === undefined) return
  const credential = await credentialOf(key)
  const call = new BufferedCall()
  const { vendor } = routed
  const request: TransportRequest = {
    origin: vendor.origin,
    path: pathAt(vendor, deletion.path),
    headers: headersAt(vendor, deletion.headers),
    egress: vendor.egress,
    method: 'DELETE',
    body: null,
    firstByteTimeoutMs: Math.min(DELETION_TIMEOUT_MS, context.timeouts.firstByteMs),
    idleTimeoutMs: Math.min(DELETION_TIMEOUT_MS, context.timeouts.idleMs),
  }
  call.begin(context.transport, withCredential(request, credential, context.clock.now()))
  context.taskCalls.add(call)
  const deadline = context.clock.schedule(DELETION_TIMEOUT_MS, () => call.abort())
  const outcome = await call.result
  deadline.cancel()
  context.taskCalls.delete(call)
  const status = 'answer' in outcome ? outcome.answer.status : 0
  // The vendor may have deleted it before.
  if (status !== 404 && !(status >= 200 && status < 300)) throw new GatewayError('upstream_unavailable')
}

async function credentialOf({ credentials }: VendorKey): Promise<Credential | undefined> {
  try {
    return await credentials?.take()
  } catch (cause) {
    throw new GatewayError('upstream_unavailable', { cause })
  }
}

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

/** Returns the error for an id that does not exist. Foreign ids get it too, so that callers cannot detect them. */
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
