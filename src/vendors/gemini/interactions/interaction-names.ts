import { isJsonObject } from '../../../core/json.ts'
import type { InteractionRequest } from '../../../endpoints/images/interactions/interaction-request.ts'
import type { AnswerIds, VendorCall } from '../../vendor.ts'

/** Ids of an answer. */
export interface InteractionIds {
  /** The caller's id, which begins with `v1_`. Absent only if none was created. */
  readonly id: string | undefined
  /** Present if the answer can be continued. */
  readonly answerIds: AnswerIds | undefined
}

/** Parts of a call that decide the ids of its answer. */
type NamedCall = Pick<VendorCall<InteractionRequest>, 'conversation'> & {
  readonly request: {
    readonly store?: boolean | undefined
    readonly previous_interaction_id?: string | undefined
  }
}

/**
 * Returns the caller's id of an answer (API specification, "Interactions-style image request"): the vendor's id if it has the
 * public format, else a new one. Without storing, the vendor returns no id or an empty one; such an answer cannot be continued.
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
 * Replaces the ids in the events of one streamed answer by the caller's: its own, the continued one, and the model. An answer keeps
 * the id that the caller read first, even if the vendor's own arrives later.
 */
export class InteractionNames {
  readonly #publicModel: string
  /** The call without images, which a long stream would otherwise keep in memory. */
  readonly #call: NamedCall
  #ids: InteractionIds | undefined

  constructor(call: VendorCall<InteractionRequest>) {
    const { store, previous_interaction_id } = call.request
    this.#publicModel = call.publicModel
    this.#call = { conversation: call.conversation, request: { store, previous_interaction_id } }
  }

  /** Ids of the answer, once the vendor has sent its own. */
  get answerIds(): AnswerIds | undefined {
    return this.#ids?.answerIds
  }

  /** Reads an event. Returns a function that renames it for the caller, or `undefined` if the names are right. */
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
