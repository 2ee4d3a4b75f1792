import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest, ChatTool, ChatToolChoice } from '../chat/chat-request.ts'
import type { MessagesRequest } from './messages-request.ts'
import type { Report } from './user-content.ts'

/** Members of a tool that chat knows; `type` is `custom` or absent for tools that the caller runs. */
const TOOL_FIELDS: ReadonlySet<string> = new Set(['type', 'name', 'description', 'input_schema', 'strict'])

/**
 * Maps `tools` and `tool_choice`. Tools that the dialect's own vendor runs, such as its web search, have no equivalent and are
 * reported, as is a choice that no tool is left for.
 */
export function chatTools(
  request: MessagesRequest,
  report: Report,
): Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls'> {
  const tools = (request.tools ?? []).flatMap((tool) => chatTool(tool, report))
  const choice = request.tool_choice
  if (tools.length === 0) {
    if (choice) report('tool_choice')
    return {}
  }
  const chosen = choice ? chatToolChoice(choice, tools) : undefined
  if (choice && chosen === undefined) report('tool_choice')
  return {
    tools,
    ...(chosen === undefined ? {} : { tool_choice: chosen }),
    ...(choice?.['disable_parallel_tool_use'] === true ? { parallel_tool_calls: false } : {}),
  }
}

function chatTool(tool: Record<string, unknown>, report: Report): ChatTool[] {
  const { type, name, description, input_schema: schema, strict } = tool
  if ((type !== undefined && type !== null && type !== 'custom') || typeof name !== 'string') {
    report(`tools.${typeof type === 'string' ? type : 'unnamed'}`)
    return []
  }
  for (const field of Object.keys(tool))
    if (!TOOL_FIELDS.has(field)) report(field === 'cache_control' ? field : `tools.${field}`)
  return [
    {
      type: 'function',
      function: {
        name,
        ...(typeof description === 'string' ? { description } : {}),
        parameters: isJsonObject(schema) ? schema : { type: 'object', properties: {} },
        ...(typeof strict === 'boolean' ? { strict } : {}),
      },
    },
  ]
}

function chatToolChoice(
  { type, name }: { readonly type: string; readonly name?: unknown },
  tools: readonly ChatTool[],
): ChatToolChoice | undefined {
  if (type === 'auto' || type === 'none') return type
  if (type === 'any') return 'required'
  const isThere = type === 'tool' && tools.some((tool) => tool.function.name === name)
  return isThere ? { type: 'function', function: { name: String(name) } } : undefined
}
