import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import { parseCallerJson } from '../core/json.ts'
import type { Endpoint, StoredObjects } from '../endpoints/endpoint.ts'
import type { Principal } from '../stores/principal.ts'
import { answerOnce } from './answer-once.ts'
import { checkEndpointScope } from './caller-rights.ts'
import { countReading } from './count-reading.ts'
import { answerAccess } from './kept-answers.ts'
import { screenKept } from './kept-request-hooks.ts'
import { claimOf } from './parse.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { readJsonBytes } from './read-json-bytes.ts'

/** Request about objects that callers store, from an authenticated caller. */
export interface StoredObjectsRequest {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly principal: Principal
  /** Endpoint whose requests refer to the objects. */
  readonly endpoint: Endpoint
  readonly objects: StoredObjects
  readonly segments: readonly string[]
}

/** Format of an id in a path. Other ids are unknown without a store lookup. */
const SEGMENT = /^[A-Za-z0-9_-]{1,200}$/

/**
 * Answers a request about stored objects. An account sees only its own; foreign, unknown, expired and malformed ids get the same
 * bytes. An Idempotency-Key of a POST works as usual.
 * @throws GatewayError of `StoredObjects.serve`, `permission_denied` for a key that may not use the endpoint, `rate_limited`, the
 *   errors of an unusable body or Idempotency-Key, and `store_unavailable`.
 */
export async function serveStoredObjects(context: PipelineContext, asked: StoredObjectsRequest): Promise<void> {
  const { principal, endpoint, request, sink, requestId } = asked
  checkEndpointScope(principal, endpoint.id)
  await countReading(context, principal)
  const bytes = request.method === 'POST' ? await readJsonBytes(context, request) : NOTHING
  const body = bytes.byteLength === 0 ? undefined : parseCallerJson(bytes)
  const claimant = { accountId: principal.accountId, requestId }
  const claim = request.method === 'POST' ? claimOf(context, request, claimant, bytes) : undefined
  try {
    await answerOnce(context, { sink, requestId, claim }, () => answerOf(context, asked, body))
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

const NOTHING = new Uint8Array()

async function answerOf(context: PipelineContext, asked: StoredObjectsRequest, body: unknown): Promise<object> {
  const { principal, objects, request, segments } = asked
  const question = {
    method: request.method,
    // A malformed id gets the same answer as an unknown one.
    segments: segments.map((segment) => (SEGMENT.test(segment) ? segment : '-')),
    parameters: new URLSearchParams(request.query),
    body,
  }
  return await objects.serve(question, {
    ...answerAccess(context, principal),
    screened: (kept) => screenKept(context, asked, kept),
  })
}
