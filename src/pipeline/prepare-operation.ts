import type { CatalogModel } from '../catalog/model.ts'
import type { Clock } from '../core/clock.ts'
import { endOfTurn, isLargeBody } from '../core/end-of-turn.ts'
import { GatewayError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'
import type { Operation, VendorCall } from '../endpoints/operation.ts'
import type { VendorFailure } from '../endpoints/stream-transform.ts'
import { withOwnObjects } from '../endpoints/vendor-objects.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { billedUsage, quotedCost } from './pricing.ts'
import { promptCachingOf } from './prompt-caching.ts'
import { withRemoteMedia } from './remote-media.ts'
import { withEndUser, withWireHooks } from './wire-hooks.ts'

/**
 * Prepares a request for a candidate.
 * @throws GatewayError of the vendor's translator if it fails, and `endpoint_model_mismatch` if the vendor does not serve the
 *   endpoint.
 */
export function prepareOperation(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
): Operation | Promise<Operation> {
  const media = withRemoteMedia(context, call, candidate)
  const body = isLargeBody(call.bytes) && !(media instanceof Promise) ? endOfTurn().then(() => media) : media
  return body instanceof Promise
    ? body.then((fetched) => createOperation(context, call, candidate, fetched))
    : createOperation(context, call, candidate, body)
}

/**
 * Prepares a request for a candidate that may be skipped. The last remaining route of the requested model reports the unsupported
 * part to the caller. Returns `undefined` if this candidate does not support the request.
 */
export async function prepareIfAble(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
): Promise<Operation | undefined> {
  try {
    return await prepareOperation(context, call, candidate)
  } catch (cause) {
    const { status } = GatewayError.from(cause)
    if (status >= 500) throw cause
    return undefined
  }
}

function createOperation(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
  body: Reserved['body'],
): Operation {
  const { endpoint } = call
  const own = candidate.vendor.allowsVendorObjects === true ? body : withOwnObjects(body, ownIdsOf(call))
  const vendorCall = new CallFacts(call, candidate, own, context, own !== body)
  const operation = endpoint.createOperation(candidate.vendor, vendorCall)
  if (operation !== undefined) {
    vendorCall.operation.reasonsUnseen = operation.reasonsUnseen === true
    const hooks = context.hooks?.of(endpoint)?.wire
    const named = withEndUser(call, candidate, operation)
    return hooks === undefined ? named : withWireHooks(context, call, candidate, named, hooks)
  }
  throw new GatewayError('endpoint_model_mismatch', {
    message: `The vendor of the model ${JSON.stringify(candidate.model.id)} does not serve ${endpoint.path}.`,
    param: 'model',
  })
}

function ownIdsOf({ continued }: Reserved): ReadonlySet<string> {
  return continued?.recalled?.ownIds ?? NONE
}

const NONE: ReadonlySet<string> = new Set()

type BilledUsageOf = NonNullable<VendorCall<Reserved['body']>['billedUsage']>

function billedUsageOf(call: Reserved, candidate: Candidate, operation: CallFacts['operation']): BilledUsageOf {
  return (reported, outputBytes) =>
    billedUsage(call, candidate, reported, { outputBytes, isUnseen: operation.reasonsUnseen })
}

function problemReporter(
  context: PipelineContext,
  requestId: string,
  vendor: string,
): (problem: VendorFailure) => void {
  return ({ status, code, message }) =>
    emit(context, { type: 'vendor-account-problem', requestId, vendor, status, code, message })
}

/** Facts of a call for a translator. A class for the reason described at `CallRecord`. */
class CallFacts implements VendorCall<Reserved['body']> {
  readonly request: Reserved['body']
  readonly bytes: Uint8Array | undefined
  readonly model: CatalogModel
  readonly publicModel: string
  readonly apiKey: string
  readonly stream: boolean
  readonly nowMs: number
  readonly clock: Clock
  readonly isBilled: boolean
  readonly costOf: ((usage: Usage) => string | undefined) | undefined
  readonly billedUsage: BilledUsageOf
  readonly header: ((name: string) => string | undefined) | undefined
  readonly conversation: VendorCall<Reserved['body']>['conversation']
  /** State of the operation that is created with these facts. */
  readonly operation: { reasonsUnseen: boolean }
  readonly stateSecret: string | undefined
  readonly promptCaching: VendorCall<Reserved['body']>['promptCaching']
  readonly reportProblem: VendorCall<Reserved['body']>['reportProblem']

  /** @param isRewritten Whether ids were replaced in the body, so that the request as its caller wrote it must not be sent. */
  constructor(
    call: Reserved,
    candidate: Candidate,
    body: Reserved['body'],
    context: PipelineContext,
    isRewritten: boolean,
  ) {
    const { continued, request } = call
    this.request = body
    // Bytes that no longer match the body must not be sent.
    this.bytes = body === call.body ? call.bytes : undefined
    this.model = candidate.model
    // A caller that used the vendor's own id gets it in the answer.
    this.publicModel = call.body.model === candidate.model.upstream ? call.body.model : candidate.model.id
    this.apiKey = candidate.apiKey
    this.stream = call.isStream
    this.nowMs = context.clock.now()
    this.clock = context.clock
    this.isBilled = call.hold !== undefined
    this.costOf = call.hold === undefined || !call.isStream ? undefined : (usage) => quotedCost(call, candidate, usage)
    // Separate from the facts: a stream retains the function while it is open, and must not retain the prompt.
    const operation = { reasonsUnseen: false }
    this.operation = operation
    this.billedUsage = billedUsageOf(call, candidate, operation)
    this.header = call.endpoint.passesHeaders === true ? (name) => request.header(name) : undefined
    const previous = isRewritten ? undefined : continued?.previous
    this.conversation = continued && {
      previousUpstreamId: previous?.credentialId === candidate.credentialId ? previous.upstreamId : undefined,
      freshId: continued.freshId,
      original: continued.recalled?.original,
    }
    this.stateSecret = context.keptAnswers.stateSecret
    this.promptCaching = promptCachingOf(context, call, candidate)
    this.reportProblem = problemReporter(context, call.requestId, candidate.vendor.id)
  }
}
