import { GatewayError } from '../../../core/errors.ts'
import { convertBody, protocolOfBody, videoProtocolOf } from '../../../endpoints/videos/video-protocols.ts'
import { checkRendering } from '../../../endpoints/videos/video-rendering.ts'
import type { VideoRequest } from '../../../endpoints/videos/video-request.ts'
import type { VendorCall } from '../../vendor.ts'

/** True when the caller asked for another model, which this one stands in for. */
export function isFallback({ request, model }: VendorCall<VideoRequest>): boolean {
  return ![model.id, model.upstream, ...model.aliases].includes(request.model)
}

/**
 * The request as the model that stands in understands it. A body of another protocol is converted, if nothing is lost by
 * that.
 * @throws GatewayError `unsupported_parameter` naming what the model cannot do.
 */
export function fallbackRequest({ request, model }: VendorCall<VideoRequest>): VideoRequest {
  const protocol = videoProtocolOf(model)
  const { body, lost } = convertBody(request, protocolOfBody(request) ?? protocol.name, model)
  if (lost.length > 0) {
    throw new GatewayError('unsupported_parameter', {
      message: `${lost.join(', ')}: the model ${model.id} cannot do this.`,
      param: lost[0],
    })
  }
  try {
    protocol.check(body, model)
    checkRendering(body, model, protocol.holdsReferenceVideo(body))
  } catch (cause) {
    // What is missing is missing for this model only: the request was right for the one that was asked for.
    const { message, param } = GatewayError.from(cause)
    throw new GatewayError('unsupported_parameter', { message, param, cause })
  }
  return body
}
