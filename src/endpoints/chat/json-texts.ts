import { assertFittingTexts } from '../../core/json-size.ts'
import type { ChatMessage } from './chat-request.ts'

/**
 * Checks the texts that a translation parses as JSON: the arguments of tool calls and, at some vendors, tool results.
 * @throws GatewayError `invalid_request` if it has more values than a request may have.
 */
export function assertFittingJsonTexts(
  messages: readonly ChatMessage[],
  { readsAnswers }: { readsAnswers: boolean },
): void {
  const texts: string[] = []
  for (const message of messages) {
    if (message.tool_calls) for (const call of message.tool_calls) texts.push(call.function?.arguments ?? '')
    if (!readsAnswers || message.role !== 'tool') continue
    const answer = answerOf(message)
    // Others are not parsed: dumps and tables have more colons and commas than JSON.
    if (answer.trimStart().startsWith('{')) texts.push(answer)
  }
  assertFittingTexts(texts)
}

/** The text of a message; that of its parts is read as one. */
function answerOf({ content }: ChatMessage): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
}
