import { Buffer } from 'node:buffer'
import { highestCharge } from '../catalog/prices/prices.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import { formatDollars } from '../core/money.ts'
import type { Usage } from '../core/usage.ts'
import { authenticate } from '../stages/authenticate.ts'
import { CallerPresence } from '../stages/caller-presence.ts'
import { chargedFields } from '../stages/charged-fields.ts'
import { CallGroup } from '../stages/dispatch/call-group.ts'
import { estimateFor } from '../stages/estimated-usage.ts'
import { parse } from '../stages/parse.ts'
import type { Parsed, Received } from '../stages/records.ts'
import type { StageContext } from '../stages/stage-context.ts'
import type { Principal } from '../stores/principal.ts'
import { ENDPOINTS } from './routes.ts'

/** What a request would cost at most. */
export interface CostEstimate {
  /** Id of the endpoint: `chat`. */
  readonly endpoint: string
  /** Public id of the model asked for. */
  readonly model: string
  readonly billing: 'on' | 'off'
  readonly currency: 'USD'
  /** Dollars that would be held, as a decimal string; null when billing is off. */
  readonly cost: string | null
  /** The upper estimate that the amount was computed from. */
  readonly usage: Usage
}

/** A request that is looked at and not carried out. */
export interface PricedRequest {
  /** Id of the endpoint it is meant for: `chat`, `embeddings`, `images`. */
  readonly endpoint: string
  /** The JSON body. */
  readonly body: unknown
}

/**
 * Says what a request would be held for: it is checked and priced as a real one, with the same errors, but takes nothing from
 * a limit, holds no money and reaches no vendor. A conversation that it continues is not looked up.
 * @throws GatewayError `invalid_request` for an unknown endpoint, `model_not_priced`, and whatever checking the request throws.
 */
export async function estimateCost(
  context: StageContext,
  principal: Principal,
  { endpoint: id, body }: PricedRequest,
): Promise<CostEstimate> {
  const endpoint = ENDPOINTS.find((candidate) => candidate.id === id)
  if (endpoint === undefined) {
    const known = ENDPOINTS.map((candidate) => candidate.id).join(', ')
    throw new GatewayError('invalid_request', { message: `endpoint: must be one of ${known}`, param: 'endpoint' })
  }
  const received: Received = {
    request: requestFor(endpoint.path),
    sink: NOWHERE,
    requestId: context.ids.next('req'),
    startedAtMs: context.clock.now(),
    endpoint,
    caller: new CallerPresence(NOWHERE),
    calls: new CallGroup(),
    vouchedPrincipal: principal,
  }
  const authenticated = await authenticate(context, received)
  const parsed = parse(context, authenticated, Buffer.from(JSON.stringify(body ?? null)))
  const model = parsed.chain[0]!
  const cost = highestCost(context, parsed)
  return {
    endpoint: id,
    model: model.id,
    billing: context.prices === undefined ? 'off' : 'on',
    currency: 'USD',
    cost: cost === undefined ? null : formatDollars(cost),
    usage: estimateFor(context, parsed, model),
  }
}

/** The amount for the dearest model that could answer, as it is held; undefined when billing is off. */
function highestCost(context: StageContext, parsed: Parsed): bigint | undefined {
  const { prices } = context
  if (prices === undefined) return undefined
  let highest = 0n
  if (parsed.endpoint.isFree === true) return highest
  for (const model of parsed.chain) {
    const rate = prices.quote(model.id, chargedFields(context, parsed, model))
    const cost = rate === undefined ? undefined : highestCharge(rate, estimateFor(context, parsed, model))
    if (cost === undefined) {
      throw new GatewayError('model_not_priced', {
        message: `There is no price for this use of the model ${JSON.stringify(model.id)}, and billing is on.`,
        param: 'model',
      })
    }
    if (cost > highest) highest = cost
  }
  return highest
}

function requestFor(path: string): GatewayRequest {
  return {
    method: 'POST',
    path,
    query: '',
    header: () => undefined,
    readBody: (_limitBytes, listener) => listener('consumed', []),
  }
}

/** An estimate is returned and never written anywhere. */
const NOWHERE: ByteSink = {
  closed: false,
  head: () => undefined,
  write: () => true,
  end: () => undefined,
  destroy: () => undefined,
  onDrain: () => undefined,
  onClose: () => undefined,
}
