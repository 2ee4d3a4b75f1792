import { GatewayError } from '../../core/errors.ts'
import type { VideoModelFacts, VideoProtocol } from './video-protocol.ts'
import { wan26 } from './wan-2-6.ts'
import { wan27 } from './wan-2-7.ts'

/** The layouts of `input` and `parameters`, by the protocol that catalog rows name. */
export const VIDEO_PROTOCOLS: ReadonlyMap<string, VideoProtocol> = new Map(
  [wan26, wan27].map((protocol) => [protocol.name, protocol]),
)

/**
 * The protocol of a model.
 * @throws GatewayError `model_not_configured` when its catalog row names none that is known.
 */
export function videoProtocolOf(model: VideoModelFacts): VideoProtocol {
  const protocol = VIDEO_PROTOCOLS.get(model.protocol ?? '')
  if (protocol !== undefined) return protocol
  throw new GatewayError('model_not_configured', {
    message: `The model ${JSON.stringify(model.id)} names no video protocol: give it ${[...VIDEO_PROTOCOLS.keys()].join(' or ')}.`,
    param: 'model',
  })
}
