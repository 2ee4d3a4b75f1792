import { isJsonObject } from '../../core/json.ts'
import { isInline, type MediaInput, type MediaKind } from '../media-input.ts'
import { inputItems, type ResponsesRequest } from './responses-request.ts'
import { declared, isRunByVendor } from './responses-surcharges.ts'

/** Vendor tools that add texts of unknown length to the prompt. */
const READING_TOOLS: ReadonlySet<unknown> = new Set(['file_search', 'mcp', 'code_interpreter'])

/** Returns the inputs of a request other than text: images and files in messages and tool outputs, and input of reading tools. */
export function responsesMedia(request: ResponsesRequest): readonly MediaInput[] {
  const media: MediaInput[] = []
  for (const item of inputItems(request)) {
    for (const member of ['content', 'output']) addParts(media, item[member])
    if (item['type'] === 'image_generation_call') media.push(located('image', item['result']))
  }
  for (const { type } of declared(request)) if (READING_TOOLS.has(type)) media.push({ kind: 'document' })
  return media
}

/** Whether tools of the vendor add texts to the prompt that only its report counts. */
export function hasUnreportedInput(request: ResponsesRequest): boolean {
  return declared(request).some(isRunByVendor)
}

function addParts(media: MediaInput[], parts: unknown): void {
  if (isJsonObject(parts)) addPart(media, parts)
  else if (Array.isArray(parts)) for (const part of parts) if (isJsonObject(part)) addPart(media, part)
}

function addPart(media: MediaInput[], part: Readonly<Record<string, unknown>>): void {
  const { type, image_url: url, file_data: data, detail } = part
  const closely = typeof detail === 'string' ? { detail } : {}
  if (type === 'input_file') media.push({ ...located('document', data), ...closely })
  else if (type === 'input_image' || typeof url === 'string') media.push({ ...located('image', url), ...closely })
}

/** A `data:` URL or base64 is present in the request. An address or an id is not. */
function located(kind: MediaKind, data: unknown): MediaInput {
  return typeof data === 'string' && data !== '' && isInline(data) ? { kind, data } : { kind }
}
