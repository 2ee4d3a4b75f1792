import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import { formatDollars } from '../core/money.ts'
import type { Usage } from '../core/usage.ts'
import { CallRecord } from '../pipeline/call-record.ts'
import { innerRequest, NOWHERE } from '../pipeline/inner-request.ts'
import { readRequest } from '../pipeline/pipeline.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { priceRequest } from '../pipeline/pricing.ts'
import { estimateFor } from '../pipeline/usage-estimate.ts'
import type { Principal } from '../stores/principal.ts'

/** The highest cost of a request. */
export interface CostEstimate {
  /** Id of the endpoint: `chat`. */
  readonly endpoint: string
  /** Public id of the requested model. */
  readonly model: string
  readonly billing: 'on' | 'off'
  readonly currency: 'USD'
  /** Dollars that would be held, as a decimal string; null if billing is off. */
  readonly cost: string | null
  /** The upper estimate behind the amount. */
  readonly usage: Usage
}

/** A request to price without running it. */
export interface PricedRequest {
  /** Id of its endpoint: `chat`, `embeddings`, `images`. */
  readonly endpoint: string
  /** The JSON body. */
  readonly body: unknown
}

/**
 * Computes the hold of a request. It is checked and priced like a real one, with the same errors, but takes nothing from a
 * limit, holds no money and reaches no vendor. A conversation that it continues is not looked up.
 * @throws GatewayError `invalid_request` for an unknown endpoint, `model_not_priced`, and whatever checking the request throws.
 */
export async function estimateCost(
  context: PipelineContext,
  principal: Principal,
  { endpoint: id, body }: PricedRequest,
): Promise<CostEstimate> {
  const { all } = context.endpoints
  const endpoint = all.find((candidate) => candidate.id === id)
  if (endpoint === undefined) {
    const known = all.map((candidate) => candidate.id).join(', ')
    throw new GatewayError('invalid_request', { message: `endpoint: must be one of ${known}`, param: 'endpoint' })
  }
  const received = new CallRecord({
    request: innerRequest(endpoint.path, Buffer.from(JSON.stringify(body ?? null))),
    sink: NOWHERE,
    requestId: context.ids.next('req'),
    startedAtMs: context.clock.now(),
    called: endpoint,
    vouchedPrincipal: principal,
    routeOverride: undefined,
  })
  const parsed = await readRequest(context, received)
  const model = parsed.chain[0]!
  const cost = context.prices === undefined ? undefined : (priceRequest(context, parsed)?.amount ?? 0n)
  return {
    endpoint: id,
    model: model.id,
    billing: context.prices === undefined ? 'off' : 'on',
    currency: 'USD',
    cost: cost === undefined ? null : formatDollars(cost),
    usage: estimateFor(context, parsed, model),
  }
}
