import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../../core/json.ts'
import type { InteractionRequest } from '../../../endpoints/images/interactions/interaction-request.ts'
import { joinChunks } from '../../shared/json-bytes.ts'
import type { RelayedBody, VendorCall } from '../../vendor.ts'
import { redactKeys } from '../error-from.ts'
import { countPictures, interactionUsage } from '../usage-from.ts'
import { setMembers } from './interaction-members.ts'
import { type InteractionIds, interactionIds } from './interaction-names.ts'
import { jsonOutline } from './json-outline.ts'

/**
 * Relays a whole interaction: the vendor's bytes with the caller's model id and ids; pictures are not decoded. A `failed`
 * one without pictures is a refusal, and always has `steps` (API specification, "States and transitions"). Undefined when
 * the body is no interaction.
 */
export function interactionFromWire(
  chunks: readonly Uint8Array[],
  call: VendorCall<InteractionRequest>,
): RelayedBody | undefined {
  const bytes = joinChunks(chunks)
  const outline = jsonOutline(bytes)
  if (!isJsonObject(outline) || typeof outline['status'] !== 'string') return undefined
  const images = countPictures(outline['steps'])
  const isRefusal = outline['status'] === 'failed' && images === 0
  const ids = interactionIds(outline['id'], call)
  const wanted = wantedMembers(outline, ids, call)
  return {
    chunks: isRefusal ? refused(bytes, wanted, call) : setMembers(bytes, outline, wanted),
    usage: interactionUsage(outline['usage'], images),
    isRefusal,
    interaction: ids.interaction,
  }
}

/** A refusal is small and explains itself in the vendor's words, in which no key may stand. */
function refused(bytes: Buffer, wanted: Map<string, unknown>, call: VendorCall<InteractionRequest>): Uint8Array[] {
  const clean = Buffer.from(redactKeys(bytes.toString('utf8'), [call.apiKey]))
  const outline = jsonOutline(clean)
  return setMembers(clean, isJsonObject(outline) ? outline : {}, wanted)
}

/** The members that the caller must read differently. */
function wantedMembers(
  outline: Record<string, unknown>,
  { id }: InteractionIds,
  { publicModel, request }: VendorCall<InteractionRequest>,
): Map<string, unknown> {
  const wanted = new Map<string, unknown>()
  if (id !== undefined && outline['id'] !== id) wanted.set('id', id)
  if (outline['model'] !== publicModel) wanted.set('model', publicModel)
  if (!Array.isArray(outline['steps'])) wanted.set('steps', [])
  const previousId = request.previous_interaction_id
  if (previousId !== undefined && typeof outline['previous_interaction_id'] === 'string') {
    if (outline['previous_interaction_id'] !== previousId) wanted.set('previous_interaction_id', previousId)
  }
  return wanted
}
