import type { ReasoningEffort } from '../chat/chat-request.ts'
import type { MessagesRequest } from './messages-request.ts'
import type { Report } from './user-content.ts'

const EFFORTS: ReadonlyMap<unknown, ReasoningEffort> = new Map([
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'xhigh'],
  ['max', 'max'],
])

// No vendor documents a table; these are budgets that coding clients call "think", "think harder" and more.
const MEDIUM_BUDGET_TOKENS = 4_000
const HIGH_BUDGET_TOKENS = 16_000

/** May reasoning be shown? Only to callers who ask the model to think: others take the first block for the answer. */
export function showsThinking({ thinking }: MessagesRequest): boolean {
  return (thinking?.type === 'enabled' || thinking?.type === 'adaptive') && thinking['display'] !== 'omitted'
}

/**
 * Maps `thinking` and `output_config.effort` to an effort. Thinking that is switched off wins; then the effort given; then the
 * budget. Undefined, and so the model's own default, where the amount is left to the model.
 */
export function reasoningEffort(request: MessagesRequest, report: Report): ReasoningEffort | undefined {
  const { thinking, output_config: output } = request
  if (thinking?.type === 'disabled' || thinking?.type === 'between_tools') return 'none'
  const effort = output?.['effort']
  const known = EFFORTS.get(effort)
  if (known !== undefined) return known
  if (effort !== undefined && effort !== null) report('output_config.effort')
  const budget = thinking?.['budget_tokens']
  if (thinking?.type !== 'enabled' || typeof budget !== 'number') return undefined
  if (budget < MEDIUM_BUDGET_TOKENS) return 'low'
  return budget < HIGH_BUDGET_TOKENS ? 'medium' : 'high'
}
