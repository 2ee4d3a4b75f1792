import { hasAtMost } from '../character-count.ts'
import { readIntent } from './read-intent.ts'
import type { VideoModelFacts, VideoProtocolName } from './video-protocol.ts'
import { videoProtocolOf } from './video-protocols.ts'
import { isGiven, type VideoParts, type VideoRequest } from './video-request.ts'

/** Members that only one layout has, strongest evidence first: 2.7 accepts `shot_type` too, and ignores it. */
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

/** The layout of a body; undefined when the body is the same in both. */
export function protocolOfBody(parts: VideoParts): VideoProtocolName | undefined {
  return MARKS.find(([section, name]) => isGiven(parts[section]?.[name]))?.[2]
}

/** A body for another model. */
export interface ConvertedBody {
  readonly body: VideoRequest
  /** What could not be carried over, as fields of the old body: `parameters.shot_type`. Empty: it means the same. */
  readonly lost: readonly string[]
}

/**
 * Writes a parsed request for a model of another protocol: media, geometry and the prompt's names of references. For a
 * model of the same protocol the body stays unchanged, and the unsupported fields are listed. For an absent member the
 * vendor chooses in both.
 * @throws GatewayError `model_not_configured` when the model names no known protocol.
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
