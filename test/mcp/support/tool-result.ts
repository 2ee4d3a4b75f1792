import type { Client } from '@modelcontextprotocol/client'

/** Members of structured results that tests name; each tool has some of them. */
export interface Structured {
  readonly task_id: string
  readonly status: string
  readonly interaction_id: string
  readonly mime_type: string
  readonly balance: string
  readonly choices: readonly [{ readonly message: { readonly content: string } }]
  readonly data: readonly { readonly index: number; readonly embedding: readonly number[] }[]
  readonly results: readonly { readonly index: number }[]
  readonly models: readonly { readonly id: string; readonly kinds: readonly string[] }[]
  readonly images: readonly [{ readonly kind: string; readonly url: string }]
  readonly content: { readonly video_url: string }
}

/** Parts of a tool's result that tests read. */
export interface ToolResult {
  readonly isError: boolean
  readonly structured: Structured
  readonly content: readonly { readonly type: string; readonly [member: string]: unknown }[]
  /** The last text block: the copy of the structured content, or the error. */
  readonly text: string
}

/** Calls a tool. */
export async function callTool(
  client: Client,
  name: string,
  args: Record<string, unknown>,
  options?: Parameters<Client['callTool']>[1],
): Promise<ToolResult> {
  const result = await client.callTool({ name, arguments: args }, options)
  const text = result.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).at(-1) ?? ''
  return {
    isError: result.isError === true,
    structured: result.structuredContent as Structured,
    content: result.content,
    text,
  }
}

/** The error in a tool's result. */
export function errorIn({ isError, text }: ToolResult): Record<string, unknown> {
  if (!isError) throw new Error(`no error: ${text}`)
  return (JSON.parse(text) as { error: Record<string, unknown> }).error
}
