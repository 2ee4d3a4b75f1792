import { isGiven, videoFault } from './video-fault.ts'
import { MAX_ASPECT_RATIO_LENGTH, type VideoBody } from './video-schema.ts'
import { readSize, type VideoGeometry } from './video-sizes.ts'

const DEFAULT_ASPECT_RATIO = '16:9'

/** The fields by which a video is billed. */
export interface BilledFields {
  readonly duration: number
  readonly resolution: string
}

/**
 * Checks that what is billed is what is rendered: `parameters.duration`, `.resolution`, `.size` and `.ratio`, where they are
 * given, must say the same as the top-level fields. Gives the aspect ratio: the caller's, else that of `parameters`, else
 * 16:9.
 * @throws GatewayError `invalid_request` naming both fields.
 */
export function agreedAspectRatio(body: VideoBody, billed: BilledFields, options: { knowsSizes: boolean }): string {
  const parameters = body.parameters ?? {}
  agreeOnDuration(parameters['duration'], body.duration, billed.duration)
  const tier = textOf('parameters.resolution', parameters['resolution'])
  if (tier !== undefined && tier.toLowerCase() !== billed.resolution) {
    throw disagreement('parameters.resolution', tier, 'resolution', billed.resolution, body.resolution)
  }
  const size = sizeOf(parameters['size'], options.knowsSizes)
  if (size !== undefined && size.resolution !== billed.resolution) {
    throw disagreement(
      'parameters.size',
      `${size.text} (${size.resolution})`,
      'resolution',
      billed.resolution,
      body.resolution,
    )
  }
  const ratio = textOf('parameters.ratio', parameters['ratio'])
  if (ratio !== undefined && ratio.length > MAX_ASPECT_RATIO_LENGTH) {
    throw videoFault('parameters.ratio', `must have at most ${MAX_ASPECT_RATIO_LENGTH} characters`)
  }
  const aspectRatio = body.aspect_ratio ?? ratio ?? size?.aspectRatio ?? DEFAULT_ASPECT_RATIO
  if (ratio !== undefined && ratio !== aspectRatio) {
    throw disagreement('parameters.ratio', ratio, 'aspect_ratio', aspectRatio, body.aspect_ratio)
  }
  if (size !== undefined && size.aspectRatio !== aspectRatio) {
    throw disagreement(
      'parameters.size',
      `${size.text} (${size.aspectRatio})`,
      'aspect_ratio',
      aspectRatio,
      body.aspect_ratio,
    )
  }
  return aspectRatio
}

function agreeOnDuration(value: unknown, given: number | null | undefined, billed: number): void {
  if (!isGiven(value)) return
  if (!Number.isInteger(value)) throw videoFault('parameters.duration', 'must be an integer')
  if (value !== billed) throw disagreement('parameters.duration', String(value), 'duration', String(billed), given)
}

function textOf(param: string, value: unknown): string | undefined {
  if (!isGiven(value)) return undefined
  if (typeof value !== 'string') throw videoFault(param, 'must be a string')
  return value
}

function sizeOf(value: unknown, knowsSizes: boolean): (VideoGeometry & { text: string }) | undefined {
  const text = textOf('parameters.size', value)
  if (text === undefined) return undefined
  const geometry = readSize(text)
  if (geometry !== undefined) return { ...geometry, text }
  if (knowsSizes) throw videoFault('parameters.size', `${JSON.stringify(text)} is no size of a known resolution`)
  return undefined
}

function disagreement(param: string, value: string, field: string, billed: string, given: unknown) {
  const origin = isGiven(given) ? '' : ' (the default)'
  return videoFault(param, `${value} does not agree with ${field}: ${billed}${origin}; both must say the same`)
}
