import { isJsonObject } from '../../core/json.ts'

/**
 * Turns content that a server writes as a list of parts, `{ type: 'thinking' }` and `{ type: 'text' }`, into the text and
 * `reasoning_content` that clients read. Other parts, such as references, have no place in the dialect and are left out.
 * Edits the message or delta in place; true when it did.
 */
export function mendContentParts(message: Record<string, unknown>): boolean {
  const parts = message['content']
  if (!Array.isArray(parts)) return false
  let text = ''
  let thinking = ''
  for (const part of parts) {
    if (typeof part === 'string') text += part
    else if (!isJsonObject(part)) continue
    else if (part['type'] === 'thinking') thinking += textIn(part['thinking'])
    else text += textIn(part['text'])
  }
  message['content'] = text === '' && thinking !== '' ? null : text
  if (thinking !== '') message['reasoning_content'] = thinking
  return true
}

/** A text, or the texts of a list of parts. */
function textIn(value: unknown): string {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return ''
  return value.map((part) => (isJsonObject(part) ? textIn(part['text']) : textIn(part))).join('')
}
