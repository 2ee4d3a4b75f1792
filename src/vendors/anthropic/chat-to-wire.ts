import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { modelAbilities } from '../shared/messages-abilities.ts'
import { type MessagesRequest, messagesFromChat } from '../shared/messages-from-chat.ts'
import { fieldCheck, surchargesLeftOut, type TranslationTable } from '../shared/translated-chat-fields.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { withCacheControl } from './cache-control.ts'

/** Every field of a chat request at this vendor (Anthropic, "OpenAI SDK compatibility", field tables). */
export const CHAT_FIELDS = {
  model: 'mapped',
  messages: 'mapped',
  temperature: 'mapped',
  top_p: 'mapped',
  max_tokens: 'mapped',
  max_completion_tokens: 'mapped',
  n: 'refused',
  stream: 'mapped',
  stream_options: 'mapped',
  stop: 'mapped',
  presence_penalty: 'dropped',
  frequency_penalty: 'dropped',
  logit_bias: 'dropped',
  logprobs: 'dropped',
  top_logprobs: 'dropped',
  seed: 'dropped',
  tools: 'mapped',
  tool_choice: 'mapped',
  parallel_tool_calls: 'mapped',
  response_format: 'mapped',
  reasoning_effort: 'mapped',
  user: 'mapped',
  safety_identifier: 'mapped',
  audio: 'refused',
  function_call: 'refused',
  functions: 'refused',
  modalities: 'refused',
  metadata: 'dropped',
  moderation: 'dropped',
  prediction: 'dropped',
  prompt_cache_key: 'dropped',
  prompt_cache_options: 'dropped',
  prompt_cache_retention: 'dropped',
  service_tier: 'dropped',
  store: 'dropped',
  verbosity: 'dropped',
  web_search_options: 'dropped',
} as const satisfies TranslationTable

/** Billing fields of surcharges that the vendor never hears of. */
export const SURCHARGES_LEFT_OUT = surchargesLeftOut(CHAT_FIELDS)

const reportDroppedFields = fieldCheck(CHAT_FIELDS, { n: (value) => value === 1 })

/** Where and how the vendor is reached. */
export interface MessagesAddress {
  /** Path of the endpoint below the origin. */
  readonly path: string
  /** Value of the `anthropic-version` header: a date. */
  readonly version: string
  /** The headers by which a key is sent; `x-api-key` when absent. */
  readonly keyHeaders?: ((apiKey: string) => readonly string[]) | undefined
}

/** The headers that prove a call; none for an empty key. */
export function keyHeadersFor({ keyHeaders }: MessagesAddress, apiKey: string): readonly string[] {
  if (apiKey === '') return []
  return keyHeaders === undefined ? ['x-api-key', apiKey] : keyHeaders(apiKey)
}

/** The first API version that refuses all sampling parameters on every model (Anthropic, "Migration 2026-10-21"). */
const VERSION_WITHOUT_SAMPLING = '2026-10-21'

/**
 * Writes a chat as a Messages request.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field.
 */
export function chatToWire(call: VendorCall<ChatRequest>, address: MessagesAddress): WireRequest {
  const dropped = new Set<string>()
  const body = messagesRequestFor(call, address.version, (field) => void dropped.add(field))
  return {
    path: address.path,
    headers: [
      ...keyHeadersFor(address, call.apiKey),
      'anthropic-version',
      address.version,
      'content-type',
      'application/json',
      'accept',
      call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding',
      'identity',
    ],
    body: JSON.stringify(body),
    dropped: [...dropped],
  }
}

/** The body of a chat's Messages request. @param version Of the API, whose rules it follows. */
export function messagesRequestFor(
  call: VendorCall<ChatRequest>,
  version: string,
  report: (field: string) => void,
): MessagesRequest {
  reportDroppedFields(call.request, report)
  const refusesSampling = version >= VERSION_WITHOUT_SAMPLING
  const abilities = modelAbilities(call.model.upstream)
  return withCacheControl(messagesFromChat(call, { abilities, refusesSampling }, report), call, report)
}
