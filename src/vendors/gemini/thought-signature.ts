import { isJsonObject } from '../../core/json.ts'
import type { ExtraContent } from '../../endpoints/chat/chat-request.ts'
import type { GeminiContent } from './generate-content.ts'

/**
 * Stands in for a signature that the history has lost, and is accepted by the vendor's check (Gemini API, "Thought
 * signatures", questions about histories from other models).
 */
export const SIGNATURE_PLACEHOLDER = 'skip_thought_signature_validator'

/** The signature that a caller's message or tool call carries, in the layout of Google's OpenAI-compatible API. */
export function signatureOf(extraContent: unknown): string | undefined {
  const google = isJsonObject(extraContent) ? extraContent['google'] : undefined
  const signature = isJsonObject(google) ? google['thought_signature'] : undefined
  return typeof signature === 'string' && signature !== '' ? signature : undefined
}

/** A signature as callers carry it. */
export function signatureExtra(signature: string): ExtraContent {
  return { google: { thought_signature: signature } }
}

/**
 * Puts the placeholder on the first function call of every step of the current turn that has lost its signature; the
 * vendor checks no others. The turn begins at the last user turn that answers no function call.
 */
export function signCurrentTurn(contents: readonly GeminiContent[]): void {
  for (let position = contents.length - 1; position >= 0; position--) {
    const content = contents[position]
    if (content === undefined) continue
    const { role, parts } = content
    if (role === 'user') {
      if (parts.every((part) => part.functionResponse === undefined)) return
      continue
    }
    const firstCall = parts.find((part) => part.functionCall !== undefined)
    if (firstCall !== undefined) firstCall.thoughtSignature ??= SIGNATURE_PLACEHOLDER
  }
}
