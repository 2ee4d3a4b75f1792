import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatContentPart } from '../../endpoints/chat/chat-request.ts'
import type { DocumentBlock, ImageBlock, ImageMediaType, TextBlock } from './messages-blocks.ts'

/** Content of a chat message: what `content` may be. */
export type ChatContent = string | ChatContentPart[] | null | undefined

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
export function textContent(content: ChatContent, path: string): TextBlock[] {
  if (!Array.isArray(content)) return textBlocks(content)
  return content.flatMap((part, index) => {
    if (part.type === 'text') return textBlocks(part.text)
    if (part.type === 'refusal') return textBlocks(part.refusal)
    throw unsupportedPart(part.type, `${path}[${index}]`)
  })
}

/**
 * Content of a user or tool message: text, pictures and PDF files.
 * @throws GatewayError `unsupported_parameter` for a type of part the vendor lacks, `invalid_request` for a picture or file
 *   that it cannot read, each naming the part.
 */
export function mixedContent(
  content: ChatContent,
  path: string,
  report: (field: string) => void,
): (TextBlock | ImageBlock | DocumentBlock)[] {
  if (!Array.isArray(content)) return textBlocks(content)
  return content.flatMap((part, index): (TextBlock | ImageBlock | DocumentBlock)[] => {
    const partPath = `${path}[${index}]`
    if (part.type === 'text') return textBlocks(part.text)
    if (part.type === 'image_url') {
      if (part.image_url.detail && part.image_url.detail !== 'auto') report('image_url.detail')
      return [imageBlock(part.image_url.url, `${partPath}.image_url.url`)]
    }
    if (part.type === 'file') return [documentBlock(part.file, `${partPath}.file`)]
    throw unsupportedPart(part.type, partPath)
  })
}

function imageBlock(url: string, path: string): ImageBlock {
  if (isWebUrl(url)) return { type: 'image', source: { type: 'url', url } }
  const data = readDataUrl(url)
  if (data === undefined) {
    throw new GatewayError('invalid_request', {
      message: 'An image must be an http(s) URL or a data URL in base64.',
      param: path,
    })
  }
  const mediaType = IMAGE_MEDIA_TYPES.get(data.mediaType)
  if (mediaType === undefined) {
    throw new GatewayError('invalid_request', {
      message: 'The model reads images of the types image/jpeg, image/png, image/gif and image/webp only.',
      param: path,
    })
  }
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: data.base64 } }
}

function documentBlock(file: unknown, path: string): DocumentBlock {
  const { file_data: fileData, filename } = isJsonObject(file) ? file : {}
  if (typeof fileData !== 'string') {
    throw new GatewayError('unsupported_parameter', {
      message: 'The model takes a file as file_data only.',
      param: path,
    })
  }
  const data = readDataUrl(fileData)
  if (data?.mediaType !== 'application/pdf') {
    throw new GatewayError('invalid_request', {
      message: 'The model takes PDF files only, as a data URL: data:application/pdf;base64,…',
      param: `${path}.file_data`,
    })
  }
  return {
    type: 'document',
    source: { type: 'base64', media_type: 'application/pdf', data: data.base64 },
    ...(typeof filename === 'string' && filename !== '' ? { title: filename } : {}),
  }
}

function isWebUrl(url: string): boolean {
  return /^https?:\/\//i.test(url)
}

function readDataUrl(url: string): { mediaType: string; base64: string } | undefined {
  const comma = url.indexOf(',')
  if (comma === -1 || url.slice(0, 5).toLowerCase() !== 'data:') return undefined
  const [mediaType = '', ...parameters] = url.slice(5, comma).toLowerCase().split(';')
  const base64 = url.slice(comma + 1)
  if (parameters.at(-1)?.trim() !== 'base64' || base64 === '') return undefined
  return { mediaType: mediaType.trim(), base64 }
}

function unsupportedPart(type: string, path: string): GatewayError {
  return new GatewayError('unsupported_parameter', {
    message: `The model does not support content of type ${JSON.stringify(type)} here.`,
    param: path,
  })
}
