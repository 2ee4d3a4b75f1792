import { Buffer } from 'node:buffer'
import type { CatalogModel } from '../catalog/model.ts'
import { endOfTurn, isLargeBody } from '../core/calls-in-flight.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { isJsonObject, parseVendorJson } from '../core/json.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { CallerUrl } from '../endpoints/endpoint.ts'
import type { AnswerBody, ChunkedAnswer, Operation, VendorCall, WireRequest } from '../endpoints/operation.ts'
import type { StreamTransform, VendorFailure } from '../endpoints/stream-transform.ts'
import { withOwnObjects } from '../endpoints/vendor-objects.ts'
import type { HookWire, WireResult } from '../hooks/hook.ts'
import type { CompiledHook } from '../hooks/hook-table.ts'
import { endUserOf } from '../stores/principal.ts'
import { asBuffer } from '../wire/chunks.ts'
import { editMembers } from '../wire/json-edits.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { promptCachingOf } from './estimate.ts'
import { carriesCredential, checkedResult, hookFailed } from './hooks/hook-facts.ts'
import { HEADER_NAME, HEADER_VALUE } from './hooks/request-hooks.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { billedUsage, quotedCost } from './pricing.ts'

/**
 * Prepares a request for a candidate.
 * @throws GatewayError of the vendor's translator if it fails, and `endpoint_model_mismatch` if the vendor does not serve the
 *   endpoint.
 */
