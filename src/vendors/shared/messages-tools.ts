import type { WorkBudget } from '../../core/calls-in-flight.ts'
import type { GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, objectOf } from '../../core/json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { isObjectSchema, SCHEMA_MAPS } from '../../endpoints/schema.ts'
import { invalidParameter, unsupportedParameter } from './invalid-response.ts'
import { type JsonSchema, payForVisit, resolveSchema, type SchemaDocument, type SchemaPlace } from './resolve-schema.ts'

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

/** Members that hold one schema. */
const SCHEMA_MEMBERS: ReadonlySet<string> = new Set(['items'])

/** Members that hold a list of schemas, and their replacement. */
const SCHEMA_LISTS: ReadonlyMap<string, string> = new Map([
  ['anyOf', 'anyOf'],
  ['oneOf', 'anyOf'],
  ['allOf', 'allOf'],
])

/** Members that are copied unchanged. */
const PLAIN_MEMBERS: ReadonlySet<string> = new Set([
  'type',
  'enum',
  'const',
  'default',
  'required',
  'title',
  'description',
  '$ref',
  'pattern',
])

/** Members that describe the schema without constraining values. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['$schema', '$id', '$comment', 'examples', 'additionalProperties'])

const FORMATS: ReadonlySet<unknown> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
])

/**
 * Merges the `allOf` of a schema, because each part would be closed separately and exclude the others. A lone reference stays;
 * other references are resolved, cycles cut.
 * @param path Path of the schema in the request, for error texts.
 * @throws GatewayError `invalid_request` if the schemas of the request cause too much work.
 */
export function withMergedParts(schema: JsonSchema, path: string, budget: WorkBudget): JsonSchema {
  return merged(schema, [], { root: schema, path, budget })
}

function merged(given: JsonSchema, trail: readonly string[], document: SchemaDocument): JsonSchema {
  const place = Array.isArray(given['allOf']) ? mergedPlace(given, trail, document) : { schema: given, trail }
  payForVisit(place.schema, document)
  const within = (value: unknown): unknown => (isJsonObject(value) ? merged(value, place.trail, document) : value)
  return Object.fromEntries(
    Object.entries(place.schema).map(([member, value]) => {
      if (SCHEMA_LISTS.has(member) && Array.isArray(value)) return [member, value.map(within)]
      if (SCHEMA_MAPS.has(member) && isJsonObject(value)) {
        document.budget.payFor(value, document.path, 1)
        return [member, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, within(one)]))]
      }
      return [member, SCHEMA_MEMBERS.has(member) ? within(value) : value]
    }),
  )
}

function mergedPlace(
  schema: JsonSchema,
  trail: readonly string[],
  document: SchemaDocument,
): ReturnType<typeof resolveSchema> {
  const { allOf, ...own } = schema
  const [part, ...more] = allOf as readonly unknown[]
  const isReference = isJsonObject(part) && typeof part['$ref'] === 'string' && Object.keys(part).length === 1
  if (isReference && more.length === 0 && own['$ref'] === undefined) return { schema: { ...part, ...own }, trail }
  return resolveSchema({ schema, trail }, document)
}

/**
 * Reduces a schema to the subset for structured output (Anthropic, "Structured outputs", limits): every object is closed, `oneOf`
 * becomes `anyOf`, and a limit that the vendor cannot enforce moves to the description, which the model reads.
 */
export function schemaToWire(schema: JsonSchema): JsonSchema {
  const cleaned: JsonSchema = {}
  const limits: string[] = []
  for (const [member, value] of Object.entries(schema)) {
    const list = SCHEMA_LISTS.get(member)
    if (list !== undefined && Array.isArray(value))
      cleaned[list] = [...asList(cleaned[list]), ...value.map(cleanedValue)]
    else if (SCHEMA_MEMBERS.has(member)) cleaned[member] = cleanedValue(value)
    else if (SCHEMA_MAPS.has(member) && isJsonObject(value)) cleaned[member] = cleanedMap(value)
    else if (isTaken(member, value)) cleaned[member] = value
    else if (!ANNOTATIONS.has(member)) limits.push(`${member}: ${exactJsonText(value)}`)
  }
  if (isObjectSchema(cleaned)) cleaned['additionalProperties'] = false
  if (limits.length > 0) cleaned['description'] = describe(cleaned['description'], limits)
  return cleaned
}

