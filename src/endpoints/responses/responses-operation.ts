import { Buffer } from 'node:buffer'
import {
  type TranslatedDialect,
  type TranslatedOffer,
  TranslatedOperation,
  translatedTokenCount,
} from '../chat/translated-dialect.ts'
import { textBeside } from '../media-input.ts'
import { ESTIMATED_TOKENS_PER_FILE } from '../messages/messages-estimate.ts'
import {
  type Operation,
  type PassThroughOperation,
  passThrough,
  type VendorCall,
  type WireRequest,
} from '../operation.ts'
import { estimateTokens } from '../token-estimate.ts'
import { chatRequestFromResponses, type TranslatedRequest } from './chat-request-from-responses.ts'
import { responsesMedia } from './responses-media.ts'
import type { ResponsesRequest } from './responses-request.ts'
import { ResponsesStreamWriter } from './responses-stream-writer.ts'

/** Responses at a vendor that accepts the dialect itself. Other vendors answer through their {@link ChatOperation}. */
export interface ResponsesPassThroughOperation extends PassThroughOperation<ResponsesRequest> {
  /** Operation that counts the tokens of a request. If omitted, the vendor has none, and the gateway estimates. */
  readonly inputTokens?: PassThroughOperation<ResponsesRequest>
  /**
   * Returns the call that deletes an answer at the vendor. If omitted, the vendor stores none, and follow-ups are sent with their
   * whole history.
   */
  readonly deletion?: (upstreamId: string, apiKey: string) => Omit<WireRequest, 'body' | 'dropped'>
  /** Whether the vendor fetches images given by URL. If false, the gateway fetches them and sends bytes. */
  readonly takesImageUrls?: boolean
}

/** Part of a vendor that handles Responses. */
export interface ResponsesOffer extends TranslatedOffer {
  /** Present if the vendor accepts the Responses dialect itself. */
  readonly responses?: ResponsesPassThroughOperation
}

/**
 * Creates the Responses operation of a vendor: pass-through if it accepts the dialect, else translation into chat and back.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming a field that cannot be translated.
 */
export function createResponsesOperation(
  { responses, chat }: ResponsesOffer,
  call: VendorCall<ResponsesRequest>,
): Operation | undefined {
  if (responses !== undefined) return passThrough(responses.toWire(call), responses, call)
  return chat === undefined ? undefined : new TranslatedOperation(translatedResponses, chat, call)
}

/**
 * Creates the token count of a request: from the vendor if it counts, else estimated without a call.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming the untranslatable field.
 */
export function createInputTokensOperation(
  offer: ResponsesOffer,
  call: VendorCall<ResponsesRequest>,
): Operation | undefined {
  const counted = offer.responses?.inputTokens
  if (counted !== undefined) return passThrough(counted.toWire(call), counted, call)
  return translatedTokenCount(translatedResponses, offer, call)
}

/** Returns an upper estimate: the text by the gateway's usual rule, plus a fixed number per image or file. */
function estimatedInputTokens(request: ResponsesRequest): number {
  const { input, instructions, tools, text } = request
  const media = responsesMedia(request)
  const body = { input, instructions, tools, text }
  const textBytes = textBeside(media, body)?.byteLength ?? Buffer.byteLength(JSON.stringify(body))
  return estimateTokens(textBytes) + media.length * ESTIMATED_TOKENS_PER_FILE
}

/** Responses at vendors of other dialects. */
const translatedResponses: TranslatedDialect<ResponsesRequest, TranslatedRequest> = {
  translate: ({ request, model, stateSecret }, chat) =>
    chatRequestFromResponses(request, {
      keepsBreakpoints: chat.takesCacheControl?.(model) === true,
      takesFileUrls: chat.takesFileUrls?.(model) === true,
      vendor: model.vendor,
      secret: stateSecret,
      maxOutputTokens: model.limits.maxOutputTokens,
    }),
  writer({ call, translation, chat, dropped }) {
    const { request, publicModel, nowMs, clock, conversation, model, stateSecret } = call
    const written = (conversation?.original?.request as ResponsesRequest | undefined) ?? request
    const isTierSent = !dropped.includes('service_tier')
    return new ResponsesStreamWriter({
      id: conversation?.freshId ?? `resp_${nowMs.toString(16)}`,
      model: publicModel,
      nowMs,
      clock,
      // Drops the input, because a prompt with images may hold megabytes for as long as the stream lasts.
      request: { ...written, input: '', service_tier: isTierSent ? written['service_tier'] : null },
      names: translation.names,
      owner: { vendor: model.vendor, secret: stateSecret },
      replaysReasoning: chat.replaysReasoning?.(model),
    })
  },
  tokenCount: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  estimateTokens: estimatedInputTokens,
}
