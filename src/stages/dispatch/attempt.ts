import type { CatalogModel } from '../../catalog/model.ts'
import { GatewayError } from '../../core/errors.ts'
import type { TransportRequest } from '../../transport/transport.ts'
import type { RelayedBody, Vendor, VendorCall, WireRequest } from '../../vendors/vendor.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import type { ChunkedAnswer, VendorExchange } from '../exchanges/vendor-exchange.ts'
import type { Candidate } from '../records.ts'
import type { StageContext } from '../stage-context.ts'
import { type AttemptFailure, failureOfTransport, failureOfVendor, unusableAnswer } from './attempt-failure.ts'
import { CallGroup } from './call-group.ts'
import { type FollowingCalls, StreamCall } from './stream-call.ts'
import { WholeCall, type WholeOutcome } from './whole-call.ts'

/** Most calls that a split batch has under way at the same time. */
const MAX_PARALLEL_CALLS = 8

/** What one attempt came to. */
export type AttemptOutcome =
  | { readonly kind: 'whole'; readonly body: RelayedBody }
  | { readonly kind: 'stream'; readonly call: StreamCall }
  | { readonly kind: 'failed'; readonly failure: AttemptFailure }

/** Sends a prepared call to a vendor and reads the beginning of a stream, or the whole of another answer. */
export function attempt(
  context: StageContext,
  candidate: Candidate,
  exchange: VendorExchange,
  options: { readonly isStream: boolean; readonly group: CallGroup },
): Promise<AttemptOutcome> {
  const { vendor } = candidate
  const { group } = options
  if (options.isStream) return openStream(context, vendor, exchange, group)
  const { requests } = exchange
  const collected =
    requests.length === 1
      ? collectOne(context, vendor, requests[0]!, group)
      : collectAll(context, vendor, requests, group)
  return collected.then((answers) => wholeOutcome(context, vendor, exchange, answers))
}

function wholeOutcome(
  context: StageContext,
  vendor: Vendor,
  exchange: VendorExchange,
  collected: Collected,
): AttemptOutcome {
  if (!Array.isArray(collected)) return { kind: 'failed', failure: collected }
  const body = exchange.whole(collected)
  if (body === undefined) return { kind: 'failed', failure: disguisedError(context, vendor, collected) }
  return { kind: 'whole', body }
}

type Collected = ChunkedAnswer[] | AttemptFailure

function collectOne(context: StageContext, vendor: Vendor, wire: WireRequest, group: CallGroup): Promise<Collected> {
  const call = new WholeCall()
  if (!group.add(call)) return Promise.resolve(GIVEN_UP)
  call.begin(context.transport, transportRequest(context, vendor, wire))
  return call.outcome.then((outcome) => {
    group.delete(call)
    return problemOf(context, vendor, outcome) ?? [(outcome as { readonly answer: ChunkedAnswer }).answer]
  })
}

/** Sends several calls, some at a time. The first failure ends the rest: their answers would be of no use. */
async function collectAll(
  context: StageContext,
  vendor: Vendor,
  requests: readonly WireRequest[],
  group: CallGroup,
): Promise<Collected> {
  const siblings = new CallGroup()
  if (!group.add(siblings)) return GIVEN_UP
  const answers: ChunkedAnswer[] = new Array(requests.length)
  let next = 0
  let failure: AttemptFailure | undefined
  const work = async (): Promise<void> => {
    while (next < requests.length && failure === undefined) {
      const index = next++
      const collected = await collectOne(context, vendor, requests[index]!, siblings)
      if (Array.isArray(collected)) answers[index] = collected[0]!
      else if (failure === undefined) {
        failure = collected
        siblings.abort()
      }
    }
  }
  await Promise.all(Array.from({ length: MAX_PARALLEL_CALLS }, work))
  group.delete(siblings)
  return failure ?? answers
}

const GIVEN_UP = failureOfTransport({
  phase: 'connect',
  kind: 'aborted',
  error: new Error('given up before it was sent'),
})

function problemOf(context: StageContext, vendor: Vendor, outcome: WholeOutcome): AttemptFailure | undefined {
  if ('failure' in outcome) return failureOfTransport(outcome.failure)
  if ('oversize' in outcome) return unusableAnswer('the answer is too large', undefined)
  return isSuccess(outcome.answer) ? undefined : answeredFailure(context, vendor, outcome.answer)
}

