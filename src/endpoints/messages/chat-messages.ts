import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatContentPart, ChatMessage, ChatToolCall, ExtraContent } from '../chat/chat-request.ts'
import { textOrParts } from '../chat/text-or-parts.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { readCarriedState } from './carried-state.ts'
import type { ContentBlock, MessageParam, MessagesRequest } from './messages-request.ts'
import { addedTool, toolChange } from './request-tools.ts'

/**
 * Converts the system prompt and the turns of a request to chat messages. A user turn with tool results becomes one tool message
 * per result, followed by one user message with the rest, because chat requires results directly after their calls.
 * @throws GatewayError `invalid_request` for an unknown role, `unsupported_parameter` for unsupported content, each naming its
 *   path.
 */
export function chatMessages(request: MessagesRequest, report: Report): ChatMessage[] {
  // Other vendors treat an assistant turn at the end as finished and do not continue it.
  if (request.messages.at(-1)?.role === 'assistant') report('messages.prefill')
  const system = systemContent(request.system, report)
  const messages: ChatMessage[] = system.length === 0 ? [] : [{ role: 'system', content: system }]
  // Adds messages one at a time, here and below: a call cannot have as many arguments as a body may have blocks.
  request.messages.forEach((message, index) => {
    for (const one of turnMessages(message, `messages[${index}]`, report)) messages.push(one)
  })
  return messages
}

function turnMessages(message: MessageParam, path: string, report: Report): ChatMessage[] {
  if (isJsonObject(message['output_config'])) report('messages.output_config')
  const blocks = blocksOf(message.content)
  switch (message.role) {
    case 'user':
      return userMessages(blocks, `${path}.content`, report)
    case 'assistant': {
      const answer = assistantMessage(blocks, report)
      return answer === undefined ? [] : [answer]
    }
    case 'system': {
      const content = instructions(blocks, report)
      return content.length === 0 ? [] : [{ role: 'system', content }]
    }
    default:
      throw invalidField(`${path}.role`, 'must be user, assistant or system')
  }
}

function userMessages(blocks: readonly ContentBlock[], path: string, report: Report): ChatMessage[] {
  const results: ChatMessage[] = []
  const parts: ChatContentPart[] = []
  blocks.forEach((block, index) => {
    const blockPath = `${path}[${index}]`
    if (block.type !== 'tool_result') {
      for (const part of userParts(block, blockPath, report)) parts.push(part)
      return
    }
    const { message, rest } = toolResult(block, blockPath, report)
    results.push(message)
    for (const part of rest) parts.push(part)
  })
  if (parts.length === 0) return results
  // Servers of text models reject content in parts.
  const content = parts.every(({ type }) => type === 'text') ? textOrParts(parts) : parts
  return [...results, { role: 'user', content }]
}

/** Some clients begin with a line about themselves. The dialect's own vendor removes it, because it is not an instruction. */
const CLIENT_LINE = /^x-[a-z]+-billing-header:/

function systemContent(system: MessagesRequest['system'], report: Report): string | ChatContentPart[] {
  const blocks = blocksOf(system)
  const first = blocks[0]?.['text']
  if (typeof first !== 'string' || !CLIENT_LINE.test(first)) return instructions(blocks, report)
  report('system[0]')
  return instructions(blocks.slice(1), report)
}

/** Returns the text of blocks, as parts if one of them is to be cached. */
function instructions(blocks: readonly ContentBlock[], report: Report): string | ChatContentPart[] {
  const parts: ChatContentPart[] = []
  for (const block of blocks) {
    const cached = keptCacheControl(block, report)
    if (block.type === 'text') for (const part of textPart(block['text'])) parts.push({ ...part, ...cached })
    else if (addedTool(block) === undefined && toolChange(block) === undefined) report(`messages.${block.type}`)
    // The block changes the tools of the request. Its position in the conversation is lost.
    else if (cached.cache_control !== undefined) report('cache_control')
  }
  return textOrParts(parts)
}

