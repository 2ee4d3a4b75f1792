import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage, UsageField } from '../../core/usage.ts'
import type { EventLines } from '../../wire/event-splitter.ts'
import { bytesBetween, textBetween } from '../../wire/json-cursor.ts'
import { type JsonMember, outlineMembers } from '../../wire/json-spans.ts'
import { sseData, sseEvent } from '../../wire/sse.ts'
import type { AnswerBody, VendorCall, VendorFailure } from '../vendor.ts'
import type { MutableUsage } from './openai-usage.ts'
import { PassThroughStream } from './pass-through-stream.ts'
import { tellsPurchasePrice, withoutPurchasePrice } from './purchase-price.ts'

/**
 * Passes a JSON image response through. Only `usage` is read, without the operator's cost if the caller is billed. Images are
 * counted in `data`. Returns `undefined` if there is no list of images: not a JSON object, an error in a 2xx, or no `data`.
 */
export function passPictures(
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

  protected readEvent(event: EventLines, isRest: boolean): void {
    if (event.isEndMark) {
      if (this.#completed > 0) this.isComplete = true
      return
    }
    const { data, name } = event
    const members = outlineMembers(data)
    if (members === undefined) {
      this.failUnreadable(isRest)
      return
    }
    const written = memberValue(data, members, 'type')
    const type = typeof written === 'string' ? written : (name ?? '')
    if (name === 'error' || type === 'error' || holdsError(data, members)) {
      const envelope = parseVendorJson(event.text)
      // An error after the last image is ignored, because everything that is charged is complete.
      this.fail(this.#options.streamFailure(isJsonObject(envelope) ? envelope : {}))
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
  const input = isJsonObject(value['input_tokens_details']) ? value['input_tokens_details'] : {}
  const output = isJsonObject(value['output_tokens_details']) ? value['output_tokens_details'] : {}
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
