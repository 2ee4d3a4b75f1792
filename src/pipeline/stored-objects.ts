import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import { parseCallerJson } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Endpoint, StoredObjects } from '../endpoints/endpoint.ts'
import type { IdempotencyClaim, StoredAnswer } from '../stores/idempotency-store.ts'
import type { Principal } from '../stores/principal.ts'
import { countReading } from './count-reading.ts'
import { answerAccess } from './kept-answers.ts'
import { claimOf } from './parse.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'
import { readJsonBytes } from './read-json-bytes.ts'
import { respondJson, respondReplay } from './respond.ts'

/** A request about objects that callers keep, from an authenticated caller. */
export interface StoredObjectsRequest {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly principal: Principal
  /** The endpoint whose requests name the objects. */
  readonly endpoint: Endpoint
  readonly objects: StoredObjects
  readonly segments: readonly string[]
}

/** The format of an id in a path. Anything else is unknown without a store look-up. */
const SEGMENT = /^[A-Za-z0-9_-]{1,200}$/

/**
 * Answers a request about stored objects. An account sees its own only; foreign, unknown, expired and malformed ids get the
 * same bytes. An Idempotency-Key of a POST counts as everywhere.
 * @throws GatewayError as `StoredObjects.serve` does, `permission_denied` for a key that may not use the endpoint,
 *   `rate_limited`, those of a body or an Idempotency-Key that cannot be used, and `store_unavailable`.
 */
export async function serveStoredObjects(context: PipelineContext, asked: StoredObjectsRequest): Promise<void> {
  const { principal, endpoint, request, sink, requestId } = asked
  if (principal.scopes?.endpoints?.includes(endpoint.id) === false) throw new GatewayError('permission_denied')
  await countReading(context, principal)
  const bytes = request.method === 'POST' ? await readJsonBytes(context, request) : NOTHING
  const body = bytes.byteLength === 0 ? undefined : parseCallerJson(bytes)
  const claim = request.method === 'POST' ? claimOf(context, request, principal.accountId, bytes) : undefined
  try {
    const replay = claim && (await claimed(context, claim))
    if (replay !== undefined) return respondReplay(sink, replay, requestId)
    respondJson(sink, requestId, await answered(context, asked, body, claim))
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

const NOTHING = new Uint8Array()

/** The answer of an earlier request with the same key; undefined: the key is this request's own now. */
async function claimed({ store, clock }: PipelineContext, claim: IdempotencyClaim): Promise<StoredAnswer | undefined> {
  const result = await store.idempotency.claim(claim, clock.now())
  if (result.status === 'in_flight') throw new GatewayError('idempotency_in_flight', { retryAfterSeconds: 1 })
  if (result.status === 'mismatch') throw new GatewayError('idempotency_mismatch')
  return result.status === 'replay' ? result.answer : undefined
}

async function answered(
  context: PipelineContext,
  { principal, objects, request, requestId, segments }: StoredObjectsRequest,
  body: unknown,
  claim: IdempotencyClaim | undefined,
): Promise<object> {
  const { idempotency } = context.store
  const asked = {
    method: request.method,
    // A malformed id is answered like an unknown one.
    segments: segments.map((segment) => (SEGMENT.test(segment) ? segment : '-')),
    parameters: new URLSearchParams(request.query),
    body,
  }
  let answer: object
  try {
    answer = await objects.serve(asked, answerAccess(context, principal))
  } catch (cause) {
    if (claim !== undefined) await noted(context, requestId, () => idempotency.release(claim))
    throw cause
  }
  const kept = { status: 200, headers: JSON_HEADERS, body: Buffer.from(JSON.stringify(answer)) }
  if (claim !== undefined) await noted(context, requestId, () => idempotency.complete(claim, kept))
  return answer
}

const JSON_HEADERS = ['content-type', 'application/json']

/** The change is made: what fails afterwards is told to the operator only. */
async function noted(context: PipelineContext, requestId: string, note: () => MaybePromise<void>): Promise<void> {
  try {
    await note()
  } catch (error) {
    reportFault(context, requestId, 'idempotency', error)
  }
}
