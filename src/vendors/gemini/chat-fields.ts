import {
  type FieldCheck,
  fieldCheck,
  surchargesLeftOut,
  type TranslationTable,
} from '../shared/translated-chat-fields.ts'

/** Every field of a chat request at this vendor (Gemini API, "GenerateContentRequest" and "GenerationConfig"). */
export const CHAT_FIELDS = {
  model: 'mapped',
  messages: 'mapped',
  temperature: 'mapped',
  top_p: 'mapped',
  max_tokens: 'mapped',
  max_completion_tokens: 'mapped',
  n: 'mapped',
  stream: 'mapped',
  stream_options: 'mapped',
  stop: 'mapped',
  presence_penalty: 'mapped',
  frequency_penalty: 'mapped',
  logit_bias: 'dropped',
  logprobs: 'mapped',
  top_logprobs: 'mapped',
  seed: 'mapped',
  tools: 'mapped',
  tool_choice: 'mapped',
  parallel_tool_calls: 'dropped',
  response_format: 'mapped',
  reasoning_effort: 'mapped',
  user: 'dropped',
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
  safety_identifier: 'dropped',
  service_tier: 'dropped',
  store: 'dropped',
  verbosity: 'dropped',
  web_search_options: 'dropped',
} as const satisfies TranslationTable

/** Billing fields of surcharges that the vendor never hears of. */
export const SURCHARGES_LEFT_OUT = surchargesLeftOut(CHAT_FIELDS)

/**
 * Reports the fields that are left out, unknown ones included.
 * @throws GatewayError `unsupported_parameter` naming a field that must not be left out.
 */
export const reportDroppedFields: FieldCheck = fieldCheck(CHAT_FIELDS)
