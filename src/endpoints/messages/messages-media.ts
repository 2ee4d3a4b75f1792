import { isJsonObject } from '../../core/json.ts'
import type { MediaInput, MediaKind } from '../media-input.ts'
import type { MessagesRequest } from './messages-request.ts'
import { isServerTool } from './messages-surcharges.ts'
import { requestTools } from './request-tools.ts'

/** Returns the inputs of a message other than text: images, documents, fetched pages, answers of MCP servers, and stored turns. */
export function messagesMedia(request: MessagesRequest): readonly MediaInput[] {
  const { messages, system, thread, mcp_servers: servers } = request
  const media: MediaInput[] = []
  addBlocks(media, system)
  for (const { content } of messages) addBlocks(media, content)
  for (const tool of requestTools(request)) if (isServerTool(tool, 'web_fetch_')) media.push(fetchedPages(tool))
  // The model reads the results of their tools, and callers may name their own servers.
  if (Array.isArray(servers) && servers.length > 0) media.push({ kind: 'document' })
  if (thread !== undefined && thread !== null) media.push({ kind: 'conversation' })
  return media
}

function addBlocks(media: MediaInput[], blocks: unknown): void {
  if (!Array.isArray(blocks)) return
  for (const block of blocks) {
    if (!isJsonObject(block)) continue
    const { type, source, content } = block
    if (type === 'image' || type === 'document') addSource(media, type, source)
    // Tool results contain blocks, including results of the vendor's own tools.
    else if (Array.isArray(content)) addBlocks(media, content)
    else if (isJsonObject(content)) addBlocks(media, [content])
  }
}

function addSource(media: MediaInput[], kind: MediaKind, source: unknown): void {
  if (!isJsonObject(source)) return
  const { type, data, media_type: mediaType } = source
  if (type === 'base64' && typeof data === 'string')
    media.push({ kind, data, ...(typeof mediaType === 'string' ? { mediaType: mediaType.toLowerCase() } : {}) })
  else if (type === 'content') addBlocks(media, source['content'])
  else if (type !== 'text') media.push({ kind })
}

/** Pages that the vendor fetches into the prompt (Anthropic, "Web fetch tool"). */
function fetchedPages({ max_uses: uses, max_content_tokens: tokens }: Readonly<Record<string, unknown>>): MediaInput {
  const isBounded = isCount(uses) && isCount(tokens)
  return isBounded ? { kind: 'document', maxTokens: uses * tokens } : { kind: 'document' }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}
