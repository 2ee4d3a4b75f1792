import type { Credential } from '../core/credential.ts'
import type { AnswerBody, ChunkedAnswer, Operation, WireRequest } from '../endpoints/operation.ts'
import type { CredentialCache } from '../routing/credential-cache.ts'
import type { Transport } from '../transport/transport.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { joinChunks } from '../wire/chunks.ts'
import { requestIdOf } from '../wire/headers.ts'
import { AbortScope } from './abort-scope.ts'
import { reportedSilenceMs, type VendorActivity, type WatchedAttempt } from './call-timers.ts'
import {
  type AttemptFailure,
  failureOfAnswer,
  failureOfTransport,
  failureOfVendor,
  unusableResponse,
  withBillOf,
} from './error-classification.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { type FollowingCalls, StreamCall } from './stream-call.ts'
import {
  BufferedCall,
  type BufferedOutcome,
  isPatient,
  sendWithCredential,
  transportRequest,
  withCredential,
  withoutSecrets,
} from './vendor-access.ts'

/** Maximum number of concurrent calls of a split batch. */
const MAX_PARALLEL_CALLS = 8

/** The result of one attempt. */
export type AttemptOutcome =
  | {
      readonly kind: 'json'
      readonly body: AnswerBody
      /** The vendor's id of the answer; of the first one if there are several. */
      readonly vendorRequestId: string | undefined
      /** Whether there was only one request whose memory is no longer read by the transport. */
      readonly isRequestSent: boolean
    }
  | { readonly kind: 'stream'; readonly call: StreamCall }
  | { readonly kind: 'failed'; readonly failure: AttemptFailure }

/** The result of a call that does not stream. */
export type UnstreamedOutcome = Exclude<AttemptOutcome, { kind: 'stream' }>

/** Options of a call. */
export interface AttemptOptions {
  readonly isStream: boolean
  /** Whether the answer is the receipt of a task. */
  readonly isTask: boolean
  readonly scope: AbortScope
  /** Cache of expiring credentials, or `undefined` if the requests contain their credential. */
  readonly credentials: CredentialCache | undefined
  /** Attempt that makes the call and counts the received bytes. */
  readonly watched: WatchedAttempt
}

/** Sends a prepared call to a vendor, and reads the beginning of a stream, or all of another answer. */
export function attempt(
  context: PipelineContext,
  vendor: Vendor,
  operation: Operation,
  options: AttemptOptions,
): Promise<AttemptOutcome> {
  const { isStream, scope, credentials, watched } = options
  const { transport } = watched
  watched.watchSilence(reportedSilenceMs(isStream, isPatient(vendor, operation)))
  if (!isStream) {
    const firstByteMs = firstByteMsOf(context, options)
    return fetchWhole({ context, vendor, credentials, transport, activity: watched, firstByteMs, operation }, scope)
  }
  const callee = { context, vendor, transport, activity: watched }
  if (credentials === undefined) return openStream(callee, operation, scope)
  return sendWithCredential<AttemptOutcome>({
    credentials,
    scope,
    send: (credential) => openStream(callee, operation, scope, { credentials, credential }),
    failureOf: (outcome) => (outcome.kind === 'failed' ? outcome.failure : undefined),
    failed: (failure) => ({ kind: 'failed', failure }),
  })
}

/** Reads an answer to a prepared call that arrived in another way, such as in the results of a batch. */
export function attemptAnswered(
  context: PipelineContext,
  vendor: Vendor,
  operation: Operation,
  answer: ChunkedAnswer,
): UnstreamedOutcome {
  const problem = problemOf(context, vendor, { answer }, undefined)
  return outcomeOf({ context, vendor }, operation, problem ?? [answer])
}

/**
 * A whole answer begins after all of it is generated, so only the total time limits the wait, unless the gateway may retry
 * elsewhere. The receipt of a task begins immediately.
 */
function firstByteMsOf({ routing, timeouts }: PipelineContext, { isTask }: AttemptOptions): number {
  return isTask || routing.retryAfterTimeout ? timeouts.firstByteMs : timeouts.totalMs
}

/** Target of a call. */
interface Callee {
  readonly context: PipelineContext
  readonly vendor: Vendor
  readonly transport: Transport
  readonly activity: VendorActivity
}

/** Calls for whole answers, and their timeout. */
interface WholeCalls extends Callee {
  readonly credentials: CredentialCache | undefined
  readonly firstByteMs: number
  readonly operation: Operation
}

async function fetchWhole(calls: WholeCalls, scope: AbortScope): Promise<UnstreamedOutcome> {
  const { requests } = calls.operation
  const collected =
    requests.length === 1 ? await collectOne(calls, requests[0]!, scope) : await collectAll(calls, scope)
  return outcomeOf(calls, calls.operation, collected)
}

