import { Buffer } from 'node:buffer'
import type { ByteSink } from '../core/exchange.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { IdempotencyClaim } from '../stores/idempotency-store.ts'
import { claimKey, completeKey, createWithinBounds, replayOf } from './idempotency-key.ts'
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
 * @throws GatewayError `idempotency_in_flight` and `idempotency_mismatch`, `storage_limit_reached`; and what `make` and the store throw.
 */
export async function answerOnce(
  context: PipelineContext,
  { sink, requestId, claim }: OnceRequest,
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

/** The change is made: what fails afterwards is told to the operator only. */
async function noted(context: PipelineContext, requestId: string, note: () => MaybePromise<void>): Promise<void> {
  try {
    await note()
  } catch (error) {
    reportFault(context, requestId, 'idempotency', error)
  }
}
