import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { fieldCheck, surchargesLeftOut, type TranslationTable } from '../shared/translated-chat-fields.ts'

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

const check = fieldCheck(CHAT_FIELDS, { n: (value) => value === 1 })

/**
 * Gives the fields that are left out, unknown ones included.
 * @throws GatewayError `unsupported_parameter` naming a field that must not be left out.
 */
export function droppedFields(request: ChatRequest): string[] {
  const dropped: string[] = []
  check(request, (field) => dropped.push(field))
  return dropped
}
