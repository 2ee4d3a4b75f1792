import { Buffer } from 'node:buffer'
import type { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import { type CacheMark, cacheMarkOf } from '../../endpoints/cache-marks.ts'
import type { ChatContentPart, ThinkingBlock } from '../../endpoints/chat/chat-request.ts'
import { readDataUrl } from './data-url.ts'
import type { ModelAbilities } from './messages-abilities.ts'
import { invalidParameter, unsupportedParameter } from './parameter-errors.ts'

// Content blocks that requests carry (Anthropic, Messages reference, "content").

/** Text. The API rejects empty text. */
export interface TextBlock {
  type: 'text'
  text: string
}

/** Image formats that the API reads. */
type ImageMediaType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp'

/** An image as base64, or as a URL that the vendor fetches. */
interface ImageBlock {
  type: 'image'
  source: { type: 'base64'; media_type: ImageMediaType; data: string } | { type: 'url'; url: string }
}

/** A file: PDF, plain text, or other types if the model reads them. */
interface DocumentBlock {
  type: 'document'
  source:
    | { type: 'base64'; media_type: string; data: string }
    | { type: 'text'; media_type: string; data: string }
    | { type: 'url'; url: string }
  title?: string
}

/** A call of a tool by the model. `input` is an object, unlike the JSON text of a chat. */
export interface ToolUseBlock {
  type: 'tool_use'
  id: string
  name: string
  input: Record<string, unknown>
}

/** The result of a tool call. Without content, the result is empty. */
export interface ToolResultBlock {
  type: 'tool_result'
  tool_use_id: string
  content?: ToolResultContent[]
  is_error?: true
}

/** Caches the content before it. Used only if cache points are supported; the Messages dialect has no such block. */
export interface CachePointBlock {
  type: 'cache_point'
  ttl?: '1h'
  /** Member in which the caller set the mark. */
  field: CacheMark['field']
}

/** Content of a tool result. */
export type ToolResultContent = TextBlock | ImageBlock | DocumentBlock | CachePointBlock

/** Abilities of a model that decide how content is written. */
export type ContentAbilities = Pick<ModelAbilities, 'documentTypes' | 'fileUrls' | 'cachePoints'>

/** Content of a user turn; tool results come first. */
export type UserBlock = ToolResultContent | ToolResultBlock

/** Content of an assistant turn; the tool uses of a message come last. */
export type AssistantBlock = TextBlock | ToolUseBlock | ThinkingBlock | CachePointBlock

/** Content of a chat message. */
type ChatContent = string | ChatContentPart[] | null | undefined

const IMAGE_MEDIA_TYPES: ReadonlyMap<string, ImageMediaType> = new Map([
  ['image/jpeg', 'image/jpeg'],
  ['image/jpg', 'image/jpeg'],
  ['image/png', 'image/png'],
  ['image/gif', 'image/gif'],
  ['image/webp', 'image/webp'],
])

/** Returns a text block, or none without visible text, which the API rejects. */
export function textBlocks(text: unknown): TextBlock[] {
  return typeof text !== 'string' || text.trim() === '' ? [] : [{ type: 'text', text }]
}

/**
 * Converts content that may be only text (system and assistant messages), one block per part. A refusal counts as text.
 * @throws GatewayError `unsupported_parameter` naming a part of another type.
 */
export function textContent(
  content: ChatContent,
  path: string,
  abilities: ContentAbilities = {},
): (TextBlock | CachePointBlock)[] {
  if (!Array.isArray(content)) return textBlocks(content)
  return content.flatMap((part, index): (TextBlock | CachePointBlock)[] => {
    if (part.type === 'text') return [...textBlocks(part.text), ...cachePointsBehind(part, abilities)]
    if (part.type === 'refusal') return textBlocks(part.refusal)
    throw unsupportedPart(part.type, `${path}[${index}]`)
  })
}

/**
 * Converts the content of a user or tool message: text, images and files.
 * @throws GatewayError `unsupported_parameter` for a part type that the vendor lacks, `invalid_request` for an image or file
 *   that it cannot read, each naming the part.
 */
export function contentToWire(
  content: ChatContent,
  path: string,
  report: (field: string) => void,
  abilities: ContentAbilities = {},
): ToolResultContent[] {
  if (!Array.isArray(content)) return textBlocks(content)
  return content.flatMap((part, index): ToolResultContent[] => {
    const partPath = `${path}[${index}]`
    const cachePoints = cachePointsBehind(part, abilities)
    if (part.type === 'text') return [...textBlocks(part.text), ...cachePoints]
    if (part.type === 'image_url') {
      if (part.image_url.detail && part.image_url.detail !== 'auto') report('image_url.detail')
      return [imageBlock(part.image_url.url, `${partPath}.image_url.url`), ...cachePoints]
    }
    if (part.type === 'file') return [documentBlock(part.file, `${partPath}.file`, abilities), ...cachePoints]
    throw unsupportedPart(part.type, partPath)
  })
}

/** Returns a cache point for the mark of a part or tool, if the model has cache points. */
export function cachePointsBehind(part: object, { cachePoints }: ContentAbilities): CachePointBlock[] {
  const mark = cachePoints === true ? cacheMarkOf(part) : undefined
  if (mark === undefined) return []
  const { field, isLong } = mark
  return [{ type: 'cache_point', ...(isLong ? { ttl: '1h' } : {}), field }]
}

function imageBlock(url: string, path: string): ImageBlock {
  if (/^https?:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url } }
  const data = readDataUrl(url)
  if (data === undefined) {
    throw invalidParameter(path, 'An image must be an http(s) URL or a data URL in base64.')
  }
  const mediaType = IMAGE_MEDIA_TYPES.get(data.mediaType)
  if (mediaType === undefined) {
    const types = 'image/jpeg, image/png, image/gif and image/webp'
    throw invalidParameter(path, `The model reads only images of the types ${types}.`)
  }
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: data.base64 } }
}