function outcomeOf(
  { context, vendor, credentials }: Pick<WholeCalls, 'context' | 'vendor'> & Partial<WholeCalls>,
  operation: Operation,
  collected: Collected,
): UnstreamedOutcome {
  if (!Array.isArray(collected)) return { kind: 'failed', failure: collected }
  const body = wholeBody(operation, collected)
  if (body === undefined) return { kind: 'failed', failure: errorIn2xx(context, vendor, collected) }
  const [first] = collected
  if (body.failure !== undefined) {
    const failure = failureOfAnswer(
      withoutSecrets(body.failure, vendor),
      body.usage,
      body.outputBytes ?? bytesOf(collected),
    )
    return { kind: 'failed', failure: first === undefined ? failure : withRequestId(failure, first) }
  }
  const isRecorded = context.usage !== undefined && first !== undefined
  // Calls with a credential may have been sent twice.
  const isRequestSent = credentials === undefined && collected.length === 1 && first?.isRequestSent === true
  return { kind: 'json', body, vendorRequestId: isRecorded ? requestIdOf(first.headers) : undefined, isRequestSent }
}

/** Returns the body of the answer. Undefined also if it is too deeply nested to be written; its vendor bills it anyway. */
function wholeBody(operation: Operation, answers: ChunkedAnswer[]): ReturnType<Operation['whole']> {
  try {
    return operation.whole(answers)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

type Collected = ChunkedAnswer[] | AttemptFailure

/** Sends one call, with a credential if it needs one. */
function collectOne(calls: WholeCalls, wire: WireRequest, scope: AbortScope): Promise<Collected> {
  const { credentials } = calls
  if (credentials === undefined) return collect(calls, wire, scope)
  return sendWithCredential<Collected>({
    credentials,
    scope,
    send: (credential) => collect(calls, wire, scope, credential),
    failureOf: (collected) => (Array.isArray(collected) ? undefined : collected),
    failed: (failure) => failure,
  })
}

function collect(calls: WholeCalls, wire: WireRequest, scope: AbortScope, credential?: Credential): Promise<Collected> {
  const { context, vendor, transport, activity, firstByteMs, operation } = calls
  const call = new BufferedCall(undefined, activity)
  if (!scope.add(call)) return Promise.resolve(ABORTED)
  const request = transportRequest(context, vendor, wire, operation, firstByteMs)
  call.begin(transport, withCredential(request, credential, context.clock.now()))
  return call.result.then((outcome) => {
    scope.delete(call)
    const problem = problemOf(context, vendor, outcome, credential)
    if (problem === undefined) return [(outcome as { readonly answer: ChunkedAnswer }).answer]
    if (call.answerBytes === undefined) return problem
    return { ...problem, answerBytes: operation.cutBytes?.(call.chunks) ?? call.answerBytes }
  })
}

/**
 * Sends several calls, some concurrently. The first failure stops the rest, because their answers would be useless, and no other
 * call is sent. Answers received by then were billed, and stopped calls may be.
 */
async function collectAll(calls: WholeCalls, scope: AbortScope): Promise<Collected> {
  const { operation } = calls
  const { requests } = operation
  const siblings = new AbortScope(scope)
  if (!scope.add(siblings)) return ABORTED
  const answers: ChunkedAnswer[] = new Array(requests.length)
  const failures: AttemptFailure[] = []
  let next = 0
  const work = async (): Promise<void> => {
    while (next < requests.length && failures.length === 0) {
      const index = next++
      const collected = await collectOne(calls, requests[index]!, siblings)
      if (Array.isArray(collected)) answers[index] = collected[0]!
      else if (failures.push(collected) === 1) siblings.abort()
    }
  }
  await Promise.all(Array.from({ length: MAX_PARALLEL_CALLS }, work))
  scope.delete(siblings)
  const [first] = failures
  if (first === undefined) return answers
  const begun = failures.filter(({ mayHaveBegun }) => mayHaveBegun)
  // All calls were stopped together, so a call that its vendor has received decides.
  const failure = first.outcome === 'ignored' ? (begun[0] ?? first) : first
  const billedUsage = operation.partialUsage?.(answers)
  return {
    ...failure,
    ...(begun.length === 0 ? {} : { begunShare: begun.length / requests.length }),
    ...(billedUsage === undefined ? {} : { billedUsage, isPartDone: true }),
  }
}

const ABORTED = failureOfTransport({
  phase: 'connect',
  kind: 'aborted',
  error: new Error('aborted before it was sent'),
})

function problemOf(
  context: PipelineContext,
  vendor: Vendor,
  outcome: BufferedOutcome,
  credential: Credential | undefined,
): AttemptFailure | undefined {
  if ('failure' in outcome) return failureOfTransport(outcome.failure)
  if ('oversize' in outcome) return unusableResponse('the answer is too large', undefined)
  return isSuccess(outcome.answer) ? undefined : answeredFailure(context, vendor, outcome.answer, credential)
}

function answeredFailure(
  context: PipelineContext,
  vendor: Vendor,
  answer: ChunkedAnswer,
  credential?: Credential,
): AttemptFailure {
  if (answer.status >= 300 && answer.status < 400)
    return withRequestId(
      unusableResponse('the vendor answered with a redirect, which is never followed', answer.status),
      answer,
    )
  const failure = vendor.errorFrom(
    { status: answer.status, headers: answer.headers, body: joinChunks(answer.chunks) },
    context.clock.now(),
  )
  return withRequestId(failureOfVendor(withoutSecrets(failure, vendor, credential)), answer)
}

/** Adds the id of the response headers for the operator, if the body contains none. Callers do not see it. */
function withRequestId(failure: AttemptFailure, { headers }: Pick<ChunkedAnswer, 'headers'>): AttemptFailure {
  const { report } = failure
  return { ...failure, report: { ...report, vendorRequestId: report.vendorRequestId ?? requestIdOf(headers) } }
}

/** Detects an error in a 2xx response: some vendors send errors with a success status. */
function errorIn2xx(context: PipelineContext, vendor: Vendor, answers: readonly ChunkedAnswer[]): AttemptFailure {
  for (const { status, headers, chunks } of answers) {
    const failure = vendor.errorFrom({ status, headers, body: joinChunks(chunks) }, context.clock.now())
    if (failure.kind !== 'invalid_response')
      return withRequestId(failureOfVendor(withoutSecrets(failure, vendor)), { headers })
  }
  const [first] = answers
  const unusable = unusableResponse('the answer is not what the vendor promises', first?.status)
  if (first === undefined) return unusable
  return { ...withRequestId(unusable, first), answerBytes: bytesOf(answers) }
}

function bytesOf(answers: readonly ChunkedAnswer[]): number {
  let byteLength = 0
  for (const { chunks } of answers) for (const chunk of chunks) byteLength += chunk.byteLength
  return byteLength
}

/** Credentials of the calls of one stream. */
interface StreamCredentials {
  readonly credentials: CredentialCache
  /** Credential of the first call. */
  readonly credential: Credential
}

async function openStream(
  callee: Callee,
  operation: Operation,
  scope: AbortScope,
  proof?: StreamCredentials,
): Promise<AttemptOutcome> {
  const { context, vendor, transport, activity } = callee
  const { requests } = operation
  const wire = requests[0]
  if (wire === undefined) throw new TypeError('a stream needs a request')
  const stream = operation.stream()
  if (stream.ready !== undefined) await stream.ready
  const call = new StreamCall(
    stream,
    requests.length === 1 ? undefined : followingCalls(callee, operation, proof?.credentials),
    activity,
  )
  if (!scope.add(call)) return { kind: 'failed', failure: ABORTED }
  const request = withCredential(
    transportRequest(context, vendor, wire, operation),
    proof?.credential,
    context.clock.now(),
  )
  call.begin(transport, request, context.clock)
  const opening = await call.opening
  if (opening.kind === 'open') return { kind: 'stream', call }
  call.abort()
  scope.delete(call)
  const failed = openingFailure(context, vendor, opening, proof?.credential)
  const failure = call.hasHead && hasBroken(opening) ? { ...failed, answerBytes: 0 } : failed
  return { kind: 'failed', failure: withBillOf(failure, stream) }
}

/** Whether a stream broke without an error of the vendor. */
function hasBroken({ kind }: Awaited<StreamCall['opening']>): boolean {
  return kind === 'transport-failure' || kind === 'empty'
}

function followingCalls(
  { context, vendor, transport }: Callee,
  operation: Operation,
  credentials: CredentialCache | undefined,
): FollowingCalls {
  // The first request has opened the stream.
  let next = 1
  return {
    send(handler) {
      const wire = operation.requests[next++]
      // The stream continues immediately: it cannot wait for a refresh, which starts before the expiry.
      const credential = wire && credentials?.now()
      return (
        wire &&
        transport.send(
          withCredential(transportRequest(context, vendor, wire, operation), credential, context.clock.now()),
          handler,
        )
      )
    },
    refusal(answer) {
      const { error, reason, status } = isSuccess(answer)
        ? errorIn2xx(context, vendor, [answer])
        : answeredFailure(context, vendor, answer)
      const kind = error.code === 'upstream_invalid_response' ? 'protocol' : 'refused'
      return { phase: 'body', kind, error: new Error(`a later call was refused: ${reason} (${status ?? 'no status'})`) }
    },
  }
}

function isSuccess({ status }: ChunkedAnswer): boolean {
  return status >= 200 && status < 300
}

function openingFailure(
  context: PipelineContext,
  vendor: Vendor,
  opening: Exclude<Awaited<StreamCall['opening']>, { kind: 'open' }>,
  credential: Credential | undefined,
): AttemptFailure {
  switch (opening.kind) {
    case 'answer':
      return isSuccess(opening.answer)
        ? errorIn2xx(context, vendor, [opening.answer])
        : answeredFailure(context, vendor, opening.answer, credential)
    case 'vendor-failure':
      return failureOfVendor(withoutSecrets(opening.failure, vendor, credential))
    case 'transport-failure':
      return failureOfTransport(opening.failure)
    case 'empty':
      return unusableResponse('the stream ended before any content', undefined)
  }
}
