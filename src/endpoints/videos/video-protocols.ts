import { GatewayError } from '../../core/errors.ts'
import { hasAtMost } from '../character-count.ts'
import { unsupportedField } from '../field-errors.ts'
import type { ReadIntent, VideoIntent, VideoModelFacts, VideoProtocol, VideoProtocolName } from './video-protocol.ts'
import { durationsOf, durationsText, isRendered, resolutionsOf } from './video-rendering.ts'
import { isGiven, type VideoParts, type VideoRequest } from './video-request.ts'
import { wan26 } from './wan-2-6.ts'
import { wan27 } from './wan-2-7.ts'

/** The layouts of `input` and `parameters`, by the protocol that catalog rows name. */
export const VIDEO_PROTOCOLS: ReadonlyMap<string, VideoProtocol> = new Map(
  [wan26, wan27].map((protocol) => [protocol.name, protocol]),
)

/**
 * The protocol of a model.
 * @throws GatewayError `model_not_configured` when its catalog row names none that is known.
 */
export function videoProtocolOf(model: VideoModelFacts): VideoProtocol {
  const protocol = VIDEO_PROTOCOLS.get(model.protocol ?? '')
  if (protocol !== undefined) return protocol
  throw new GatewayError('model_not_configured', {
    message: `The model ${JSON.stringify(model.id)} names no video protocol: give it ${[...VIDEO_PROTOCOLS.keys()].join(' or ')}.`,
    param: 'model',
  })
}

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

/** Reads a parsed request as an intent; what an intent cannot hold is listed. */
export function readIntent(request: VideoRequest, protocol: VideoProtocolName): ReadIntent {
  return videoProtocolOf({ id: request.model, protocol }).readIntent(request)
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
