import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatContentPart } from '../chat/chat-request.ts'
import type { ContentBlock } from './messages-request.ts'

/** Names a field of the request that is left out. */
export type Report = (field: string) => void

/** The blocks of a content; text alone is one block. Members that are no blocks are passed over. */
export function blocksOf(content: unknown): ContentBlock[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isBlock) : []
}

/**
 * A block of a user turn or a tool's result as parts of a chat message: text, pictures, PDF files; files of text as text. Blocks
 * with no equivalent are reported.
 * @throws GatewayError `unsupported_parameter` for a picture or file that only the dialect's own vendor could read.
 */
export function userParts(block: ContentBlock, path: string, report: Report): ChatContentPart[] {
  if (isJsonObject(block['cache_control'])) report('cache_control')
  switch (block.type) {
    case 'text':
      return textPart(block['text'])
    case 'image':
      return [imagePart(block['source'], `${path}.source`)]
    case 'document':
      return documentParts(block, path, report)
    case 'search_result':
      return textPart(titled(block, textOf(blocksOf(block['content']))))
    default:
      report(`messages.${block.type}`)
      return []
  }
}

/** The text of blocks, one below the other. */
export function textOf(blocks: readonly ContentBlock[]): string {
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
  throw unreadable('a picture', 'base64 or url', path)
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
    throw unreadable('a document', 'base64, text or content', `${path}.source`)
  const { title } = block
  const filename = typeof title === 'string' && title !== '' ? title : 'document.pdf'
  return [{ type: 'file', file: { file_data: `data:${mediaType};base64,${data}`, filename } }]
}

/** A text below its title, its source and what the caller says about it. */
function titled(block: ContentBlock, text: unknown): string {
  const { title, source, context } = block
  return [title, source, context, text].filter((line) => typeof line === 'string' && line !== '').join('\n')
}

function unreadable(what: string, kinds: string, path: string): GatewayError {
  return new GatewayError('unsupported_parameter', {
    message: `${path}: this model takes ${what} only as ${kinds}.`,
    param: path,
  })
}

function isBlock(value: unknown): value is ContentBlock {
  return isJsonObject(value) && typeof value['type'] === 'string'
}
