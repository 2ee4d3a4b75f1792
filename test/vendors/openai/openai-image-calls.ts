import { Buffer } from 'node:buffer'
import { type CatalogModel, defineModel } from '../../../src/catalog/model.ts'
import { OPENAI_IMAGE_MODELS } from '../../../src/catalog/models/openai-models.ts'
import type { ImageEditRequest } from '../../../src/endpoints/image-edits/image-edit-request.ts'
import type { OpenAIImageRequest } from '../../../src/endpoints/images/openai/openai-image-request.ts'
import type { VendorCall, WireRequest } from '../../../src/vendors/vendor.ts'
import type { Form } from '../../../src/wire/write-form.ts'
import { NOW_MS } from '../shared/vendor-call.ts'

/** The rows of the catalog, and one of a host that says nothing about its abilities. */
export function modelRow(id: string): CatalogModel {
  const row = OPENAI_IMAGE_MODELS.find((definition) => definition.id === id)
  return defineModel(row ?? { id, kind: ['image', 'image_edit'], vendor: 'openai', upstream: 'own-pictures' })
}

/** A call whose request came as this JSON. */
export function jsonCall<Request extends OpenAIImageRequest | ImageEditRequest>(text: string): VendorCall<Request> {
  const request = JSON.parse(text) as Request
  return { ...callOf(request), bytes: Buffer.from(text) }
}

/** A call whose request came as a form. */
export function formCall(form: Form): VendorCall<ImageEditRequest> {
  const fields = form.flatMap((part) => (part.kind === 'field' ? [[part.name, part.value] as const] : []))
  const { n, ...texts } = Object.fromEntries(fields) as Record<string, string>
  const request = { ...texts, ...(n === undefined ? {} : { n: Number(n) }), images: [], form }
  return callOf({ ...request, model: texts['model'] ?? '', prompt: texts['prompt'] ?? '' })
}

/** The bytes of a wire request's body. */
export function bodyBytes(body: WireRequest['body']): Buffer {
  if (typeof body === 'string') return Buffer.from(body)
  return body instanceof Uint8Array ? Buffer.from(body) : Buffer.concat(body)
}

function callOf<Request extends OpenAIImageRequest | ImageEditRequest>(request: Request): VendorCall<Request> {
  return {
    request,
    bytes: undefined,
    model: modelRow(request.model),
    publicModel: request.model,
    apiKey: 'test-key-0123456789',
    stream: request.stream === true,
    nowMs: NOW_MS,
  }
}
