import type { ChatContentPart, ChatMessage } from '../../endpoints/chat/chat-request.ts'

/**
 * Returns the conversation with one system message, at its start. Templates of open models reject a second one ("System message
 * must be at the beginning", https://github.com/vllm-project/vllm/issues/41114), and coding clients send several: those at the
 * start are joined, and later ones move into user turns, marked as clients mark them for models without such messages.
 */
export function systemFirst(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const instructions = messages.filter(isInstruction).length
  if (instructions === 0 || (instructions === 1 && isInstruction(messages[0]!))) return messages
  const ordered: ChatMessage[] = []
  for (const message of messages) {
    const last = ordered.at(-1)
    if (!isInstruction(message)) ordered.push(message)
    else if (last === undefined) ordered.push({ ...message, role: 'system' })
    else if (ordered.length === 1 && isInstruction(last)) ordered[0] = joined(last, message.content)
    else if (last.role === 'user') ordered[ordered.length - 1] = joined(last, reminder(message))
    else ordered.push({ role: 'user', content: reminder(message) })
  }
  return ordered
}

function isInstruction({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer'
}

function reminder({ content }: ChatMessage): string | ChatContentPart[] {
  const parts = partsOf(content)
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const text = `<system-reminder>\n${texts.join('\n')}\n</system-reminder>`
  const pictures = parts.filter((part) => part.type !== 'text')
  return pictures.length === 0 ? text : [{ type: 'text', text }, ...pictures]
}

function joined(message: ChatMessage, added: ChatMessage['content']): ChatMessage {
  const { content } = message
  if (typeof content === 'string' && typeof added === 'string') return { ...message, content: `${content}\n\n${added}` }
  return { ...message, content: [...partsOf(content), ...partsOf(added)] }
}

function partsOf(content: ChatMessage['content']): readonly ChatContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return content ?? []
}
