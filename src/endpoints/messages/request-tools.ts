import { isJsonObject } from '../../core/json.ts'
import type { ContentBlock, MessagesRequest } from './messages-request.ts'

/** Tools of a request: those that it lists, and those that its turns define. */
type Tools = readonly Readonly<Record<string, unknown>>[]

/** The members of a request in which tools are defined. */
interface ToolsOfRequest {
  readonly tools?: unknown
  readonly messages?: unknown
}

const NO_TOOLS: Tools = []

/**
 * All tools that a request defines: those of `tools`, then those of its turns (Anthropic SDK, `BetaToolChangeToolDefinitionParam`), which
 * may be of any kind that `tools` may have. A turn defines them by an instruction, and by a summary of turns that did
 * (`BetaCompactionBlockParam`).
 */
export function requestTools({ tools, messages }: ToolsOfRequest): Tools {
  const listed = Array.isArray(tools) ? (tools as Tools) : NO_TOOLS
  const added = addedTools(messages)
  return added === undefined ? listed : [...listed, ...added.map(({ tool }) => tool)]
}

/** Tells where a request defines the tool at a place of {@link requestTools}. Its turns are read once, for all places. */
export function toolPaths({ tools, messages }: ToolsOfRequest): (place: number) => string {
  const listed = Array.isArray(tools) ? tools.length : 0
  let added: readonly AddedTool[] | undefined
  return (place) => {
    if (place < listed) return `tools[${place}]`
    added ??= addedTools(messages)
    return added?.[place - listed]?.path ?? 'tools'
  }
}

/** The definition in a block that adds a tool; undefined: it names one that is defined elsewhere. */
export function addedTool({
  type,
  tool,
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  if (type !== 'tool_addition' || !isJsonObject(tool) || tool['type'] !== 'tool_definition') return undefined
  const { definition } = tool
  return isJsonObject(definition) ? definition : undefined
}

/** What a turn says of a tool by its name: that it is in effect from there on, or no longer. */
export interface ToolChange {
  readonly type: 'tool_addition' | 'tool_removal'
  readonly name: string
  /** Is the tool defined elsewhere? */
  readonly isReference: boolean
}

/** All of them, in order. Whole MCP servers, which only the dialect's own vendor calls, are left out. */
export function toolChanges(messages: MessagesRequest['messages']): readonly ToolChange[] {
  return messages.flatMap(({ content }) => (Array.isArray(content) ? content.flatMap(changesIn) : []))
}

function changesIn(block: unknown): readonly ToolChange[] {
  if (!isJsonObject(block)) return []
  const { type, tool_changes: changes } = block
  if (type === 'compaction') return Array.isArray(changes) ? changes.flatMap(changesIn) : []
  const change = toolChange(block)
  return change === undefined ? [] : [change]
}

/** The change that a block makes; undefined: none. */
export function toolChange(block: Readonly<Record<string, unknown>>): ToolChange | undefined {
  const { type, tool } = block
  if ((type !== 'tool_addition' && type !== 'tool_removal') || !isJsonObject(tool)) return undefined
  const isReference = tool['type'] === 'tool_reference'
  const name = isReference ? tool['name'] : addedTool(block)?.['name']
  return typeof name === 'string' ? { type, name, isReference } : undefined
}

interface AddedTool {
  readonly tool: Readonly<Record<string, unknown>>
  readonly path: string
}

function addedTools(messages: unknown): readonly AddedTool[] | undefined {
  if (!Array.isArray(messages)) return undefined
  let added: AddedTool[] | undefined
  for (let index = 0; index < messages.length; index++) {
    const { content } = messages[index] as { readonly content?: unknown }
    if (!Array.isArray(content)) continue
    for (let place = 0; place < content.length; place++) {
      const block = content[place] as ContentBlock
      if (block.type !== 'tool_addition' && block.type !== 'compaction') continue
      added ??= []
      addFrom(block, `messages[${index}].content[${place}]`, added)
    }
  }
  return added
}

function addFrom(block: Readonly<Record<string, unknown>>, path: string, added: AddedTool[]): void {
  const { type, tool_changes: changes } = block
  const tool = addedTool(block)
  if (tool !== undefined) added.push({ tool, path: `${path}.tool.definition` })
  if (type !== 'compaction' || !Array.isArray(changes)) return
  for (const [place, change] of changes.entries())
    if (isJsonObject(change) && change['type'] === 'tool_addition')
      addFrom(change, `${path}.tool_changes[${place}]`, added)
}
