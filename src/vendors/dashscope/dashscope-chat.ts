import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import {
  activeRules,
  type ChatFieldTable,
  forcesCall,
  hasExtensions,
  PASS_ALL,
  withoutExtensions,
} from '../shared/chat-fields.ts'
import type { FieldMapping, FieldRules } from '../shared/field-rules.ts'
import { ROUTING_RULES } from '../shared/openai-field-rules.ts'

/** The vendor has no developer role and does not accept reasoning of earlier turns. */
const messages: FieldMapping<ChatRequest> = {
  needed: (_value, request) =>
    request.messages.some((message) => message.role === 'developer' || hasExtensions(message)),
  apply: (body, value) => {
    body['messages'] = (value as ChatMessage[]).map((message) => {
      const plain = withoutExtensions(message)
      return plain.role === 'developer' ? { ...plain, role: 'system' } : plain
    })
  },
}

/**
 * The older field may limit the answer without its thinking; the newer one limits both (Model Studio, "Notice of Changes to Certain
 * Model Fields", April 2026). If both are set, the smaller one counts.
 */
const asCompletionTokens: FieldMapping<ChatRequest> = {
  needed: () => true,
  apply: (body, value) => {
    delete body['max_tokens']
    if (typeof value !== 'number') return
    const { max_completion_tokens: other } = body
    body['max_completion_tokens'] = typeof other === 'number' ? Math.min(other, value) : value
  },
}

/** The vendor rejects an empty list of tools, so it is omitted together with other tool fields. */
const toolsUnlessEmpty: FieldMapping<ChatRequest> = {
  needed: (value) => Array.isArray(value) && value.length === 0,
  apply: (body) => {
    delete body['tools']
    delete body['tool_choice']
    delete body['parallel_tool_calls']
  },
  losses: (_value, { tool_choice: choice }) => (forcesCall(choice) ? ['tool_choice'] : []),
}

/** Models whose thinking a request can turn on or off (Model Studio, "Deep thinking", hybrid thinking mode). */
const HYBRID_MODELS = [
  /^qwen3\.[567]-(?:max|plus|flash)(?:-preview|-\d{4}-\d{2}-\d{2})?$/,
  /^qwen3(?:\.[56])?-\d+(?:\.\d+)?b(?:-a\d+b)?$/,
  /^qwen-(?:plus|flash|turbo)(?:-latest)?$/,
]

/** Most hybrid models think by default. A caller's own `enable_thinking` is kept. */
const effortUnlessNone: FieldMapping<ChatRequest> = {
  needed: (effort, request) => effort === 'none' && request['enable_thinking'] === undefined,
  apply: (body) => {
    delete body['reasoning_effort']
    body['enable_thinking'] = false
  },
}

/** Open models that think by default, and only in streams. */
const THINKING_IN_STREAMS = /^qwen3-\d+(?:\.\d+)?b(?:-a\d+b)?$/

/** QwQ, QVQ, Qwen-Omni and open Qwen3 models that always think (Model Studio, "Streaming output"). */
const ONLY_IN_STREAMS = /^q(?:wq|vq)\b|\bomni\b|^qwen3-.*-thinking(?:-\d{4})?$/

/** Whether the vendor answers this request only in a stream. Unknown for unlisted models. */
export function dashscopeStreamsOnly(upstream: string, request: ChatRequest): boolean {
  return ONLY_IN_STREAMS.test(upstream) || (THINKING_IN_STREAMS.test(upstream) && asksToThink(request))
}

function asksToThink(request: ChatRequest): boolean {
  const { reasoning_effort: effort, response_format: format, enable_thinking: enabled } = request
  if (enabled !== undefined) return enabled === true
  // JSON output is rejected while a model thinks.
  const isText = format === undefined || format === null || format.type === 'text'
  return isText && effort !== undefined && effort !== null && effort !== 'none'
}

/**
 * Disables thinking in other whole answers of such a model (Model Studio, error codes: "enable_thinking must be set to false for
 * non-streaming calls"), because clients of OpenAI's API have no field for it.
 */
const withoutThinking: FieldMapping<ChatRequest> = {
  needed: (_model, request) => request.stream !== true && request['enable_thinking'] === undefined,
  apply: (body) => {
    delete body['reasoning_effort']
    body['enable_thinking'] = false
  },
  losses: (_model, { reasoning_effort: effort }) =>
    effort === undefined || effort === null || effort === 'none' ? [] : ['reasoning_effort'],
}

/**
 * DashScope's chat fields (OpenAI-compatible mode) for models other than {@link HYBRID_MODELS}. Values that only this vendor
 * rejects, such as a temperature of 2, and its own fields, such as `enable_thinking`, pass through.
 */
export const DASHSCOPE_FIELDS: ChatFieldTable = {
  ...PASS_ALL,
  messages,
  max_tokens: asCompletionTokens,
  tools: toolsUnlessEmpty,
  frequency_penalty: 'drop',
}

const RULES = { ...activeRules(DASHSCOPE_FIELDS), ...ROUTING_RULES }
const HYBRID_FIELDS: ChatFieldTable = { ...DASHSCOPE_FIELDS, reasoning_effort: effortUnlessNone }
const HYBRID_RULES = { ...activeRules(HYBRID_FIELDS), ...ROUTING_RULES }
const STREAMED_RULES = { ...HYBRID_RULES, model: withoutThinking }

/** Returns the rules that apply to a model, by the vendor's own id. */
export function dashscopeRules(upstream: string): FieldRules<ChatRequest> {
  if (THINKING_IN_STREAMS.test(upstream)) return STREAMED_RULES
  return HYBRID_MODELS.some((pattern) => pattern.test(upstream)) ? HYBRID_RULES : RULES
}

/** The vendor returns vectors only as numbers; the gateway encodes base64. */
export const DASHSCOPE_EMBEDDING_RULES: FieldRules<EmbeddingsRequest> = {
  encoding_format: {
    needed: (value) => value !== 'float',
    apply: (body) => {
      body['encoding_format'] = 'float'
    },
  },
}
