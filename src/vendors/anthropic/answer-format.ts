import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { hasOpenObjects, type JsonSchema, structuredSchema } from './json-schema-cleanup.ts'

/** How a request for a JSON answer is put to the model. */
export type AnswerFormat =
  | { readonly kind: 'text' }
  /** The vendor's own structured output. */
  | { readonly kind: 'schema'; readonly schema: JsonSchema }
  /** A tool that the model is forced to call; its input is the answer. */
  | { readonly kind: 'tool'; readonly name: string; readonly schema: JsonSchema; readonly description: string }
  /** A sentence in the system text. */
  | { readonly kind: 'instruction'; readonly text: string }

/** What {@link answerFormatFor} goes by. */
export interface AnswerFormatInput {
  readonly request: ChatRequest
  /** Structured output may be used: the model has it, and the conversation does not rule it out. */
  readonly structuredOutput: boolean
  /** A tool call may be forced. */
  readonly forcedToolChoice: boolean
}

/**
 * Maps `response_format`. A JSON Schema goes to structured output, or to a forced tool where the model lacks that or the schema
 * is beyond it. Any JSON object goes to a forced tool with an open schema. Where nothing can be forced, the system text asks.
 * @throws GatewayError `invalid_request` naming the member of `response_format` at fault.
 */
export function answerFormatFor(input: AnswerFormatInput): AnswerFormat {
  const schema = requestedSchema(input.request)
  if (schema === undefined) return { kind: 'text' }
  const isOpen = hasOpenObjects(schema.schema)
  if (input.structuredOutput && !isOpen) return { kind: 'schema', schema: structuredSchema(schema.schema) }
  if (input.forcedToolChoice && schema.schema['type'] === 'object') {
    return {
      kind: 'tool',
      name: answerToolName(input.request),
      schema: schema.schema,
      description: schema.description ?? 'Gives the whole answer to the user, as the members of one JSON object.',
    }
  }
  const shape = isAnyObject(schema.schema) ? '' : ` that follows this JSON Schema: ${JSON.stringify(schema.schema)}`
  const text = `Answer with one JSON object${shape}. Write the JSON alone, without a code fence or any other text.`
  return { kind: 'instruction', text }
}

/**
 * The name of the answer tool; another one when the caller has a tool of that name. It depends on the request alone, so that the
 * reader of the answer finds it again.
 */
export function answerToolName(request: ChatRequest): string {
  const taken = new Set(request.tools?.map((tool) => tool.function?.name))
  let name = 'json'
  for (let count = 2; taken.has(name); count++) name = `json_${count}`
  return name
}

/** The name under which an answer may arrive as a tool's input, or undefined when the request wants no JSON. */
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
  return new GatewayError('invalid_request', { message: `${param} must be ${expectation}.`, param })
}
