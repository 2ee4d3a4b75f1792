import { cacheMarkOf } from '../../endpoints/cache-marks.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { modelAbilities } from '../shared/messages-abilities.ts'
import type { AssistantBlock, CachePointBlock, MessagesTurn, UserBlock } from '../shared/messages-conversation.ts'
import type { CacheControl, MessagesRequest, SystemBlock } from '../shared/messages-from-chat.ts'
import type { MessagesTool } from '../shared/messages-tools.ts'
import type { VendorCall } from '../vendor.ts'

/** Maximum number of marks per request (Anthropic, "Prompt caching"). */
const MAX_MARKS = 4

/** A block or tool that may carry a mark. */
interface Marked {
  readonly type?: string
  readonly [member: string]: unknown
  cache_control?: CacheControl
}

/** A mark that the caller has set, at its current place. */
interface SetMark {
  readonly on: { cache_control?: CacheControl }
  readonly field: string
}

/**
 * Adds the caller's marks to a translated chat as `cache_control`: only the last four, and no hour mark after a mark of minutes,
 * which the API rejects. Without marks, and if the call requests caching, the ends of the system prompt and of the conversation are
 * marked. Nothing is moved.
 */
export function withCacheControl(
  body: MessagesRequest,
  call: VendorCall<ChatRequest>,
  report: (field: string) => void,
): MessagesRequest {
  const marks: SetMark[] = []
  const tools = body.tools && markedTools(body.tools, call.request.tools ?? [], marks)
  const system = typeof body.system === 'string' ? body.system : body.system && markedSystem(body.system, marks)
  const messages = body.messages.map((turn) => markedTurn(turn, marks, report))
  if (marks.length === 0)
    return cachesPrompt(call) ? { ...body, ...endsMarked({ ...body, messages }) } : { ...body, messages }
  for (const { on, field } of marks.slice(0, -MAX_MARKS)) {
    delete on.cache_control
    report(field)
  }
  shortenBehindMinutes(marks.slice(-MAX_MARKS), report)
  return {
    ...body,
    ...(tools === undefined ? {} : { tools }),
    ...(system === undefined ? {} : { system }),
    messages,
  }
}

/** Whether the gateway requests marks and the prompt is long enough for the vendor's cache. */
export function cachesPrompt({ promptCaching, model }: Pick<VendorCall<unknown>, 'promptCaching' | 'model'>): boolean {
  return promptCaching !== undefined && promptCaching.promptTokens >= modelAbilities(model.upstream).cachedFromTokens
}

/** Mark that the gateway sets: 5 minutes from the last use. */
export const OWN_MARK: CacheControl = { type: 'ephemeral' }

function controlOf({ isLong }: { readonly isLong: boolean }): CacheControl {
  return isLong ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' }
}

function markedTools(
  tools: readonly MessagesTool[],
  asked: NonNullable<ChatRequest['tools']>,
  marks: SetMark[],
): MessagesTool[] {
  const byName = new Map(asked.map((tool) => [tool.function?.name, cacheMarkOf(tool)]))
  return tools.map((tool) => {
    const mark = byName.get(tool.name)
    if (mark === undefined) return tool
    const on = { ...tool, cache_control: controlOf(mark) }
    marks.push({ on, field: `tools.${mark.field}` })
    return on
  })
}

function markedSystem(blocks: readonly (SystemBlock | CachePointBlock)[], marks: SetMark[]): SystemBlock[] {
  const marked: SystemBlock[] = []
  for (const block of blocks) {
    if (block.type === 'text') marked.push({ ...block })
    else markLast(marked, block, marks)
  }
  return marked
}

function markedTurn(turn: MessagesTurn, marks: SetMark[], report: (field: string) => void): MessagesTurn {
  if (turn.role === 'system') return turn
  const blocks: (UserBlock | AssistantBlock)[] = turn.content
  if (!blocks.some(holdsPoint)) return turn
  const marked: Marked[] = []
  for (const block of blocks) {
    if (block.type === 'cache_point') {
      if (!markLast(marked, block, marks)) report(block.field)
    } else if (block.type === 'tool_result' && block.content?.some(isPoint)) {
      // A mark at the end of a result moves to the result.
      const content = block.content.filter((inner) => !isPoint(inner))
      const { content: _points, ...rest } = block
      marked.push(content.length === 0 ? rest : { ...rest, content })
      for (const point of block.content.filter(isPoint).slice(-1)) markLast(marked, point, marks)
    } else marked.push({ ...block })
  }
  return { ...turn, content: marked } as MessagesTurn
}

function holdsPoint(block: UserBlock | AssistantBlock): boolean {
  return isPoint(block) || (block.type === 'tool_result' && block.content?.some(isPoint) === true)
}

function isPoint(block: { readonly type: string }): block is CachePointBlock {
  return block.type === 'cache_point'
}

/** Thinking cannot carry a mark. */
const UNMARKABLE: ReadonlySet<string | undefined> = new Set(['thinking', 'redacted_thinking'])

/** Marks the last block that can be marked. Returns false if there is none. */
function markLast(
  blocks: { readonly type?: string; cache_control?: CacheControl }[],
  point: CachePointBlock,
  marks: SetMark[],
): boolean {
  const last = blocks.at(-1)
  if (last === undefined || UNMARKABLE.has(last.type)) return false
  if (last.cache_control === undefined) marks.push({ on: last, field: point.field })
  last.cache_control = controlOf({ isLong: point.ttl === '1h' })
  return true
}

function shortenBehindMinutes(marks: readonly SetMark[], report: (field: string) => void): void {
  let isBehindMinutes = false
  for (const { on, field } of marks) {
    if (on.cache_control?.ttl === undefined) isBehindMinutes = true
    else if (isBehindMinutes) {
      on.cache_control = OWN_MARK
      report(`${field}.ttl`)
    }
  }
}

/** Marks the ends of the system prompt and of the last turn that is a list of blocks. */
function endsMarked({ system, messages }: MessagesRequest): Pick<MessagesRequest, 'system' | 'messages'> {
  const turns = [...messages]
  const index = turns.findLastIndex(({ role }) => role !== 'system')
  const turn = turns[index]
  const block = turn?.role === 'system' ? undefined : turn?.content.at(-1)
  if (turn !== undefined && block !== undefined && !UNMARKABLE.has(block.type)) {
    const content = [...turn.content.slice(0, -1), { ...(block as object), cache_control: OWN_MARK }]
    turns[index] = { ...turn, content } as MessagesTurn
  }
  return {
    ...(typeof system === 'string' ? { system: [{ type: 'text', text: system, cache_control: OWN_MARK }] } : {}),
    messages: turns,
  }
}
