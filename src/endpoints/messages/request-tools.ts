import { isJsonObject } from '../../core/json.ts'
import type { ContentBlock, MessagesRequest } from './messages-request.ts'

/** Tools of a request: listed tools and tools that its turns define. */
type Tools = readonly Readonly<Record<string, unknown>>[]

/** The members of a request in which tools are defined. */
interface ToolsOfRequest {
  readonly tools?: unknown
  readonly messages?: unknown
}

const NO_TOOLS: Tools = []

/**
 * Returns all tools that a request defines: those of `tools`, then those of its turns (Anthropic SDK,
 * `BetaToolChangeToolDefinitionParam`), which may be of any kind. A turn defines them by an instruction, or by a
 * summary of turns that did (`BetaCompactionBlockParam`).
 */
export function requestTools({ tools, messages }: ToolsOfRequest): Tools {
  const listed = Array.isArray(tools) ? (tools as Tools) : NO_TOOLS
  const added = addedTools(messages)
  return added === undefined ? listed : [...listed, ...added.map(({ tool }) => tool)]
}

/** Returns a function from an index in {@link requestTools} to the path of the tool. Reads the turns once, for all tools. */
export function toolPaths({ tools, messages }: ToolsOfRequest): (place: number) => string {
  const listed = Array.isArray(tools) ? tools.length : 0
  let added: readonly AddedTool[] | undefined
  return (place) => {
    if (place < listed) return `tools[${place}]`
    added ??= addedTools(messages)
    return added?.[place - listed]?.path ?? 'tools'
  }
}

/** Returns the definition in a block that adds a tool, or `undefined` if the tool is defined elsewhere. */
export function addedTool({
  type,
  tool,
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  if (type !== 'tool_addition' || !isJsonObject(tool) || tool['type'] !== 'tool_definition') return undefined
  const { definition } = tool
  return isJsonObject(definition) ? definition : undefined
}

/** Whether a named tool is in effect from this turn on, or no longer. */
export interface ToolChange {
  readonly type: 'tool_addition' | 'tool_removal'
  readonly name: string
  /** Whether the tool is defined elsewhere. */
  readonly isReference: boolean
}

/** Returns all changes in order, except whole MCP servers, which only the dialect's own vendor calls. */
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

/** Returns the change that a block makes, if any. */
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
