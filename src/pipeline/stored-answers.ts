import { Buffer } from 'node:buffer'
import type { Credential } from '../core/credential.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { Endpoint, KeptAnswers } from '../endpoints/endpoint.ts'
import type { VendorKey } from '../routing/vendor-key.ts'
import type { Principal } from '../stores/principal.ts'
import type { StoredResponse } from '../stores/response-store.ts'
import type { TransportRequest } from '../transport/transport.ts'
import { BufferedCall } from './buffered-call.ts'
import { checkEndpointScope } from './caller-rights.ts'
import { countReading } from './count-reading.ts'
import { answerAccess } from './kept-answers.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { EVENT_STREAM, respondJson, respondWhole } from './respond.ts'
import { headersAt, pathAt, withCredential } from './vendor-address.ts'

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
  const call = new BufferedCall((ended) => ended)
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
