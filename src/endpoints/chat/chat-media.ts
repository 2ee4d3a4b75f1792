import { isJsonObject } from '../../core/json.ts'
import { isInline, type MediaInput, type MediaKind } from '../media-input.ts'
import type { ChatRequest } from './chat-request.ts'

type Part = Readonly<Record<string, unknown>>

/** Longest spoken answer that a conversation may refer to, in tokens (OpenAI, output limit of its audio models). */
const SPOKEN_ANSWER_TOKENS = 16_384

/** Returns the inputs of a chat other than text, including part types of other vendors. */
export function chatMedia({ messages }: ChatRequest): readonly MediaInput[] {
  const media: MediaInput[] = []
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!
    const { content } = message
    const { audio } = message as unknown as Part
    const isSpoken = isJsonObject(audio) && typeof audio['id'] === 'string'
    if (!Array.isArray(content) && !isSpoken) continue
    if (Array.isArray(content))
      for (const part of content) for (const input of partMedia(part as Part)) media.push(input)
    if (isSpoken) media.push({ kind: 'audio', maxTokens: SPOKEN_ANSWER_TOKENS })
  }
  return media
}

function partMedia(part: Part): MediaInput[] {
  const { type } = part
  switch (type) {
    case 'text':
    case 'refusal':
      return []
    case 'image_url': {
      const image = asObject(part['image_url'])
      const detail = image['detail'] ?? part['detail']
      return [{ ...located('image', image['url']), ...(typeof detail === 'string' ? { detail } : {}) }]
    }
    case 'input_audio': {
      const { data, format } = asObject(part['input_audio'])
      const sound = located('audio', data)
      const isTyped = typeof format === 'string' && sound.data !== undefined && !/^data:/i.test(sound.data)
      return [isTyped ? { ...sound, mediaType: `audio/${format.toLowerCase()}` } : sound]
    }
    case 'file': {
      const { file_data: data } = asObject(part['file'])
      return [located('document', data)]
    }
    default:
      return otherMedia(part, kindOf(String(type)))
  }
}

function kindOf(type: string): MediaKind {
  return (['image', 'audio', 'video'] as const).find((kind) => type.includes(kind)) ?? 'document'
}

/** Parts of other vendors: `video_url`, `document_url`, `input_file`, lists of frames. Their texts count as text. */
function otherMedia(part: Part, kind: MediaKind): MediaInput[] {
  return Object.entries(part).flatMap(([name, value]): MediaInput[] => {
    if (typeof value === 'string') {
      if (/(?:^|_)(?:file_id|file_uri)$/.test(name)) return [{ kind }]
      return /^[a-z][a-z0-9+.-]*:\/\/|^data:/i.test(value.slice(0, 32)) ? [located(kind, value)] : []
    }
    if (Array.isArray(value)) return value.flatMap((item) => otherMedia(asItem(item), kind))
    return isJsonObject(value) ? otherMedia(value, kind) : []
  })
}

function asItem(value: unknown): Part {
  return typeof value === 'string' ? { item: value } : asObject(value)
}

/** A `data:` URL or base64 is present in the request. An address or an id is not. */
function located(kind: MediaKind, data: unknown): MediaInput {
  return typeof data === 'string' && data !== '' && isInline(data) ? { kind, data } : { kind }
}

function asObject(value: unknown): Part {
  // Some vendors accept a bare address where others expect an object with it.
  return isJsonObject(value) ? value : { url: value, data: value }
}
