import type { WireAnswer } from '../endpoints/operation.ts'
import type { VendorFailure } from '../endpoints/stream-transform.ts'
import type { TaskCall, TaskOperation, TaskReport } from '../endpoints/task.ts'
import { BufferedCall } from '../pipeline/buffered-call.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { TaskRecord } from '../stores/task-store.ts'
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
  return operation && { vendor: routed.vendor, operation, apiKey: key.apiKey, isSubstitute: own === undefined }
}

/** Polls a task. */
export function readTaskReport(
  context: PipelineContext,
  { vendor, operation, apiKey }: TaskVendor,
  upstreamId: string,
): Promise<TaskResponse<TaskReport>> {
  return ask(context, vendor, operation.read(upstreamId, apiKey), (answer) => operation.report(answer))
}

/** Asks the vendor to cancel a task. Only the vendor's confirmation counts. */
export function cancelAtVendor(
  context: PipelineContext,
  { vendor, operation, apiKey }: TaskVendor,
  upstreamId: string,
): Promise<TaskResponse<true>> {
  return ask(context, vendor, operation.cancel(upstreamId, apiKey), () => true)
}

async function ask<Value>(
  context: PipelineContext,
  vendor: Vendor,
  request: TaskCall,
  read: (answer: WireAnswer) => Value | undefined,
): Promise<TaskResponse<Value>> {
  const call = new BufferedCall((ended) => ended)
  call.begin(context.transport, {
    origin: vendor.origin,
    path: request.path,
    method: request.method,
    headers: request.headers,
    body: null,
    firstByteTimeoutMs: Math.min(TASK_CALL_TIMEOUT_MS, context.timeouts.firstByteMs),
    idleTimeoutMs: Math.min(TASK_CALL_TIMEOUT_MS, context.timeouts.idleMs),
  })
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
  const failure = vendor.errorFrom(answer, context.clock.now())
  return failure.kind === 'invalid_response'
    ? { kind: 'unreachable', reason: 'the answer is not what the vendor promises' }
    : { kind: 'refused', failure }
}
