import { isJsonObject } from '../../core/json.ts'
import { CARRIED_MARK } from '../../endpoints/messages/carried-state.ts'
import type { MessagesEffort, ModelAbilities } from './messages-abilities.ts'

/** How the model reasons before it answers. `budget_tokens` is at least 1024 and below `max_tokens`. */
export type ThinkingConfig =
  | { type: 'enabled'; budget_tokens: number }
  | { type: 'adaptive'; display?: 'summarized' }
  | { type: 'disabled' }
  | { type: 'between_tools' }

/** The reasoning settings of a request, in the vendor's terms. */
interface Reasoning {
  readonly thinking?: ThinkingConfig
  readonly effort?: MessagesEffort
  /** Whether this request turns thinking on, which rules out some other settings. */
  readonly thinks: boolean
}

/** Efforts from least to most. The nearest effort is found by distance in this list. */
const EFFORTS: readonly unknown[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']

// The vendor documents no such table. These are its minimum, then roughly doubled values.
const BUDGET_TOKENS = [1024, 2048, 8192, 16_384, 24_576, 32_000] as const
const LEAST_BUDGET_TOKENS = 1024

/** Input of {@link reasoningToWire}. */
interface ReasoningInput {
  /** The caller's `reasoning_effort`. */
  readonly effort: unknown
  readonly abilities: ModelAbilities
  /** Limit of the whole answer, including reasoning. */
  readonly maxTokens: number
  /**
   * False if the conversation rules out a thinking budget: its open tool loop lacks the leading thinking block, or it ends with a
   * turn to continue. Adaptive thinking has no such rule.
   */
  readonly budgetAllowed: boolean
}

/**
 * Maps `reasoning_effort`: to an effort with adaptive thinking, or to a token budget on models with only that. The budget is at
 * most three quarters of `maxTokens`, because the caller's limit, which bounds the hold, includes reasoning. An effort that the
 * model lacks becomes the nearest one, the lower of two, and is reported.
 */
export function reasoningToWire(input: ReasoningInput, report: (field: string) => void): Reasoning {
  const { effort, abilities } = input
  if (effort === undefined || effort === null) return { thinks: false }
  if (effort === 'none') return withoutThinking(abilities, report)
  const rank = EFFORTS.indexOf(effort)
  if (rank === -1 || abilities.thinking === 'none') {
    report('reasoning_effort')
    return { thinks: false }
  }
  if (abilities.thinking === 'budget') return withBudget(rank, input, report)
  const nearest = nearestEffort(rank, abilities.efforts)
  if (nearest !== effort) report('reasoning_effort')
  const thinking: ThinkingConfig = abilities.hidesThinking
    ? { type: 'adaptive', display: 'summarized' }
    : { type: 'adaptive' }
  return { thinking, ...(nearest === undefined ? {} : { effort: nearest }), thinks: true }
}

/**
 * Whether the amount of thinking is hidden. Thinking is billed in full and shown at most as a summary (Anthropic, "Extended
 * thinking", summarised thinking).
 * @param asked `none` if thinking is turned off; undefined or null if the request does not set it.
 */
export function thinksUnseen(abilities: ModelAbilities, asked: string | null | undefined): boolean {
  if (asked === undefined || asked === null) return abilities.hidesThinking
  return asked !== 'none' || abilities.thinkingOff === 'impossible'
}

function withoutThinking(abilities: ModelAbilities, report: (field: string) => void): Reasoning {
  if (abilities.thinkingOff === 'unasked') return { thinks: false }
  if (abilities.thinkingOff !== 'impossible') return { thinking: { type: abilities.thinkingOff }, thinks: false }
  report('reasoning_effort')
  const least = abilities.efforts[0]
  return { ...(least === undefined ? {} : { effort: least }), thinks: false }
}

function withBudget(rank: number, input: ReasoningInput, report: (field: string) => void): Reasoning {
  const budgetTokens = Math.min(BUDGET_TOKENS[rank] ?? LEAST_BUDGET_TOKENS, Math.floor(input.maxTokens * 0.75))
  if (!input.budgetAllowed || budgetTokens < LEAST_BUDGET_TOKENS) {
    report('reasoning_effort')
    return { thinks: false }
  }
  return { thinking: { type: 'enabled', budget_tokens: budgetTokens }, thinks: true }
}

function nearestEffort(rank: number, efforts: readonly MessagesEffort[]): MessagesEffort | undefined {
  const distance = (effort: MessagesEffort): number => Math.abs(EFFORTS.indexOf(effort) - rank)
  // The sort keeps the ascending order of equally near efforts.
  return [...efforts].sort((first, second) => distance(first) - distance(second))[0]
}

/**
 * Whether a conversation contains reasoning signed by Anthropic, which only Anthropic can read (Messages API, "Extended thinking").
 * Accepts a chat request, with blocks next to the text, or a Messages call, with blocks in it.
 */
export function ownsReasoning(call: {
  readonly model: string
  readonly request?: unknown
  readonly messages?: unknown
}): boolean {
  const conversation = isJsonObject(call.request) ? call.request['messages'] : call.messages
  if (!Array.isArray(conversation)) return false
  return conversation.filter(isJsonObject).some((message) => {
    const blocks = [message['thinking_blocks'], message['content']]
    return blocks.some((list) => Array.isArray(list) && list.some(isSignedThinking))
  })
}

function isSignedThinking(block: unknown): boolean {
  if (!isJsonObject(block)) return false
  const { type, signature } = block
  if (type === 'redacted_thinking') return true
  // Such blocks also carry state of other vendors, with the gateway's own mark.
  return type === 'thinking' && typeof signature === 'string' && signature !== '' && !signature.startsWith(CARRIED_MARK)
}
