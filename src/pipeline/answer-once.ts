import { Buffer } from 'node:buffer'
import type { ByteSink } from '../core/exchange.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { IdempotencyClaim } from '../stores/idempotency-store.ts'
import { claimKey, completeKey, createWithinBounds, replayOf } from './idempotency-key.ts'
import { type PipelineContext, reportFault } from './pipeline-context.ts'
import { respondJson, respondReplay } from './respond.ts'

/** Request that changes data of the caller without a model. */
interface OnceRequest {
  readonly sink: ByteSink
  readonly requestId: string
  /** Claim of its Idempotency-Key, or `undefined` if it has none. */
  readonly claim: IdempotencyClaim | undefined
}

/**
 * Creates and sends an answer, or replays that of an earlier request with the same Idempotency-Key. If no answer can be created, the key
 * becomes free again.
 * @throws GatewayError `idempotency_in_flight` and `idempotency_mismatch`, `storage_limit_reached`; and the errors of `make` and the
 *   store.
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

/** The change was made, so later failures are only reported to the operator. */
async function noted(context: PipelineContext, requestId: string, note: () => MaybePromise<void>): Promise<void> {
  try {
    await note()
  } catch (error) {
    reportFault(context, requestId, 'idempotency', error)
  }
}
