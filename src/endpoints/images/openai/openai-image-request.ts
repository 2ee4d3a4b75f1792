import type { ImageAbilities, ModelFacts } from '../../../catalog/model-facts.ts'
import type { BillingFields } from '../../../catalog/prices/prices.ts'
import { isSet } from '../../../core/json.ts'
import type { Usage } from '../../../core/usage.ts'
import { invalidField, unsupportedField } from '../../field-errors.ts'

/** Options of image generation and image edits. */
export interface PictureOptions {
  readonly n?: number | null
  /** `auto`, or width and height in pixels: `1536x864`. */
  readonly size?: string | null
  readonly quality?: string | null
  readonly response_format?: string | null
  readonly output_format?: string | null
  readonly output_compression?: number | null
  readonly background?: string | null
  readonly partial_images?: number | null
}

/** Text to image in OpenAI's shape (OpenAI API, "Create image"). */
export interface OpenAIImageRequest extends PictureOptions {
  readonly model: string
  readonly prompt: string
  readonly moderation?: string | null
  readonly stream?: boolean | null
  readonly user?: string
}

/** Lets the vendor choose the size. Default of the field, so every model accepts it. */
export const AUTO_SIZE = 'auto'

type Size = string | null | undefined
type FreeSize = NonNullable<ImageAbilities['freeSize']>

/**
 * Checks a size against the list of a model only (API specification, "Image edit request", `size`).
 * @throws GatewayError `invalid_request` with param `size`.
 */
export function checkListedSize(size: Size, abilities: ImageAbilities | undefined): void {
  const sizes = abilities?.sizes
  if (isUnset(size) || sizes === undefined || sizes.includes(size)) return
  throw invalidField(
    'size',
    `must be one of ${[...new Set([AUTO_SIZE, ...sizes])].join(', ')}; 2K and 4K are not supported here`,
  )
}

/**
 * Checks a size against the list of a model and its rule for free sizes (API specification, "Endpoints", note 1).
 * @throws GatewayError `invalid_request` with param `size`.
 */
export function checkFreeSize(size: Size, abilities: ImageAbilities | undefined): void {
  const rule = abilities?.freeSize
  if (rule === undefined) {
    checkListedSize(size, abilities)
    return
  }
  if (isUnset(size) || abilities?.sizes?.includes(size) === true) return
  const pixels = parsePixelSize(size)
  const fault =
    pixels === undefined ? 'must be auto, or width and height in pixels such as 1536x864' : faultOf(pixels, rule)
  if (fault !== undefined) throw invalidField('size', fault)
}

/** Returns the billed size of a request: the caller's own, else the model's, else `auto`. */
function billedSize(size: Size, abilities: ImageAbilities | undefined): string {
  const isOwn = !isUnset(size) || (size === AUTO_SIZE && takesAuto(abilities))
  return isOwn ? (size as string) : (abilities?.defaultSize ?? AUTO_SIZE)
}

/** Whether the vendor accepts `auto` for this model. True if unknown. */
export function takesAuto(abilities: ImageAbilities | undefined): boolean {
  return abilities?.sizes?.includes(AUTO_SIZE) ?? true
}

function isUnset(size: Size): size is null | undefined | typeof AUTO_SIZE {
  return size === undefined || size === null || size === AUTO_SIZE
}

function faultOf({ width, height }: PixelSize, rule: FreeSize): string | undefined {
  const longer = Math.max(width, height)
  const shorter = Math.min(width, height)
  const pixels = width * height
  if (rule.multipleOf !== undefined && (width % rule.multipleOf !== 0 || height % rule.multipleOf !== 0)) {
    return `width and height must both be divisible by ${rule.multipleOf}`
  }
  if (rule.maxSide !== undefined && longer > rule.maxSide) return `no side may be longer than ${rule.maxSide} pixels`
  if (rule.maxRatio !== undefined && longer > shorter * rule.maxRatio) {
    return `the longer side may be at most ${rule.maxRatio} times the shorter one`
  }
  if (rule.maxPixels !== undefined && pixels > rule.maxPixels) return `at most ${rule.maxPixels} pixels are possible`
  if (rule.minPixels !== undefined && pixels < rule.minPixels) return `at least ${rule.minPixels} pixels are needed`
  return undefined
}

/** Width and height in pixels. */
interface PixelSize {
  readonly width: number
  readonly height: number
}

