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
  /** True when this request turns thinking on, which rules out some other settings. */
  readonly thinks: boolean
}

/** From least to most; distances between places decide which effort is nearest. */
const EFFORTS: readonly unknown[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']

// The vendor documents no such table. These are its minimum, then roughly doubled values.
const BUDGET_TOKENS = [1024, 2048, 8192, 16_384, 24_576, 32_000] as const
const LEAST_BUDGET_TOKENS = 1024

/** Input of {@link reasoningToWire}. */
interface ReasoningInput {
  /** The caller's `reasoning_effort`. */
  readonly effort: unknown
  readonly abilities: ModelAbilities
  /** Bound of the whole answer, reasoning included. */
  readonly maxTokens: number
  /**
   * False when the conversation rules out a thinking budget: its open tool loop lacks the thinking block it must begin
   * with, or it ends with a turn to continue. Adaptive thinking has no such rule.
   */
  readonly budgetAllowed: boolean
}

/**
 * Maps `reasoning_effort`: to an effort with adaptive thinking, or to a token budget on models with only that. The budget
 * takes at most three quarters of `maxTokens`, because the caller's bound, which limits the hold, counts reasoning too. An
 * effort that the model lacks becomes the nearest one, the lower of two, and is reported.
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
 * Is the amount of thinking hidden? Thinking is paid for in full and shown as a summary at most, or not at all
 * (Anthropic, "Extended thinking", summarised thinking).
 * @param asked `none` for thinking that is turned off; undefined and null where the request says nothing.
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
  // The sort keeps the ascending order of those equally near.
  return [...efforts].sort((first, second) => distance(first) - distance(second))[0]
}

/**
 * Does a conversation contain reasoning signed by Anthropic? Only Anthropic can read it (Messages API, "Extended
 * thinking"). Takes a chat request, with the blocks beside the text, or a Messages call, with the blocks in it.
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
  // State of another vendor travels in such a block too, under a mark of ours.
  return type === 'thinking' && typeof signature === 'string' && signature !== '' && !signature.startsWith(CARRIED_MARK)
}
