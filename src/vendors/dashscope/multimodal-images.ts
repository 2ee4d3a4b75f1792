import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import {
  type MultimodalImageRequest,
  pictureSize,
  unsupportedParameters,
} from '../../endpoints/images/multimodal/multimodal-image-request.ts'
import { asBuffer, joinChunks } from '../../wire/join-chunks.ts'
import { CLOSE_BRACE, skipBlanks } from '../../wire/json-cursor.ts'
import { ByteEdits } from '../../wire/json-edits.ts'
import { findMembers } from '../../wire/json-spans.ts'
import { bearerHeaders } from '../shared/bearer-headers.ts'
import type { AnswerBody, ImageOperation, VendorCall } from '../vendor.ts'

const EDITED = ['model', 'parameters'] as const

/** Image generation through DashScope's native API, synchronously, without a task (Qwen-Image, API reference). */
export function multimodalImages(path: string): ImageOperation<MultimodalImageRequest> {
  return {
    toWire: (call) => ({
      path,
      headers: bearerHeaders(call.apiKey, 'application/json'),
      body: multimodalRequest(call),
      dropped: [],
    }),
    fromWire: passPictures,
  }
}

/**
 * Passes the answer through with the vendor's number of images, else with the counted number. Returns `undefined` without an image,
 * unless the vendor reports that it generated none: `errorFrom` reads an error in a 2xx.
 */
function passPictures(chunks: readonly Uint8Array[]): AnswerBody | undefined {
  const body = parseVendorJson(joinChunks(chunks).toString('utf8'))
  if (!isJsonObject(body) || !isJsonObject(body['output'])) return undefined
  const { choices } = body['output']
  if (!Array.isArray(choices)) return undefined
  const pictures = choices.reduce<number>((sum, choice) => sum + picturesOf(choice), 0)
  const reported = reportedImages(body['usage'])
  if (pictures === 0) return reported === 0 ? { chunks, usage: { images: 0 }, isRefusal: true } : undefined
  return { chunks, usage: { images: reported ?? pictures } }
}

/** Several images are blocks of one choice or one choice each. */
function picturesOf(choice: unknown): number {
  const message = isJsonObject(choice) ? choice['message'] : undefined
  const content = isJsonObject(message) ? message['content'] : undefined
  if (!Array.isArray(content)) return 0
  return content.filter((block) => isJsonObject(block) && typeof block['image'] === 'string' && block['image'] !== '')
    .length
}

/** Returns `image_count`, which newer models call `output_image_count`, even if implausible. */
function reportedImages(usage: unknown): number | undefined {
  if (!isJsonObject(usage)) return undefined
  const count = usage['image_count'] ?? usage['output_image_count']
  return typeof count === 'number' ? count : undefined
}

/**
 * Builds the body for the vendor: the caller's request with the vendor's model id. Text to image always gets a `parameters.size`,
 * because the vendor's default differs from the billed size. Parameters that the model does not support are dropped, as they have
 * no effect. The caller's bytes are kept if they are unambiguous.
 */
function multimodalRequest(call: VendorCall<MultimodalImageRequest>): Uint8Array | string {
  const { request, model, bytes } = call
  const unsupported = unsupportedParameters(request, model.image)
  if (unsupported.length > 0) {
    const kept = Object.entries(request.parameters ?? {}).filter(([name]) => !unsupported.includes(name))
    return JSON.stringify({ ...request, parameters: Object.fromEntries(kept), model: model.upstream })
  }
  const size = request.parameters?.size === undefined ? pictureSize(request, model) : undefined
  const edited = bytes === undefined ? undefined : editedBytes(asBuffer(bytes), request, model.upstream, size)
  if (edited !== undefined) return edited
  const parameters = size === undefined ? {} : { parameters: { ...request.parameters, size } }
  return JSON.stringify({ ...request, ...parameters, model: model.upstream })
}

function editedBytes(
  bytes: Buffer,
  request: MultimodalImageRequest,
  upstream: string,
  size: string | undefined,
): Buffer | undefined {
  const { model, parameters: given } = findMembers(bytes, EDITED)
  // A name with escapes is not found here, so a second member must not be added.
  if (model === undefined || (given === undefined) !== (request.parameters === undefined)) return undefined
  // Null members are not in the parsed request.
  if (bytes.includes('null')) return undefined
  const added = size !== undefined && given === undefined ? `,"parameters":${JSON.stringify({ size })}` : ''
  const edits = [{ ...model, text: `${JSON.stringify(upstream)}${added}` }]
  if (size !== undefined && given !== undefined) {
    const inside = given.start + 1
    const comma = bytes[skipBlanks(bytes, inside)] === CLOSE_BRACE ? '' : ','
    edits.push({ start: inside, end: inside, text: `"size":${JSON.stringify(size)}${comma}` })
  }
  const inOrder = new ByteEdits()
  edits.sort((one, other) => one.start - other.start)
  for (const { start, end, text } of edits) inOrder.replace(start, end, Buffer.from(text))
  return inOrder.apply(bytes)
}
