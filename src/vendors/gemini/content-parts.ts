import { GatewayError } from '../../core/errors.ts'
import type { ChatContentPart } from '../../endpoints/chat/chat-request.ts'
import type { GeminiPart } from './generate-content.ts'

/** Content of a chat message: what `content` may be. */
export type ChatContent = string | readonly ChatContentPart[] | null | undefined

/** Media types of URLs, which the vendor otherwise has to guess. */
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
 * The content of a message as parts; empty texts are left out, because the vendor refuses turns that say nothing.
 * @throws GatewayError `unsupported_parameter` for a part the vendor has no equivalent of, `invalid_request` for data that
 *   cannot be read, each naming the part.
 */
export function contentParts(content: ChatContent, path: string, report: (field: string) => void): GeminiPart[] {
  if (content === null || content === undefined) return []
  if (typeof content === 'string') return textParts(content)
  return content.flatMap((part, index) => contentPart(part, `${path}[${index}]`, report))
}

/** One text part; none for an empty text. */
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
      throw unsupportedPart((part as { type: string }).type, path)
  }
}

function imagePart(url: string, path: string): GeminiPart {
  if (!/^(?:https?|gs):\/\//i.test(url)) return { inlineData: readDataUrl(url, path) }
  const extension = /\.([a-z]+)(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase()
  const mimeType = TYPES_BY_EXTENSION.get(extension ?? '')
  return { fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: url } }
}

function audioPart(audio: { data?: unknown; format?: unknown } | undefined, path: string): GeminiPart {
  const { data, format } = audio ?? {}
  if (typeof data !== 'string' || data === '' || typeof format !== 'string' || !/^[\w.+-]+$/.test(format)) {
    throw new GatewayError('invalid_request', { message: `${path}: data and format are required.`, param: path })
  }
  return { inlineData: { mimeType: `audio/${format === 'pcm16' ? 'pcm' : format.toLowerCase()}`, data } }
}

function filePart(file: { file_data?: unknown } | undefined, path: string): GeminiPart {
  const data = file?.file_data
  if (typeof data !== 'string') {
    throw new GatewayError('unsupported_parameter', {
      message: 'The model takes a file as file_data only.',
      param: `${path}.file_id`,
    })
  }
  return { inlineData: readDataUrl(data, `${path}.file_data`) }
}

function readDataUrl(url: string, path: string): { mimeType: string; data: string } {
  const comma = url.indexOf(',')
  const head = comma === -1 ? '' : url.slice(0, comma).toLowerCase()
  const [scheme = '', ...parameters] = head.split(';')
  const mimeType = scheme.slice('data:'.length).trim()
  const data = url.slice(comma + 1)
  if (!scheme.startsWith('data:') || mimeType === '' || parameters.at(-1)?.trim() !== 'base64' || data === '') {
    throw new GatewayError('invalid_request', {
      message: `${path}: must be a URL, or a data URL in base64 such as data:image/png;base64,…`,
      param: path,
    })
  }
  return { mimeType, data }
}

function unsupportedPart(type: string, path: string): GatewayError {
  return new GatewayError('unsupported_parameter', {
    message: `${path}: the model does not support content of type ${JSON.stringify(type)}.`,
    param: path,
  })
}
