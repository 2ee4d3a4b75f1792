import type { CallToolResult, ContentBlock, Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/server'
import type * as z from 'zod'
import { jsonSchemaOf } from '../endpoints/json-schema.ts'
import { checkRequest } from '../endpoints/request-field.ts'
import type { ToolContext } from './tool-context.ts'

/** Answer of a tool. */
export interface ToolAnswer {
  /** Value that matches the tool's output schema. The content also gets a copy as JSON text. */
  readonly structured: Record<string, unknown>
  /** Images, audio and links. They come before the copy. */
  readonly content?: readonly ContentBlock[]
}

/** Tool in the form that the server lists and calls. */
export interface Tool {
  readonly name: string
  readonly listed: ListedTool
  /**
   * Checks the arguments and makes the call.
   * @throws GatewayError `invalid_request` naming the invalid argument, and the errors of the gateway.
   */
  call(args: unknown, context: ToolContext): Promise<CallToolResult>
}

interface ToolDefinition<Input extends z.ZodObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  /** Effects of a call (MCP specification, "Tool annotations"). */
  readonly annotations: Required<Omit<ToolAnnotations, 'title'>>
  readonly input: Input
  readonly output: z.ZodObject
  answer(args: z.infer<Input>, context: ToolContext): Promise<ToolAnswer>
}

/** Creates a tool. Its schemas are converted to JSON Schema once. */
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

/** Annotations of tools that only read from the gateway. */
export const LOOKS_UP = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

/** Annotations of tools that read and may call a vendor. */
export const LOOKS_UP_AT_VENDOR = { ...LOOKS_UP, openWorldHint: true }

/** Annotations of tools that create something at a vendor: each call costs money and changes nothing that exists. */
export const MAKES = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true }
