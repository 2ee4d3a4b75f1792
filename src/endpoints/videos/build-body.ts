import { GatewayError } from '../../core/errors.ts'
import { resolutionsOf } from './check-rendering.ts'
import { durationsOf, durationsText, isRendered } from './video-durations.ts'
import type { VideoIntent } from './video-intent.ts'
import type { VideoModelFacts } from './video-protocol.ts'
import { videoProtocolOf } from './video-protocols.ts'
import type { VideoRequest } from './video-request.ts'

/**
 * Writes an intent as a request to a model, in the model's protocol. `watermark` is always said, `false` by default, because
 * the vendor's own default differs between models. Fields that the model requires are not checked: the endpoint does that.
 * @throws GatewayError `unsupported_parameter` naming the field of the intent that the model cannot do;
 *   `model_not_configured` when the model names no known protocol.
 */
export function buildBody(intent: VideoIntent, model: VideoModelFacts): VideoRequest {
  const protocol = videoProtocolOf(model)
  const offered = resolutionsOf(model.video)
  if (!offered.includes(intent.resolution))
    throw unsupported('resolution', `${model.id} renders ${offered.join(' or ')}`)
  const holdsVideo = intent.references?.some(({ kind }) => kind === 'video') === true
  const durations = durationsOf(model.video, holdsVideo)
  if (durations !== undefined && !isRendered(intent.seconds, durations)) {
    throw unsupported('seconds', `${model.id} renders ${durationsText(durations)}`)
  }
  if ([...(intent.prompt ?? '')].length > protocol.maxPromptCharacters) {
    throw unsupported('prompt', `${model.id} reads at most ${protocol.maxPromptCharacters} characters`)
  }
  const { input, parameters, impossible } = protocol.writeIntent(
    { ...intent, watermark: intent.watermark ?? false },
    model,
  )
  const [field] = impossible
  if (field !== undefined) throw unsupported(field, `${model.id} cannot do this`)
  return {
    model: model.id,
    duration: intent.seconds,
    resolution: intent.resolution,
    aspect_ratio: intent.aspectRatio ?? '16:9',
    input,
    parameters,
  }
}

function unsupported(param: string, reason: string): GatewayError {
  return new GatewayError('unsupported_parameter', { message: `${param}: ${reason}`, param })
}
