import { GatewayError } from '../../core/errors.ts'
import { parseExactJson } from '../../core/exact-json.ts'
import { assertPlainJson, isJsonObject, MAX_JSON_DEPTH } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { ChatAnswerMessage, ChatCompletion, FinishReason } from '../chat/chat-completion.ts'
import { type ContentBlock, carriedSignature } from './messages-request.ts'

/** Nesting levels above the input of a tool use: the body, its messages, a message, its content, the block. */
const LEVELS_ABOVE_INPUT = 5

/** A whole answer of a Messages route. */
export interface Message {
  id: string
  type: 'message'
  role: 'assistant'
  model: string
  content: ContentBlock[]
  stop_reason: StopReason
  stop_sequence: null
  usage: MessageUsage
}

/** The parts of a message other than its content. */
export interface MessageFacts {
  /** Model id that the caller reads. */
  readonly model: string
  /** Whether to show reasoning. Callers that did not request it would read the first block as the answer. */
  readonly showsThinking: boolean
  /** Unix milliseconds at which the call began. */
  readonly nowMs: number
}

/** Converts a chat answer to a message, with the same blocks as a stream of the answer. */
export function messageFromCompletion(
  { id, choices }: ChatCompletion,
  usage: Usage | undefined,
  facts: MessageFacts,
): Message {
  const choice = choices[0]
  const hasToolCalls = (choice?.message.tool_calls?.length ?? 0) > 0
  return {
    id: messageId(id, facts.nowMs),
    type: 'message',
    role: 'assistant',
    model: facts.model,
    content: choice === undefined ? [] : contentOf(choice.message, facts.showsThinking),
    stop_reason: stopReason(choice?.finish_reason ?? 'stop', hasToolCalls),
    stop_sequence: null,
    usage: messageUsage(usage),
  }
}

function contentOf(message: ChatAnswerMessage, showsThinking: boolean): ContentBlock[] {
  const blocks: ContentBlock[] = []
  if (message.thinking_blocks !== undefined) blocks.push(...message.thinking_blocks.map((block) => ({ ...block })))
  else if (showsThinking && message.reasoning_content) blocks.push(thinking(message.reasoning_content))
  // Other callers read the first block as the answer, and servers require the state of turns with calls only.
  if (message.extra_content?.server !== undefined && (showsThinking || message.tool_calls !== undefined))
    sign(blocks, carriedSignature(message.extra_content))
  for (const text of [message.content, message.refusal]) if (text) blocks.push({ type: 'text', text })
  for (const { id, function: called, extra_content: extra } of message.tool_calls ?? []) {
    if (extra !== undefined) sign(blocks, carriedSignature(extra))
    blocks.push({ type: 'tool_use', id, name: called.name, input: toolInput(called.arguments) })
  }
  return blocks
}

/** Signs the last block if it is unsigned thinking. Otherwise, adds a thinking block for the signature. */
function sign(blocks: ContentBlock[], signature: string): void {
  const last = blocks.at(-1)
  if (last?.type === 'thinking' && last['signature'] === carriedSignature()) last['signature'] = signature
  else blocks.push({ ...thinking(''), signature })
}

function thinking(text: string): ContentBlock {
  return { type: 'thinking', thinking: text, signature: carriedSignature() }
}

/**
 * Returns the input of a tool use, which must be an object. Other arguments are kept as `{ arguments: text }`, as are
 * arguments that the gateway would reject in the next request: nested too deep, or with a member `__proto__`.
 */
function toolInput(json: string): Record<string, unknown> {
  if (json.trim() === '') return {}
  const input = parseExactJson(json)
  return isJsonObject(input) && isPlain(input) ? input : { arguments: json }
}

function isPlain(value: unknown): boolean {
  try {
    assertPlainJson(value, MAX_JSON_DEPTH - LEVELS_ABOVE_INPUT)
    return true
  } catch (error) {
    if (GatewayError.isInstance(error)) return false
    throw error
  }
}

/** Usage in the Messages dialect: `input_tokens` excludes tokens read from or written to a cache. */
export interface MessageUsage {
  input_tokens: number
  cache_creation_input_tokens: number
  cache_read_input_tokens: number
  output_tokens: number
  output_tokens_details?: { thinking_tokens: number }
}

/**
 * Writes usage as Messages callers read it (Anthropic, "Prompt caching", usage). All counts are present, because
 * clients read them unchecked. Counts that the vendor did not report are 0.
 */
export function messageUsage(usage: Usage | undefined): MessageUsage {
  const cached = usage?.cachedInputTokens ?? 0
  const written = usage?.cacheWriteTokens ?? 0
  return {
    input_tokens: Math.max(0, (usage?.inputTokens ?? 0) - cached - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    output_tokens: usage?.outputTokens ?? 0,
    ...(usage?.reasoningTokens === undefined
      ? {}
      : { output_tokens_details: { thinking_tokens: usage.reasoningTokens } }),
  }
}

/** Why a message ended, limited to reasons that other vendors report (Anthropic, "Handling stop reasons"). */
export type StopReason = 'end_turn' | 'max_tokens' | 'tool_use' | 'refusal'

/** Maps a finish reason. A JSON response with tool calls always ends with `tool_use`, because agents only react to that. */
export function stopReason(reason: FinishReason, hasToolCalls: boolean): StopReason {
  if (reason === 'length') return 'max_tokens'
  if (reason === 'content_filter') return 'refusal'
  return hasToolCalls ? 'tool_use' : 'end_turn'
}

const FOREIGN_CHARACTERS = /[^\w-]/g

/** Returns the id of a message, based on the vendor's id, or on the time if there is none. */
export function messageId(vendorId: string, nowMs: number): string {
  const id = vendorId.replace(FOREIGN_CHARACTERS, '').slice(0, 100) || nowMs.toString(36)
  return id.startsWith('msg_') ? id : `msg_${id}`
}
