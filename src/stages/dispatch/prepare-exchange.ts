import { GatewayError } from '../../core/errors.ts'
import type { Usage } from '../../core/usage.ts'
import { quotedCost } from '../charge-for.ts'
import { EXCHANGES } from '../exchanges/exchanges.ts'
import type { VendorExchange } from '../exchanges/vendor-exchange.ts'
import { inlineImages, needsInlineImages } from '../inline-images.ts'
import type { Candidate, Routed } from '../records.ts'
import type { StageContext } from '../stage-context.ts'
import { vendorCall } from './attempt.ts'

/**
 * Prepares a request for a candidate, whether or not the candidate can do it.
 * @throws GatewayError of the vendor's translator when it cannot, and `endpoint_model_mismatch` when the vendor does not serve
 *   the endpoint.
 */
export function prepareExchange(
  context: StageContext,
  routed: Routed,
  candidate: Candidate,
): VendorExchange | Promise<VendorExchange> {
  const { body } = routed
  if (!needsInlineImages(candidate, body, context.clock.now())) return prepare(context, routed, candidate, body)
  return inlineImages(context, body).then((inlined) => prepare(context, routed, candidate, inlined))
}

/**
 * The same for a candidate that may be passed over: a caller learns what cannot be done from the last that is left of the model
 * asked for. Undefined: it cannot.
 */
export async function prepareIfAble(
  context: StageContext,
  routed: Routed,
  candidate: Candidate,
): Promise<VendorExchange | undefined> {
  try {
    return await prepareExchange(context, routed, candidate)
  } catch (cause) {
    const { status } = GatewayError.from(cause)
    if (status >= 500) throw cause
    return undefined
  }
}

function prepare(
  context: StageContext,
  routed: Routed,
  candidate: Candidate,
  body: { readonly model: string },
): VendorExchange {
  const nowMs = context.clock.now()
  // Bytes that no longer say what the body says are of no use to a vendor that passes bytes on.
  const bytes = body === routed.body ? routed.bytes : undefined
  const costOf = routed.hold === undefined ? undefined : (usage: Usage) => quotedCost(routed, candidate, usage)
  const conversation = routed.conversation && {
    previousUpstreamId: routed.conversation.previous?.upstreamId,
    freshId: routed.conversation.freshId,
  }
  const { request, endpoint, isStream } = routed
  const header = endpoint.passesHeaders === true ? (name: string) => request.header(name) : undefined
  const call = vendorCall(candidate, { body, bytes, isStream, costOf, header, conversation }, nowMs)
  const exchange = EXCHANGES.get(routed.endpoint.id)?.(candidate.vendor, call)
  if (exchange === undefined) {
    throw new GatewayError('endpoint_model_mismatch', {
      message: `The vendor of the model ${JSON.stringify(candidate.model.id)} does not serve ${routed.endpoint.path}.`,
      param: 'model',
    })
  }
  return exchange
}
