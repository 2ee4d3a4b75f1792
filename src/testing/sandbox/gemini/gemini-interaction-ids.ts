import { createHash } from 'node:crypto'

const CALL_BYTES = 12
const PROOF_BYTES = 12

/**
 * The id of an interaction that is kept. It carries a proof of the credential that made it, so that the stand-in knows its
 * own ids, and whose they are, without remembering anything.
 * @param callId 24 hexadecimal digits.
 */
export function interactionId(credential: string, callId: string): string {
  const call = Buffer.from(callId, 'hex')
  return `v1_${Buffer.concat([call, proofOf(credential, call)]).toString('base64url')}`
}

/** Was this interaction made, and kept, with this credential? */
export function isOwnInteraction(id: string, credential: string): boolean {
  if (!id.startsWith('v1_')) return false
  const bytes = Buffer.from(id.slice('v1_'.length), 'base64url')
  if (bytes.length !== CALL_BYTES + PROOF_BYTES) return false
  return proofOf(credential, bytes.subarray(0, CALL_BYTES)).equals(bytes.subarray(CALL_BYTES))
}

function proofOf(credential: string, call: Uint8Array): Buffer {
  return createHash('sha256').update(credential).update('\0').update(call).digest().subarray(0, PROOF_BYTES)
}