/**
 * Converts an assistant turn to one chat message, or `undefined` if nothing remains. Thinking becomes reasoning text, and the state
 * in a signature returns to the following call. Another vendor's signature is dropped, because only that vendor can read it.
 */
function assistantMessage(blocks: readonly ContentBlock[], report: Report): ChatMessage | undefined {
  const texts: ChatContentPart[] = []
  const thoughts: string[] = []
  const calls: ChatToolCall[] = []
  let carried: ExtraContent | undefined
  let own: ExtraContent | undefined
  for (const block of blocks) {
    const cached = keptCacheControl(block, report)
    if (block.type === 'text') {
      for (const part of textPart(block['text'])) texts.push({ ...part, ...cached })
    } else if (block.type === 'compaction' && typeof block['content'] === 'string') {
      // The summary stands for turns that the client may have left out.
      for (const part of textPart(block['content'])) texts.push({ ...part, ...cached })
    } else if (block.type === 'tool_use') {
      // Chat calls have no place for it.
      if (cached.cache_control !== undefined) report('cache_control')
      calls.push(toolCall(block, carried))
      carried = undefined
    } else if (block.type === 'thinking') {
      if (typeof block['thinking'] === 'string' && block['thinking'] !== '') thoughts.push(block['thinking'])
      // State without a following call belongs to the message itself.
      own = carried ?? own
      carried = readCarriedState(block['signature'])
    } else report(`messages.${block.type}`)
  }
  own = carried ?? own
  const content = textOrParts(texts)
  if (content.length === 0 && calls.length === 0) return undefined
  return {
    role: 'assistant',
    content: content.length === 0 ? null : content,
    ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('\n') }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(own === undefined ? {} : { extra_content: own }),
  }
}

function toolCall(block: ContentBlock, extra: ExtraContent | undefined): ChatToolCall {
  const { id, name, input } = block
  return {
    id: typeof id === 'string' ? id : '',
    type: 'function',
    function: { name: typeof name === 'string' ? name : '', arguments: exactJsonText(input ?? {}) },
    ...(extra === undefined ? {} : { extra_content: extra }),
  }
}

/** Reports a dropped field of the request. */
export interface Report {
  (field: string): void
  /** Whether `cache_control` is kept. Default false: it is reported. */
  readonly keepsCacheControl?: boolean
}

/** Returns the `cache_control` of a block or tool if it is kept; else reports it. */
export function keptCacheControl(
  block: Readonly<Record<string, unknown>>,
  report: Report,
): { cache_control?: unknown } {
  const control = block['cache_control']
  if (!isJsonObject(control)) return {}
  if (report.keepsCacheControl === true) return { cache_control: control }
  report('cache_control')
  return {}
}

/** Returns the blocks of a content. Plain text is one block. Other members are skipped. */
function blocksOf(content: unknown): ContentBlock[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isBlock) : []
}

/**
 * Converts a block of a user turn or tool result to chat parts: text, images, PDF files; text files become text. Blocks
 * with no equivalent are reported.
 * @throws GatewayError `unsupported_parameter` for an image or file that only the dialect's own vendor could read.
 */
function userParts(block: ContentBlock, path: string, report: Report): ChatContentPart[] {
  const cached = keptCacheControl(block, report)
  const parts = plainParts(block, path, report)
  return cached.cache_control === undefined
    ? parts
    : parts.map((part, index) => (index === parts.length - 1 ? { ...part, ...cached } : part))
}

function plainParts(block: ContentBlock, path: string, report: Report): ChatContentPart[] {
  switch (block.type) {
    case 'text':
      return textPart(block['text'])
    case 'image':
      return [imagePart(block['source'], `${path}.source`)]
    case 'document':
      return documentParts(block, path, report)
    case 'search_result':
      return textPart(titled(block, textOf(blocksOf(block['content']))))
    case 'tool_reference':
      return loadedTool(block)
    default:
      report(`messages.${block.type}`)
      return []
  }
}

