import { isJsonObject } from '../../core/json.ts'
import type { InnerModel } from '../endpoint.ts'
import type { MessagesRequest } from './messages-request.ts'
import { isServerTool } from './messages-surcharges.ts'
import { requestTools, toolPaths } from './request-tools.ts'

/** Returns the advisor models of a Messages request, each billed at its own price (Anthropic, "Advisor tool"). */
export function advisorsOf(request: MessagesRequest): readonly InnerModel[] {
  const advisors: InnerModel[] = []
  const pathOf = toolPaths(request)
  for (const [place, tool] of requestTools(request).entries())
    if (isServerTool(tool, 'advisor_')) advisors.push({ model: modelOf(tool), param: `${pathOf(place)}.model` })
  return advisors
}

/** Assumed uses of a tool without a limit. */
const ASSUMED_USES = 3
/** Assumed length of advice without a limit, in tokens: about twice the vendor's usual length, thoughts included. */
const ASSUMED_ADVICE_TOKENS = 4_096

/** Returns how often each advisor may be called, and its output tokens per call. */
export function adviceBounds(request: MessagesRequest): readonly { model: string; uses: number; tokens: number }[] {
  return requestTools(request)
    .filter((tool) => isServerTool(tool, 'advisor_'))
    .map((tool) => ({
      model: modelOf(tool),
      uses: positive(tool['max_uses']) ?? ASSUMED_USES,
      tokens: positive(tool['max_tokens']) ?? ASSUMED_ADVICE_TOKENS,
    }))
}

/** Any other value becomes the id of an unknown model. */
function modelOf({ model }: Readonly<Record<string, unknown>>): string {
  return typeof model === 'string' ? model : String(JSON.stringify(model))
}

/** Returns the input tokens above which the vendor documents to summarise a conversation, or `undefined` without summaries. */
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