function answeredFailure(context: StageContext, vendor: Vendor, answer: ChunkedAnswer): AttemptFailure {
  if (answer.status >= 300 && answer.status < 400)
    return unusableAnswer('the vendor answered with a redirect, which is never followed', answer.status)
  return failureOfVendor(
    vendor.errorFrom(
      { status: answer.status, headers: answer.headers, body: joinChunks(answer.chunks) },
      context.clock.now(),
    ),
  )
}

/** A 2xx answer that is not what was promised: some vendors hide an error in it. */
function disguisedError(context: StageContext, vendor: Vendor, answers: readonly ChunkedAnswer[]): AttemptFailure {
  for (const { status, headers, chunks } of answers) {
    const failure = vendor.errorFrom({ status, headers, body: joinChunks(chunks) }, context.clock.now())
    if (failure.kind !== 'invalid_response') return failureOfVendor(failure)
  }
  return unusableAnswer('the answer is not what the vendor promises', answers[0]?.status)
}

async function openStream(
  context: StageContext,
  vendor: Vendor,
  exchange: VendorExchange,
  group: CallGroup,
): Promise<AttemptOutcome> {
  const { requests } = exchange
  const wire = requests[0]
  if (wire === undefined)
    throw new GatewayError('internal_error', { cause: new Error('an exchange without a request') })
  const stream = exchange.stream()
  if (stream.ready !== undefined) await stream.ready
  const call = new StreamCall(stream, requests.length === 1 ? undefined : followingCalls(context, vendor, requests))
  if (!group.add(call)) return { kind: 'failed', failure: GIVEN_UP }
  call.begin(context.transport, transportRequest(context, vendor, wire), context.clock)
  const opening = await call.opening
  if (opening.kind === 'open') return { kind: 'stream', call }
  call.abort()
  group.delete(call)
  return { kind: 'failed', failure: openingFailure(context, vendor, opening) }
}

function followingCalls(context: StageContext, vendor: Vendor, requests: readonly WireRequest[]): FollowingCalls {
  // The first has opened the stream.
  let next = 1
  return {
    send(handler) {
      const wire = requests[next++]
      return wire && context.transport.send(transportRequest(context, vendor, wire), handler)
    },
    refusal(answer) {
      const { error, reason, status } = isSuccess(answer)
        ? disguisedError(context, vendor, [answer])
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
  context: StageContext,
  vendor: Vendor,
  opening: Exclude<Awaited<StreamCall['opening']>, { kind: 'open' }>,
): AttemptFailure {
  switch (opening.kind) {
    case 'answer':
      return isSuccess(opening.answer)
        ? disguisedError(context, vendor, [opening.answer])
        : answeredFailure(context, vendor, opening.answer)
    case 'vendor-failure':
      return failureOfVendor(opening.failure)
    case 'transport-failure':
      return failureOfTransport(opening.failure)
    case 'empty':
      return unusableAnswer('the stream ended before any content', undefined)
  }
}

function transportRequest(context: StageContext, vendor: Vendor, wire: WireRequest): TransportRequest {
  return {
    origin: vendor.origin,
    path: wire.path,
    method: 'POST',
    headers: wire.headers,
    body: wire.body,
    firstByteTimeoutMs: context.timeouts.firstByteMs,
    idleTimeoutMs: context.timeouts.idleMs,
  }
}

/** What of a request a translator needs. */
interface CallFacts {
  readonly body: unknown
  readonly bytes: Uint8Array | undefined
  readonly isStream: boolean
  readonly costOf?: VendorCall<never>['costOf']
  readonly header?: VendorCall<never>['header']
  readonly conversation?: VendorCall<never>['conversation']
}

/** What a translator needs to know of a call. */
export function vendorCall(candidate: Candidate, facts: CallFacts, nowMs: number): VendorCall<never> {
  return new CallRecord(candidate, facts, nowMs)
}

class CallRecord implements VendorCall<never> {
  readonly request: never
  readonly bytes: Uint8Array | undefined
  readonly model: CatalogModel
  readonly publicModel: string
  readonly apiKey: string
  readonly stream: boolean
  readonly nowMs: number
  readonly costOf: CallFacts['costOf']
  readonly header: CallFacts['header']
  readonly conversation: CallFacts['conversation']

  constructor({ model, apiKey }: Candidate, facts: CallFacts, nowMs: number) {
    this.request = facts.body as never
    this.bytes = facts.bytes
    this.model = model
    this.publicModel = model.id
    this.apiKey = apiKey
    this.stream = facts.isStream
    this.nowMs = nowMs
    this.costOf = facts.costOf
    this.header = facts.header
    this.conversation = facts.conversation
  }
}
