import type { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'
import { type ErrorDialect, errorBody, errorStatus, retryAfterOf } from '../endpoints/error-body.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'

/** Sends a whole answer. */
export function respondWhole(
  sink: ByteSink,
  head: { readonly status: number; readonly headers: readonly string[] },
  chunks: readonly (Uint8Array | string)[],
): void {
  if (sink.closed) return
  sink.head(head.status, head.headers)
  try {
    for (let index = 0; index < chunks.length - 1; index++) sink.write(chunks[index]!)
    sink.end(chunks.at(-1))
  } catch (fault) {
    // The answer has begun, so no other one may follow.
    sink.destroy()
    throw fault
  }
}

/** Sends an error in the caller's dialect. The only place where an error becomes an HTTP answer. */
export function respondError(
  sink: ByteSink,
  error: GatewayError,
  facts: { readonly dialect: ErrorDialect; readonly requestId: string; readonly headers?: readonly string[] },
): void {
  if (sink.closed) return
  const body = Buffer.from(errorBody(error, facts.dialect, facts.requestId))
  const headers = [
    'content-type',
    'application/json',
    'content-length',
    String(body.byteLength),
    'x-request-id',
    facts.requestId,
  ]
  const retryAfter = retryAfterOf(error)
  if (retryAfter !== undefined) headers.push('retry-after', String(retryAfter))
  if (error.status === 401) headers.push('www-authenticate', 'Bearer')
  // OpenAI's SDKs repeat a 5xx by themselves; where that cannot help, they are told not to.
  if (!error.retryable && error.status >= 429) headers.push('x-should-retry', 'false')
  if (facts.headers !== undefined) headers.push(...facts.headers)
  sink.head(errorStatus(error, facts.dialect), headers)
  sink.end(body)
}

/** Sends an answer that was kept under an Idempotency-Key once more. */
export function respondReplay(sink: ByteSink, answer: StoredAnswer, requestId: string): void {
  if (sink.closed) return
  sink.head(answer.status, [...answer.headers, 'x-request-id', requestId, 'idempotent-replayed', 'true'])
  sink.end(answer.body)
}

/** Sends a small JSON answer of the gateway's own. */
export function respondJson(sink: ByteSink, requestId: string, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value))
  respondWhole(
    sink,
    {
      status: 200,
      headers: [
        'content-type',
        'application/json',
        'content-length',
        String(body.byteLength),
        'x-request-id',
        requestId,
      ],
    },
    [body],
  )
}
