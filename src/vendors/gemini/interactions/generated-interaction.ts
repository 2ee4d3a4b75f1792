import type { InteractionRequest } from '../../../endpoints/images/interactions/interaction-request.ts'
import type { VendorCall } from '../../vendor.ts'

/** The members of an interaction that the gateway makes itself, for answers of `generateContent`. */
export interface GeneratedInteraction {
  readonly id?: string
  readonly object: 'interaction'
  readonly model: string
  /** ISO 8601, whole seconds. */
  readonly created: string
}

/** Names an answer that nobody keeps: its id is fresh and cannot be continued. */
export function generatedInteraction(call: VendorCall<InteractionRequest>): GeneratedInteraction {
  const id = call.conversation?.freshId
  return {
    ...(id === undefined ? {} : { id }),
    object: 'interaction',
    model: call.publicModel,
    created: `${new Date(call.nowMs).toISOString().slice(0, 19)}Z`,
  }
}
