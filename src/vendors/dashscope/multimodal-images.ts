import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { MultimodalImageRequest } from '../../endpoints/images/multimodal/multimodal-image-request.ts'
import { bearerHeaders } from '../shared/bearer-headers.ts'
import { joinChunks } from '../shared/json-bytes.ts'
import type { ImageOperation, RelayedBody } from '../vendor.ts'
import { multimodalRequest } from './multimodal-request.ts'

/** Pictures by DashScope's native API, which waits for them: there is no task to poll (Qwen-Image, API reference). */
export function multimodalImages(path: string): ImageOperation<MultimodalImageRequest> {
  return {
    toWire: (call) => ({
      path,
      headers: bearerHeaders(call.apiKey, 'application/json'),
      body: multimodalRequest(call),
      dropped: [],
    }),
    fromWire: relayedAnswer,
  }
}

/**
 * The answer as it came, with what the vendor says about the number of pictures, else with their number. Undefined when
 * there is no picture, unless the vendor says itself that it made none: an error in disguise is read by `errorFrom`.
 */
function relayedAnswer(chunks: readonly Uint8Array[]): RelayedBody | undefined {
  const body = parseVendorJson(joinChunks(chunks).toString('utf8'))
  if (!isJsonObject(body) || !isJsonObject(body['output'])) return undefined
  const { choices } = body['output']
  if (!Array.isArray(choices)) return undefined
  const pictures = choices.reduce<number>((sum, choice) => sum + picturesOf(choice), 0)
  const reported = reportedImages(body['usage'])
  if (pictures === 0) return reported === 0 ? { chunks, usage: { images: 0 }, isRefusal: true } : undefined
  return { chunks, usage: { images: reported ?? pictures } }
}

/** Several pictures come as blocks of one choice or as one choice each. */
function picturesOf(choice: unknown): number {
  const message = isJsonObject(choice) ? choice['message'] : undefined
  const content = isJsonObject(message) ? message['content'] : undefined
  if (!Array.isArray(content)) return 0
  return content.filter((block) => isJsonObject(block) && typeof block['image'] === 'string' && block['image'] !== '')
    .length
}

/** `image_count`, which newer models call `output_image_count`. A number is passed on, plausible or not. */
function reportedImages(usage: unknown): number | undefined {
  if (!isJsonObject(usage)) return undefined
  const count = usage['image_count'] ?? usage['output_image_count']
  return typeof count === 'number' ? count : undefined
}
