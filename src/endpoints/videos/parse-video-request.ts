import type { ModelFacts } from '../model-facts.ts'
import { checkRequest } from '../request-field.ts'
import { agreedAspectRatio } from './billing-agreement.ts'
import { checkRendering, resolutionsOf } from './check-rendering.ts'
import { mediaAddresses } from './media-addresses.ts'
import { isOrdinaryVideoBody } from './ordinary-video-body.ts'
import { videoFault } from './video-fault.ts'
import type { VideoParts, VideoProtocol } from './video-protocol.ts'
import { VIDEO_PROTOCOLS } from './video-protocols.ts'
import type { VideoRequest } from './video-request.ts'
import { type VideoBody, videoSchema } from './video-schema.ts'

const DEFAULT_DURATION_SECONDS = 5
const DEFAULT_RESOLUTION = '720p'

/**
 * Checks a video request: the top-level types, the form of all addresses, the fields that the model's protocol requires,
 * what the model renders, and that `parameters` agree with what is billed. Gives a new request with the defaults filled in
 * at the top; `input` and `parameters` are the caller's own. For a model without a known protocol or without abilities, what
 * depends on them is left to the vendor.
 * @throws GatewayError `invalid_request` naming the field.
 */
export function parseVideoRequest(value: unknown, model: ModelFacts): VideoRequest {
  const body = isOrdinaryVideoBody(value) ? (value as VideoBody) : checkRequest<VideoBody>(videoSchema, value)
  const parts: VideoParts = { input: body.input, parameters: body.parameters ?? {} }
  const protocol = VIDEO_PROTOCOLS.get(model.protocol ?? '')
  mediaAddresses(body.input)
  if (protocol !== undefined) checkParts(parts, model, protocol)
  const billed = {
    duration: body.duration ?? DEFAULT_DURATION_SECONDS,
    resolution: body.resolution ?? defaultResolution(model),
  }
  checkRendering(billed, model, protocol?.holdsReferenceVideo(parts) === true)
  const knowsSizes = protocol !== undefined || model.video !== undefined
  const request: VideoRequestDraft = {
    model: body.model,
    duration: billed.duration,
    resolution: billed.resolution,
    aspect_ratio: agreedAspectRatio(body, billed, { knowsSizes }),
    input: body.input,
  }
  const { parameters, webhook_url: webhookUrl } = body
  if (parameters !== undefined && parameters !== null) request.parameters = parameters
  if (webhookUrl !== undefined && webhookUrl !== null) request.webhook_url = webUrl(webhookUrl)
  // Refuses a ratio that no size can be chosen for before money is held.
  protocol?.fillIn(request, model)
  if (Object.keys(body).every((name) => READ_FIELDS.has(name))) return request
  // What is not read here goes along, so that it can be named as left out.
  const { parameters: _parameters, webhook_url: _webhookUrl, ...fields } = body
  return { ...fields, ...request }
}

type VideoRequestDraft = { -readonly [Field in keyof VideoRequest]: VideoRequest[Field] }

const READ_FIELDS: ReadonlySet<string> = new Set(Object.keys(videoSchema.shape))

function checkParts(parts: VideoParts, model: ModelFacts, protocol: VideoProtocol): void {
  const misplaced = protocol.misplacedField(parts, model)
  if (misplaced !== undefined) {
    throw videoFault(misplaced.param, `${model.id} is ${protocol.describedAs}: use ${misplaced.use}`)
  }
  protocol.check(parts, model)
}

function defaultResolution(model: ModelFacts): string {
  const offered = resolutionsOf(model.video)
  return offered.includes(DEFAULT_RESOLUTION) ? DEFAULT_RESOLUTION : (offered[0] ?? DEFAULT_RESOLUTION)
}

function webUrl(text: string): string {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) throw videoFault('webhook_url', 'must be an http(s) URL')
  return text
}
