import { Buffer } from 'node:buffer'
import { assertPlainJson, isJsonObject, parseVendorJson } from '../../core/json.ts'
import { isSparse } from '../../core/json-size.ts'
import type { ExtraContent } from '../chat/chat-request.ts'

/** Prefix of every signature that the gateway created. */
export const CARRIED_MARK = 'signalbox:'

/**
 * Returns the signature of a thinking block that the gateway created. Clients of the dialect return such blocks unchanged
 * (Anthropic, "Extended thinking", tool use), so they carry the state that another vendor requires with the following tool call.
 * Without state, it is a mark that distinguishes the block from one signed by the dialect's own vendor.
 */
export function carriedSignature(state?: ExtraContent): string {
  return state === undefined ? CARRIED_MARK : CARRIED_MARK + Buffer.from(JSON.stringify(state)).toString('base64url')
}

/** Whether the gateway created the signature. No vendor can read such a signature. */
export function isCarriedSignature(signature: unknown): signature is string {
  return typeof signature === 'string' && signature.startsWith(CARRIED_MARK)
}

/**
 * Returns the state in a signature, or `undefined` if it has none or is not the gateway's.
 * @throws GatewayError `json_too_deep` or `invalid_request` for state that the gateway did not write.
 */
export function readCarriedState(signature: unknown): ExtraContent | undefined {
  if (!isCarriedSignature(signature)) return undefined
  const text = Buffer.from(signature.slice(CARRIED_MARK.length), 'base64url').toString('utf8')
  const state = isSparse(text) ? parseVendorJson(text) : undefined
  if (!isJsonObject(state)) return undefined
  assertPlainJson(state)
  return state
}
