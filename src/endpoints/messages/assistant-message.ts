import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ChatToolCall, ExtraContent } from '../chat/chat-request.ts'
import { readCarriedState } from './carried-state.ts'
import type { ContentBlock } from './messages-request.ts'
import type { Report } from './user-content.ts'

/**
 * An assistant turn as one chat message; undefined when nothing of it is left. Thinking becomes reasoning text, and state that
 * a signature carries goes back to the next call. What another vendor signed stays behind, because nobody else can read it.
 */
export function assistantMessage(blocks: readonly ContentBlock[], report: Report): ChatMessage | undefined {
  const texts: string[] = []
  const thoughts: string[] = []
  const calls: ChatToolCall[] = []
  let carried: ExtraContent | undefined
  for (const block of blocks) {
    if (isJsonObject(block['cache_control'])) report('cache_control')
    if (block.type === 'text') {
      if (typeof block['text'] === 'string' && block['text'] !== '') texts.push(block['text'])
    } else if (block.type === 'tool_use') {
      calls.push(toolCall(block, carried))
      carried = undefined
    } else if (block.type === 'thinking') {
      if (typeof block['thinking'] === 'string' && block['thinking'] !== '') thoughts.push(block['thinking'])
      carried = readCarriedState(block['signature'])
    } else report(`messages.${block.type}`)
  }
  const content = texts.join('\n')
  if (content === '' && calls.length === 0) return undefined
  return {
    role: 'assistant',
    content: content === '' ? null : content,
    ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('\n') }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
}

function toolCall(block: ContentBlock, extra: ExtraContent | undefined): ChatToolCall {
  const { id, name, input } = block
  return {
    id: typeof id === 'string' ? id : '',
    type: 'function',
    function: { name: typeof name === 'string' ? name : '', arguments: JSON.stringify(input ?? {}) },
    ...(extra === undefined ? {} : { extra_content: extra }),
  }
}
