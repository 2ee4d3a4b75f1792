import { GatewayError } from '../../core/errors.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'

/** The fields that {@link ChatRequest} declares, without its index signature. */
type DeclaredField = keyof {
  [Field in keyof ChatRequest as string extends Field ? never : Field]: ChatRequest[Field]
}

/** Fields that current SDKs send beyond the declared ones. */
type ExtraField =
  | 'audio'
  | 'function_call'
  | 'functions'
  | 'metadata'
  | 'modalities'
  | 'prediction'
  | 'prompt_cache_key'
  | 'prompt_cache_retention'
  | 'safety_identifier'
  | 'service_tier'
  | 'store'
  | 'verbosity'
  | 'web_search_options'

/**
 * What becomes of a field. `mapped`: it has an equivalent, or the gateway itself serves it; a value that the model at hand
 * lacks is reported. `dropped`: left out and reported. `refused`: 400, because the answer would be another one.
 */
export type FieldRule = 'mapped' | 'dropped' | 'refused'

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
  prediction: 'dropped',
  prompt_cache_key: 'dropped',
  prompt_cache_retention: 'dropped',
  safety_identifier: 'dropped',
  service_tier: 'dropped',
  store: 'dropped',
  verbosity: 'dropped',
  web_search_options: 'dropped',
} as const satisfies Record<DeclaredField | ExtraField, FieldRule>

const RULES: ReadonlyMap<string, FieldRule> = new Map(Object.entries(CHAT_FIELDS))

// Values of a refused field that ask for nothing beyond what this vendor does anyway.
const HARMLESS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['modalities', (value) => Array.isArray(value) && value.every((modality) => modality === 'text')],
  ['function_call', (value) => value === 'none' || value === 'auto'],
  ['functions', (value) => Array.isArray(value) && value.length === 0],
])

/**
 * Goes through the fields of a request and reports those that are left out, unknown ones included.
 * @throws GatewayError `unsupported_parameter` naming a field that must not be left out.
 */
export function reportDroppedFields(request: ChatRequest, report: (field: string) => void): void {
  for (const field of Object.keys(request)) {
    const value = request[field]
    if (value === undefined || value === null) continue
    const rule = RULES.get(field) ?? 'dropped'
    if (rule === 'dropped') report(field)
    if (rule === 'refused' && HARMLESS.get(field)?.(value) !== true) {
      throw new GatewayError('unsupported_parameter', {
        message: `The model does not support this value of ${field}.`,
        param: field,
      })
    }
  }
}
