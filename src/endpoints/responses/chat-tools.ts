import { createHash } from 'node:crypto'
import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest, ChatTool, ChatToolChoice } from '../chat/chat-request.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { inputItems, itemType, type ResponsesRequest, type ResponsesTool } from './responses-request.ts'
import { IMAGE_TOOL } from './responses-surcharges.ts'

/** Reports a dropped field of the request. */
export interface Report {
  (field: string): void
  /** Whether cache breakpoints of parts are kept. Default false: they are reported. */
  readonly keepsBreakpoints?: boolean
  /** Whether the vendor fetches files by their addresses. Default false: they are rejected. */
  readonly takesFileUrls?: boolean
}

type ToolFields = Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls'>

/**
 * Converts the tools of a request to functions of a chat: those of `tools`, of `additional_tools` items, and of tool searches. A
 * custom tool becomes a function with one string, and a namespace becomes part of the names. Web searches and image generation are
 * dropped and reported; other hosted tools are rejected.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming the tool.
 */
export function chatTools(request: ResponsesRequest, names: ToolNames, report: Report): ToolFields {
  const tools = new Map<string, ChatTool>()
  const add = (tool: CallableTool, definition: Omit<ChatTool['function'], 'name'>): void => {
    const name = names.chatNameOf(tool)
    if (!tools.has(name)) tools.set(name, { type: 'function', function: { name, ...definition } })
  }
  for (const { tool, path } of declaredTools(request)) addTool(tool, path, { add, report })
  const choice = chosen(request, names, tools, report)
  const offered = choice.allowed === undefined ? [...tools.values()] : choice.allowed
  if (offered.length === 0) return {}
  return {
    tools: offered,
    ...(choice.toolChoice === undefined ? {} : { tool_choice: choice.toolChoice }),
    ...(request.parallel_tool_calls === false ? { parallel_tool_calls: false } : {}),
  }
}

/** A tool and its path in the request. */
interface DeclaredTool {
  readonly tool: ResponsesTool
  readonly path: string
}

function declaredTools(request: ResponsesRequest): DeclaredTool[] {
  const declared = (request.tools ?? []).map((tool, index) => ({ tool, path: `tools[${index}]` }))
  inputItems(request).forEach((item, index) => {
    const type = itemType(item)
    if (type !== 'additional_tools' && type !== 'tool_search_output') return
    for (const one of toolsIn(item['tools'], `input[${index}].tools`)) declared.push(one)
  })
  return declared
}

function toolsIn(list: unknown, path: string): DeclaredTool[] {
  if (!Array.isArray(list)) throw invalidField(path, 'must be a list of tools')
  return list.map((tool: unknown, index) => {
    if (!isJsonObject(tool) || typeof tool['type'] !== 'string')
      throw invalidField(`${path}[${index}]`, 'must be a tool with a type')
    return { tool: tool as ResponsesTool, path: `${path}[${index}]` }
  })
}

interface ToolSink {
  add(tool: CallableTool, definition: Omit<ChatTool['function'], 'name'>): void
  readonly report: Report
}

function addTool(tool: ResponsesTool, path: string, sink: ToolSink, namespace?: string): void {
  switch (tool.type) {
    case 'function':
      for (const [name, value] of Object.entries(tool))
        if (!FUNCTION_MEMBERS.has(name) && !UNSET.has(value)) sink.report(`tools.${name}`)
      sink.add({ kind: 'function', name: nameOf(tool, path), namespace }, functionDefinition(tool))
      break
    case 'custom':
      sink.add({ kind: 'custom', name: nameOf(tool, path), namespace }, customDefinition(tool, path, sink.report))
      break
    case 'namespace': {
      const name = nameOf(tool, path)
      for (const inner of toolsIn(tool['tools'], `${path}.tools`)) addTool(inner.tool, inner.path, sink, name)
      break
    }
    case 'tool_search':
      if (tool['execution'] !== 'client') throw hostedTool(path, tool.type)
      sink.add({ kind: 'tool_search', name: TOOL_SEARCH_NAME, namespace: undefined }, functionDefinition(tool))
      break
    default:
      // Coding clients send these tools with every request, so a rejection would exclude them.
      if (!isDroppable(tool)) throw hostedTool(path, tool.type)
      sink.report(`tools.${tool.type}`)
  }
}

/** Members of a function that chat supports. */
const FUNCTION_MEMBERS: ReadonlySet<string> = new Set(['type', 'name', 'description', 'parameters', 'strict'])
const UNSET: ReadonlySet<unknown> = new Set([undefined, null, false])

function isDroppable({ type }: ResponsesTool): boolean {
  return type.startsWith('web_search') || type === IMAGE_TOOL
}

function hostedTool(path: string, type: string): Error {
  return unsupportedField(path, `this model has no tool of type ${JSON.stringify(type.slice(0, 80))}`)
}

function nameOf(tool: ResponsesTool, path: string): string {
  const { name } = tool
  if (typeof name === 'string' && name !== '') return name
  throw invalidField(`${path}.name`, 'is required')
}

function functionDefinition({ description, parameters, strict }: ResponsesTool): Omit<ChatTool['function'], 'name'> {
  return {
    ...(typeof description === 'string' ? { description } : {}),
    parameters: isJsonObject(parameters) ? parameters : { type: 'object', properties: {} },
    ...(typeof strict === 'boolean' ? { strict } : {}),
  }
}

