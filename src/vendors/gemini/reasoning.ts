import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ExtraContent, ReasoningEffort } from '../../endpoints/chat/chat-request.ts'
import type { GeminiContent, ThinkingConfig } from './api-request.ts'
import type { ThinkingAbility } from './model-abilities.ts'

const EFFORTS: readonly ReasoningEffort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

// Token budgets of efforts (Gemini API, "OpenAI compatibility", table of reasoning efforts).
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
  /** Whether the model lacks the requested effort, so that another one was chosen. */
  readonly changed: boolean
}

/** Maps a requested effort to the nearest that the model has, or the higher of two equally near. */
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

/** Whether the model thinks for this request. Thoughts are billed, and shown at most as a summary (Gemini API, "Thinking"). */
export function thinks(requested: ReasoningEffort | null | undefined, ability: ThinkingAbility): boolean {
  if (ability.kind === 'none') return false
  return requested !== 'none' || !ability.efforts.includes('none')
}

function nearestEffort(requested: ReasoningEffort, offered: readonly ReasoningEffort[]): ReasoningEffort {
  const distance = (effort: ReasoningEffort): number => Math.abs(EFFORTS.indexOf(effort) - EFFORTS.indexOf(requested))
  // The sort keeps the descending order of equally near efforts.
  return [...offered].reverse().sort((first, second) => distance(first) - distance(second))[0] ?? requested
}

/**
 * Replaces a signature that the history has lost. The vendor's check accepts it (Gemini API, "Thought signatures", questions about
 * histories from other models).
 */
const SIGNATURE_PLACEHOLDER = 'skip_thought_signature_validator'

/** Returns the signature of a caller's message or tool call, in the layout of Google's OpenAI-compatible API. */
export function signatureOf(extraContent: unknown): string | undefined {
  const google = isJsonObject(extraContent) ? extraContent['google'] : undefined
  const signature = isJsonObject(google) ? google['thought_signature'] : undefined
  return typeof signature === 'string' && signature !== '' ? signature : undefined
}

/** Returns a signature in the form that callers carry. */
export function signatureExtra(signature: string): ExtraContent {
  return { google: { thought_signature: signature } }
}

/**
 * Adds the placeholder to the first function call of every step of the current turn that has lost its signature. The vendor checks
 * no others. The turn begins at the last user turn that is not a function response.
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
 * Whether a conversation contains thoughts signed by Gemini, which only Gemini can read (Gemini API, "Thought signatures"). They
 * are on messages and on their function calls.
 */
export function ownsReasoning(call: { readonly model: string; readonly messages?: unknown }): boolean {
  return Array.isArray(call.messages) && (call.messages as readonly ChatMessage[]).some(isSigned)
}

function isSigned(message: ChatMessage): boolean {
  if (signatureOf(message.extra_content) !== undefined) return true
  return message.tool_calls?.some((toolCall) => signatureOf(toolCall.extra_content) !== undefined) === true
}
