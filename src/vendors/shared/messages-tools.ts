import type { GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import type { WorkBudget } from '../../core/work-budget.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { hasOpenObjects, schemaToWire, withMergedParts } from './messages-schema.ts'
import { invalidParameter, unsupportedParameter } from './parameter-errors.ts'
import type { JsonSchema } from './resolve-schema.ts'
import { toolInputSchema } from './tool-input-schema.ts'

/** A tool that the caller runs. */
export interface MessagesTool {
  name: string
  description?: string
  /** A JSON Schema whose `type` is `object`. */
  input_schema: Record<string, unknown>
  /** Guarantees that arguments follow the schema. */
  strict?: true
}

/** Which tools the model may or must call. */
export type MessagesToolChoice =
  | { type: 'auto' | 'any'; disable_parallel_tool_use?: true }
  | { type: 'tool'; name: string; disable_parallel_tool_use?: true }
  | { type: 'none' }

/** Maximum strict tools per request (Anthropic, "Structured outputs", limits). */
const MAX_STRICT_TOOLS = 20

/** Input of {@link toolsToWire}. */
interface ToolsInput {
  readonly request: ChatRequest
  readonly answerFormat: AnswerFormat
  /** Whether a call can be forced. If not, the model chooses, and that is reported. */
  readonly forcedToolChoice: boolean
  readonly strictTools: boolean
  /** Budget for the work on the schemas of the request. */
  readonly budget: WorkBudget
  readonly report: (field: string) => void
}

/**
 * Maps `tools`, `tool_choice` and `parallel_tool_calls`, and adds the tool that carries a JSON answer.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the tool or the choice.
 */
export function toolsToWire(input: ToolsInput): { tools?: MessagesTool[]; tool_choice?: MessagesToolChoice } {
  const { request, answerFormat } = input
  const callerTools = allowedTools(request, convertedTools(input))
  const { tool_choice: asked } = request
  let choice = asked === undefined || asked === null ? undefined : choiceFrom(asked)
  if (asked === 'validated' && callerTools.length > 0) input.report('tool_choice')
  const isForced = choice?.type === 'any' || choice?.type === 'tool'
  if (isForced && (!input.forcedToolChoice || callerTools.length === 0)) {
    input.report('tool_choice')
    choice = { type: 'auto' }
  }
  const tools = [...callerTools]
  if (answerFormat.kind === 'tool') {
    tools.push({ name: answerFormat.name, description: answerFormat.description, input_schema: answerFormat.schema })
    choice = choiceWithAnswerTool(choice, { name: answerFormat.name, isAlone: callerTools.length === 0 })
  }
  if (tools.length === 0) return {}
  if (request.parallel_tool_calls === false && choice?.type !== 'none') {
    choice = { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true }
  }
  return choice === undefined ? { tools } : { tools, tool_choice: choice }
}

// Lets the model choose between the caller's tools and the answer. A call that the caller forces stays forced.
function choiceWithAnswerTool(
  choice: MessagesToolChoice | undefined,
  answer: { name: string; isAlone: boolean },
): MessagesToolChoice {
  if (answer.isAlone || choice?.type === 'none') {
    return { type: 'tool', name: answer.name, disable_parallel_tool_use: true }
  }
  return choice === undefined || choice.type === 'auto' ? { type: 'any' } : choice
}

function convertedTools(input: ToolsInput): MessagesTool[] {
  const tools = input.request.tools ?? []
  const strictCount = tools.filter((tool) => tool.function?.strict === true).length
  const takesStrict = input.strictTools && strictCount <= MAX_STRICT_TOOLS
  return tools.map((tool, index) => {
    const path = `tools[${index}]`
    if (tool.type !== 'function') {
      throw unsupportedParameter(`${path}.type`, 'The model supports tools of type "function" only.')
    }
    const definition: unknown = tool.function
    if (!isJsonObject(definition) || typeof definition['name'] !== 'string')
      throw invalid(`${path}.function.name`, 'a string')
    const schemaPath = `${path}.function.parameters`
    const schema = inputSchema(definition['parameters'], schemaPath, input.budget)
    const isStrict = definition['strict'] === true
    if (isStrict && !takesStrict) input.report('tools.function.strict')
    const { name, description } = definition
    return {
      name,
      ...(typeof description === 'string' && description !== '' ? { description } : {}),
      ...(isStrict && takesStrict
        ? { input_schema: schemaToWire(withMergedParts(schema, schemaPath, input.budget)), strict: true as const }
        : { input_schema: schema }),
    }
  })
}

function inputSchema(parameters: unknown, path: string, budget: WorkBudget): Record<string, unknown> {
  if (parameters === undefined || parameters === null) return { type: 'object', properties: {} }
  if (!isJsonObject(parameters)) throw invalid(path, 'a JSON Schema')
  const schema = toolInputSchema(parameters, path, budget)
  return schema['type'] === 'object' ? schema : { ...schema, type: 'object' }
}

function choiceFrom(choice: unknown): MessagesToolChoice {
  if (choice === 'none' || choice === 'auto') return { type: choice }
  if (choice === 'validated') return { type: 'auto' }
  if (choice === 'required') return { type: 'any' }
  if (!isJsonObject(choice)) throw invalid('tool_choice', '"none", "auto", "required" or an object')
  const named = choice['function']
  if (choice['type'] === 'function' && isJsonObject(named) && typeof named['name'] === 'string') {
    return { type: 'tool', name: named['name'] }
  }
  const allowed = choice['allowed_tools']
  if (choice['type'] === 'allowed_tools' && isJsonObject(allowed)) {
    return { type: allowed['mode'] === 'required' ? 'any' : 'auto' }
  }
  throw unsupportedParameter('tool_choice', 'The model supports a choice of functions and of allowed_tools only.')
}

// The API has no list of allowed tools, so other tools are hidden from the model.
function allowedTools(request: ChatRequest, tools: MessagesTool[]): MessagesTool[] {
  const choice: unknown = request.tool_choice
  if (!isJsonObject(choice) || choice['type'] !== 'allowed_tools' || !isJsonObject(choice['allowed_tools']))
    return tools
  const list = choice['allowed_tools']['tools']
  const names = new Set(Array.isArray(list) ? list.map(toolName) : [])
  const allowed = tools.filter((tool) => names.has(tool.name))
  if (allowed.length === 0)
    throw invalid('tool_choice.allowed_tools.tools', 'a list that names at least one of the tools')
  return allowed
}

function toolName(tool: unknown): unknown {
  return isJsonObject(tool) && isJsonObject(tool['function']) ? tool['function']['name'] : undefined
}

/** How to request a JSON answer from the model. */
type AnswerFormat =
  | { readonly kind: 'text' }
  /** The vendor's own structured output. */
  | { readonly kind: 'schema'; readonly schema: JsonSchema }
  /** A tool that the model is forced to call; its input is the answer. */
  | { readonly kind: 'tool'; readonly name: string; readonly schema: JsonSchema; readonly description: string }
  /** A sentence in the system text. */
  | { readonly kind: 'instruction'; readonly text: string }

const SCHEMA_PATH = 'response_format.json_schema.schema'

/** Input of {@link answerFormatFor}. */
interface AnswerFormatInput {
  readonly request: ChatRequest
  /** Whether structured output is possible for this model and conversation. */
  readonly structuredOutput: boolean
  /** Whether a tool call may be forced. */
  readonly forcedToolChoice: boolean
  /** Budget for the work on the schemas of the request. */
  readonly budget: WorkBudget
}

/**
 * Maps `response_format`. A JSON Schema becomes structured output, or a forced tool if the model lacks that or the schema exceeds
 * it. `json_object` becomes a forced tool with an open schema. If no tool can be forced, the system text requests JSON.
 * @throws GatewayError `invalid_request` naming the invalid member of `response_format`.
 */
export function answerFormatFor(input: AnswerFormatInput): AnswerFormat {
  const schema = requestedSchema(input.request)
  if (schema === undefined) return { kind: 'text' }
  if (input.structuredOutput) {
    const merged = withMergedParts(schema.schema, SCHEMA_PATH, input.budget)
    if (!hasOpenObjects(merged)) return { kind: 'schema', schema: schemaToWire(merged) }
  }
  if (input.forcedToolChoice && schema.schema['type'] === 'object') {
    return {
      kind: 'tool',
      name: answerToolName(input.request),
      schema: toolInputSchema(schema.schema, SCHEMA_PATH, input.budget),
      description: schema.description ?? 'Gives the whole answer to the user, as the members of one JSON object.',
    }
  }
  return { kind: 'instruction', text: instructionFor(schema.schema) }
}

/** Returns a sentence for the system text that requests the `response_format`, or `undefined` for text. */
export function jsonInstruction(request: ChatRequest): string | undefined {
  const schema = requestedSchema(request)
  return schema && instructionFor(schema.schema)
}

function instructionFor(schema: JsonSchema): string {
  const shape = isAnyObject(schema) ? '' : ` that follows this JSON Schema: ${exactJsonText(schema)}`
  return `Answer with one JSON object${shape}. Write the JSON alone, without a code fence or any other text.`
}

/**
 * Returns the name of the answer tool, which differs from the caller's tools. It depends only on the request, so that the answer's
 * reader can compute it too.
 */
function answerToolName(request: ChatRequest): string {
  const taken = new Set(request.tools?.map((tool) => tool.function?.name))
  let name = 'json'
  for (let count = 2; taken.has(name); count++) name = `json_${count}`
  return name
}

/** Returns the tool name under which an answer may arrive, or `undefined` if the request wants no JSON. */
export function expectedAnswerTool(request: ChatRequest): string | undefined {
  const type = request.response_format?.type
  return type === undefined || type === 'text' ? undefined : answerToolName(request)
}

function isAnyObject(schema: JsonSchema): boolean {
  return Object.keys(schema).length === 1 && schema['type'] === 'object'
}

function requestedSchema(request: ChatRequest): { schema: JsonSchema; description?: string } | undefined {
  const format: unknown = request.response_format
  if (!isJsonObject(format) || format['type'] === 'text') return undefined
  if (format['type'] === 'json_object') return { schema: { type: 'object' } }
  if (format['type'] !== 'json_schema') throw invalid('response_format.type', 'text, json_object or json_schema')
  const definition = format['json_schema']
  if (!isJsonObject(definition)) throw invalid('response_format.json_schema', 'an object')
  const { schema, description } = definition
  if (schema === undefined || schema === null) return { schema: { type: 'object' } }
  if (!isJsonObject(schema)) throw invalid('response_format.json_schema.schema', 'a JSON Schema')
  return typeof description === 'string' ? { schema, description } : { schema }
}

function invalid(param: string, expectation: string): GatewayError {
  return invalidParameter(param, `${param} must be ${expectation}.`)
}
