import { GatewayError } from '../../../core/errors.ts'
import type { InteractionRequest } from '../../../endpoints/images/interactions/interaction-request.ts'

const VENDOR_HOST = /^generativelanguage\.googleapis\.com\.?$/i

/**
 * Refuses pictures that are kept at the vendor (Gemini API, "Files API": `https://generativelanguage.googleapis.com/v1beta/files/…`).
 * The vendor opens them by the operator's key, and nobody here knows whose they are.
 * @throws GatewayError `unsupported_parameter` naming the block.
 */
export function refuseKeptFiles({ input }: InteractionRequest): void {
  if (typeof input === 'string') return
  for (const [index, block] of input.entries()) {
    if (block.type !== 'image' || block.uri === undefined) continue
    if (!URL.canParse(block.uri) || !VENDOR_HOST.test(new URL(block.uri).hostname)) continue
    const param = `input[${index}].uri`
    throw new GatewayError('unsupported_parameter', {
      message: `${param}: pictures kept at the vendor cannot be used; send the picture as data.`,
      param,
    })
  }
}
