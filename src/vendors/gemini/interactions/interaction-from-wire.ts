import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../../core/json.ts'
import type { InteractionRequest } from '../../../endpoints/images/interactions/interaction-request.ts'
import { joinChunks } from '../../../wire/join-chunks.ts'
import { closingQuote, QUOTE } from '../../../wire/json-cursor.ts'
import { editMembers, type MemberChanges } from '../../../wire/json-edits.ts'
import { redactGoogleKeys } from '../../shared/google-error.ts'
import type { AnswerBody, VendorCall } from '../../vendor.ts'
import { countPictures, interactionUsage } from '../usage-from.ts'
import { type InteractionIds, interactionIds } from './interaction-names.ts'

// Longer strings are images or signatures. Ids, types and error texts are shorter.
const LONGEST_KEPT_BYTES = 16_384

/**
 * Passes a complete interaction through: the vendor's bytes with the caller's model id and ids. Images are not decoded. A `failed`
 * one without images is a refusal, and always has `steps` (API specification, "States and transitions"). Returns `undefined` if the
 * body is not an interaction.
 */
export function interactionFromWire(
  chunks: readonly Uint8Array[],
  call: VendorCall<InteractionRequest>,
): AnswerBody | undefined {
  const bytes = joinChunks(chunks)
  const outline = jsonOutline(bytes)
  if (!isJsonObject(outline) || typeof outline['status'] !== 'string') return undefined
  const images = countPictures(outline['steps'])
  const isRefusal = outline['status'] === 'failed' && images === 0 && !hasOutput(outline['steps'])
  const ids = interactionIds(outline['id'], call)
  const wanted = wantedMembers(outline, ids, call)
  return {
    chunks: isRefusal ? refused(bytes, wanted, call) : withMembers(bytes, wanted),
    usage: interactionUsage(outline['usage'], images),
    isRefusal,
    answerIds: ids.answerIds,
  }
}

/** Whether the steps contain output for the caller. */
function hasOutput(steps: unknown): boolean {
  if (!Array.isArray(steps)) return false
  return steps.some((step) => {
    if (!isJsonObject(step) || step['type'] !== 'model_output') return false
    return Array.isArray(step['content']) && step['content'].length > 0
  })
}

/** A refusal is small and quotes the vendor, whose text may contain a key to remove. */
function refused(bytes: Buffer, wanted: MemberChanges, call: VendorCall<InteractionRequest>): Uint8Array[] {
  return withMembers(Buffer.from(redactGoogleKeys(bytes.toString('utf8'), [call.apiKey])), wanted)
}

/** Returns the bytes with some members replaced, as chunks to avoid copying the rest. */
function withMembers(bytes: Buffer, wanted: MemberChanges): Uint8Array[] {
  const edits = editMembers(bytes, wanted)
  if (edits !== undefined) return edits.pieces(bytes)
  const members = [...wanted].map(([name, json]) => [name, parseVendorJson(json ?? 'null')])
  const parsed = parseVendorJson(bytes.toString('utf8'))
  return [Buffer.from(JSON.stringify({ ...(isJsonObject(parsed) ? parsed : {}), ...Object.fromEntries(members) }))]
}

/** Returns the members that the caller must read differently. */
function wantedMembers(
  outline: Record<string, unknown>,
  { id }: InteractionIds,
  { publicModel, request }: VendorCall<InteractionRequest>,
): MemberChanges {
  const wanted = new Map<string, string>()
  if (id !== undefined && outline['id'] !== id) wanted.set('id', JSON.stringify(id))
  if (outline['model'] !== publicModel) wanted.set('model', JSON.stringify(publicModel))
  if (!Array.isArray(outline['steps'])) wanted.set('steps', '[]')
  const previousId = request.previous_interaction_id
  if (previousId !== undefined && typeof outline['previous_interaction_id'] === 'string') {
    if (outline['previous_interaction_id'] !== previousId) {
      wanted.set('previous_interaction_id', JSON.stringify(previousId))
    }
  }
  return wanted
}

/**
 * Parses JSON with every long string replaced by an empty one, so that megabytes of base64 are neither decoded nor copied. Returns
 * `undefined` if the text is not JSON. Linear: a native search skips long strings.
 */
export function jsonOutline(bytes: Buffer, start = 0, end: number = bytes.length): unknown {
  let text = ''
  let copied = start
  let open = bytes.indexOf(QUOTE, start)
  while (open !== -1 && open < end) {
    const close = closingQuote(bytes, open, end)
    if (close === -1) return undefined
    if (close - open > LONGEST_KEPT_BYTES) {
      text += bytes.toString('utf8', copied, open + 1)
      copied = close
    }
    open = bytes.indexOf(QUOTE, close + 1)
  }
  return parseVendorJson(text + bytes.toString('utf8', copied, end))
}
