import { type Operation, type PassThroughOperation, passThrough, type VendorCall } from '../operation.ts'
import type { ModerationRequest } from './moderation-request.ts'

/** What of a vendor carries out moderations: servers of OpenAI's dialect. */
export interface ModerationsOffer {
  readonly moderations?: PassThroughOperation<ModerationRequest>
}

/**
 * Moderation at a vendor. Answers pass with the vendor's own categories: labels are never translated, because no two vendors mean the
 * same by them.
 */
export function createModerationsOperation(
  { moderations }: ModerationsOffer,
  call: VendorCall<ModerationRequest>,
): Operation | undefined {
  return moderations === undefined ? undefined : passThrough(moderations.toWire(call), moderations, call)
}
