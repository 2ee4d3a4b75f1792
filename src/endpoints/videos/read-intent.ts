import type { ReadIntent } from './video-intent.ts'
import type { VideoProtocolName } from './video-protocol.ts'
import { videoProtocolOf } from './video-protocols.ts'
import type { VideoRequest } from './video-request.ts'

/** Reads a parsed request as an intent; what an intent cannot hold is listed. */
export function readIntent(request: VideoRequest, protocol: VideoProtocolName): ReadIntent {
  return videoProtocolOf({ id: request.model, protocol }).readIntent(request)
}
