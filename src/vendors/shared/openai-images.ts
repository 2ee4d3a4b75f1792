import { Buffer } from 'node:buffer'
import type { CatalogModel } from '../../catalog/model.ts'
import { isJsonObject, objectOf, parseVendorJson } from '../../core/json.ts'
import type { Usage, UsageField } from '../../core/usage.ts'
import { type EventLines, PassThroughStream } from '../../endpoints/event-reader.ts'
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
import { asBuffer } from '../../wire/chunks.ts'
import { bytesBetween, textBetween } from '../../wire/json-cursor.ts'
import { editMembers, type JsonMember, type MemberChanges, outlineMembers } from '../../wire/json-edits.ts'
import { sseData, sseEvent } from '../../wire/sse.ts'
import { encodeForm, type Form, type FormPart } from '../../wire/write-form.ts'
import type { AnswerBody, ImageOperation, VendorCall, VendorFailure, WireRequest } from '../vendor.ts'
import type { MutableUsage } from './openai-chat-answer.ts'
import { type OperationPath, pathFor } from './openai-chat-dialect.ts'
import { tellsPurchasePrice, withoutPurchasePrice } from './vendor-cost.ts'
import { bearerHeaders, type KeyHeaders } from './vendor-options.ts'

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

/**
 * Passes a JSON image response through. Only `usage` is read, without the operator's cost if the caller is billed. Images are
 * counted in `data`. Returns `undefined` if there is no list of images: not a JSON object, an error in a 2xx, or no `data`.
 */
function passPictures(
  chunks: readonly Uint8Array[],
  { isBilled }: Pick<VendorCall<unknown>, 'isBilled'> = {},
): AnswerBody | undefined {
  const members = outlineMembers(chunks)
  if (members === undefined) return undefined
  const images = memberCalled(members, 'data')?.items
  if (images === undefined || holdsError(chunks, members)) return undefined
  const wire = memberValue(chunks, members, 'usage')
  const isShown = isBilled !== true || !tellsPurchasePrice(wire)
  return {
    chunks: isShown ? chunks : withoutPrices(chunks, members),
    usage: { ...(images === 0 ? NO_PICTURES : {}), ...openaiImageUsage(wire), images },
  }
}

/** Usage of an answer without an image, unless its vendor reports more. */
const NO_PICTURES: Usage = { outputTokens: 0, outputImageTokens: 0 }

/** Removes the operator's cost from every `usage`, without copying the images. */
function withoutPrices(chunks: readonly Uint8Array[], members: readonly JsonMember[]): readonly Uint8Array[] {
  const pieces: Uint8Array[] = []
  let position = 0
  for (const { name, valueStart, end } of members) {
    if (name !== 'usage') continue
    const value = withoutPurchasePrice(parseVendorJson(textBetween(chunks, valueStart, end)))
    pieces.push(...bytesBetween(chunks, position, valueStart), Buffer.from(JSON.stringify(value)))
    position = end
  }
  return [...pieces, ...bytesBetween(chunks, position, Number.POSITIVE_INFINITY)]
}

/** Facts about the call that a stream of images needs. */
export interface ImageStreamOptions {
  /** Number of requested images. Each ends with its own event. */
  readonly pictures: number
  /** Reads an error object inside the stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
  /** Whether the caller is billed, so that events must not show the operator's cost. */
  readonly isBilled?: boolean | undefined
  /** Maximum event size in bytes. By default, a 4K image fits. */
  readonly maxEventBytes?: number
}

/**
 * Passes a stream of images on (OpenAI API reference, image streaming events): events pass untouched, and only their type and usage
 * are read. Errors are removed. The stream is complete if every image is, or if the vendor ended it after at least one; `[DONE]` is
 * not required.
 */
export class OpenAIImagesPassThrough extends PassThroughStream {
  usage: Usage | undefined
  readonly #options: ImageStreamOptions
  #completed = 0

  constructor(options: ImageStreamOptions) {
    super(options.maxEventBytes)
    this.#options = options
  }

  protected override bodyEnded(): undefined {
    if (this.#completed > 0) this.isComplete = true
  }

  protected override readEvent(event: EventLines, isRest: boolean): void {
    if (event.isEndMark) {
      if (this.#completed > 0) this.isComplete = true
      return
    }
    const { data, name } = event
    const members = outlineMembers(data)
    if (members === undefined) {
      this.failUnreadable(event, isRest)
      return
    }
    const written = memberValue(data, members, 'type')
    const type = typeof written === 'string' ? written : (name ?? '')
    if (name === 'error' || type === 'error' || holdsError(data, members)) {
      const envelope = parseVendorJson(event.text)
      // An error after the last image is ignored, because everything that is charged is complete.
      this.fail(this.#options.streamFailure(objectOf(envelope)))
    } else if (type.endsWith('.partial_image')) this.countContent()
    else if (type.endsWith('.completed')) {
      const wire = memberValue(data, members, 'usage')
      if (this.#options.isBilled === true && tellsPurchasePrice(wire)) {
        const text = Buffer.concat(withoutPrices(data, members)).toString('utf8')
        this.replaceEvent(Buffer.from(name === undefined ? sseData(text) : sseEvent(name, text)))
      }
      this.#complete(openaiImageUsage(wire))
    }
  }

  #complete(reported: Usage): void {
    this.hasContent = true
    this.#completed += 1
    this.usage = { ...addedUsage(this.usage ?? {}, reported), images: this.#completed }
    if (this.#completed >= this.#options.pictures) this.isComplete = true
  }
}

/** If a name is repeated, readers use the last member. */
function memberCalled(members: readonly JsonMember[], name: string): JsonMember | undefined {
  return members.findLast((member) => member.name === name)
}

function memberValue(chunks: readonly Uint8Array[], members: readonly JsonMember[], name: string): unknown {
  const member = memberCalled(members, name)
  return member && parseVendorJson(textBetween(chunks, member.valueStart, member.end))
}

function holdsError(chunks: readonly Uint8Array[], members: readonly JsonMember[]): boolean {
  const error = memberCalled(members, 'error')
  return error !== undefined && textBetween(chunks, error.valueStart, error.end) !== 'null'
}

/**
 * Reads `usage` of an image answer (OpenAI API reference, images). If the vendor does not split the output, all of it counts as
 * images. Numbers are passed on unchanged, plausible or not; anything else counts as missing. Never throws. Returns an empty object
 * if the value is not an object.
 */
export function openaiImageUsage(value: unknown): Usage {
  if (!isJsonObject(value)) return {}
  const input = objectOf(value['input_tokens_details'])
  const output = objectOf(value['output_tokens_details'])
  const usage: MutableUsage = {}
  if (typeof value['input_tokens'] === 'number') usage.inputTokens = value['input_tokens']
  if (typeof input['image_tokens'] === 'number') usage.inputImageTokens = input['image_tokens']
  if (typeof value['output_tokens'] === 'number') usage.outputTokens = value['output_tokens']
  const drawn = output['image_tokens'] ?? value['output_tokens']
  if (typeof drawn === 'number') usage.outputImageTokens = drawn
  return usage
}

/** Adds the usage of another image of the same request. A field that only one of them has keeps its value. */
function addedUsage(sum: Usage, more: Usage): Usage {
  const total: { -readonly [Field in UsageField]?: number } = { ...sum }
  for (const field in more) {
    const name = field as UsageField
    total[name] = (total[name] ?? 0) + (more[name] ?? 0)
  }
  return total
}