function documentBlock(file: unknown, path: string, { documentTypes, fileUrls }: ContentAbilities): DocumentBlock {
  const { file_data: fileData, file_url: url, filename } = isJsonObject(file) ? file : {}
  const title = typeof filename === 'string' && filename !== '' ? { title: filename } : {}
  if (fileUrls === true && fileData === undefined && typeof url === 'string' && /^https?:\/\//i.test(url))
    return { type: 'document', source: { type: 'url', url }, ...title }
  if (typeof fileData !== 'string') {
    throw unsupportedParameter(path, 'The model accepts files only as file_data.')
  }
  const data = readDataUrl(fileData)
  const isTaken = data !== undefined && (documentTypes ?? MESSAGES_DOCUMENTS).has(data.mediaType)
  if (!isTaken) {
    const types =
      documentTypes === undefined ? 'PDF and text files' : `files of the types ${[...documentTypes].join(', ')}`
    const message = `The model accepts only ${types}, as a data URL: data:application/pdf;base64,…`
    throw invalidParameter(`${path}.file_data`, message)
  }
  const { mediaType, base64 } = data
  const isText = documentTypes === undefined && mediaType === PLAIN_TEXT
  return {
    type: 'document',
    source: isText
      ? { type: 'text', media_type: mediaType, data: Buffer.from(base64, 'base64').toString('utf8') }
      : { type: 'base64', media_type: mediaType, data: base64 },
    ...title,
  }
}

const PLAIN_TEXT = 'text/plain'

/** Files of the Messages API: PDF as base64, plain text as text (Anthropic API reference, "Create a Message", document). */
const MESSAGES_DOCUMENTS: ReadonlySet<string> = new Set(['application/pdf', PLAIN_TEXT])

function unsupportedPart(type: string, path: string): GatewayError {
  return unsupportedParameter(path, `The model does not support content of type ${JSON.stringify(type)} here.`)
}
