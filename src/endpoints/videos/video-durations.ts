import type { VideoAbilities } from '../model-facts.ts'

type Durations = VideoAbilities['durations']

/** The lengths that a model renders; undefined when the catalog does not know them. */
export function durationsOf(video: VideoAbilities | undefined, holdsReferenceVideo: boolean): Durations | undefined {
  return (holdsReferenceVideo ? video?.durationsWithReferenceVideo : undefined) ?? video?.durations
}

/** Is a length among those that a model renders? */
export function isRendered(seconds: number, durations: Durations): boolean {
  return isList(durations) ? durations.includes(seconds) : seconds >= durations.min && seconds <= durations.max
}

/** For messages: `2 to 15 seconds`, `5 or 10 seconds`. */
export function durationsText(durations: Durations): string {
  return isList(durations) ? `${durations.join(' or ')} seconds` : `${durations.min} to ${durations.max} seconds`
}

// Array.isArray does not narrow away a readonly array.
function isList(durations: Durations): durations is readonly number[] {
  return Array.isArray(durations)
}