/** Tokens of a generated or given image, for models that are not known to use fewer. */
const ASSUMED_PICTURE_TOKENS = 4096

const PIXEL_SIZE = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/

/** Parses a size as callers write it: `1536x864`. Returns `undefined` for anything else, including `auto` and `2K`. */
function parsePixelSize(text: string): PixelSize | undefined {
  const match = PIXEL_SIZE.exec(text)
  return match === null ? undefined : { width: Number(match[1]), height: Number(match[2]) }
}

type Quality = string | null | undefined

const AUTO_QUALITY = 'auto'

/** Values of the specification, which every model accepts in some form. */
const SPECIFIED_QUALITIES: readonly string[] = ['auto', 'low', 'medium', 'high', 'standard', 'hd']

/** Names of these qualities in another family of models. */
const QUALITY_ALIASES: ReadonlyMap<string, string> = new Map([
  ['hd', 'high'],
  ['standard', 'medium'],
])

/**
 * Checks `quality` (API specification, "Image edit request"). For a model without a list the vendor checks it.
 * @throws GatewayError `invalid_request` with param `quality`.
 */
export function checkQuality(quality: Quality, abilities: ImageAbilities | undefined): void {
  const known = abilities?.qualities
  if (quality === undefined || quality === null || known === undefined) return
  if (known.includes(quality) || SPECIFIED_QUALITIES.includes(quality)) return
  const values = [...new Set([...SPECIFIED_QUALITIES, ...known])].join(', ')
  throw invalidField('quality', `must be one of ${values}`)
}

/**
 * Returns the quality under the vendor model's name, with aliases resolved, or `undefined` if none was given or the
 * model has no such quality.
 */
export function vendorQuality(quality: Quality, abilities: ImageAbilities | undefined): string | undefined {
  if (quality === undefined || quality === null) return undefined
  const known = abilities?.qualities
  if (known === undefined || known.includes(quality)) return quality
  const meant = QUALITY_ALIASES.get(quality)
  return meant !== undefined && known.includes(meant) ? meant : undefined
}

/** Returns the billed quality: the vendor's name for it, else `auto`, or the model's first quality if it has no `auto`. */
function billedQuality(quality: Quality, abilities: ImageAbilities | undefined): string {
  const known = abilities?.qualities
  const usual = known === undefined || known.includes(AUTO_QUALITY) ? AUTO_QUALITY : (known[0] ?? AUTO_QUALITY)
  return vendorQuality(quality, abilities) ?? usual
}

/** Whether the requested quality is neither the default nor supported by the model. */
export function losesQuality(quality: Quality, abilities: ImageAbilities | undefined): boolean {
  const isAsked = quality !== undefined && quality !== null && quality !== AUTO_QUALITY
  return isAsked && vendorQuality(quality, abilities) === undefined
}

/** Values of `output_format` of a model whose row does not list them (OpenAI API, "Create image"). */
export const USUAL_FORMATS: readonly string[] = ['png', 'jpeg', 'webp']

/**
 * Checks fields that depend on the model or on one another. Excludes sizes, which have different rules in text to image and edits.
 * @throws GatewayError `invalid_request` or `unsupported_parameter` naming the field.
 */
export function checkPictureOptions(options: PictureOptions, abilities: ImageAbilities | undefined): void {
  const values = options as Readonly<Record<string, unknown>>
  for (const field of abilities?.refusedFields ?? []) {
    const value = values[field]
    if (value === undefined || value === null || value === false) continue
    if (isAutoBackground(field, value)) continue
    throw unsupportedField(field, 'this model does not support it')
  }
  const { maxImages } = abilities ?? {}
  if (maxImages !== undefined && (options.n ?? 1) > maxImages) {
    throw invalidField('n', `this model generates at most ${maxImages} images per request`)
  }
  checkQuality(options.quality, abilities)
  const format = options.output_format ?? 'png'
  const formats = abilities?.outputFormats ?? USUAL_FORMATS
  // A request without a format accepts the model's format.
  if (isSet(options.output_format) && !formats.includes(format)) {
    throw invalidField('output_format', `must be one of ${formats.join(', ')} at this model`)
  }
  if (options.background === 'transparent' && format === 'jpeg') {
    throw invalidField('background', 'transparent needs output_format png or webp')
  }
  if (isSet(options.output_compression) && format !== 'jpeg' && format !== 'webp') {
    throw invalidField('output_compression', 'needs output_format jpeg or webp')
  }
}

