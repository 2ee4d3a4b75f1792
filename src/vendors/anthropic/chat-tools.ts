import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { AnswerFormat } from './answer-format.ts'
import { structuredSchema } from './json-schema-cleanup.ts'
import type { MessagesTool, MessagesToolChoice } from './messages-request.ts'

/** Most strict tools of one request (Anthropic, "Structured outputs", limits). */
const MAX_STRICT_TOOLS = 20

/** What {@link toolsFor} goes by. */
export interface ToolsInput {
  readonly request: ChatRequest
  readonly answerFormat: AnswerFormat
  /** May a call be forced? Otherwise the model is left to choose, and that is reported. */
  readonly forcedToolChoice: boolean
  readonly strictTools: boolean
  readonly report: (field: string) => void
}

/**
 * Maps `tools`, `tool_choice` and `parallel_tool_calls`, and adds the tool that carries a JSON answer.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the tool or the choice.
 */
export function toolsFor(input: ToolsInput): { tools?: MessagesTool[]; tool_choice?: MessagesToolChoice } {
  const { request, answerFormat } = input
  const callerTools = allowedTools(request, convertedTools(input))
  let choice =
    request.tool_choice === undefined || request.tool_choice === null ? undefined : choiceFrom(request.tool_choice)
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

// With tools of the caller the model picks between one of them and the answer; a call the caller forces stays forced.
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
      throw new GatewayError('unsupported_parameter', {
        message: 'The model supports tools of type "function" only.',
        param: `${path}.type`,
      })
    }
    const definition: unknown = tool.function
    if (!isJsonObject(definition) || typeof definition['name'] !== 'string')
      throw invalid(`${path}.function.name`, 'a string')
    const schema = inputSchema(definition['parameters'], `${path}.function.parameters`)
    const isStrict = definition['strict'] === true
    if (isStrict && !takesStrict) input.report('tools.function.strict')
    const { name, description } = definition
    return {
      name,
      ...(typeof description === 'string' && description !== '' ? { description } : {}),
      ...(isStrict && takesStrict
        ? { input_schema: structuredSchema(schema), strict: true as const }
        : { input_schema: schema }),
    }
  })
}

function inputSchema(parameters: unknown, path: string): Record<string, unknown> {
  if (parameters === undefined || parameters === null) return { type: 'object', properties: {} }
  if (!isJsonObject(parameters)) throw invalid(path, 'a JSON Schema')
  return parameters['type'] === 'object' ? parameters : { ...parameters, type: 'object' }
}

function choiceFrom(choice: unknown): MessagesToolChoice {
  if (choice === 'none' || choice === 'auto') return { type: choice }
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
  throw new GatewayError('unsupported_parameter', {
    message: 'The model supports a choice of functions and of allowed_tools only.',
    param: 'tool_choice',
  })
}

// The API has no list of allowed tools, so the others are not shown to the model.
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

function invalid(param: string, expectation: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param} must be ${expectation}.`, param })
}
