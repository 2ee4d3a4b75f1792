import type { ContentBlock, MessageParam, MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import { freshId, type UsedIds } from '../shared/messages-conversation.ts'

/** Calls of one id that wait for their results, and how many results they have. */
interface SameId {
  readonly ids: string[]
  answered: number
}

/**
 * Replaces ids of tool calls that the API rejects: those of other vendors with other characters than letters, digits, `_` and `-`, and
 * repeated ones. A call and its result get the same id, and the same conversation the same ids. Returns the request itself if all ids
 * are accepted.
 */
export function withPlainCallIds(request: MessagesRequest): MessagesRequest {
  const used: UsedIds = new Map()
  const open = new Map<string, SameId>()
  const plain = (block: ContentBlock): ContentBlock => {
    const { type, id, tool_use_id: answered } = block
    if (type === 'tool_use' && typeof id === 'string') {
      const fresh = freshId(id, used)
      const same = open.get(id)
      if (same === undefined || same.answered >= same.ids.length) open.set(id, { ids: [fresh], answered: 0 })
      else same.ids.push(fresh)
      return fresh === id ? block : { ...block, id: fresh }
    }
    const same = type === 'tool_result' && typeof answered === 'string' ? open.get(answered) : undefined
    if (same === undefined) return block
    const fresh = same.ids[Math.min(same.answered, same.ids.length - 1)]!
    same.answered += 1
    return fresh === answered ? block : { ...block, tool_use_id: fresh }
  }
  const messages = request.messages.map((message): MessageParam => {
    const { content } = message
    if (!Array.isArray(content)) return message
    const blocks = content.map(plain)
    return blocks.some((block, index) => block !== content[index]) ? { ...message, content: blocks } : message
  })
  return messages.some((message, index) => message !== request.messages[index]) ? { ...request, messages } : request
}
