import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { ClaimResult, IdempotencyClaim, StoredAnswer } from '../stores/idempotency-store.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'
import { respondJson, respondReplay } from './respond.ts'

/** A request that changes something of the caller's without a model. */
interface OnceRequest {
  readonly sink: ByteSink
  readonly requestId: string
  /** Undefined: it has no Idempotency-Key. */
  readonly claim: IdempotencyClaim | undefined
}

/**
 * Makes and sends an answer, or sends again that of an earlier request with the same Idempotency-Key. An answer that cannot be made frees
 * the key.
 * @throws GatewayError `idempotency_in_flight` and `idempotency_mismatch`; and what `make` and the store throw.
 */
export async function answerOnce(
  context: PipelineContext,
  { sink, requestId, claim }: OnceRequest,
  make: () => Promise<object>,
): Promise<void> {
  const replay = claim && replayOf(await context.store.idempotency.claim(claim, context.clock.now()))
  if (replay !== undefined) return respondReplay(sink, replay, requestId)
  respondJson(sink, requestId, await made(context, requestId, claim, make))
}

/**
 * The answer of an earlier request with the same key; undefined: the key is this request's own now.
 * @throws GatewayError `idempotency_in_flight` and `idempotency_mismatch`.
 */
export function replayOf(result: ClaimResult): StoredAnswer | undefined {
  if (result.status === 'in_flight') throw new GatewayError('idempotency_in_flight', { retryAfterSeconds: 1 })
  if (result.status === 'mismatch') throw new GatewayError('idempotency_mismatch')
  return result.status === 'replay' ? result.answer : undefined
}

const JSON_HEADERS = ['content-type', 'application/json']

async function made(
  context: PipelineContext,
  requestId: string,
  claim: IdempotencyClaim | undefined,
  make: () => Promise<object>,
): Promise<object> {
  if (claim === undefined) return await make()
  const { idempotency } = context.store
  let answer: object
  try {
    answer = await make()
  } catch (cause) {
    await noted(context, requestId, () => idempotency.release(claim))
    throw cause
  }
  const kept = { status: 200, headers: JSON_HEADERS, body: Buffer.from(JSON.stringify(answer)) }
  await noted(context, requestId, () => idempotency.complete(claim, kept))
  return answer
}

/** The change is made: what fails afterwards is told to the operator only. */
async function noted(context: PipelineContext, requestId: string, note: () => MaybePromise<void>): Promise<void> {
  try {
    await note()
  } catch (error) {
    reportFault(context, requestId, 'idempotency', error)
  }
}
