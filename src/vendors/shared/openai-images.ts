import type { Buffer } from 'node:buffer'
import type { CatalogModel } from '../../catalog/model.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { IMAGE_NAME, type ImageEditRequest } from '../../endpoints/image-edits/image-edit-request.ts'
import {
  AUTO_SIZE,
  losesBackground,
  losesQuality,
  type OpenAIImageRequest,
  type PictureOptions,
  takesAuto,
  vendorQuality,
} from '../../endpoints/images/openai/openai-image-request.ts'
import { encodeForm } from '../../wire/encode-form.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import { editMembers, type MemberChanges } from '../../wire/json-edits.ts'
import type { Form, FormPart } from '../../wire/multipart.ts'
import type { ImageOperation, VendorCall, VendorFailure, WireRequest } from '../vendor.ts'
import { bearerHeaders, type KeyHeaders } from './bearer-headers.ts'
import { type OperationPath, pathFor } from './openai-chat-dialect.ts'
import { OpenAIImagesPassThrough, passPictures } from './openai-images-pass-through.ts'

/** The differences between servers of OpenAI's image dialect. */
export interface OpenAIImagesDialect {
  /** Path below the vendor's origin. */
  readonly path: OperationPath
  /** Headers of a call. Default: a bearer key. */
  readonly headers?: KeyHeaders | undefined
  /** Reads an error object inside the stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/** Creates text to image for a server of OpenAI's dialect. */
export function openaiImages(dialect: OpenAIImagesDialect): ImageOperation<OpenAIImageRequest> {
  return { toWire: (call) => picturesToWire(call, dialect), ...answers(dialect) }
}

/** Creates image edits for a server of OpenAI's dialect. */
export function openaiImageEdits(dialect: OpenAIImagesDialect): ImageOperation<ImageEditRequest> {
  return { toWire: (call) => editToWire(call, dialect), ...answers(dialect) }
}

function answers({
  streamFailure,
}: OpenAIImagesDialect): Pick<Required<ImageOperation<{ readonly n?: number | null }>>, 'fromWire' | 'stream'> {
  return {
    fromWire: (chunks, call) => passPictures(chunks, call),
    stream: (call) =>
      new OpenAIImagesPassThrough({ pictures: call.request.n ?? 1, streamFailure, isBilled: call.isBilled }),
  }
}

/**
 * Writes a request in JSON: the caller's bytes with the model id replaced and unsupported fields changed. It is serialized again
 * only if members are repeated or have escaped names.
 */
function picturesToWire(call: VendorCall<PictureOptions>, dialect: OpenAIImagesDialect): WireRequest {
  const { changes, dropped } = pictureFields(call.request, call.model)
  const json = new Map([...changes].map(([name, value]) => [name, jsonText(value)]))
  return {
    path: pathFor(dialect.path, call.model.upstream),
    headers: (dialect.headers ?? bearerHeaders)(call.apiKey, accepted(call)),
    body: edited(call.bytes, json) ?? rewritten(call, changes),
    dropped,
  }
}

/** Writes an edit as received. A form keeps the order and types of its parts, under the names that the API reads. */
function editToWire(call: VendorCall<ImageEditRequest>, dialect: OpenAIImagesDialect): WireRequest {
  const { form } = call.request
  if (form === undefined) return picturesToWire(call, dialect)
  const fields = pictureFields(call.request, call.model)
  const { contentType, chunks } = encodeForm(changedForm(form, fields))
  const [, , ...headers] = (dialect.headers ?? bearerHeaders)(call.apiKey, accepted(call))
  return {
    path: pathFor(dialect.path, call.model.upstream),
    headers: ['content-type', contentType, ...headers],
    body: chunks,
    dropped: fields.dropped,
  }
}

function edited(given: Uint8Array | undefined, changes: MemberChanges): Buffer | undefined {
  const bytes = given && asBuffer(given)
  return bytes && editMembers(bytes, changes)?.apply(bytes)
}

/** Renames images to the names that OpenAI's API reads: `image` for one, `image[]` for each of several. */
function changedForm(form: Form, { changes }: PictureFields): Form {
  const imageName = form.filter(({ name }) => IMAGE_NAME.test(name)).length > 1 ? 'image[]' : 'image'
  const parts = form.flatMap((part): FormPart[] => {
    if (part.kind === 'file') return [IMAGE_NAME.test(part.name) ? { ...part, name: imageName } : part]
    if (!changes.has(part.name)) return [part]
    const value = changes.get(part.name)
    return value === undefined ? [] : [{ ...part, value }]
  })
  for (const [name, value] of changes) {
    if (value !== undefined && !form.some((part) => part.name === name)) parts.push({ kind: 'field', name, value })
  }
  return parts
}

function accepted(call: VendorCall<unknown>): 'text/event-stream' | 'application/json' {
  return call.stream ? 'text/event-stream' : 'application/json'
}

function jsonText(value: string | undefined): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value)
}

function rewritten(call: VendorCall<PictureOptions>, changes: PictureFields['changes']): string {
  const parsed = call.bytes === undefined ? undefined : parseVendorJson(asBuffer(call.bytes).toString('utf8'))
  const body: Record<string, unknown> = { ...(isJsonObject(parsed) ? parsed : call.request) }
  for (const [name, value] of changes) {
    if (value === undefined) delete body[name]
    else body[name] = value
  }
  return JSON.stringify(body)
}

/** Changes of a request's fields for the vendor. */
export interface PictureFields {
  /** New values by name, or `undefined` to drop a field. */
  readonly changes: ReadonlyMap<string, string | undefined>
  /** Fields set by the caller that have no effect at this model. */
  readonly dropped: readonly string[]
}

/**
 * Returns the required changes: the model id, renamed qualities, and fields that the vendor rejects although the API specification
 * allows them. Callers get `b64_json` by default, so it is requested explicitly if the vendor would choose. A model without
 * abilities gets the caller's fields unchanged.
 */
export function pictureFields(options: PictureOptions, model: CatalogModel): PictureFields {
  const changes = new Map<string, string | undefined>([['model', model.upstream]])
  const dropped: string[] = []
  const { image } = model
  if (image === undefined) return { changes, dropped }
  const { size, quality, response_format: format } = options
  if (size === AUTO_SIZE && !takesAuto(image)) changes.set('size', undefined)
  const known = vendorQuality(quality, image)
  if (quality !== undefined && quality !== null && known !== quality) changes.set('quality', known)
  if (losesQuality(quality, image)) dropped.push('quality')
  if (losesBackground(options, image)) changes.set('background', undefined)
  if (image.answersWithUrls === true) {
    if (format === undefined || format === null) changes.set('response_format', 'b64_json')
  } else if (format !== undefined) {
    changes.set('response_format', undefined)
    if (format === 'url') dropped.push('response_format')
  }
  return { changes, dropped }
}
