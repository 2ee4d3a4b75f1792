import { isJsonObject } from '../../../core/json.ts'
import type { InteractionRequest } from '../../../endpoints/images/interactions/interaction-request.ts'
import type { AnswerIds, VendorCall } from '../../vendor.ts'

/** What an answer is called. */
export interface InteractionIds {
  /** The caller's id; begins with `v1_`. Undefined only if none was made. */
  readonly id: string | undefined
  /** Present when the answer can be continued. */
  readonly answerIds: AnswerIds | undefined
}

/** What of a call decides how its answer is called. */
type NamedCall = Pick<VendorCall<InteractionRequest>, 'conversation'> & {
  readonly request: {
    readonly store?: boolean | undefined
    readonly previous_interaction_id?: string | undefined
  }
}

/**
 * The caller's id of an answer (API specification, "Interactions-style image request"): the vendor's id if it has the
 * public format, else a new one. Without storing, the vendor gives no id or an empty one; such an answer cannot be
 * continued.
 */
export function interactionIds(vendorId: unknown, call: NamedCall): InteractionIds {
  const isStored = call.request.store !== false
  const upstreamId = typeof vendorId === 'string' && vendorId !== '' ? vendorId : undefined
  if (isStored && upstreamId?.startsWith('v1_') === true) {
    return { id: upstreamId, answerIds: { id: upstreamId, upstreamId } }
  }
  const id = call.conversation?.freshId ?? upstreamId
  const isContinuable = isStored && id !== undefined && upstreamId !== undefined
  return { id, answerIds: isContinuable ? { id, upstreamId } : undefined }
}

/**
 * The ids in the events of one streamed answer: its own, the continued one, and the model, each as the caller knows it. An
 * answer keeps the id that the caller read first, even if the vendor's own comes later.
 */
export class InteractionNames {
  readonly #publicModel: string
  /** Without the request's pictures, which a long stream would otherwise retain. */
  readonly #call: NamedCall
  #ids: InteractionIds | undefined

  constructor(call: VendorCall<InteractionRequest>) {
    const { store, previous_interaction_id } = call.request
    this.#publicModel = call.publicModel
    this.#call = { conversation: call.conversation, request: { store, previous_interaction_id } }
  }

  /** The ids of the answer, once the vendor has sent its own. */
  get answerIds(): AnswerIds | undefined {
    return this.#ids?.answerIds
  }

  /** Reads an event, and returns it with the caller's names; undefined if it has them already. */
  replacementFor(event: Record<string, unknown>): ((whole: unknown) => unknown) | undefined {
    const { interaction, interaction_id } = event
    if (isJsonObject(interaction)) {
      const members = this.#members(interaction)
      if (Object.entries(members).every(([name, value]) => interaction[name] === value)) return undefined
      return (whole) => (isJsonObject(whole) ? { ...whole, interaction: { ...objectIn(whole), ...members } } : whole)
    }
    if (typeof interaction_id !== 'string') return undefined
    const id = this.#idFor(interaction_id)
    if (id === undefined || id === interaction_id) return undefined
    return (whole) => (isJsonObject(whole) ? { ...whole, interaction_id: id } : whole)
  }

  #members(interaction: Record<string, unknown>): Record<string, unknown> {
    const id = this.#idFor(interaction['id'])
    return {
      ...(id === undefined ? {} : { id }),
      ...(interaction['model'] === undefined ? {} : { model: this.#publicModel }),
      ...(interaction['previous_interaction_id'] === undefined
        ? {}
        : { previous_interaction_id: this.#call.request.previous_interaction_id }),
    }
  }

  #idFor(vendorId: unknown): string | undefined {
    if (this.#ids?.answerIds === undefined) {
      const { id, answerIds } = interactionIds(vendorId, this.#call)
      const shownId = this.#ids?.id ?? id
      const isNamed = answerIds !== undefined && shownId !== undefined
      this.#ids = { id: shownId, answerIds: isNamed ? { ...answerIds, id: shownId } : undefined }
    }
    return this.#ids.id
  }
}

function objectIn(event: Record<string, unknown>): Record<string, unknown> {
  return isJsonObject(event['interaction']) ? event['interaction'] : {}
}