/**
 * Whether the schema contains an object that names no members and so allows any. Structured output cannot express that: once
 * closed, such an object is always empty.
 */
export function hasOpenObjects(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(hasOpenObjects)
  if (!isJsonObject(schema)) return false
  const { properties, additionalProperties } = schema
  const namesMembers = isJsonObject(properties) && Object.keys(properties).length > 0
  if (isObjectSchema(schema) && !namesMembers && additionalProperties !== false) return true
  return Object.entries(schema).some(([member, value]) => {
    if (SCHEMA_MAPS.has(member)) return isJsonObject(value) && Object.values(value).some(hasOpenObjects)
    return (SCHEMA_MEMBERS.has(member) || SCHEMA_LISTS.has(member)) && hasOpenObjects(value)
  })
}

function isTaken(member: string, value: unknown): boolean {
  if (member === 'format') return FORMATS.has(value)
  if (member === 'minItems') return value === 0 || value === 1
  return PLAIN_MEMBERS.has(member)
}

function cleanedValue(value: unknown): unknown {
  return isJsonObject(value) ? schemaToWire(value) : value
}

function cleanedMap(schemas: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, cleanedValue(value)]))
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function describe(description: unknown, limits: readonly string[]): string {
  const note = `(${limits.join(', ')})`
  return typeof description === 'string' && description !== '' ? `${description} ${note}` : note
}

/** Units of work to compare a property with those of other alternatives. */
const UNITS_PER_PROPERTY = 6

const COMBINATIONS = ['allOf', 'anyOf', 'oneOf'] as const

/**
 * Returns the schema of a tool's input as one object, because the vendor rejects others: "input_schema does not support oneOf,
 * allOf, or anyOf at the top level". Alternatives become one object with the members of all, and the description lists what each of
 * them requires. Nested schemas stay unchanged.
 * @param path Path of the schema in the request, for error texts.
 * @throws GatewayError `invalid_request` if the schemas of the request cause too much work.
 */
function toolInputSchema(schema: JsonSchema, path: string, budget: WorkBudget): JsonSchema {
  const isOneObject = COMBINATIONS.every((name) => !Array.isArray(schema[name]))
  return isOneObject ? schema : oneObject({ schema, trail: [] }, { root: schema, path, budget })
}

function oneObject(given: SchemaPlace, document: SchemaDocument): JsonSchema {
  const { schema, trail } = resolveSchema(given, document)
  const { anyOf, oneOf, ...own } = schema
  const alternatives = [...listOf(anyOf), ...listOf(oneOf)]
    .filter(isJsonObject)
    .map((alternative) => oneObject({ schema: alternative, trail }, document))
  if (alternatives.length === 0) return own
  const needs = alternatives.map(({ required }) => listOf(required))
  const [first = [], ...others] = needs
  let ofAll: readonly unknown[] = first
  for (const names of others.map((list) => new Set(list))) ofAll = ofAll.filter((name) => names.has(name))
  const required = [...new Set([...listOf(own['required']), ...ofAll])]
  return {
    ...own,
    type: 'object',
    properties: unitedProperties([own, ...alternatives], document),
    ...(required.length === 0 ? {} : { required }),
    ...(needs.some((names) => names.length > ofAll.length)
      ? { description: described(own['description'], needs) }
      : {}),
  }
}

/** A member with several different schemas may match any of them. */
function unitedProperties(schemas: readonly JsonSchema[], { budget, path }: SchemaDocument): JsonSchema {
  const found = new Map<string, Map<string, unknown>>()
  for (const { properties } of schemas)
    for (const [name, property] of Object.entries(objectOf(properties))) {
      const kinds = found.get(name) ?? new Map<string, unknown>()
      const written = exactJsonText(property)
      budget.pay(UNITS_PER_PROPERTY, path)
      budget.payForText(written.length, path)
      found.set(name, kinds.set(written, property))
    }
  return Object.fromEntries(
    [...found].map(([name, kinds]) => [
      name,
      kinds.size === 1 ? [...kinds.values()][0] : { anyOf: [...kinds.values()] },
    ]),
  )
}

function described(description: unknown, needs: readonly (readonly unknown[])[]): string {
  const note = `(give the members of one of these lists: ${needs.map((names) => JSON.stringify(names)).join(' or ')})`
  return typeof description === 'string' && description !== '' ? `${description} ${note}` : note
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
