import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import { formatDollars } from '../core/money.ts'
import type { Usage } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { CallRecord, type Parsed } from '../pipeline/call-record.ts'
import { innerRequest, NOWHERE } from '../pipeline/inner-request.ts'
import { readRequest } from '../pipeline/pipeline.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { priceForTries } from '../pipeline/second-try.ts'
import { estimateFor } from '../pipeline/usage-estimate.ts'
import type { Principal } from '../stores/principal.ts'

/** Maximum cost of a request. */
export interface CostEstimate {
  /** Id of the endpoint: `chat`. */
  readonly endpoint: string
  /** Public id of the requested model. */
  readonly model: string
  readonly billing: 'on' | 'off'
  readonly currency: 'USD'
  /** Amount to hold, in dollars as a decimal string, or `null` if billing is off. */
  readonly cost: string | null
  /** Upper estimate of the usage that the amount is based on. */
  readonly usage: Usage
}

/** Estimate that callers read, from `POST /v1/estimate` or with the header `x-signalbox-dry-run`. */
export interface RequestEstimate extends Omit<CostEstimate, 'cost'> {
  readonly object: 'estimate'
  /** Maximum amount to hold, in dollars as a decimal string, or `null` if billing is off. */
  readonly held: string | null
  /** Always false, because the amount is an upper bound: the charge is known at the end of a call. */
  readonly exact: false
  /** Public ids of the models that may answer: the requested one, then its fallbacks in order. */
  readonly models: readonly string[]
}

/** Request to price without running it. */
export interface PricedRequest {
  /** Id of its endpoint, such as `chat`, `embeddings`, `images`, or its path. */
  readonly endpoint: string
  readonly body: unknown
}

/**
 * Computes the hold of a request. The request is checked and priced like a real one, with the same errors, but it uses no limits,
 * holds no money and calls no vendor. A conversation that it continues is not looked up.
 * @throws GatewayError `invalid_request` for an unknown endpoint, `model_not_priced`, and whatever checking the request throws.
 */
export async function estimateCost(
  context: PipelineContext,
  principal: Principal,
  request: PricedRequest,
): Promise<CostEstimate> {
  const parsed = await readRequest(context, askedAbout(context, principal, request))
  const { endpoint, model, billing, currency, held, usage } = estimateOf(context, parsed)
  return { endpoint, model, billing, currency, cost: held, usage }
}

/**
 * Builds the request to estimate, as if it had arrived.
 * @param header Reads a header of the caller's request. If omitted, there are no headers.
 * @throws GatewayError `invalid_request` for an unknown endpoint.
 */
export function askedAbout(
  context: PipelineContext,
  principal: Principal,
  { endpoint: name, body }: PricedRequest,
  header?: (name: string) => string | undefined,
): CallRecord {
  const endpoint = endpointNamed(context, name)
  const request = innerRequest(endpoint.path, Buffer.from(JSON.stringify(body ?? null)))
  return new CallRecord({
    request: header === undefined ? request : { ...request, header: (other) => request.header(other) ?? header(other) },
    sink: NOWHERE,
    requestId: context.ids.next('req'),
    startedAtMs: context.clock.now(),
    called: endpoint,
    vouchedPrincipal: principal,
    routeOverride: undefined,
  })
}

function endpointNamed({ endpoints: { all } }: PipelineContext, name: string): Endpoint {
  const endpoint = all.find(({ id, path }) => id === name || path === name)
  if (endpoint !== undefined) return endpoint
  const known = [...new Set(all.map(({ id }) => id))].join(', ')
  throw new GatewayError('invalid_request', {
    message: `endpoint: must be one of ${known}, or a path`,
    param: 'endpoint',
  })
}

/**
 * Returns the hold of a checked request. @throws GatewayError `model_not_priced`, or `unsupported_parameter` for a part without a
 * price.
 */
export function estimateOf(context: PipelineContext, parsed: Parsed): RequestEstimate {
  const { endpoint, chain } = parsed
  const model = chain[0]!
  const usage = estimateFor(context, parsed, model)
  const priced = priceForTries(context, parsed, usage)
  const isOff = context.prices === undefined
  return {
    object: 'estimate',
    endpoint: endpoint.id,
    model: model.id,
    usage,
    billing: isOff ? 'off' : 'on',
    held: isOff ? null : formatDollars(priced?.amount ?? 0n),
    currency: 'USD',
    exact: false,
    models: (priced?.chain ?? chain).map(({ id }) => id),
  }
}