/** Whether a field is `background: auto`, which has no effect (API specification, "Image edit request"). */
function isAutoBackground(field: string, value: unknown): boolean {
  return field === 'background' && value === 'auto'
}

/** Whether to omit `background` for the vendor. A checked request has only `auto` if the model does not support it. */
export function losesBackground({ background }: PictureOptions, { refusedFields = [] }: ImageAbilities): boolean {
  return isSet(background) && refusedFields.includes('background')
}

/** Output tokens of an image that is sent before it is finished (OpenAI, guide to image generation). */
export const PARTIAL_IMAGE_TOKENS = 100

/** The parts of a request other than its options. */
interface PictureInput {
  readonly textTokens: number
  /** Number of given images, including the mask. */
  readonly pictures: number
}

/**
 * Returns an upper estimate of a request's usage. A model whose abilities list no tokens is priced per image. With
 * unknown abilities any price is possible, so tokens are estimated too.
 */
export function pictureEstimate(options: PictureOptions, input: PictureInput, model: ModelFacts): Usage {
  const images = options.n ?? 1
  const { image } = model
  if (image !== undefined && image.outputTokens === undefined) return { images }
  const perPicture = tokensPerPicture(options, model) + (options.partial_images ?? 0) * PARTIAL_IMAGE_TOKENS
  const outputTokens = images * perPicture
  const inputImageTokens = input.pictures * (image?.inputTokensPerImage ?? ASSUMED_PICTURE_TOKENS)
  return {
    inputTokens: input.textTokens + inputImageTokens,
    inputImageTokens,
    outputTokens,
    outputImageTokens: outputTokens,
    images,
  }
}

/**
 * Returns size and quality for price conditions, with aliases resolved. Absent fields have the model's default, which
 * is `auto` if the vendor chooses. A price list for such a model needs a row without conditions, or one for `auto`.
 */
export function pictureBillingFields(options: PictureOptions, { image }: ModelFacts): BillingFields {
  return { size: billedSize(options.size, image), quality: billedQuality(options.quality, image) }
}

/** Returns the most output tokens of one finished image. */
export function tokensPerPicture(
  options: Pick<PictureOptions, 'size' | 'quality'>,
  { image, limits }: Pick<ModelFacts, 'image' | 'limits'>,
): number {
  if (image?.outputTokens === undefined) return limits.maxOutputTokens ?? ASSUMED_PICTURE_TOKENS
  return pictureTokens(image.outputTokens, billedSize(options.size, image), billedQuality(options.quality, image))
}

type TokenTable = NonNullable<ImageAbilities['outputTokens']>

interface TokenEntry {
  /** Quality of the table entry, or `undefined` for any quality. */
  readonly quality: string | undefined
  readonly size: string
  readonly pixels: number
  readonly tokens: number
}

/**
 * Returns an upper bound of the tokens of one image. An unlisted size counts by its pixels, at the highest listed tokens per pixel,
 * and at least as the smallest listed image. A size or quality chosen by the vendor counts as the highest.
 */
function pictureTokens(table: TokenTable, size: string, quality: string): number {
  const all = Object.entries(table).flatMap(([key, tokens]) => tokenEntries(key, tokens))
  const fitting = all.filter((entry) => entry.quality === undefined || entry.quality === quality)
  const entries = fitting.length > 0 ? fitting : all
  if (entries.length === 0) return table['default'] ?? 0
  const listed = entries.filter((entry) => entry.size === size)
  if (listed.length > 0) return highest(listed.map((entry) => entry.tokens))
  const asked = parsePixelSize(size)
  const known = entries.map((entry) => entry.tokens)
  if (asked === undefined) return table['default'] ?? highest(known)
  const pixels = asked.width * asked.height
  const scaled = entries.map((entry) => Math.ceil((entry.tokens * pixels) / entry.pixels))
  return Math.max(highest(scaled), Math.min(...known))
}

function tokenEntries(key: string, tokens: number): TokenEntry[] {
  const [first = '', second] = key.split(' ')
  const size = second ?? first
  const pixels = parsePixelSize(size)
  if (pixels === undefined) return []
  const quality = second === undefined ? undefined : first
  return [{ quality, size, pixels: pixels.width * pixels.height, tokens }]
}

function highest(numbers: readonly number[]): number {
  return Math.max(...numbers)
}
