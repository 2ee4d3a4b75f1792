import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import { isJsonObject, readCallerJson } from '../core/json.ts'
import { formatDollars } from '../core/money.ts'
import type { Usage } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { admit } from '../pipeline/admission.ts'
import { CallRecord, type Parsed } from '../pipeline/call-record.ts'
import { estimateFor } from '../pipeline/estimate.ts'
import { DISCARD_SINK, innerRequest } from '../pipeline/idempotent-request.ts'
import { readJsonBytes } from '../pipeline/parse.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { priceRequest } from '../pipeline/pricing.ts'
import { pushLimits, respondJson } from '../pipeline/respond.ts'
import { readRequest } from '../pipeline/serve.ts'
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

/** Estimate that callers read from `POST /v1/estimate`. */
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
  const parsed = await readRequest(context, estimateTarget(context, principal, request))
  const { endpoint, model, billing, currency, held, usage } = estimateOf(context, parsed)
  return { endpoint, model, billing, currency, cost: held, usage }
}

/**
 * Builds the request to estimate, as if it had arrived.
 * @param header Reads a header of the caller's request. If omitted, there are no headers.
 * @throws GatewayError `invalid_request` for an unknown endpoint.
 */
function estimateTarget(
  context: PipelineContext,
  principal: Principal,
  { endpoint: name, body }: PricedRequest,
  header?: (name: string) => string | undefined,
): CallRecord {
  const endpoint = endpointNamed(context, name)
  const request = innerRequest(endpoint.path, Buffer.from(JSON.stringify(body ?? null)))
  return new CallRecord({
    request: header === undefined ? request : { ...request, header: (other) => request.header(other) ?? header(other) },
    sink: DISCARD_SINK,
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
function estimateOf(context: PipelineContext, parsed: Parsed): RequestEstimate {
  const { endpoint, chain } = parsed
  const model = chain[0]!
  const usage = estimateFor(context, parsed, model)
  const priced = priceRequest(context, parsed, usage)
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

/**
 * Answers `POST /v1/estimate` with the hold of the request in the body, `{ endpoint, body }`. The request is checked like any other
 * and counts against the limits of requests. Nothing is held, no vendor is called, no hook runs, no Idempotency-Key is claimed, and
 * a continued conversation is not looked up.
 * @throws GatewayError `invalid_request` that names the member, or the error that the request itself gets before anything is held.
 */
export async function serveEstimate(
  context: PipelineContext,
  principal: Principal,
  request: GatewayRequest,
  sink: ByteSink,
): Promise<void> {
  const { value } = readCallerJson(await readJsonBytes(context, request))
  const header = (name: string): string | undefined => (name === 'idempotency-key' ? undefined : request.header(name))
  const received = estimateTarget(context, principal, checked(value), header)
  const admitted = await admit(context, await readRequest(context, received), false)
  respondJson(sink, received.requestId, estimateOf(context, admitted), pushLimits([], admitted))
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
