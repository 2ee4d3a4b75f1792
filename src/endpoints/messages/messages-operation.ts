import {
  type ChatTranslation,
  type TranslatedDialect,
  type TranslatedOffer,
  TranslatedOperation,
  translatedTokenCount,
} from '../chat/translated-dialect.ts'
import type { ExtraFeature } from '../endpoint.ts'
import { type Operation, type PassThroughOperation, passThrough, type VendorCall } from '../operation.ts'
import { chatRequestFromMessages, showsThinking } from './chat-request-from-messages.ts'
import { estimateMessageTokens } from './messages-estimate.ts'
import type { MessagesRequest } from './messages-request.ts'
import { MessagesStreamWriter } from './messages-stream-writer.ts'

/** Messages at a vendor that accepts the dialect itself. Other vendors answer through their {@link ChatOperation}. */
export interface MessagesOperation extends PassThroughOperation<MessagesRequest> {
  /** Returns features that the vendor may bill in addition to tokens. If omitted, there are none. */
  extraFeatures?(request: MessagesRequest, header: (name: string) => string | undefined): readonly ExtraFeature[]
  /** Price fields that never reach the vendor, because it lacks the features. If omitted, all reach it. */
  readonly leavesOut?: ReadonlySet<string>
  /** Whether the vendor fetches images given as URLs. Default true. If false, the gateway fetches them. */
  readonly takesImageUrls?: boolean
  /** Caller headers that decide the answer. If omitted, there are none. */
  readonly answerHeaders?: readonly string[]
  /** Operation that counts the tokens of a request. */
  readonly tokenCount: PassThroughOperation<MessagesRequest>
}

/** Part of a vendor that handles Messages. */
export interface MessagesOffer extends TranslatedOffer {
  /** Present if the vendor accepts the Messages dialect itself. */
  readonly messages?: MessagesOperation
}

/**
 * Creates the Messages operation of a vendor: pass-through if it accepts the dialect, else translation into chat and back.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming a field that cannot be translated.
 */
export function createMessagesOperation(
  { messages, chat }: MessagesOffer,
  call: VendorCall<MessagesRequest>,
): Operation | undefined {
  const asked = asCalled(call)
  if (messages !== undefined) return passThrough(messages.toWire(asked), messages, asked)
  return chat === undefined ? undefined : new TranslatedOperation(translatedMessages, chat, asked)
}

/**
 * Creates the token count of a request: from the vendor if it counts, else estimated without a call.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming the untranslatable field.
 */
export function createTokenCountOperation(
  offer: MessagesOffer,
  call: VendorCall<MessagesRequest>,
): Operation | undefined {
  const { messages } = offer
  if (messages === undefined) return translatedTokenCount(translatedMessages, offer, call)
  const asked = asCalled(call)
  return passThrough(messages.tokenCount.toWire(asked), messages.tokenCount, asked)
}

/** Callers get the id or alias that they wrote. An answer of a fallback has the fallback's id. */
function asCalled(call: VendorCall<MessagesRequest>): VendorCall<MessagesRequest> {
  const { model, request } = call
  return model.aliases.includes(request.model) ? { ...call, publicModel: request.model } : call
}

/** The Messages names of fields that a chat vendor drops. */
const CALLER_NAMES: ReadonlyMap<string, string> = new Map([
  ['user', 'metadata.user_id'],
  ['safety_identifier', 'metadata.user_id'],
  ['stop', 'stop_sequences'],
  ['parallel_tool_calls', 'tool_choice.disable_parallel_tool_use'],
  ['reasoning_effort', 'thinking'],
  ['response_format', 'output_config.format'],
  ['messages.reasoning_content', 'messages.thinking'],
])

/** Messages at vendors of other dialects. */
const translatedMessages: TranslatedDialect<MessagesRequest, ChatTranslation> = {
  translate({ request, model }, chat) {
    const keepsCacheControl = chat.takesCacheControl?.(model) === true
    const translation = chatRequestFromMessages(request, model.limits.maxOutputTokens, keepsCacheControl)
    return { ...translation, callerField: (field) => CALLER_NAMES.get(field) ?? field }
  },
  writer: ({ call }, isStream) =>
    new MessagesStreamWriter({
      model: call.publicModel,
      nowMs: call.nowMs,
      showsThinking: showsThinking(call.request),
      isWhole: !isStream,
      billedUsage: call.billedUsage,
    }),
  tokenCount: (tokens) => ({ input_tokens: tokens }),
  estimateTokens: estimateMessageTokens,
}
