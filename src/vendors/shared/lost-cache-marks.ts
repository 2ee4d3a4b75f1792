import { type CacheMark, cacheMarkOf } from '../../endpoints/cache-marks.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'

/**
 * Reports the marks of a chat that are not sent to a vendor.
 * @param isCarried Whether a mark of a message is sent. By default, no mark is. Marks of tools never are.
 */
export function reportLostMarks(
  { messages, tools }: ChatRequest,
  report: (field: string) => void,
  isCarried?: (mark: CacheMark, message: ChatMessage) => boolean,
): void {
  for (const message of messages) {
    if (!Array.isArray(message.content)) continue
    for (const part of message.content) {
      const mark = cacheMarkOf(part)
      if (mark !== undefined && isCarried?.(mark, message) !== true) report(mark.field)
    }
  }
  for (const tool of tools ?? []) {
    const mark = cacheMarkOf(tool)
    if (mark !== undefined) report(mark.field)
  }
}
