import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import { isJsonObject, readCallerJson } from '../core/json.ts'
import { admitEstimate } from '../pipeline/admit.ts'
import type { CallRecord } from '../pipeline/call-record.ts'
import { readRequest } from '../pipeline/pipeline.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { readJsonBytes } from '../pipeline/read-json-bytes.ts'
import { pushLimits, respondJson } from '../pipeline/respond.ts'
import type { Principal } from '../stores/principal.ts'
import { askedAbout, estimateOf, type PricedRequest } from './estimate-cost.ts'

/** Header by which a caller requests the cost of a request instead of an answer. */
export const DRY_RUN_HEADER = 'x-signalbox-dry-run'

/**
 * Whether a request asks only for its cost.
 * @throws GatewayError `invalid_request` for a value other than `true` and `false`: a misspelt value must not spend money.
 */
export function isDryRun(request: GatewayRequest): boolean {
  const value = request.header(DRY_RUN_HEADER)
  if (value === undefined || value === 'false') return false
  if (value === 'true') return true
  throw new GatewayError('invalid_request', {
    message: `${DRY_RUN_HEADER}: must be true or false`,
    param: DRY_RUN_HEADER,
  })
}

/**
 * Answers a request with its hold. It is checked like any other and counts against the limits of requests. Nothing is held, no vendor
 * is called, no hook runs, no Idempotency-Key is claimed, and a continued conversation is not looked up.
 * @throws GatewayError as the request itself would before anything is held.
 */
export async function serveDryRun(context: PipelineContext, received: CallRecord, sink: ByteSink): Promise<void> {
  const admitted = await admitEstimate(context, await readRequest(context, received))
  respondJson(sink, received.requestId, estimateOf(context, admitted), pushLimits([], admitted))
}

/**
 * Answers `POST /v1/estimate` with the hold of the request in the body, `{ endpoint, body }`.
 * @throws GatewayError `invalid_request` naming the member.
 */
export async function serveEstimate(
  context: PipelineContext,
  principal: Principal,
  request: GatewayRequest,
  sink: ByteSink,
): Promise<void> {
  const { value } = readCallerJson(await readJsonBytes(context, request))
  const header = (name: string): string | undefined => (name === 'idempotency-key' ? undefined : request.header(name))
  return await serveDryRun(context, askedAbout(context, principal, checked(value), header), sink)
}

const MEMBERS: readonly string[] = ['endpoint', 'body'] satisfies (keyof PricedRequest)[]

function checked(value: unknown): PricedRequest {
  if (!isJsonObject(value)) throw new GatewayError('invalid_request', { message: 'The request body: expected object' })
  const unknown = Object.keys(value).find((name) => !MEMBERS.includes(name))
  if (unknown !== undefined) throw invalid(unknown, `there is no such member; it has ${MEMBERS.join(', ')}`)
  const { endpoint, body } = value
  if (typeof endpoint !== 'string') throw invalid('endpoint', 'expected the id or the path of an endpoint')
  if (!isJsonObject(body)) throw invalid('body', 'expected the body of a request')
  return { endpoint, body }
}

function invalid(param: string, reason: string): GatewayError {
  const shown = param.slice(0, 100)
  return new GatewayError('invalid_request', { message: `${shown}: ${reason}`, param: shown })
}
