import type { Credential } from '../core/credential.ts'
import type { WireAnswer } from '../endpoints/operation.ts'
import type { VendorFailure } from '../endpoints/stream-transform.ts'
import type { TaskCall, TaskOperation, TaskReport } from '../endpoints/task.ts'
import { BufferedCall } from '../pipeline/buffered-call.ts'
import { failureOfVendor } from '../pipeline/error-classification.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { headersAt, pathAt, withCredential } from '../pipeline/vendor-address.ts'
import { refusesCredential, withoutToken } from '../pipeline/vendor-credential.ts'
import type { CredentialCache } from '../routing/credential-cache.ts'
import { CredentialError } from '../routing/credential-cache.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { TransportRequest } from '../transport/transport.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { joinChunks } from '../wire/join-chunks.ts'
import { behaviourOf } from './new-task.ts'

/** Longest wait for a whole answer about a task; a lease on a task is longer. */
export const TASK_CALL_TIMEOUT_MS = 30_000

/** A vendor's answer about a task, or why there is none. */
export type TaskResponse<Value> =
  | { readonly kind: 'answer'; readonly value: Value }
  /** The vendor was reached and complained. */
  | { readonly kind: 'refused'; readonly failure: VendorFailure }
  /** Not reached, no answer in time, or none that can be read. */
  | { readonly kind: 'unreachable'; readonly reason: string }

/** The vendor, and the operator's key, that a task was submitted with. */
export interface TaskVendor {
  readonly vendor: Vendor
  readonly operation: TaskOperation
  readonly apiKey: string
  /** Undefined: `apiKey` is all that is needed. */
  readonly credentials: CredentialCache | undefined
  /** True if the key that submitted the task is not configured any more, and another one of the vendor is asked with. */
  readonly isSubstitute: boolean
}

/**
 * Finds the key that submitted a task, or another one of its vendor: keys of one account see the same tasks. Undefined if the
 * vendor has none.
 */
export function vendorOf(context: PipelineContext, task: TaskRecord): TaskVendor | undefined {
  const routed = context.routes.vendor(task.details.vendor)
  const own = routed?.keys.find(({ credentialId }) => credentialId === task.credentialId)
  const key = own ?? routed?.keys[task.details.polls % routed.keys.length]
  if (routed === undefined || key === undefined) return undefined
  const operation = behaviourOf(context, task)?.operation(routed.vendor)
  const { apiKey, credentials } = key
  return operation && { vendor: routed.vendor, operation, apiKey, credentials, isSubstitute: own === undefined }
}

/** Polls a task. */
export function readTaskReport(
  context: PipelineContext,
  asked: TaskVendor,
  upstreamId: string,
): Promise<TaskResponse<TaskReport>> {
  const { operation, apiKey } = asked
  return ask(context, asked, operation.read(upstreamId, apiKey), (answer) => operation.report(answer))
}

/** Asks the vendor to cancel a task. Only the vendor's confirmation counts. */
export function cancelAtVendor(
  context: PipelineContext,
  asked: TaskVendor,
  upstreamId: string,
): Promise<TaskResponse<true>> {
  const { operation, apiKey } = asked
  return ask(context, asked, operation.cancel(upstreamId, apiKey), () => true)
}

async function ask<Value>(
  context: PipelineContext,
  { vendor, credentials }: TaskVendor,
  request: TaskCall,
  read: (answer: WireAnswer) => Value | undefined,
): Promise<TaskResponse<Value>> {
  if (credentials === undefined) return send(context, vendor, request, read, undefined)
  try {
    const first = await credentials.take()
    const response = await send(context, vendor, request, read, first)
    if (response.kind !== 'refused' || !refusesCredential(failureOfVendor(response.failure))) return response
    if (!credentials.invalidate(first)) return response
    const second = await credentials.take()
    return second.token === first.token ? response : await send(context, vendor, request, read, second)
  } catch (error) {
    if (!(error instanceof CredentialError)) throw error
    return { kind: 'unreachable', reason: `no credential: ${error.message}` }
  }
}

async function send<Value>(
  context: PipelineContext,
  vendor: Vendor,
  request: TaskCall,
  read: (answer: WireAnswer) => Value | undefined,
  credential: Credential | undefined,
): Promise<TaskResponse<Value>> {
  const call = new BufferedCall((ended) => ended)
  const sent: TransportRequest = {
    origin: vendor.origin,
    path: pathAt(vendor, request.path),
    method: request.method,
    headers: headersAt(vendor, request.headers),
    body: null,
    firstByteTimeoutMs: Math.min(TASK_CALL_TIMEOUT_MS, context.timeouts.firstByteMs),
    idleTimeoutMs: Math.min(TASK_CALL_TIMEOUT_MS, context.timeouts.idleMs),
    egress: vendor.egress,
  }
  call.begin(context.transport, withCredential(sent, credential, context.clock.now()))
  const calls = context.taskCalls
  calls.add(call)
  // An answer that trickles in byte by byte never hits the idle timeout, and would outlast the lease.
  const deadline = context.clock.schedule(TASK_CALL_TIMEOUT_MS, () => call.abort())
  const outcome = await call.result
  deadline.cancel()
  calls.delete(call)
  if ('failure' in outcome) {
    const { phase, kind } = outcome.failure
    return { kind: 'unreachable', reason: `${phase} ${kind}` }
  }
  if ('oversize' in outcome) return { kind: 'unreachable', reason: 'the answer is too large' }
  const { status, headers, chunks } = outcome.answer
  const answer: WireAnswer = { status, headers, body: joinChunks(chunks) }
  if (status >= 300 && status < 400) return { kind: 'unreachable', reason: 'a redirect, which is never followed' }
  const value = status >= 200 && status < 300 ? read(answer) : undefined
  if (value !== undefined) return { kind: 'answer', value }
  const failure = withoutToken(vendor.errorFrom(answer, context.clock.now()), credential)
  return failure.kind === 'invalid_response'
    ? { kind: 'unreachable', reason: 'the answer is not what the vendor promises' }
    : { kind: 'refused', failure }
}
