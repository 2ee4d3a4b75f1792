import { Buffer } from 'node:buffer'
import type { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import { type CacheMark, cacheMarkOf } from '../../endpoints/cache-marks.ts'
import type { ChatContentPart, ThinkingBlock } from '../../endpoints/chat/chat-request.ts'
import { readDataUrl } from './data-url.ts'
import type { ModelAbilities } from './messages-abilities.ts'
import { invalidParameter, unsupportedParameter } from './parameter-errors.ts'

// Content blocks that requests carry (Anthropic, Messages reference, "content").

/** Text; the API refuses empty ones. */
export interface TextBlock {
  type: 'text'
  text: string
}

/** The picture formats that the API reads. */
type ImageMediaType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp'

/** A picture, as base64 or as a URL that the vendor fetches. */
interface ImageBlock {
  type: 'image'
  source: { type: 'base64'; media_type: ImageMediaType; data: string } | { type: 'url'; url: string }
}

/** A file: PDF, plain text, and of other types where the model reads them. */
interface DocumentBlock {
  type: 'document'
  source:
    | { type: 'base64'; media_type: string; data: string }
    | { type: 'text'; media_type: string; data: string }
    | { type: 'url'; url: string }
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

/** What stands before it is cached. Only where cache points are asked for; the Messages dialect itself has no such block. */
export interface CachePointBlock {
  type: 'cache_point'
  ttl?: '1h'
  /** The member by which the caller asked for it. */
  field: CacheMark['field']
}

/** What a tool result may hold. */
export type ToolResultContent = TextBlock | ImageBlock | DocumentBlock | CachePointBlock

/** What of a model decides how content is written. */
export type ContentAbilities = Pick<ModelAbilities, 'documentTypes' | 'fileUrls' | 'cachePoints'>

/** Content of a user turn; tool results come first. */
export type UserBlock = ToolResultContent | ToolResultBlock

/** Content of an assistant turn; the tool uses of a message come last. */
export type AssistantBlock = TextBlock | ToolUseBlock | ThinkingBlock | CachePointBlock

/** Content of a chat message: what `content` may be. */
type ChatContent = string | ChatContentPart[] | null | undefined

const IMAGE_MEDIA_TYPES: ReadonlyMap<string, ImageMediaType> = new Map([
  ['image/jpeg', 'image/jpeg'],
  ['image/jpg', 'image/jpeg'],
  ['image/png', 'image/png'],
  ['image/gif', 'image/gif'],
  ['image/webp', 'image/webp'],
])

/** A text block; none for what is no text, or text without a visible character, which the API refuses. */
export function textBlocks(text: unknown): TextBlock[] {
  return typeof text !== 'string' || text.trim() === '' ? [] : [{ type: 'text', text }]
}

/**
 * Content that may hold text only (system and assistant messages), one block a part; a refusal counts as text.
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
 * Content of a user or tool message: text, pictures and files.
 * @throws GatewayError `unsupported_parameter` for a type of part the vendor lacks, `invalid_request` for a picture or file
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

/** A cache point for the mark at a part or tool, where the model has them. */
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
    throw invalidParameter(path, `The model reads images of the types ${types} only.`)
  }
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: data.base64 } }
}

function documentBlock(file: unknown, path: string, { documentTypes, fileUrls }: ContentAbilities): DocumentBlock {
  const { file_data: fileData, file_url: url, filename } = isJsonObject(file) ? file : {}
  const title = typeof filename === 'string' && filename !== '' ? { title: filename } : {}
  if (fileUrls === true && fileData === undefined && typeof url === 'string' && /^https?:\/\//i.test(url))
    return { type: 'document', source: { type: 'url', url }, ...title }
  if (typeof fileData !== 'string') {
    throw unsupportedParameter(path, 'The model takes a file as file_data only.')
  }
  const data = readDataUrl(fileData)
  const isTaken = data !== undefined && (documentTypes ?? MESSAGES_DOCUMENTS).has(data.mediaType)
  if (!isTaken) {
    const types =
      documentTypes === undefined ? 'PDF and text files' : `files of the types ${[...documentTypes].join(', ')}`
    const message = `The model takes ${types} only, as a data URL: data:application/pdf;base64,…`
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