/** The only parameter of the function that represents a custom tool. */
export const CUSTOM_INPUT = 'input'

/** The model sees the grammar of a custom tool, but nothing enforces it. */
function customDefinition(
  { description, format }: ResponsesTool,
  path: string,
  report: Report,
): Omit<ChatTool['function'], 'name'> {
  const lines = typeof description === 'string' ? [description] : []
  if (isJsonObject(format) && format['type'] === 'grammar') {
    const { syntax, definition } = format
    if (typeof syntax !== 'string') throw invalidField(`${path}.format.syntax`, 'must be text')
    if (typeof definition !== 'string') throw invalidField(`${path}.format.definition`, 'must be text')
    report('tools.format')
    lines.push(`The input must follow this ${syntax} grammar:\n${definition}`)
  }
  return {
    ...(lines.length === 0 ? {} : { description: lines.join('\n\n') }),
    parameters: {
      type: 'object',
      properties: { [CUSTOM_INPUT]: { type: 'string', description: 'The input of the tool, as plain text.' } },
      required: [CUSTOM_INPUT],
      additionalProperties: false,
    },
  }
}

interface Choice {
  readonly toolChoice?: ChatToolChoice | undefined
  /** The callable tools, if the choice names them. */
  readonly allowed?: ChatTool[] | undefined
}

function chosen(
  { tool_choice: choice }: ResponsesRequest,
  names: ToolNames,
  tools: ReadonlyMap<string, ChatTool>,
  report: Report,
): Choice {
  if (choice === undefined || choice === null) return {}
  if (typeof choice === 'string') {
    if (choice !== 'none' && choice !== 'auto' && choice !== 'required')
      throw invalidField('tool_choice', 'must be none, auto, required or a tool')
    if (choice === 'required' && tools.size === 0) report('tool_choice')
    return { toolChoice: choice }
  }
  if (choice.type === 'allowed_tools') {
    const list = toolsIn(choice['tools'], 'tool_choice.tools')
    const allowed = list.flatMap(({ tool, path }) => {
      // Dropped and reported with the tools.
      if (isDroppable(tool)) return []
      const found = tools.get(chatNameOf(tool, names, path))
      if (found === undefined) report('tool_choice')
      return found === undefined ? [] : [found]
    })
    const isForced = choice['mode'] === 'required'
    if (isForced && allowed.length === 0) report('tool_choice')
    return { toolChoice: isForced ? 'required' : 'auto', allowed }
  }
  const name = chatNameOf(choice, names, 'tool_choice')
  if (!tools.has(name)) throw invalidField('tool_choice', 'names a tool that is not in tools')
  return { toolChoice: { type: 'function', function: { name } } }
}

function chatNameOf(tool: ResponsesTool, names: ToolNames, path: string): string {
  const namespace = typeof tool['namespace'] === 'string' ? tool['namespace'] : undefined
  if (tool.type === 'tool_search') return TOOL_SEARCH_NAME
  if (tool.type !== 'function' && tool.type !== 'custom') throw hostedTool(path, tool.type)
  return names.chatNameOf({ kind: tool.type, name: nameOf(tool, path), namespace })
}

/** The tool of the Responses dialect that a chat function represents. */
export interface CallableTool {
  readonly kind: 'function' | 'custom' | 'tool_search'
  /** Name as the caller wrote it, without its namespace. */
  readonly name: string
  readonly namespace: string | undefined
}

/** Longest name of a tool in a chat (OpenAI API reference, "Create chat completion"). */
const MAX_NAME_LENGTH = 64
const HASH_LENGTH = 8

/** Name of the function that represents a client's tool search. */
export const TOOL_SEARCH_NAME = 'tool_search'

/**
 * Names of tools in a chat, which has no namespaces. A tool of a namespace is `namespace__name`. If that is too long or already
 * used by another tool, it ends with a hash of the full name. The same tools get the same names in every turn.
 */
export class ToolNames {
  readonly #byChatName = new Map<string, CallableTool>()

  /** Returns the chat name of a tool and remembers it. */
  chatNameOf(tool: CallableTool): string {
    const plain = tool.namespace === undefined ? tool.name : `${tool.namespace}__${tool.name}`
    const name = plain.length <= MAX_NAME_LENGTH ? plain : hashed(plain, tool)
    const taken = this.#byChatName.get(name)
    if (taken === undefined || isSame(taken, tool)) {
      this.#byChatName.set(name, taken ?? tool)
      return name
    }
    const other = hashed(plain, tool)
    this.#byChatName.set(other, tool)
    return other
  }

  /** Returns the tool of a chat name. An undeclared name is a function. */
  toolOf(chatName: string): CallableTool {
    return this.#byChatName.get(chatName) ?? { kind: 'function', name: chatName, namespace: undefined }
  }

  /** Whether a chat name belongs to a tool. */
  has(chatName: string): boolean {
    return this.#byChatName.has(chatName)
  }
}

function isSame(one: CallableTool, other: CallableTool): boolean {
  return one.name === other.name && one.namespace === other.namespace
}

function hashed(plain: string, { namespace = '', name }: CallableTool): string {
  const hash = createHash('sha256').update(`${namespace}\u0000${name}`).digest('hex').slice(0, HASH_LENGTH)
  return `${plain.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}_${hash}`
}
