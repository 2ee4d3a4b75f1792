import { Buffer } from 'node:buffer'
import { parseVendorJson } from '../../../core/json.ts'
import type { InteractionRequest } from '../../../endpoints/images/interactions/interaction-request.ts'
import { joinChunks } from '../../../wire/join-chunks.ts'
import type { RelayedBody, VendorCall } from '../../vendor.ts'
import { redactKeys } from '../error-from.ts'
import { GeneratedImageReader } from './generated-image-reader.ts'
import { generatedImageUsage } from './generated-image-usage.ts'
import { generatedInteraction } from './generated-interaction.ts'
import { interactionUsage } from './interaction-usage.ts'

/**
 * Reads a whole answer of `generateContent` as an interaction: one `model_output` step with texts and pictures in their
 * order; a refusal is `failed` and has no steps. Undefined for an error in disguise, or an answer that neither holds
 * anything nor says why.
 */
export function generatedImageFromWire(
  chunks: readonly Uint8Array[],
  call: VendorCall<InteractionRequest>,
): RelayedBody | undefined {
  const reader = new GeneratedImageReader(call.apiKey)
  const blocks = reader.read(parseVendorJson(joinChunks(chunks).toString('utf8')))
  if (reader.failure !== undefined || (blocks.length === 0 && !reader.isFinished)) return undefined
  const { status, errors } = reader.ending()
  const isRefusal = status === 'failed'
  const usage = generatedImageUsage(reader.usageMetadata)
  const interaction = {
    ...generatedInteraction(call),
    status,
    steps: isRefusal || blocks.length === 0 ? [] : [{ type: 'model_output', content: blocks }],
    ...(errors.length === 0 ? {} : { errors }),
    ...(usage === undefined ? {} : { usage }),
  }
  const text = JSON.stringify(interaction)
  return {
    chunks: [Buffer.from(isRefusal ? redactKeys(text, [call.apiKey]) : text)],
    usage: interactionUsage(usage, reader.pictures),
    isRefusal,
  }
}
