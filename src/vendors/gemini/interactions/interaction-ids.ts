import type { InteractionRequest } from '../../../endpoints/images/interactions/interaction-request.ts'
import type { AnsweredInteraction, VendorCall } from '../../vendor.ts'

/** What an answer is called. */
export interface InteractionIds {
  /** As the caller reads it; begins with `v1_`. Undefined only where nobody made an id. */
  readonly id: string | undefined
  /** Present when the answer can be continued. */
  readonly interaction: AnsweredInteraction | undefined
}

/** What of a call decides how its answer is called. */
export type NamedCall = Pick<VendorCall<InteractionRequest>, 'conversation'> & {
  readonly request: {
    readonly store?: boolean | undefined
    readonly previous_interaction_id?: string | undefined
  }
}

/**
 * Names an answer (API specification, "Interactions-style image request"): the vendor's id where it has the form that callers
 * know, else a fresh one. Without storing the vendor gives no id, or an empty one; such an answer cannot be continued.
 */
export function interactionIds(vendorId: unknown, call: NamedCall): InteractionIds {
  const isStored = call.request.store !== false
  const upstreamId = typeof vendorId === 'string' && vendorId !== '' ? vendorId : undefined
  if (isStored && upstreamId?.startsWith('v1_') === true) {
    return { id: upstreamId, interaction: { id: upstreamId, upstreamId } }
  }
  const id = call.conversation?.freshId ?? upstreamId
  const isContinuable = isStored && id !== undefined && upstreamId !== undefined
  return { id, interaction: isContinuable ? { id, upstreamId } : undefined }
}