/** The dialect's own vendor inserts the definition here. It is already in `tools`, but an empty result would look like no match. */
function loadedTool({ tool_name: name }: ContentBlock): { type: 'text'; text: string }[] {
  return typeof name === 'string' ? textPart(`The tool ${name} can be called now.`) : []
}

/** Returns the text of blocks, separated by line breaks. */
function textOf(blocks: readonly ContentBlock[]): string {
  return blocks.flatMap((block) => textPart(block['text']).map(({ text }) => text)).join('\n')
}

function textPart(text: unknown): { type: 'text'; text: string }[] {
  return typeof text === 'string' && text !== '' ? [{ type: 'text', text }] : []
}

function imagePart(source: unknown, path: string): ChatContentPart {
  const { type, url, media_type: mediaType, data } = isJsonObject(source) ? source : {}
  if (type === 'url' && typeof url === 'string') return { type: 'image_url', image_url: { url } }
  if (type === 'base64' && typeof mediaType === 'string' && typeof data === 'string')
    return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } }
  throw unsupportedField(path, 'this model accepts images only as base64 or url.')
}

function documentParts(block: ContentBlock, path: string, report: Report): ChatContentPart[] {
  const { type, media_type: mediaType, data, content } = isJsonObject(block['source']) ? block['source'] : {}
  if (isJsonObject(block['citations'])) report('messages.citations')
  if (type === 'text') return textPart(titled(block, data))
  if (type === 'content') {
    const parts = blocksOf(content).flatMap((inner) => userParts(inner, `${path}.source.content`, report))
    return [...textPart(titled(block, '')), ...parts]
  }
  if (type !== 'base64' || typeof mediaType !== 'string' || typeof data !== 'string')
    throw unsupportedField(`${path}.source`, 'this model accepts documents only as base64, text or content.')
  const { title } = block
  const filename = typeof title === 'string' && title !== '' ? title : 'document.pdf'
  return [{ type: 'file', file: { file_data: `data:${mediaType};base64,${data}`, filename } }]
}

/** Prepends the title, the source and the caller's context to a text. */
function titled(block: ContentBlock, text: unknown): string {
  const { title, source, context } = block
  return [title, source, context, text].filter((line) => typeof line === 'string' && line !== '').join('\n')
}

function isBlock(value: unknown): value is ContentBlock {
  return isJsonObject(value) && typeof value['type'] === 'string'
}

/** A tool's result in chat: text for the tool message, and the rest for a user message. */
interface ToolResult {
  readonly message: ChatMessage
  readonly rest: readonly ChatContentPart[]
}

/**
 * Converts a `tool_result` block. Tool messages hold only text, so images and files go into the next user message,
 * after a line that names the tool call. Chat has no field for a failed tool, so the text reports it.
 * @throws GatewayError `unsupported_parameter` for an unsupported image or file.
 */
function toolResult(block: ContentBlock, path: string, report: Report): ToolResult {
  const cached = keptCacheControl(block, report)
  const callId = typeof block['tool_use_id'] === 'string' ? block['tool_use_id'] : ''
  const parts = blocksOf(block['content']).flatMap((inner) => userParts(inner, `${path}.content`, report))
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const media = parts.filter((part) => part.type !== 'text')
  if (media.length > 0 && texts.length === 0) texts.push('(The result follows in the next message.)')
  if (block['is_error'] === true) texts.unshift('The tool failed.')
  const text = texts.join('\n')
  // One mark replaces all marks: that of the whole result, else of its last text.
  const marks = [...parts.filter((part) => part.type === 'text'), cached].map(
    (marked: { cache_control?: unknown; type?: string }) => marked.cache_control,
  )
  const mark = marks.findLast((control) => control !== undefined)
  const content = mark === undefined ? text : [{ type: 'text' as const, text, cache_control: mark }]
  return {
    message: { role: 'tool', tool_call_id: callId, content },
    rest: media.length === 0 ? [] : [{ type: 'text', text: `Result of tool call ${callId}:` }, ...media],
  }
}
