import type { VideoAbilities } from '../model-facts.ts'
import { durationsOf, durationsText, isRendered } from './video-durations.ts'
import { videoFault } from './video-fault.ts'
import type { VideoModelFacts } from './video-protocol.ts'

/** API specification, "Video generation request". */
const RESOLUTIONS: readonly string[] = ['480p', '720p', '1080p']

/** The tiers that a model renders; those of the specification when the catalog does not know. */
export function resolutionsOf(video: VideoAbilities | undefined): readonly string[] {
  return video?.resolutions ?? RESOLUTIONS
}

/**
 * Checks that a model renders what is asked for and billed.
 * @throws GatewayError `invalid_request` naming `resolution` or `duration`.
 */
export function checkRendering(
  asked: { readonly resolution: string; readonly duration: number },
  model: VideoModelFacts,
  holdsReferenceVideo: boolean,
): void {
  const offered = resolutionsOf(model.video)
  if (!offered.includes(asked.resolution)) {
    throw videoFault('resolution', `${model.id} renders ${offered.join(' or ')}`)
  }
  const durations = durationsOf(model.video, holdsReferenceVideo)
  if (durations === undefined || isRendered(asked.duration, durations)) return
  const isShortened = holdsReferenceVideo && model.video?.durationsWithReferenceVideo !== undefined
  const occasion = isShortened ? ' with a reference video' : ''
  throw videoFault('duration', `${model.id} renders ${durationsText(durations)}${occasion}`)
}
