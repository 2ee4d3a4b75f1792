import type { ReasoningEffort } from '../../endpoints/chat/chat-request.ts'
import type { ThinkingConfig } from './generate-content.ts'
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

/** How a wished effort is asked for. */
export interface ThinkingPlan {
  readonly config: ThinkingConfig | undefined
  /** True when the model lacks the wished effort and does another one. */
  readonly changed: boolean
}

/** Plans the thinking of a model that was asked for an effort; the nearest it has, the higher of two equally near. */
export function planThinking(wished: ReasoningEffort, ability: ThinkingAbility): ThinkingPlan {
  if (ability.kind === 'none') return { config: undefined, changed: wished !== 'none' }
  const effort = nearestEffort(wished, ability.efforts)
  const config: ThinkingConfig = {}
  const level = LEVELS.get(effort)
  const budget = BUDGET_TOKENS.get(effort)
  if (ability.kind === 'level' && level !== undefined) config.thinkingLevel = level
  if (ability.kind === 'budget' && budget !== undefined) config.thinkingBudget = budget
  if (wished !== 'none') config.includeThoughts = true
  return { config, changed: effort !== wished }
}

function nearestEffort(wished: ReasoningEffort, offered: readonly ReasoningEffort[]): ReasoningEffort {
  const position = EFFORTS.indexOf(wished)
  let nearest = wished
  let shortest = Number.POSITIVE_INFINITY
  for (const effort of offered) {
    const distance = Math.abs(EFFORTS.indexOf(effort) - position)
    // Efforts come in ascending order, so that an equal distance means the higher one.
    if (distance <= shortest) {
      shortest = distance
      nearest = effort
    }
  }
  return nearest
}
