import type { ErrorCode, GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import { sseEvent } from '../../wire/sse.ts'
import { commonErrorBody, type ErrorDialect, openaiError, openaiErrors } from '../error-dialect.ts'
import { invalidField } from '../field-errors.ts'
import type { PassThroughOperation } from '../operation.ts'
import type { InteractionRequest } from './interactions/interaction-request.ts'
import type { MultimodalImageRequest } from './multimodal/multimodal-image-request.ts'
import type { OpenAIImageRequest } from './openai/openai-image-request.ts'

/** Image generation at one vendor, in its own request shape. Unless the vendor reports `images`, they are counted. */
export type ImageOperation<Request> = PassThroughOperation<Request>

/** Image request shapes that a vendor accepts, by the protocol that the catalog names. */
export interface ImageOperations {
  readonly multimodal?: ImageOperation<MultimodalImageRequest>
  readonly interactions?: ImageOperation<InteractionRequest>
  readonly generations?: ImageOperation<OpenAIImageRequest>
}

/** Part of a vendor that handles image generation. */
export interface ImagesOffer {
  readonly images?: ImageOperations
}

/** Codes of the upstream style for errors that are not a vendor's own (API specification, "Errors": `InvalidParameter`). */
const UPSTREAM_CODES: ReadonlyMap<string, string> = new Map<ErrorCode, string>([
  ['invalid_request', 'InvalidParameter'],
  ['invalid_json', 'InvalidParameter'],
  ['json_too_deep', 'InvalidParameter'],
  ['unsupported_parameter', 'InvalidParameter'],
  ['endpoint_model_mismatch', 'InvalidParameter'],
  ['unsupported_media_type', 'InvalidParameter'],
  ['body_too_large', 'InvalidParameter'],
  ['model_not_found', 'InvalidParameter'],
  ['invalid_api_key', 'InvalidApiKey'],
  ['permission_denied', 'AccessDenied'],
  ['upstream_timeout', 'RequestTimeOut'],
  ['upstream_unavailable', 'ModelUnavailable'],
  ['internal_error', 'InternalError'],
])

/** Returns a vendor's own code unchanged, else the upstream style's code, if it has one. */
function upstreamCode(error: GatewayError): string {
  return error.publicCode === error.code ? (UPSTREAM_CODES.get(error.code) ?? error.code) : error.publicCode
}

function upstreamStyle(error: GatewayError, requestId: string, ours: Record<string, string | null>): string {
  const code = upstreamCode(error)
  const requestIdShown = error.upstreamRequestId ?? requestId
  return JSON.stringify({ code, message: error.message, request_id: requestIdShown, error: ours })
}

/** `{code,message,request_id}`, repeated under `error` because OpenAI's SDK shows nothing else. */
export const multimodalErrors: ErrorDialect = {
  ...openaiErrors,
  body: (error, requestId) =>
    commonErrorBody(error, requestId) ??
    upstreamStyle(error, requestId, { ...openaiError(error).error, code: upstreamCode(error) }),
}

/** Both shapes together, for a path whose model and shape are not known yet. */
export const anyImageErrors: ErrorDialect = {
  ...openaiErrors,
  body: (error, requestId) =>
    commonErrorBody(error, requestId) ?? upstreamStyle(error, requestId, openaiError(error).error),
}

/** OpenAI's shape, with the type of an event inside streams. */
export const interactionErrors: ErrorDialect = {
  ...openaiErrors,
  streamEvent: (error) => sseEvent('error', JSON.stringify({ ...openaiError(error), event_type: 'error' })),
}

/** Prompt members of each shape, for error messages. */
const PROMPTS = {
  multimodal: {
    own: 'input',
    other: 'prompt',
    hint: 'write it as input: { "messages": [{ "role": "user", "content": [{ "text": "…" }] }] }',
  },
  interactions: { own: 'input', other: 'prompt', hint: 'write it as input' },
  generations: { own: 'prompt', other: 'input', hint: 'write it as prompt' },
} as const

/**
 * Rejects a body in the shape of another model, with a hint at the right shape.
 * @throws GatewayError `invalid_request` naming the member of the other shape.
 */
export function refuseOtherShape(body: unknown, shape: keyof typeof PROMPTS): void {
  const { own, other, hint } = PROMPTS[shape]
  if (!isJsonObject(body) || body[own] !== undefined || body[other] === undefined) return
  throw invalidField(other, `is of another model's request; ${hint}`)
}
