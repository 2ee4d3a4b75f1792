import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ExtraContent, ReasoningEffort } from '../../endpoints/chat/chat-request.ts'
import { type GeminiContent, modelId, type ThinkingConfig } from './api-request.ts'

/** How a model's thinking is controlled, and its efforts from least to most. */
type ThinkingAbility =
  | { readonly kind: 'none' }
  | { readonly kind: 'level' | 'budget'; readonly efforts: readonly ReasoningEffort[] }

/** Abilities of a Google model. */
export interface ModelAbilities {
  readonly thinking: ThinkingAbility
  /** Whether the model reads `temperature` and `topP`. Deprecated from 3.6 on. */
  readonly sampling: boolean
  /** Whether the model accepts penalties. Other than zero, they are answered with 400 from 2.5 on. */
  readonly penalties: boolean
  /** Whether the vendor fetches public https URLs itself. */
  readonly fetchesUrls: boolean
  readonly systemInstruction: boolean
  /** Whether a function call without a thought signature in the current turn is answered with 400. */
  readonly checksSignatures: boolean
  /** Whether the model supports unmodified JSON Schema for answers (`responseJsonSchema`) and the calling mode `VALIDATED`. */
  readonly jsonSchema: boolean
  /**
   * Whether the model can answer in JSON if functions are offered. Before Gemini 3: "Function calling with a response mime type:
   * 'application/json' is unsupported".
   */
  readonly jsonWithTools: boolean
}

const LOW_TO_HIGH = ['low', 'medium', 'high'] as const
const MINIMAL_TO_HIGH = ['minimal', ...LOW_TO_HIGH] as const

// Abilities of the newest generation, the default for unknown ids (Gemini API, "Thinking" and "Thought signatures").
const NEWEST: ModelAbilities = {
  thinking: { kind: 'level', efforts: LOW_TO_HIGH },
  sampling: false,
  penalties: false,
  fetchesUrls: true,
  systemInstruction: true,
  checksSignatures: true,
  jsonSchema: true,
  jsonWithTools: true,
}

const GENERATION_3: ModelAbilities = { ...NEWEST, sampling: true }

const GENERATION_2_5: ModelAbilities = {
  ...GENERATION_3,
  thinking: { kind: 'budget', efforts: ['none', ...LOW_TO_HIGH] },
  checksSignatures: false,
  jsonWithTools: false,
}

const GENERATION_2: ModelAbilities = {
  ...GENERATION_2_5,
  thinking: { kind: 'none' },
  penalties: true,
  fetchesUrls: false,
  jsonSchema: false,
}

const GEMMA: ModelAbilities = { ...GENERATION_2, systemInstruction: false }

/** Models that differ from their generation, by the start of the id. The first match counts. */
const EXCEPTIONS: readonly (readonly [prefix: string, abilities: ModelAbilities])[] = [
  ['gemini-2.5-flash-image', { ...GENERATION_2_5, thinking: { kind: 'none' } }],
  ['gemini-2.5-pro', { ...GENERATION_2_5, thinking: { kind: 'budget', efforts: LOW_TO_HIGH } }],
  ['gemini-3-pro-image', { ...GENERATION_3, thinking: { kind: 'budget', efforts: LOW_TO_HIGH } }],
  ['gemini-3-pro', { ...GENERATION_3, thinking: { kind: 'level', efforts: ['low', 'high'] } }],
  ['gemini-3.1-flash-image', { ...GENERATION_3, thinking: { kind: 'level', efforts: ['minimal', 'high'] } }],
  ['gemini-3.1-flash-lite-image', { ...GENERATION_3, thinking: { kind: 'level', efforts: ['minimal', 'high'] } }],
  ['gemini-nano-banana-2.1', { ...NEWEST, thinking: { kind: 'level', efforts: ['minimal', 'medium', 'high'] } }],
  ['gemini-4-hydrogen', { ...NEWEST, thinking: { kind: 'level', efforts: [...LOW_TO_HIGH, 'xhigh'] } }],
  ['gemini-flash-lite-latest', { ...NEWEST, thinking: { kind: 'level', efforts: MINIMAL_TO_HIGH } }],
  ['gemma-', GEMMA],
  ['learnlm-', GENERATION_2],
]

const VERSIONED = /^gemini-(\d+)(?:\.(\d+))?-(.+)$/

/** Returns the abilities of a model by the vendor's id. An id without a generation gets those of the newest. */
export function modelAbilities(upstream: string): ModelAbilities {
  const id = modelId(upstream)
  const exception = EXCEPTIONS.find(([prefix]) => id.startsWith(prefix))
  if (exception !== undefined) return exception[1]
  const [, major, minor, variant = ''] = VERSIONED.exec(id) ?? []
  if (major === undefined) return NEWEST
  const version = Number(major) * 100 + Number(minor ?? 0)
  if (version < 205) return GENERATION_2
  if (version < 300) return GENERATION_2_5
  return {
    ...(version < 306 ? GENERATION_3 : NEWEST),
    thinking: { kind: 'level', efforts: hasMinimal(version, variant) ? MINIMAL_TO_HIGH : LOW_TO_HIGH },
  }
}

// The lowest level is LOW on every pro, and on flash from 3.7 on, except flash-lite. Later generations are unknown.
function hasMinimal(version: number, variant: string): boolean {
  if (version >= 400 || variant.startsWith('pro')) return false
  return version < 307 || variant.startsWith('flash-lite')
}

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
