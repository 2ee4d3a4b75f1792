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
  | 'moderation'
  | 'prediction'
  | 'prompt_cache_key'
  | 'prompt_cache_options'
  | 'prompt_cache_retention'
  | 'safety_identifier'
  | 'service_tier'
  | 'store'
  | 'verbosity'
  | 'web_search_options'

/**
 * What becomes of a field. `mapped`: it has an equivalent, or the gateway itself serves it; a value that the model at hand
 * refuses is still reported. `dropped`: left out and reported. `refused`: 400, because the answer would be another one.
 */
export type FieldRule = 'mapped' | 'dropped' | 'refused'

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
} as const satisfies Record<DeclaredField | ExtraField, FieldRule>

const RULES: ReadonlyMap<string, FieldRule> = new Map(Object.entries(CHAT_FIELDS))

// Values of a refused field that ask for nothing beyond what this vendor does anyway.
const HARMLESS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['n', (value) => value === 1],
  ['modalities', (value) => Array.isArray(value) && value.every((modality) => modality === 'text')],
  ['function_call', (value) => value === 'none' || value === 'auto'],
  ['functions', (value) => Array.isArray(value) && value.length === 0],
])

/**
 * Goes through the fields of a request and gives those that are left out, unknown ones included.
 * @throws GatewayError `unsupported_parameter` naming a field that must not be left out.
 */
export function droppedFields(request: ChatRequest): string[] {
  const dropped: string[] = []
  for (const field of Object.keys(request)) {
    const value = request[field]
    if (value === undefined || value === null) continue
    const rule = RULES.get(field) ?? 'dropped'
    if (rule === 'dropped') dropped.push(field)
    if (rule === 'refused' && HARMLESS.get(field)?.(value) !== true) {
      throw new GatewayError('unsupported_parameter', {
        message: `The model does not support this value of ${field}.`,
        param: field,
      })
    }
  }
  return dropped
}
