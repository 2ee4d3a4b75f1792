import { GatewayError } from '../../core/errors.ts'
import { assertPlainJson, isJsonObject, MAX_JSON_DEPTH, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { ChatAnswerMessage, ChatCompletion } from '../chat/chat-completion.ts'
import { carriedSignature } from './carried-state.ts'
import { messageId } from './message-id.ts'
import { type MessageUsage, messageUsage } from './message-usage.ts'
import type { ContentBlock } from './messages-request.ts'
import type { MessageFacts } from './messages-stream-writer.ts'
import { type StopReason, stopReason } from './stop-reason.ts'

/** Levels of a request around the input of a tool use: the body, its messages, a message, its content, the block. */
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

/** Writes a chat answer as a message. The same answer has the same blocks as a stream of it. */
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
  for (const text of [message.content, message.refusal]) if (text) blocks.push({ type: 'text', text })
  for (const { id, function: called, extra_content: extra } of message.tool_calls ?? []) {
    if (extra !== undefined) sign(blocks, carriedSignature(extra))
    blocks.push({ type: 'tool_use', id, name: called.name, input: toolInput(called.arguments) })
  }
  return blocks
}

/** Signs the thinking block that stands last; a block of its own where there is none to sign. */
function sign(blocks: ContentBlock[], signature: string): void {
  const last = blocks.at(-1)
  if (last?.type === 'thinking' && last['signature'] === carriedSignature()) last['signature'] = signature
  else blocks.push({ ...thinking(''), signature })
}

function thinking(text: string): ContentBlock {
  return { type: 'thinking', thinking: text, signature: carriedSignature() }
}

/**
 * Input is an object here. Arguments that are none, as models sometimes write them, are kept under a name of their own, and so
 * are those that the gateway would refuse when they come back: nested too deep, or with a member `__proto__`.
 */
function toolInput(json: string): Record<string, unknown> {
  if (json.trim() === '') return {}
  const input = parseVendorJson(json)
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
