import { isGiven } from './video-fault.ts'
import type { VideoParts, VideoProtocolName } from './video-protocol.ts'

/** What only one layout has, most telling first: `shot_type` alone also passes, without effect, in the newer one. */
const MARKS: readonly (readonly [section: keyof VideoParts, name: string, protocol: VideoProtocolName])[] = [
  ['input', 'img_url', 'wan-2-6'],
  ['input', 'reference_urls', 'wan-2-6'],
  ['input', 'reference_video_urls', 'wan-2-6'],
  ['input', 'media', 'wan-2-7'],
  ['parameters', 'size', 'wan-2-6'],
  ['parameters', 'ratio', 'wan-2-7'],
  ['parameters', 'resolution', 'wan-2-7'],
  ['parameters', 'shot_type', 'wan-2-6'],
  ['parameters', 'audio', 'wan-2-6'],
]

/** Tells the layout of a body; undefined when it says the same in each. */
export function protocolOfBody(parts: VideoParts): VideoProtocolName | undefined {
  return MARKS.find(([section, name]) => isGiven(parts[section]?.[name]))?.[2]
}
