import { GatewayError } from '../../core/errors.ts'
import { hasAtMost } from '../character-count.ts'
import { unsupportedField } from '../field-errors.ts'
import {
  durationsOf,
  durationsText,
  isRendered,
  resolutionsOf,
  type VideoIntent,
  type VideoModelFacts,
  type VideoProtocol,
} from './video-protocol.ts'
import type { VideoRequest } from './video-request.ts'
import { wan26 } from './wan-2-6.ts'
import { wan27 } from './wan-2-7.ts'

/** The layouts of `input` and `parameters`, by the protocol that catalog rows name. */
export const VIDEO_PROTOCOLS: ReadonlyMap<string, VideoProtocol> = new Map(
  [wan26, wan27].map((protocol) => [protocol.name, protocol]),
)

/**
 * Returns the protocol of a model.
 * @throws GatewayError `model_not_configured` if its catalog row names no known protocol.
 */
export function videoProtocolOf(model: VideoModelFacts): VideoProtocol {
  const protocol = VIDEO_PROTOCOLS.get(model.protocol ?? '')
  if (protocol !== undefined) return protocol
  throw new GatewayError('model_not_configured', {
    message: `The model ${JSON.stringify(model.id)} names no video protocol: give it ${[...VIDEO_PROTOCOLS.keys()].join(' or ')}.`,
    param: 'model',
  })
}

/**
 * Writes an intent as a request to a model, in the model's protocol. `watermark` is always sent, `false` by default,
 * because the vendor's default differs between models. Fields that the model requires are not checked: the endpoint does
 * that.
 * @throws GatewayError `unsupported_parameter` naming the unsupported field of the intent; `model_not_configured` if the
 *   model names no known protocol.
 */
export function buildBody(intent: VideoIntent, model: VideoModelFacts): VideoRequest {
  const protocol = videoProtocolOf(model)
  const offered = resolutionsOf(model.video)
  if (!offered.includes(intent.resolution)) {
    throw unsupportedField('resolution', `${model.id} renders ${offered.join(' or ')}`)
  }
  const holdsVideo = intent.references?.some(({ kind }) => kind === 'video') === true
  const durations = durationsOf(model.video, holdsVideo)
  if (durations !== undefined && !isRendered(intent.seconds, durations)) {
    throw unsupportedField('seconds', `${model.id} renders ${durationsText(durations)}`)
  }
  if (!hasAtMost(intent.prompt ?? '', protocol.maxPromptCharacters)) {
    throw unsupportedField('prompt', `${model.id} reads at most ${protocol.maxPromptCharacters} characters`)
  }
  const said = { ...intent, watermark: intent.watermark ?? false }
  const { input, parameters, impossible } = protocol.writeIntent(said, model)
  const [field] = impossible
  if (field !== undefined) throw unsupportedField(field, `${model.id} cannot do this`)
  return {
    model: model.id,
    duration: intent.seconds,
    resolution: intent.resolution,
    aspect_ratio: intent.aspectRatio ?? '16:9',
    input,
    parameters,
  }
}
