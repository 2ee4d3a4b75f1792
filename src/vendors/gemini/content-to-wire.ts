import type { ChatContentPart } from '../../endpoints/chat/chat-request.ts'
import { readDataUrl } from '../shared/data-url.ts'
import { invalidParameter, unsupportedParameter } from '../shared/parameter-errors.ts'
import type { GeminiPart } from './api-request.ts'
import { isVendorFile } from './vendor-files.ts'

/** Content of a chat message. */
export type ChatContent = string | readonly ChatContentPart[] | null | undefined

/** Media types of URLs, which the vendor would otherwise have to guess. */
const TYPES_BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['gif', 'image/gif'],
  ['bmp', 'image/bmp'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['pdf', 'application/pdf'],
])

/**
 * Converts the content of a message to parts. Empty texts are omitted, because the vendor rejects empty turns.
 * @throws GatewayError `unsupported_parameter` for a part without an equivalent, `invalid_request` for malformed data, each
 *   naming the part.
 */
export function contentToWire(content: ChatContent, path: string, report: (field: string) => void): GeminiPart[] {
  if (content === null || content === undefined) return []
  if (typeof content === 'string') return textParts(content)
  return content.flatMap((part, index) => contentPart(part, `${path}[${index}]`, report))
}

/** Returns a text part, or none for an empty text. */
export function textParts(text: string | null | undefined): GeminiPart[] {
  return typeof text === 'string' && text !== '' ? [{ text }] : []
}

function contentPart(part: ChatContentPart, path: string, report: (field: string) => void): GeminiPart[] {
  switch (part.type) {
    case 'text':
      return textParts(part.text)
    case 'refusal':
      return textParts(part.refusal)
    case 'image_url': {
      const { url, detail } = part.image_url
      if ((detail ?? 'auto') !== 'auto') report('image_url.detail')
      return [imagePart(url, `${path}.image_url.url`)]
    }
    case 'input_audio':
      return [audioPart(part.input_audio, `${path}.input_audio`)]
    case 'file':
      return [filePart(part.file, `${path}.file`)]
    default:
      throw unsupportedParameter(
        path,
        `${path}: the model does not support content of type ${JSON.stringify((part as { type: string }).type)}.`,
      )
  }
}

function imagePart(url: string, path: string): GeminiPart {
  return /^(?:https?|gs):\/\//i.test(url) ? remoteFile(url, path) : inlineData(url, path)
}

function remoteFile(url: string, path: string): GeminiPart {
  if (isVendorFile(url))
    throw unsupportedParameter(path, `${path}: files stored at the vendor cannot be used; send the file as data.`)
  const extension = /\.([a-z]+)(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase()
  const mimeType = TYPES_BY_EXTENSION.get(extension ?? '')
  return { fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: url } }
}

function audioPart(audio: { data?: unknown; format?: unknown } | undefined, path: string): GeminiPart {
  const { data, format } = audio ?? {}
  if (typeof data !== 'string' || data === '' || typeof format !== 'string' || !/^[\w.+-]+$/.test(format)) {
    throw invalidParameter(path, `${path}: data and format are required.`)
  }
  return { inlineData: { mimeType: `audio/${format === 'pcm16' ? 'pcm' : format.toLowerCase()}`, data } }
}

function filePart(file: { file_data?: unknown; file_url?: unknown } | undefined, path: string): GeminiPart {
  const { file_data: data, file_url: url } = file ?? {}
  // Other schemes, such as `gs:`, are read with the operator's rights.
  if (data === undefined && typeof url === 'string' && /^https?:\/\//i.test(url))
    return remoteFile(url, `${path}.file_url`)
  if (typeof data !== 'string') {
    throw unsupportedParameter(`${path}.file_id`, 'The model accepts files only as file_data.')
  }
  return inlineData(data, `${path}.file_data`)
}

function inlineData(url: string, path: string): GeminiPart {
  const { mediaType, base64 } = readDataUrl(url) ?? {}
  if (base64 === undefined || mediaType === undefined || mediaType === '') {
    const example = 'data:image/png;base64,…'
    throw invalidParameter(path, `${path}: must be a URL, or a data URL in base64 such as ${example}`)
  }
  return { inlineData: { mimeType: mediaType, data: base64 } }
}
