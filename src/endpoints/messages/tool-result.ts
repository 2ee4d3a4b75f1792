import { isJsonObject } from '../../core/json.ts'
import type { ChatContentPart, ChatMessage } from '../chat/chat-request.ts'
import type { ContentBlock } from './messages-request.ts'
import { blocksOf, type Report, userParts } from './user-content.ts'

/** A tool's result in chat: text for the tool message, and what only a user message can hold. */
export interface ToolResult {
  readonly message: ChatMessage
  readonly rest: readonly ChatContentPart[]
}

/**
 * A `tool_result` block as chat knows it. Tool messages hold text alone, so pictures and files stand in the user message that
 * follows, behind a line that says whose they are. There is no field for failure: the text says it.
 * @throws GatewayError `unsupported_parameter` for a picture or file that cannot be passed on.
 */
export function toolResult(block: ContentBlock, path: string, report: Report): ToolResult {
  if (isJsonObject(block['cache_control'])) report('cache_control')
  const callId = typeof block['tool_use_id'] === 'string' ? block['tool_use_id'] : ''
  const parts = blocksOf(block['content']).flatMap((inner) => userParts(inner, `${path}.content`, report))
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const media = parts.filter((part) => part.type !== 'text')
  if (media.length > 0 && texts.length === 0) texts.push('(The result follows in the next message.)')
  if (block['is_error'] === true) texts.unshift('The tool failed.')
  return {
    message: { role: 'tool', tool_call_id: callId, content: texts.join('\n') },
    rest: media.length === 0 ? [] : [{ type: 'text', text: `Result of tool call ${callId}:` }, ...media],
  }
}
