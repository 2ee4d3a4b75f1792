import { isJsonObject } from '../../core/json.ts'
import type { WorkBudget } from '../../core/work-budget.ts'
import type { ChatRequest, ChatTool } from '../../endpoints/chat/chat-request.ts'
import { forcesCall } from '../shared/chat-fields.ts'
import { invalidParameter, unsupportedParameter } from '../shared/parameter-errors.ts'
import type { FunctionCallingConfig, FunctionDeclaration, GenerateContentRequest } from './api-request.ts'
import type { ModelAbilities } from './model-abilities.ts'
import { parametersToWire } from './schema-to-wire.ts'

/**
 * Returns the functions that a model may or must call. Empty without functions, because the vendor rejects an empty list and a
 * choice without functions; a forced call is then reported as dropped.
 * @throws GatewayError `unsupported_parameter` naming a tool or choice that is not a function, `invalid_request` for a
 *   malformed one.
 */
export function toolsToWire(
  request: ChatRequest,
  abilities: ModelAbilities,
  budget: WorkBudget,
  report: (field: string) => void,
): Pick<GenerateContentRequest, 'tools' | 'toolConfig'> {
  const tools = (request.tools ?? []).map((tool, index) => functionOf(tool, `tools[${index}]`, budget))
  const allowed = allowedNames(request.tool_choice)
  const offered = allowed === undefined ? tools : tools.filter((tool) => allowed.has(tool.name))
  if (allowed !== undefined && offered.length === 0) {
    throw invalidParameter('tool_choice', 'tool_choice: none of the allowed tools is among tools.')
  }
  if (offered.length === 0) {
    if (forcesCall(request.tool_choice)) report('tool_choice')
    return {}
  }
  const functionDeclarations = offered.map((tool) => tool.declaration)
  const isStrict = abilities.jsonSchema && offered.some((tool) => tool.strict)
  const isValidated = request.tool_choice === 'validated'
  if (isValidated && !abilities.jsonSchema) report('tool_choice')
  const config = isValidated
    ? { mode: abilities.jsonSchema ? ('VALIDATED' as const) : ('AUTO' as const) }
    : callingConfig(request.tool_choice, isStrict)
  return {
    tools: [{ functionDeclarations }],
    ...(config === undefined ? {} : { toolConfig: { functionCallingConfig: config } }),
  }
}

interface OfferedFunction {
  readonly name: string
  readonly strict: boolean
  readonly declaration: FunctionDeclaration
}

function functionOf(tool: ChatTool, path: string, budget: WorkBudget): OfferedFunction {
  if (tool.type !== 'function') {
    throw unsupportedParameter(`${path}.type`, `${path}.type: the model supports tools of type "function" only.`)
  }
  const definition: unknown = tool.function
  if (!isJsonObject(definition) || typeof definition['name'] !== 'string') {
    throw invalidParameter(`${path}.function.name`, `${path}.function.name is required.`)
  }
  const { name, description, parameters, strict } = definition
  const schema = isJsonObject(parameters)
    ? parametersToWire(parameters, `${path}.function.parameters`, budget)
    : undefined
  const declaration: FunctionDeclaration = {
    name,
    ...(typeof description === 'string' ? { description } : {}),
    ...(schema === undefined ? {} : { parameters: schema }),
  }
  return { name, strict: strict === true, declaration }
}

/** Returns the names of an `allowed_tools` choice. Other tools are not sent, in every calling mode. */
function allowedNames(choice: ChatRequest['tool_choice']): ReadonlySet<string> | undefined {
  if (!isJsonObject(choice) || choice.type !== 'allowed_tools') return undefined
  const tools: unknown = choice.allowed_tools?.tools
  const names = (Array.isArray(tools) ? tools : []).flatMap((tool) => {
    const definition = isJsonObject(tool) ? tool['function'] : undefined
    const name = isJsonObject(definition) ? definition['name'] : undefined
    return typeof name === 'string' ? [name] : []
  })
  return new Set(names)
}

function callingConfig(choice: ChatRequest['tool_choice'], isStrict: boolean): FunctionCallingConfig | undefined {
  if (choice === undefined || choice === null) return isStrict ? { mode: 'VALIDATED' } : undefined
  if (choice === 'auto') return { mode: isStrict ? 'VALIDATED' : 'AUTO' }
  if (choice === 'none') return { mode: 'NONE' }
  if (choice === 'required') return { mode: 'ANY' }
  if (isJsonObject(choice) && choice.type === 'allowed_tools') {
    if (choice.allowed_tools?.mode === 'required') return { mode: 'ANY' }
    return { mode: isStrict ? 'VALIDATED' : 'AUTO' }
  }
  const name = isJsonObject(choice) && choice.type === 'function' ? choice.function?.name : undefined
  if (typeof name === 'string') return { mode: 'ANY', allowedFunctionNames: [name] }
  const message = 'tool_choice must be auto, none, required, a function or allowed tools.'
  throw unsupportedParameter('tool_choice', message)
}
