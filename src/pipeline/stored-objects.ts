import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import { isJsonObject, parseCallerJson } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Endpoint, StoredObjects } from '../endpoints/endpoint.ts'
import { withTexts } from '../endpoints/texts.ts'
import { callHook, HookDeadline } from '../hooks/call-hook.ts'
import type { HookCall, RequestResult } from '../hooks/hook.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import type { IdempotencyClaim } from '../stores/idempotency-store.ts'
import type { Principal } from '../stores/principal.ts'
import { checkEndpointScope } from './authenticate.ts'
import type { Shaped } from './call-record.ts'
import { checkedResult, checkedTexts, denied, hookFailed } from './hooks/hook-facts.ts'
import { denialOf, RequestCall } from './hooks/request-hooks.ts'
import { claimKey, completeKey, createWithinBounds, replayOf } from './idempotent-request.ts'
import { claimOf, readJsonBytes } from './parse.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'
import { countReading, respondJson, respondReplay } from './respond.ts'
import { answerAccess } from './stored-answers.ts'

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

/** Caller that stores data for later requests. */
type Keeper = Pick<Shaped, 'requestId' | 'principal' | 'request' | 'endpoint'>
type Kept = { readonly model: string }

/**
 * Runs the request hooks on data that is stored for later requests. They see only the new data. There is no model yet, and nothing to
 * answer or to charge.
 * @returns The data as changed by hooks.
 * @throws GatewayError `request_denied`, also if a hook returns an answer; `hook_failed`; `invalid_request` if a hook charges units.
 */
async function screenKept<Body extends Kept>(context: PipelineContext, keeper: Keeper, kept: Body): Promise<Body> {
  let current = kept
  for (const hook of context.hooks?.of(keeper.endpoint)?.request ?? [])
    current = await screenedBy(context, keeper, hook, current)
  return current
}

async function screenedBy<Body extends Kept>(
  context: PipelineContext,
  { requestId, principal, request, endpoint }: Keeper,
  hook: CompiledHook,
  body: Body,
): Promise<Body> {
  const shown = { requestId, principal, request, endpoint, body, isStream: false, hookUnits: 0 }
  const failed = (fault: 'threw' | 'timeout' | 'unusable-result' | 'too-large', error: unknown): Body => {
    const failure = hookFailed(context, shown, body.model, { hook, point: 'request', fault, error })
    if (failure !== undefined) throw failure
    return body
  }
  const deadline = new HookDeadline()
  const call = new RequestCall(shown, { body, bytes: undefined }, body.model, deadline)
  const outcome = await callHook(context.clock, hook.timeoutMs, deadline, () =>
    hook.hook.request?.(call as unknown as HookCall),
  )
  const units = call.ended()
  if (outcome.kind === 'fault') return failed(outcome.fault, outcome.error)
  const deny = denialOf(outcome.result)
  if (deny !== undefined) throw denied(context, shown, body.model, { hook, point: 'request', denial: deny.deny }).error
  let changed: Body
  try {
    const result = checkedResult<RequestResult>(outcome.result, ['body', 'texts', 'deny', 'answer'])
    if (result?.answer !== undefined)
      throw denied(context, shown, body.model, { hook, point: 'request', denial: {} }).error
    changed = result === undefined ? body : rewritten(endpoint, body, result)
  } catch (error) {
    if (GatewayError.isInstance(error)) throw error
    return failed('unusable-result', error)
  }
  if (units > 0 && context.prices !== undefined)
    throw new GatewayError('invalid_request', {
      message: 'This cannot be stored before a request, because checking it is charged. Send it with the request.',
    })
  return changed
}

/** @throws TypeError for data that cannot be stored, and SyntaxError for a text that should be JSON and is not. */
function rewritten<Body extends Kept>(
  { texts: reader }: Shaped['endpoint'],
  body: Body,
  { body: other = body, texts }: RequestResult,
): Body {
  if (!isJsonObject(other)) throw new TypeError('body must be an object')
  const base = other as Body
  if (texts === undefined) return base
  const parts = reader?.request(base) ?? []
  return withTexts(base, parts, checkedTexts(texts, parts))
}

/** Request that changes data of the caller without a model. */
interface IdempotentRequest {
  readonly sink: ByteSink
  readonly requestId: string
  /** Claim of its Idempotency-Key, or `undefined` if it has none. */
  readonly claim: IdempotencyClaim | undefined
}

/**
 * Creates and sends an answer, or replays that of an earlier request with the same Idempotency-Key. If no answer can be created, the key
 * becomes free again.
 * @throws GatewayError `idempotency_in_flight` and `idempotency_mismatch`, `storage_limit_reached`; and the errors of `make` and the
 *   store.
 */
export async function answerOnce(
  context: PipelineContext,
  { sink, requestId, claim }: IdempotentRequest,
  make: () => Promise<object>,
): Promise<void> {
  if (claim !== undefined) {
    const { accountId } = claim
    const result = await createWithinBounds(context, { accountId, claim }, () => claimKey(context, claim))
    if (result.status !== 'claimed') return respondReplay(sink, replayOf(result), requestId)
  }
  respondJson(sink, requestId, await made(context, requestId, claim, make))
}

const JSON_HEADERS = ['content-type', 'application/json']

async function made(
  context: PipelineContext,
  requestId: string,
  claim: IdempotencyClaim | undefined,
  make: () => Promise<object>,
): Promise<object> {
  if (claim === undefined) return await make()
  let answer: object
  try {
    answer = await make()
  } catch (cause) {
    await noted(context, requestId, () => context.store.idempotency.release(claim))
    throw cause
  }
  const kept = { status: 200, headers: JSON_HEADERS, body: Buffer.from(JSON.stringify(answer)) }
  await noted(context, requestId, () => completeKey(context, claim, kept))
  return answer
}

/** The change was made, so later failures are only reported to the operator. */
async function noted(context: PipelineContext, requestId: string, note: () => MaybePromise<void>): Promise<void> {
  try {
    await note()
  } catch (error) {
    reportFault(context, requestId, 'idempotency', error)
  }
}