export function prepareOperation(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
): MaybePromise<Operation> {
  const { endpoint, body, bytes } = call
  const media = endpoint.remoteMedia?.(body, candidate.vendor, candidate.model)
  if (media === undefined && !isLargeBody(bytes)) return createOperation(context, call, candidate, body)
  const known =
    media === undefined ? endOfTurn().then(() => body) : fetchAll(context, call, media.urls).then(media.inline)
  return known.then((fetched) => createOperation(context, call, candidate, fetched))
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
    vendorCall.operation.hasHiddenReasoning = operation.hasHiddenReasoning === true
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
    billedUsage(call, candidate, reported, { outputBytes, isUnseen: operation.hasHiddenReasoning })
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
  readonly operation: { hasHiddenReasoning: boolean }
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
    const operation = { hasHiddenReasoning: false }
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

/** Maximum per request: fetched media, their total bytes, and concurrent fetches. */
const MAX_FETCHED = 20
const MAX_FETCHED_BYTES = 32 * 1024 * 1024
const MAX_PARALLEL_FETCHES = 4

/**
 * Returns data URLs in the order of the addresses. A few are fetched concurrently. The first failure ends the others, and so does
 * the end of the request or the disconnect of its caller. Bytes count while they arrive, until the answer begins.
 * @throws GatewayError `invalid_request` with the address if it cannot be fetched or is not allowed, or if there are too many of
 *   them; `rate_limited` and `overloaded` if there is no room for their bytes.
 */
async function fetchAll(context: PipelineContext, call: Reserved, addresses: readonly CallerUrl[]): Promise<string[]> {
  const tooMany = addresses[MAX_FETCHED]
  if (tooMany !== undefined) throw refused(tooMany.param, `at most ${MAX_FETCHED} images may be URLs for this model`)
  const { accountId } = call.principal
  const control = new AbortController()
  const claim = context.fetchedBytes.claim(accountId)
  const fetches = { isUnsent: true, abort: () => control.abort(new GatewayError('client_closed_request')) }
  const dataUrls: string[] = new Array(addresses.length)
  let next = 0
  let byteLength = 0
  const work = async (): Promise<void> => {
    while (next < addresses.length) {
      const index = next++
      const { url, param } = addresses[index]!
      const onBytes = (bytes: number): void => {
        byteLength += bytes
        if (byteLength > MAX_FETCHED_BYTES)
          throw refused(param, `the images of a request may have ${MAX_FETCHED_BYTES} bytes together`)
        claim.add(bytes)
      }
      const fetched = await context.fetchImage(url, { accountId, signal: control.signal, onBytes })
      control.signal.throwIfAborted()
      if ('reason' in fetched) throw refused(param, fetched.reason, fetched.isBusy)
      dataUrls[index] = `data:${fetched.mediaType};base64,${Buffer.from(fetched.bytes).toString('base64')}`
    }
  }
  const release = (): void => {
    fetches.abort()
    claim.release()
  }
  const aborted = new Promise<never>((_, reject) => {
    control.signal.addEventListener('abort', () => reject(control.signal.reason))
  })
  if (!call.calls.add(fetches)) throw new GatewayError('client_closed_request')
  call.calls.holds(release)
  try {
    await Promise.race([Promise.all(Array.from({ length: MAX_PARALLEL_FETCHES }, work)), aborted])
    return dataUrls
  } catch (error) {
    release()
    throw error
  } finally {
    call.calls.delete(fetches)
  }
}

function refused(param: string, reason: string, isBusy = false): GatewayError {
  const details = { message: `${param}: ${reason}`, param }
  return isBusy
    ? new GatewayError('rate_limited', { ...details, retryAfterSeconds: 1 })
    : new GatewayError('invalid_request', details)
}

/** Headers that belong to the connection, or frame the body. */
const FRAMING_HEADER =
  /^(?:host|connection|content-length|content-type|content-encoding|transfer-encoding|expect|upgrade|te)$/i

/** Members that determine the call and how the answer is read. */
const FIXED_MEMBERS: ReadonlySet<string> = new Set(['model', 'stream'])

/**
 * Lets hooks add to the requests of an operation, before they are signed and sent.
 * @throws GatewayError `hook_failed`.
 */
function withWireHooks(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
  operation: Operation,
  hooks: readonly CompiledHook[],
): Operation {
  const requests = operation.requests.map((request) => {
    let changed = request
    for (const hook of hooks) changed = wired(context, call, candidate, changed, hook)
    return changed
  })
  return requests.every((request, index) => request === operation.requests[index])
    ? operation
    : new WiredOperation(operation, requests)
}

/** Adds the end user to the requests of an operation, if the vendor's options say so. */
function withEndUser(call: Reserved, { vendor }: Candidate, operation: Operation): Operation {
  const { endUserMembers } = vendor
  if (endUserMembers === undefined) return operation
  const { principal, body } = call
  const who = { accountId: principal.accountId, endUser: endUserOf(principal, body), request: body }
  const requests = operation.requests.map((request) => {
    const members = endUserMembers(request.path, who)
    return members === undefined ? request : { ...request, body: withMembers(request.body, members) }
  })
  return new WiredOperation(operation, requests)
}

function wired(
  context: PipelineContext,
  call: Reserved,
  candidate: Candidate,
  request: WireRequest,
  hook: CompiledHook,
): WireRequest {
  let fault: 'threw' | 'unusable-result' = 'threw'
  try {
    const returned = hook.hook.wire?.(visible(call, candidate, request))
    fault = 'unusable-result'
    if (isPending(returned)) throw new TypeError('the point wire is synchronous')
    const result = checkedResult<WireResult>(returned, ['headers', 'members'])
    if (result === undefined) return request
    const headers = withHeaders(request.headers, result.headers, candidate.apiKey)
    return { ...request, headers, body: withMembers(request.body, result.members) }
  } catch (error) {
    const failure = hookFailed(context, call, candidate.model.id, { hook, point: 'wire', fault, error })
    if (failure !== undefined) throw failure
    return request
  }
}

/** Returns the part of a request to a vendor that a hook may see, without credentials. */
function visible(call: Reserved, { model, vendor, apiKey }: Candidate, request: WireRequest): HookWire {
  const headers: Record<string, string> = {}
  for (let index = 0; index + 1 < request.headers.length; index += 2) {
    const name = request.headers[index]!.toLowerCase()
    const value = request.headers[index + 1]!
    if (!isSecret(name, value, apiKey)) headers[name] = value
  }
  const { requestId, endpoint, principal } = call
  const path = apiKey === '' ? request.path : request.path.replaceAll(apiKey, '[key]')
  return { requestId, endpoint: endpoint.id, model: model.id, vendor: vendor.id, principal, headers, path }
}

function isSecret(name: string, value: string, apiKey: string): boolean {
  return carriesCredential(name) || (apiKey !== '' && value.includes(apiKey))
}

function withHeaders(headers: readonly string[], added: unknown, apiKey: string): readonly string[] {
  if (added === undefined) return headers
  if (!isJsonObject(added)) throw new TypeError('headers must be an object')
  const changed = [...headers]
  for (const [name, value] of Object.entries(added)) {
    if (!HEADER_NAME.test(name) || typeof value !== 'string' || !HEADER_VALUE.test(value))
      throw new TypeError(`the header ${JSON.stringify(name)} cannot be sent`)
    const at = changed.findIndex((known, index) => index % 2 === 0 && known.toLowerCase() === name.toLowerCase())
    const isOfVendor = at !== -1 && isSecret(name, changed[at + 1]!, apiKey)
    if (FRAMING_HEADER.test(name) || carriesCredential(name) || isOfVendor)
      throw new TypeError(`the header ${JSON.stringify(name)} cannot be set by a hook`)
    if (at === -1) changed.push(name, value)
    else changed[at + 1] = value
  }
  return changed
}

function withMembers(body: WireRequest['body'], members: unknown): WireRequest['body'] {
  if (members === undefined) return body
  if (!isJsonObject(members)) throw new TypeError('members must be an object')
  const names = Object.keys(members)
  const fixed = names.find((name) => FIXED_MEMBERS.has(name))
  if (fixed !== undefined) throw new TypeError(`the member ${JSON.stringify(fixed)} cannot be set by a hook`)
  if (names.length === 0) return body
  if (Array.isArray(body)) throw new TypeError('members can be added to JSON bodies only, and this one is a form')
  const text = asBuffer(typeof body === 'string' ? Buffer.from(body) : (body as Uint8Array))
  const edits = editMembers(text, new Map(names.map((name) => [name, JSON.stringify(members[name])])))
  if (edits !== undefined) return edits.apply(text)
  const value = parseVendorJson(text.toString('utf8'))
  if (!isJsonObject(value)) throw new TypeError('members can be added to JSON objects only')
  return JSON.stringify({ ...value, ...members })
}

/** Operation with changed requests. A class, like every object that lives as long as a vendor takes to answer. */
class WiredOperation implements Operation {
  readonly requests: readonly WireRequest[]
  readonly hasHiddenReasoning: boolean
  readonly #operation: Operation

  constructor(operation: Operation, requests: readonly WireRequest[]) {
    this.#operation = operation
    this.requests = requests
    this.hasHiddenReasoning = operation.hasHiddenReasoning === true
  }

  whole(answers: readonly ChunkedAnswer[]): AnswerBody | undefined {
    return this.#operation.whole(answers)
  }

  stream(): StreamTransform {
    return this.#operation.stream()
  }

  partialUsage(answers: readonly (ChunkedAnswer | undefined)[]): Usage | undefined {
    return this.#operation.partialUsage?.(answers)
  }

  cutBytes(chunks: readonly Uint8Array[]): number | undefined {
    return this.#operation.cutBytes?.(chunks)
  }
}
