import type { VideoAbilities } from '../../catalog/model-facts.ts'
import type { VideoModelFacts } from './video-protocol.ts'
import { videoFault } from './video-request.ts'

/** Tiers of the API specification, "Video generation request". */
const RESOLUTIONS: readonly string[] = ['480p', '720p', '1080p']

/** Returns the tiers that a model renders. Defaults to those of the specification. */
export function resolutionsOf(video: VideoAbilities | undefined): readonly string[] {
  return video?.resolutions ?? RESOLUTIONS
}

/**
 * Checks that a model renders the requested and billed values.
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

type Durations = VideoAbilities['durations']

/** Returns the durations that a model renders, or `undefined` if the catalog has none. */
export function durationsOf(video: VideoAbilities | undefined, holdsReferenceVideo: boolean): Durations | undefined {
  return (holdsReferenceVideo ? video?.durationsWithReferenceVideo : undefined) ?? video?.durations
}

/** Whether a model renders a duration. */
export function isRendered(seconds: number, durations: Durations): boolean {
  return isList(durations) ? durations.includes(seconds) : seconds >= durations.min && seconds <= durations.max
}

/** Formats durations for messages: `2 to 15 seconds`, `5 or 10 seconds`. */
export function durationsText(durations: Durations): string {
  return isList(durations) ? `${durations.join(' or ')} seconds` : `${durations.min} to ${durations.max} seconds`
}

// `Array.isArray` does not narrow a readonly array.
function isList(durations: Durations): durations is readonly number[] {
  return Array.isArray(durations)
}

/** Tier and aspect ratio of a size in pixels. */
export interface VideoGeometry {
  /** The tier, as callers write it: `720p`. */
  readonly resolution: string
  /** `16:9`. */
  readonly aspectRatio: string
}

/** Values of `size` in DashScope's text-to-video and reference-to-video of Wan 2.5 and 2.6. */
const ASKED_SIZES: ReadonlyMap<string, VideoGeometry> = sizes([
  ['832*480', '480p', '16:9'],
  ['480*832', '480p', '9:16'],
  ['624*624', '480p', '1:1'],
  ['1280*720', '720p', '16:9'],
  ['720*1280', '720p', '9:16'],
  ['960*960', '720p', '1:1'],
  ['1088*832', '720p', '4:3'],
  ['832*1088', '720p', '3:4'],
  ['1920*1080', '1080p', '16:9'],
  ['1080*1920', '1080p', '9:16'],
  ['1440*1440', '1080p', '1:1'],
  ['1632*1248', '1080p', '4:3'],
  ['1248*1632', '1080p', '3:4'],
])

/** Sizes that appear only in reports: Wan 2.7 makes 4:3 a little wider. */
const RENDERED_SIZES: ReadonlyMap<string, VideoGeometry> = sizes([
  ['1104*832', '720p', '4:3'],
  ['832*1104', '720p', '3:4'],
  ['1648*1248', '1080p', '4:3'],
  ['1248*1648', '1080p', '3:4'],
])

const SIZES_OF_TIERS: ReadonlyMap<string, ReadonlyMap<string, string>> = sizesOfTiers()

/** Returns the `size` of a tier and a ratio, such as `1280*720`, if any. */
export function sizeFor(resolution: string, aspectRatio: string): string | undefined {
  return SIZES_OF_TIERS.get(resolution)?.get(aspectRatio)
}

/** Returns the ratios that a tier has a `size` for. */
export function ratiosOfTier(resolution: string): string[] {
  return [...ASKED_SIZES.values()].filter((row) => row.resolution === resolution).map((row) => row.aspectRatio)
}

/** Reads a `size` of a request, written with `*` or `x`. Returns `undefined` for unknown sizes. */
export function readSize(size: string): VideoGeometry | undefined {
  return ASKED_SIZES.get(withAsterisk(size))
}

/** Reads a size of a finished video, written with `*` or `x`. Returns `undefined` if it belongs to no tier. */
export function readRenderedSize(size: string): VideoGeometry | undefined {
  return readSize(size) ?? RENDERED_SIZES.get(withAsterisk(size))
}

function withAsterisk(size: string): string {
  const place = size.search(/[x×*]/i)
  return place === -1 ? size.trim() : `${size.slice(0, place).trim()}*${size.slice(place + 1).trim()}`
}

function sizes(rows: readonly (readonly [size: string, resolution: string, aspectRatio: string])[]) {
  return new Map(rows.map(([size, resolution, aspectRatio]) => [size, { resolution, aspectRatio }]))
}

function sizesOfTiers() {
  const tiers = new Map<string, Map<string, string>>()
  for (const [size, { resolution, aspectRatio }] of ASKED_SIZES) {
    const ofTier = tiers.get(resolution) ?? new Map<string, string>()
    tiers.set(resolution, ofTier.set(aspectRatio, size))
  }
  return tiers
}
