import { type Operation, type PassThroughOperation, passThrough, type VendorCall } from '../operation.ts'
import type { ModerationRequest } from './moderation-request.ts'

/** Part of a vendor that handles moderations: servers of OpenAI's dialect. */
export interface ModerationsOffer {
  readonly moderations?: PassThroughOperation<ModerationRequest>
}

/**
 * Creates the moderation operation of a vendor. Answers keep the vendor's own categories, because no two vendors mean
 * the same by them.
 */
export function createModerationsOperation(
  { moderations }: ModerationsOffer,
  call: VendorCall<ModerationRequest>,
): Operation | undefined {
  return moderations === undefined ? undefined : passThrough(moderations.toWire(call), moderations, call)
}
