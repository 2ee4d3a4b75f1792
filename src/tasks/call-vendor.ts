import type { Credential } from '../core/credential.ts'
import type { WireAnswer } from '../endpoints/operation.ts'
import type { VendorFailure } from '../endpoints/stream-transform.ts'
import type { TaskOperation, TaskReport } from '../endpoints/task.ts'
import { failureOfVendor } from '../pipeline/error-classification.ts'
import { TEXT_LEFT_OUT } from '../pipeline/estimate.ts'
import { emit, type PipelineContext } from '../pipeline/pipeline-context.ts'
import {
  BufferedCall,
  headersAt,
  pathAt,
  refusesCredential,
  withCredential,
  withoutSecrets,
} from '../pipeline/vendor-access.ts'
import { type CredentialCache, CredentialError } from '../routing/credential-cache.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { TransportRequest } from '../transport/transport.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { joinChunks } from '../wire/chunks.ts'
import { behaviourOf } from './task-record.ts'

/** Maximum wait for a whole answer, in milliseconds, unless the call sets another. A lease on a task is longer. */
export const TASK_CALL_TIMEOUT_MS = 30_000

/** Vendor's answer about a task, or the reason why there is none. */
export type TaskResponse<Value> =
  | { readonly kind: 'answer'; readonly value: Value }
  /** The vendor was reached and returned an error. */
  | { readonly kind: 'refused'; readonly failure: VendorFailure }
  /** Not reached, timed out, or an unreadable answer. `wasSent` is `false` if the vendor cannot have received the call. */
  | { readonly kind: 'unreachable'; readonly reason: string; readonly wasSent: boolean }

/** Response without a usable answer. */
export type Unanswered = Exclude<TaskResponse<unknown>, { kind: 'answer' }>

/** Members of log lines about a task. */
export type TaskNames = Readonly<Record<'requestId' | 'taskId' | 'vendor' | 'model', string>>

/**
 * Logs one line for a call that a vendor did not answer, and emits an event if the operator must act. The prompt is not known here,
 * so quotes of it cannot be found, and the vendor's message is left out.
 */
export function reportUnanswered(context: PipelineContext, named: TaskNames, text: string, response: Unanswered): void {
  if (response.kind === 'unreachable') {
    context.logger.warn(text, { ...named, reason: response.reason })
    return
  }
  const { kind: reason, status, code } = response.failure
  if (reason === 'operator') reportAccountProblem(context, named, response.failure)
  context.logger[reason === 'operator' ? 'error' : 'warn'](text, { ...named, reason, status, vendorCode: code })
}

/** Emits an event about the operator's account at a vendor. */
export function reportAccountProblem(
  context: PipelineContext,
  { requestId, vendor }: TaskNames,
  { status, code }: VendorFailure,
): void {
  emit(context, { type: 'vendor-account-problem', requestId, vendor, status, code, message: TEXT_LEFT_OUT })
}

/** Vendor, and the operator's key for the call. */
export interface CalledVendor {
  readonly vendor: Vendor
  readonly apiKey: string
  /** Cache of short-lived credentials, or `undefined` if `apiKey` is sufficient. */
  readonly credentials: CredentialCache | undefined
}

/** Call that the gateway makes itself, without a caller's request. */
export interface InternalCall {
  readonly method: TransportRequest['method']
  readonly path: string
  readonly headers: readonly string[]
  /** Creates the body again for each try. If omitted, the call has no body. */
  readonly body?: (() => TransportRequest['body']) | undefined
  /** Defaults to {@link TASK_CALL_TIMEOUT_MS}. */
  readonly timeoutMs?: number | undefined
}

/** Calls a vendor, and repeats the call once if the vendor rejects an expired credential. */
export async function callVendor<Value>(
  context: PipelineContext,
  { vendor, credentials }: CalledVendor,
  request: InternalCall,
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
    return { kind: 'unreachable', reason: `no credential: ${error.message}`, wasSent: false }
  }
}

export function ownRequest(
  context: PipelineContext,
  vendor: Vendor,
  { method, path, headers, body, timeoutMs }: InternalCall,
  credential: Credential | undefined,
): TransportRequest {
  const sent: TransportRequest = {
    origin: vendor.origin,
    path: pathAt(vendor, path),
    method,
    headers: headersAt(vendor, headers),
    body: body?.() ?? null,
    firstByteTimeoutMs: timeoutMs ?? Math.min(TASK_CALL_TIMEOUT_MS, context.timeouts.firstByteMs),
    idleTimeoutMs: Math.min(timeoutMs ?? TASK_CALL_TIMEOUT_MS, context.timeouts.idleMs),
    egress: vendor.egress,
  }
  return withCredential(sent, credential, context.clock.now())
}

async function send<Value>(
  context: PipelineContext,
  vendor: Vendor,
  request: InternalCall,
  read: (answer: WireAnswer) => Value | undefined,
  credential: Credential | undefined,
): Promise<TaskResponse<Value>> {
  const call = new BufferedCall()
  call.begin(context.transport, ownRequest(context, vendor, request, credential))
  const calls = context.taskCalls
  calls.add(call)
  // A very slow answer never hits the idle timeout, and would outlast the lease.
  const deadline = context.clock.schedule(request.timeoutMs ?? TASK_CALL_TIMEOUT_MS, () => call.abort())
  const outcome = await call.result
  deadline.cancel()
  calls.delete(call)
  if ('failure' in outcome) {
    const { phase, kind } = outcome.failure
    return { kind: 'unreachable', reason: `${phase} ${kind}`, wasSent: phase !== 'connect' }
  }
  if ('oversize' in outcome) return { kind: 'unreachable', reason: 'the answer is too large', wasSent: true }
  const { status, headers, chunks } = outcome.answer
  const answer: WireAnswer = { status, headers, body: joinChunks(chunks) }
  if (status >= 300 && status < 400)
    return { kind: 'unreachable', reason: 'a redirect, which is never followed', wasSent: true }
  const value = status >= 200 && status < 300 ? read(answer) : undefined
  if (value !== undefined) return { kind: 'answer', value }
  const failure = withoutSecrets(vendor.errorFrom(answer, context.clock.now()), vendor, credential)
  return failure.kind === 'invalid_response'
    ? { kind: 'unreachable', reason: 'the answer does not match the API of the vendor', wasSent: true }
    : { kind: 'refused', failure }
}

/** Vendor and operator key that a task was submitted with. */
export interface TaskVendor extends CalledVendor {
  readonly operation: TaskOperation
  /** Whether another key of the vendor is used because the key that submitted the task is no longer configured. */
  readonly isSubstitute: boolean
}

/**
 * Finds the key that submitted a task, or another key of its vendor: keys of one account see the same tasks. Returns `undefined` if
 * the vendor has no key.
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
  return callVendor(context, asked, operation.read(upstreamId, apiKey), (answer) => operation.report(answer))
}

/** Asks the vendor to cancel a task. Only the vendor's confirmation counts. */
export function cancelAtVendor(
  context: PipelineContext,
  asked: TaskVendor,
  upstreamId: string,
): Promise<TaskResponse<true>> {
  const { operation, apiKey } = asked
  return callVendor(context, asked, operation.cancel(upstreamId, apiKey), (answer) =>
    operation.confirmsCancel?.(answer) === false ? undefined : true,
  )
}
