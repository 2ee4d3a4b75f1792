import { isJsonObject } from '../../core/json.ts'
import type { InnerModel } from '../endpoint.ts'
import type { MessagesRequest } from './messages-request.ts'
import { isServerTool } from './messages-surcharges.ts'
import { requestTools, toolPaths } from './request-tools.ts'

/** Advisors that a Messages request lets its model ask, each billed at its own price (Anthropic, "Advisor tool"). */
export function advisorsOf(request: MessagesRequest): readonly InnerModel[] {
  const advisors: InnerModel[] = []
  const pathOf = toolPaths(request)
  for (const [place, tool] of requestTools(request).entries())
    if (isServerTool(tool, 'advisor_')) advisors.push({ model: modelOf(tool), param: `${pathOf(place)}.model` })
  return advisors
}

/** Uses of a tool that sets no end to them. */
const ASSUMED_USES = 3
/** Longest advice without a bound of its own: about twice of what the vendor calls usual, thoughts included. */
const ASSUMED_ADVICE_TOKENS = 4_096

/** How often each advisor may be asked, and for how many tokens of output each time. */
export function adviceBounds(request: MessagesRequest): readonly { model: string; uses: number; tokens: number }[] {
  return requestTools(request)
    .filter((tool) => isServerTool(tool, 'advisor_'))
    .map((tool) => ({
      model: modelOf(tool),
      uses: positive(tool['max_uses']) ?? ASSUMED_USES,
      tokens: positive(tool['max_tokens']) ?? ASSUMED_ADVICE_TOKENS,
    }))
}

/** What is no text is the id of no model. */
function modelOf({ model }: Readonly<Record<string, unknown>>): string {
  return typeof model === 'string' ? model : String(JSON.stringify(model))
}

/** Input tokens from which the vendor summarises a conversation, by its documentation; undefined: it does not. */
export function compactionTrigger({ context_management: management }: MessagesRequest): number | undefined {
  if (!isJsonObject(management) || !Array.isArray(management['edits'])) return undefined
  for (const edit of management['edits']) {
    if (!isJsonObject(edit) || typeof edit['type'] !== 'string' || !edit['type'].startsWith('compact_')) continue
    const { trigger } = edit
    return (isJsonObject(trigger) ? positive(trigger['value']) : undefined) ?? DEFAULT_COMPACTION_TRIGGER
  }
  return undefined
}

const DEFAULT_COMPACTION_TRIGGER = 150_000

function positive(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined
}
