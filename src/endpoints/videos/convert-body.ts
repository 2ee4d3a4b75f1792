import { hasAtMost } from '../character-count.ts'
import { readIntent } from './read-intent.ts'
import type { VideoModelFacts, VideoProtocolName } from './video-protocol.ts'
import { videoProtocolOf } from './video-protocols.ts'
import { isGiven, type VideoParts, type VideoRequest } from './video-request.ts'

/** Members of only one layout, strongest evidence first: 2.7 accepts `shot_type` too, and ignores it. */
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

/** Returns the layout of a body, or `undefined` if both layouts fit. */
export function protocolOfBody(parts: VideoParts): VideoProtocolName | undefined {
  return MARKS.find(([section, name]) => isGiven(parts[section]?.[name]))?.[2]
}

/** A body for another model. */
export interface ConvertedBody {
  readonly body: VideoRequest
  /** Fields of the old body that could not be converted: `parameters.shot_type`. Empty if nothing was lost. */
  readonly lost: readonly string[]
}

/**
 * Converts a parsed request for a model of another protocol: media, geometry and the prompt's names of references. For a model of
 * the same protocol, the body stays unchanged and unsupported fields are listed. The vendor chooses absent members in both
 * protocols.
 * @throws GatewayError `model_not_configured` if the model names no known protocol.
 */
export function convertBody(request: VideoRequest, from: VideoProtocolName, to: VideoModelFacts): ConvertedBody {
  const target = videoProtocolOf(to)
  const read = readIntent(request, from)
  const written = target.writeIntent(read.intent, to)
  const impossible = written.impossible.map((field) => read.origins.get(field) ?? field)
  if (target.name === from) return { body: request, lost: impossible }
  const { input, parameters } = written
  const prompt = input['prompt']
  const isCut = typeof prompt === 'string' && !hasAtMost(prompt, target.maxPromptCharacters)
  const lost = new Set([...read.unread, ...impossible, ...(isCut ? ['input.prompt'] : [])])
  return { body: { ...request, input, parameters }, lost: [...lost] }
}
