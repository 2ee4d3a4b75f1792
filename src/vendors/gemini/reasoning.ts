import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ExtraContent, ReasoningEffort } from '../../endpoints/chat/chat-request.ts'
import type { GeminiContent, ThinkingConfig } from './api-request.ts'
import type { ThinkingAbility } from './model-abilities.ts'

const EFFORTS: readonly ReasoningEffort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

// Gemini API, "OpenAI compatibility", table of reasoning efforts.
const BUDGET_TOKENS: ReadonlyMap<ReasoningEffort, number> = new Map([
  ['none', 0],
  ['low', 1024],
  ['medium', 8192],
  ['high', 24_576],
])

const LEVELS: ReadonlyMap<ReasoningEffort, ThinkingConfig['thinkingLevel']> = new Map([
  ['minimal', 'MINIMAL'],
  ['low', 'LOW'],
  ['medium', 'MEDIUM'],
  ['high', 'HIGH'],
  ['xhigh', 'XHIGH'],
])

/** How an effort is requested. */
interface Reasoning {
  readonly config: ThinkingConfig | undefined
  /** True when the model lacks the requested effort and makes another one. */
  readonly changed: boolean
}

/** Maps a requested effort: to the nearest that the model has, the higher of two equally near. */
export function reasoningToWire(requested: ReasoningEffort, ability: ThinkingAbility): Reasoning {
  if (ability.kind === 'none') return { config: undefined, changed: requested !== 'none' }
  const effort = nearestEffort(requested, ability.efforts)
  const config: ThinkingConfig = {}
  const level = LEVELS.get(effort)
  const budget = BUDGET_TOKENS.get(effort)
  if (ability.kind === 'level' && level !== undefined) config.thinkingLevel = level
  if (ability.kind === 'budget' && budget !== undefined) config.thinkingBudget = budget
  if (requested !== 'none') config.includeThoughts = true
  return { config, changed: effort !== requested }
}

/** Does the model think for this request? Thoughts are paid for, and shown as a summary at most (Gemini API, "Thinking"). */
export function thinks(requested: ReasoningEffort | null | undefined, ability: ThinkingAbility): boolean {
  if (ability.kind === 'none') return false
  return requested !== 'none' || !ability.efforts.includes('none')
}

function nearestEffort(requested: ReasoningEffort, offered: readonly ReasoningEffort[]): ReasoningEffort {
  const distance = (effort: ReasoningEffort): number => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(requested))
  // The sort keeps the descending order of those equally near.
  return [...offered].reverse().sort((first, second) => distance(first) - distance(second))[0] ?? requested
}

/**
 * Stands in for a signature that the history has lost, and is accepted by the vendor's check (Gemini API, "Thought
 * signatures", questions about histories from other models).
 */
const SIGNATURE_PLACEHOLDER = 'skip_thought_signature_validator'

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

/**
 * Does a conversation contain thoughts signed by Gemini? Only Gemini can read them (Gemini API, "Thought signatures"). They
 * are on messages and on their function calls.
 */
export function ownsReasoning(call: { readonly model: string; readonly messages?: unknown }): boolean {
  return Array.isArray(call.messages) && (call.messages as readonly ChatMessage[]).some(isSigned)
}

function isSigned(message: ChatMessage): boolean {
  if (signatureOf(message.extra_content) !== undefined) return true
  return message.tool_calls?.some((toolCall) => signatureOf(toolCall.extra_content) !== undefined) === true
}
