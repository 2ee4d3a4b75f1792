import type { ThinkingBlock } from '../../endpoints/chat/chat-request.ts'

/** The content blocks of Anthropic's Messages API that requests carry (Anthropic, Messages reference, "content"). */

/** Text; the API refuses empty ones. */
export interface TextBlock {
  type: 'text'
  text: string
}

/** The picture formats that the API reads. */
export type ImageMediaType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp'

/** A picture, as base64 or as a URL that the vendor fetches. */
export interface ImageBlock {
  type: 'image'
  source: { type: 'base64'; media_type: ImageMediaType; data: string } | { type: 'url'; url: string }
}

/** A PDF file. */
export interface DocumentBlock {
  type: 'document'
  source: { type: 'base64'; media_type: 'application/pdf'; data: string } | { type: 'url'; url: string }
  title?: string
}

/** A call of a tool by the model. `input` is an object, where chat has JSON text. */
export interface ToolUseBlock {
  type: 'tool_use'
  id: string
  name: string
  input: Record<string, unknown>
}

/** The result of a tool call. An absent content is an empty result. */
export interface ToolResultBlock {
  type: 'tool_result'
  tool_use_id: string
  content?: ToolResultContent[]
  is_error?: true
}

/** What a tool result may hold. */
export type ToolResultContent = TextBlock | ImageBlock | DocumentBlock

/** What a user turn may hold; tool results stand before everything else. */
export type UserBlock = TextBlock | ImageBlock | DocumentBlock | ToolResultBlock

/** What an assistant turn may hold; tool uses stand after everything else of their message. */
export type AssistantBlock = TextBlock | ToolUseBlock | ThinkingBlock
