import type { CallToolResult, ContentBlock, Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/server'
import type { z } from 'zod'
import type { Clock } from '../core/clock.ts'
import { checkRequest } from '../endpoints/request-field.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Principal } from '../stores/principal.ts'
import type { GatewayAnswer, GatewayCall } from './gateway-call.ts'
import { jsonSchemaOf } from './json-schema-of.ts'

/** One call of a tool, from a caller who is known. */
export interface ToolContext {
  readonly gateway: Gateway
  readonly principal: Principal
  /** Aborts when the caller leaves or cancels. */
  readonly signal: AbortSignal
  readonly clock: Clock
  /**
   * Carries out a request as the caller, through the whole pipeline.
   * @throws GatewayError when the gateway answers with an error.
   */
  call(request: GatewayCall): Promise<GatewayAnswer>
  /**
   * The same, for answers that are JSON objects.
   * @throws GatewayError also for an answer that is none.
   */
  json(request: GatewayCall): Promise<Record<string, unknown>>
  /** Tells the caller how far the call is, when it asked to be told. */
  progress(progress: Progress): Promise<void>
}

/** How far a call is; `progress` grows with every notification. */
export interface Progress {
  readonly progress: number
  readonly total: number
  readonly message: string
}

/** What a tool answers. */
export interface ToolAnswer {
  /** Fits the tool's output schema. A copy of it as JSON text is added to the content. */
  readonly structured: Record<string, unknown>
  /** What is no text: pictures, sound, links. Stands before the copy. */
  readonly content?: readonly ContentBlock[]
}

/** A tool as the server lists and calls it. */
export interface Tool {
  readonly name: string
  readonly listed: ListedTool
  /**
   * Checks the arguments and carries the call out.
   * @throws GatewayError `invalid_request` naming the argument at fault, and whatever the gateway answers.
   */
  call(args: unknown, context: ToolContext): Promise<CallToolResult>
}

/** What a tool is made of. */
export interface ToolDefinition<Input extends z.ZodObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** True statements about what a call may do (MCP specification, "Tool annotations"). */
  readonly annotations: Required<Omit<ToolAnnotations, 'title'>>
  readonly input: Input
  readonly output: z.ZodObject
  answer(args: z.infer<Input>, context: ToolContext): Promise<ToolAnswer>
}

/** Makes a tool; its schemas are written as JSON Schema once. */
export function defineTool<Input extends z.ZodObject>(definition: ToolDefinition<Input>): Tool {
  const { name, title, description, annotations, input, output } = definition
  return {
    name,
    listed: {
      name,
      title,
      description,
      annotations: { title, ...annotations },
      inputSchema: { ...jsonSchemaOf(input, 'input'), type: 'object' },
      outputSchema: { ...jsonSchemaOf(output, 'output'), type: 'object' },
    },
    async call(args, context) {
      const { structured, content = [] } = await definition.answer(checkRequest<z.infer<Input>>(input, args), context)
      return {
        content: [...content, { type: 'text', text: JSON.stringify(structured) }],
        structuredContent: structured,
      }
    },
  }
}

/** Annotations of tools that only look something up in the gateway itself. */
export const LOOKS_UP = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

/** Annotations of tools that look something up and may ask a vendor about it. */
export const LOOKS_UP_AT_VENDOR = { ...LOOKS_UP, openWorldHint: true }

/** Annotations of tools that have a vendor make something: each call costs money, and nothing that exists is changed. */
export const MAKES = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true }
