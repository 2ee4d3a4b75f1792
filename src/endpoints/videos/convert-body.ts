import { readIntent } from './read-intent.ts'
import type { VideoModelFacts, VideoProtocolName } from './video-protocol.ts'
import { videoProtocolOf } from './video-protocols.ts'
import type { VideoRequest } from './video-request.ts'

/** A body for another model. */
export interface ConvertedBody {
  readonly body: VideoRequest
  /** What could not be carried over, as fields of the old body: `parameters.shot_type`. Empty: it means the same. */
  readonly lost: readonly string[]
}

/**
 * Writes a parsed request for a model of another protocol: media, geometry and the prompt's names of references. For a model
 * of the same protocol the body stays as it is, and what that model cannot do is listed. A member that is left out leaves
 * the choice to the vendor in both.
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
  const isCut = typeof prompt === 'string' && [...prompt].length > target.maxPromptCharacters
  const lost = new Set([...read.unread, ...impossible, ...(isCut ? ['input.prompt'] : [])])
  return { body: { ...request, input, parameters }, lost: [...lost] }
}
