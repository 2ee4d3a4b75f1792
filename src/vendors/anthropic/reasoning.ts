import type { MessagesEffort, ThinkingConfig } from './messages-request.ts'
import type { ModelAbilities } from './model-abilities.ts'

/** What a request says about reasoning, in the vendor's terms. */
export interface Reasoning {
  readonly thinking?: ThinkingConfig
  readonly effort?: MessagesEffort
  /** True when this request turns thinking on, which rules out some other settings. */
  readonly thinks: boolean
}

/** The place of an effort among all efforts; distances between places decide which one is nearest. */
const EFFORT_RANKS: ReadonlyMap<unknown, number> = new Map([
  ['minimal', 0],
  ['low', 1],
  ['medium', 2],
  ['high', 3],
  ['xhigh', 4],
  ['max', 5],
])

// The vendor documents no table of its own: the least that it allows, then roughly doubling.
const BUDGET_TOKENS = [1024, 2048, 8192, 16_384, 24_576, 32_000] as const
const LEAST_BUDGET_TOKENS = 1024

/** What {@link reasoningFor} goes by. */
export interface ReasoningInput {
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
 * Maps `reasoning_effort`: to an effort with adaptive thinking, or to a token budget on models that know only that. The
 * budget takes at most three quarters of `maxTokens`, because the caller's bound, for which money is held, counts reasoning too.
 * An effort that the model lacks becomes the nearest one, the lesser of two, and is reported.
 */
export function reasoningFor(input: ReasoningInput, report: (field: string) => void): Reasoning {
  const { effort, abilities } = input
  if (effort === undefined || effort === null) return { thinks: false }
  if (effort === 'none') return withoutThinking(abilities, report)
  const rank = EFFORT_RANKS.get(effort)
  if (rank === undefined) {
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
  let nearest: MessagesEffort | undefined
  let nearestDistance = Number.POSITIVE_INFINITY
  for (const effort of efforts) {
    const distance = Math.abs((EFFORT_RANKS.get(effort) ?? 0) - rank)
    if (distance < nearestDistance) {
      nearest = effort
      nearestDistance = distance
    }
  }
  return nearest
}
